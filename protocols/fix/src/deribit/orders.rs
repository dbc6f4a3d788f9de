//! Orders: enter, replace, cancel, and what the venue says of them.

use tickpath_types::Nanos;

use super::{
    ExecType, FillLiquidity, OrdStatus, OrdType, PegPriceType, QtyType, SideCode, TimeInForceCode, Trigger,
};
use crate::body::{entry, message};
use crate::decimal::Decimal;

message! {
    /// New Order Single (`D`): enter an order.
    NewOrderSingle<'a> = NEW_ORDER_SINGLE
    {
        /// The client's id of the order, at most 64 characters. Reports call it OrigClOrdID.
        cl_ord_id: &'a str = CL_ORD_ID,
        /// Buy or sell.
        side: SideCode = SIDE,
        /// How much, see `qty_type`.
        order_qty: Decimal = ORDER_QTY,
        /// The instrument.
        symbol: &'a str = SYMBOL,
    }
    {
        /// The limit.
        price: Decimal = PRICE,
        /// Limit when absent.
        ord_type: OrdType = ORD_TYPE,
        /// Until cancelled when absent.
        time_in_force: TimeInForceCode = TIME_IN_FORCE,
        /// `6` post only, `6A` post only or reject, `E` reduce only; in any combination.
        exec_inst: &'a str = EXEC_INST,
        /// Trigger price.
        stop_px: Decimal = STOP_PX,
        /// How much is shown.
        display_qty: Decimal = DISPLAY_QTY,
        /// How much is shown anew.
        refresh_qty: Decimal = REFRESH_QTY,
        /// What quantities count; contracts when absent.
        qty_type: QtyType = QTY_TYPE,
        /// Trailing offset.
        peg_offset_value: Decimal = PEG_OFFSET_VALUE,
        /// 8 with a trailing offset.
        peg_price_type: PegPriceType = PEG_PRICE_TYPE,
        /// The order is refused when it arrives later.
        valid_until_time: Nanos = VALID_UNTIL_TIME,
        /// A text that comes back with every report.
        label: &'a str = DERIBIT_LABEL,
        /// How an option's order is priced, in the venue's code.
        adv_order_type: &'a str = DERIBIT_ADV_ORDER_TYPE,
        /// Whether market maker protection counts the order.
        mm_protection: bool = DERIBIT_MM_PROTECTION,
        /// Which price triggers.
        trigger: Trigger = CONDITION_TRIGGER_METHOD,
    }
    {}
}

message! {
    /// Order Cancel/Replace Request (`G`). The venue's id of the order stays; the quantity is the new total.
    OrderCancelReplaceRequest<'a> = ORDER_CANCEL_REPLACE_REQUEST
    {
        /// The instrument.
        symbol: &'a str = SYMBOL,
        /// As the order's.
        side: SideCode = SIDE,
        /// The new total.
        order_qty: Decimal = ORDER_QTY,
    }
    {
        /// The venue's id of the order.
        orig_cl_ord_id: &'a str = ORIG_CL_ORD_ID,
        /// The client's id of the order, where the venue's is absent.
        cl_ord_id: &'a str = CL_ORD_ID,
        /// The order's label, where both ids are absent.
        label: &'a str = DERIBIT_LABEL,
        /// Limit.
        ord_type: OrdType = ORD_TYPE,
        /// The new limit.
        price: Decimal = PRICE,
        /// As [`NewOrderSingle::exec_inst`].
        exec_inst: &'a str = EXEC_INST,
        /// What quantities count; contracts when absent.
        qty_type: QtyType = QTY_TYPE,
        /// How much is shown.
        display_qty: Decimal = DISPLAY_QTY,
        /// Whether market maker protection counts the order.
        mm_protection: bool = DERIBIT_MM_PROTECTION,
        /// The request is refused when it arrives later.
        valid_until_time: Nanos = VALID_UNTIL_TIME,
        /// Currency, to find a label.
        currency: &'a str = CURRENCY,
    }
    {}
}

message! {
    /// Order Cancel Request (`F`): one of the venue's id, the client's and a label.
    OrderCancelRequest<'a> = ORDER_CANCEL_REQUEST
    {}
    {
        /// The venue's id of the order: the fastest.
        orig_cl_ord_id: &'a str = ORIG_CL_ORD_ID,
        /// The client's id of the order.
        cl_ord_id: &'a str = CL_ORD_ID,
        /// The order's label.
        label: &'a str = DERIBIT_LABEL,
        /// The instrument; needed without the venue's id.
        symbol: &'a str = SYMBOL,
        /// Currency.
        currency: &'a str = CURRENCY,
    }
    {}
}

entry! {
    /// A fill of a report.
    Fill<'a> in NO_FILLS from FILL_EXEC_ID
    {
        /// `BTC-28SEP18#38`: instrument and number of the trade.
        fill_exec_id: &'a str = FILL_EXEC_ID,
        /// Price.
        fill_px: Decimal = FILL_PX,
        /// Quantity.
        fill_qty: Decimal = FILL_QTY,
    }
    {
        /// Whether the order rested.
        liquidity: FillLiquidity = FILL_LIQUIDITY_IND,
    }
    {}
}

message! {
    /// Execution Report (`8`): an order as it is.
    ///
    /// A cancel is answered by a brief one of ids and states, and a whole one with the text `notification` follows:
    /// take quantities from that one. The sum of `fills` is what was filled, `last_qty` is only the last of them.
    ExecutionReport<'a> = EXECUTION_REPORT
    {
        /// State of the order.
        ord_status: OrdStatus = ORD_STATUS,
    }
    {
        /// Why the report is sent.
        exec_type: ExecType = EXEC_TYPE,
        /// Id of the change.
        secondary_exec_id: &'a str = SECONDARY_EXEC_ID,
        /// The venue's id of the order; older versions had it in `cl_ord_id` alone.
        order_id: &'a str = ORDER_ID,
        /// The venue's id of the order: the reverse of the usual.
        cl_ord_id: &'a str = CL_ORD_ID,
        /// The client's id of the order as it was entered.
        orig_cl_ord_id: &'a str = ORIG_CL_ORD_ID,
        /// Buy or sell.
        side: SideCode = SIDE,
        /// When it happened.
        transact_time: Nanos = TRANSACT_TIME,
        /// Commission; always 0 in newer versions.
        commission: Decimal = COMMISSION,
        /// What is still open.
        leaves_qty: Decimal = LEAVES_QTY,
        /// What has been filled.
        cum_qty: Decimal = CUM_QTY,
        /// The whole quantity.
        order_qty: Decimal = ORDER_QTY,
        /// Kind of order.
        ord_type: OrdType = ORD_TYPE,
        /// The limit.
        price: Decimal = PRICE,
        /// How long it rests.
        time_in_force: TimeInForceCode = TIME_IN_FORCE,
        /// As [`NewOrderSingle::exec_inst`].
        exec_inst: &'a str = EXEC_INST,
        /// Trigger price.
        stop_px: Decimal = STOP_PX,
        /// Why it was refused: 0 not, 1 unknown symbol, 2 closed, 3 exceeds a limit, 4 too late, 5 unknown order,
        /// 6 duplicate, 11 unsupported, 13 bad quantity, 15 and 16 price band, 18 tick, 99 other.
        ord_rej_reason: u64 = ORD_REJ_REASON,
        /// `success`, `notification` where nothing was asked for, or what is wrong.
        text: &'a str = TEXT,
        /// `Deribit`.
        security_exchange: &'a str = SECURITY_EXCHANGE,
        /// The instrument.
        symbol: &'a str = SYMBOL,
        /// What quantities count; contracts when absent.
        qty_type: QtyType = QTY_TYPE,
        /// Units of a contract.
        contract_multiplier: Decimal = CONTRACT_MULTIPLIER,
        /// Average price of the fills.
        avg_px: Decimal = AVG_PX,
        /// How much is shown.
        display_qty: Decimal = DISPLAY_QTY,
        /// How much is shown anew.
        refresh_qty: Decimal = REFRESH_QTY,
        /// Equal to the quantity of an order whose size is an amount of USD.
        cash_order_qty: Decimal = CASH_ORDER_QTY,
        /// How much is shown, as older versions say it.
        max_show: Decimal = MAX_SHOW,
        /// Price of the last fill.
        last_px: Decimal = LAST_PX,
        /// Quantity of the last fill.
        last_qty: Decimal = LAST_QTY,
        /// The order's label.
        label: &'a str = DERIBIT_LABEL,
        /// In a report of a cancelled order: market maker protection cancelled it.
        mm_protection: bool = DERIBIT_MM_PROTECTION,
        /// How an option's order is priced, in the venue's code.
        adv_order_type: &'a str = DERIBIT_ADV_ORDER_TYPE,
        /// Implied volatility of an option's order.
        volatility: Decimal = VOLATILITY,
        /// Price of an order that follows.
        pegged_price: Decimal = PEGGED_PRICE,
        /// Which price triggers.
        trigger: Trigger = CONDITION_TRIGGER_METHOD,
        /// Trailing offset.
        peg_offset_value: Decimal = PEG_OFFSET_VALUE,
        /// 8 with a trailing offset.
        peg_price_type: PegPriceType = PEG_PRICE_TYPE,
        /// Id of the mass status request that is answered.
        mass_status_req_id: &'a str = MASS_STATUS_REQ_ID,
        /// Kind of that request.
        mass_status_req_type: u64 = MASS_STATUS_REQ_TYPE,
        /// How many reports answer it.
        tot_num_reports: u64 = TOT_NUM_REPORTS,
        /// Of a quote: its group of market maker protection.
        mmp_group: &'a str = MMP_GROUP,
        /// Of a quote: the client's id of the message.
        quote_id: &'a str = QUOTE_ID,
        /// Of a quote: the client's id of the set.
        quote_set_id: &'a str = QUOTE_SET_ID,
        /// Of a quote: the client's id of it.
        quote_entry_id: &'a str = QUOTE_ENTRY_ID,
        /// Whether the venue entered it to close a position.
        is_liquidation: bool = IS_LIQUIDATION,
    }
    {
        /// The fills, where each is not a report of its own.
        fills: Fill = NO_FILLS,
    }
}

message! {
    /// Order Cancel Reject (`9`): a cancel or replace was refused.
    OrderCancelReject<'a> = ORDER_CANCEL_REJECT
    {}
    {
        /// State of the order.
        ord_status: OrdStatus = ORD_STATUS,
        /// Why: 0 too late, 1 unknown order, 3 already pending, 6 duplicate, 99 other.
        cxl_rej_reason: u64 = CXL_REJ_REASON,
        /// Why, in words.
        text: &'a str = TEXT,
        /// As the request said.
        orig_cl_ord_id: &'a str = ORIG_CL_ORD_ID,
        /// As the request said.
        cl_ord_id: &'a str = CL_ORD_ID,
        /// As the request said.
        label: &'a str = DERIBIT_LABEL,
        /// What is still open.
        leaves_qty: Decimal = LEAVES_QTY,
        /// Average price of the fills.
        avg_px: Decimal = AVG_PX,
    }
    {}
}

message! {
    /// Order Mass Cancel Request (`q`).
    OrderMassCancelRequest<'a> = ORDER_MASS_CANCEL_REQUEST
    {
        /// The client's id of the request.
        cl_ord_id: &'a str = CL_ORD_ID,
        /// Which: 1 of a symbol, 5 of a type, 7 all, 10 of a label. Answers have 11 for quotes.
        request_type: u64 = MASS_CANCEL_REQUEST_TYPE,
    }
    {
        /// Orders of this label.
        label: &'a str = DERIBIT_LABEL,
        /// Orders of this type of instruments: `FUT`, `OPT`, `FXSPOT`, `FUTCO`, `OPTCO`.
        security_type: &'a str = SECURITY_TYPE,
        /// Orders of this instrument.
        symbol: &'a str = SYMBOL,
        /// Orders of this currency.
        currency: &'a str = CURRENCY,
        /// Whether quotes are refused for a while.
        freeze_quotes: bool = FREEZE_QUOTES,
    }
    {}
}

entry! {
    /// An order that was cancelled.
    AffectedOrder<'a> in NO_AFFECTED_ORDERS from ORIG_CL_ORD_ID
    {
        /// The client's id of an order.
        orig_cl_ord_id: &'a str = ORIG_CL_ORD_ID,
    }
    {}
    {}
}

message! {
    /// Order Mass Cancel Report (`r`).
    OrderMassCancelReport<'a> = ORDER_MASS_CANCEL_REPORT
    {}
    {
        /// The client's id of the request.
        cl_ord_id: &'a str = CL_ORD_ID,
        /// The venue's id.
        order_id: &'a str = ORDER_ID,
        /// As the request said.
        request_type: u64 = MASS_CANCEL_REQUEST_TYPE,
        /// As the request said when it was done; 0 or absent when it was refused.
        response: u64 = MASS_CANCEL_RESPONSE,
        /// Why it was refused: 1 unknown symbol, 5 unknown type.
        reject_reason: u64 = MASS_CANCEL_REJECT_REASON,
        /// How many orders were cancelled.
        total_affected_orders: u64 = TOTAL_AFFECTED_ORDERS,
        /// Why, in words.
        text: &'a str = TEXT,
        /// Of a [`QuoteCancel`](super::QuoteCancel): its type.
        quote_cancel_type: u64 = QUOTE_CANCEL_TYPE,
    }
    {
        /// The orders that were cancelled.
        affected_orders: AffectedOrder = NO_AFFECTED_ORDERS,
    }
}
