//! Orders: entry, replacement, cancellation, and execution reports.

use tickpath_types::Nanos;

use super::{
    ExecType, FillLiquidity, OrdStatus, OrdType, PegPriceType, QtyType, SideCode, TimeInForceCode, Trigger,
};
use crate::body::{entry, message};
use crate::decimal::Decimal;

message! {
    /// New Order Single (`D`): enters an order.
    NewOrderSingle<'a> = NEW_ORDER_SINGLE
    {
        /// The client's id of the order, at most 64 characters. Reports have it in OrigClOrdID.
        cl_ord_id: &'a str = CL_ORD_ID,
        /// Buy or sell.
        side: SideCode = SIDE,
        /// Quantity, see `qty_type`.
        order_qty: Decimal = ORDER_QTY,
        /// The instrument.
        symbol: &'a str = SYMBOL,
    }
    {
        /// Limit price.
        price: Decimal = PRICE,
        /// Order type; limit if absent.
        ord_type: OrdType = ORD_TYPE,
        /// Time in force; good til cancelled if absent.
        time_in_force: TimeInForceCode = TIME_IN_FORCE,
        /// Instructions: `6` post only, `6A` post only or reject, `E` reduce only; in any combination.
        exec_inst: &'a str = EXEC_INST,
        /// Trigger price.
        stop_px: Decimal = STOP_PX,
        /// Displayed quantity.
        display_qty: Decimal = DISPLAY_QTY,
        /// Quantity of each refresh of the displayed quantity.
        refresh_qty: Decimal = REFRESH_QTY,
        /// Unit of the quantities; contracts if absent.
        qty_type: QtyType = QTY_TYPE,
        /// Trailing offset.
        peg_offset_value: Decimal = PEG_OFFSET_VALUE,
        /// Must be 8 with a trailing offset.
        peg_price_type: PegPriceType = PEG_PRICE_TYPE,
        /// The order is rejected if it arrives later.
        valid_until_time: Nanos = VALID_UNTIL_TIME,
        /// Label, which is echoed in every report.
        label: &'a str = DERIBIT_LABEL,
        /// Pricing of an option order, in the venue's code.
        adv_order_type: &'a str = DERIBIT_ADV_ORDER_TYPE,
        /// Whether market maker protection includes the order.
        mm_protection: bool = DERIBIT_MM_PROTECTION,
        /// Price that triggers the order.
        trigger: Trigger = CONDITION_TRIGGER_METHOD,
    }
    {}
}

message! {
    /// Order Cancel/Replace Request (`G`). The order keeps the venue's id; the quantity is the new total.
    OrderCancelReplaceRequest<'a> = ORDER_CANCEL_REPLACE_REQUEST
    {
        /// The instrument.
        symbol: &'a str = SYMBOL,
        /// Side of the order.
        side: SideCode = SIDE,
        /// New total quantity.
        order_qty: Decimal = ORDER_QTY,
    }
    {
        /// The venue's id of the order.
        orig_cl_ord_id: &'a str = ORIG_CL_ORD_ID,
        /// The client's id of the order; used without the venue's id.
        cl_ord_id: &'a str = CL_ORD_ID,
        /// The label of the order; used without either id.
        label: &'a str = DERIBIT_LABEL,
        /// Order type: limit.
        ord_type: OrdType = ORD_TYPE,
        /// New limit price.
        price: Decimal = PRICE,
        /// As [`NewOrderSingle::exec_inst`].
        exec_inst: &'a str = EXEC_INST,
        /// Unit of the quantities; contracts if absent.
        qty_type: QtyType = QTY_TYPE,
        /// Displayed quantity.
        display_qty: Decimal = DISPLAY_QTY,
        /// Whether market maker protection includes the order.
        mm_protection: bool = DERIBIT_MM_PROTECTION,
        /// The request is rejected if it arrives later.
        valid_until_time: Nanos = VALID_UNTIL_TIME,
        /// Currency, for a search by label.
        currency: &'a str = CURRENCY,
    }
    {}
}

message! {
    /// Order Cancel Request (`F`) by the venue's id, the client's id or a label.
    OrderCancelRequest<'a> = ORDER_CANCEL_REQUEST
    {}
    {
        /// The venue's id of the order, which is the fastest.
        orig_cl_ord_id: &'a str = ORIG_CL_ORD_ID,
        /// The client's id of the order.
        cl_ord_id: &'a str = CL_ORD_ID,
        /// The order's label.
        label: &'a str = DERIBIT_LABEL,
        /// The instrument; required without the venue's id.
        symbol: &'a str = SYMBOL,
        /// Currency.
        currency: &'a str = CURRENCY,
    }
    {}
}

entry! {
    /// A fill in a report.
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
        /// Maker or taker.
        liquidity: FillLiquidity = FILL_LIQUIDITY_IND,
    }
    {}
}

message! {
    /// Execution Report (`8`): the current state of an order.
    ///
    /// The reply to a cancel is brief (ids and states). A full report with the text `notification` follows:
    /// use its quantities. The sum of `fills` is the quantity filled; `last_qty` is only the last fill.
    ExecutionReport<'a> = EXECUTION_REPORT
    {
        /// State of the order.
        ord_status: OrdStatus = ORD_STATUS,
    }
    {
        /// Reason for the report.
        exec_type: ExecType = EXEC_TYPE,
        /// Id of the change.
        secondary_exec_id: &'a str = SECONDARY_EXEC_ID,
        /// The venue's id of the order; older versions had it in `cl_ord_id` alone.
        order_id: &'a str = ORDER_ID,
        /// The venue's id of the order, contrary to the standard.
        cl_ord_id: &'a str = CL_ORD_ID,
        /// The client's id from the order's entry.
        orig_cl_ord_id: &'a str = ORIG_CL_ORD_ID,
        /// Buy or sell.
        side: SideCode = SIDE,
        /// Time of the event.
        transact_time: Nanos = TRANSACT_TIME,
        /// Commission; always 0 in newer versions.
        commission: Decimal = COMMISSION,
        /// Remaining quantity.
        leaves_qty: Decimal = LEAVES_QTY,
        /// Filled quantity.
        cum_qty: Decimal = CUM_QTY,
        /// Total quantity.
        order_qty: Decimal = ORDER_QTY,
        /// Order type.
        ord_type: OrdType = ORD_TYPE,
        /// Limit price.
        price: Decimal = PRICE,
        /// Time in force.
        time_in_force: TimeInForceCode = TIME_IN_FORCE,
        /// As [`NewOrderSingle::exec_inst`].
        exec_inst: &'a str = EXEC_INST,
        /// Trigger price.
        stop_px: Decimal = STOP_PX,
        /// Reject reason: 0 none, 1 unknown symbol, 2 closed, 3 exceeds a limit, 4 too late, 5 unknown order,
        /// 6 duplicate, 11 unsupported, 13 bad quantity, 15 and 16 price band, 18 tick, 99 other.
        ord_rej_reason: u64 = ORD_REJ_REASON,
        /// `success`, `notification` for an unsolicited report, or the error.
        text: &'a str = TEXT,
        /// `Deribit`.
        security_exchange: &'a str = SECURITY_EXCHANGE,
        /// The instrument.
        symbol: &'a str = SYMBOL,
        /// Unit of the quantities; contracts if absent.
        qty_type: QtyType = QTY_TYPE,
        /// Units per contract.
        contract_multiplier: Decimal = CONTRACT_MULTIPLIER,
        /// Average price of the fills.
        avg_px: Decimal = AVG_PX,
        /// Displayed quantity.
        display_qty: Decimal = DISPLAY_QTY,
        /// Quantity of each refresh of the displayed quantity.
        refresh_qty: Decimal = REFRESH_QTY,
        /// Equals the quantity of an order whose size is an amount of USD.
        cash_order_qty: Decimal = CASH_ORDER_QTY,
        /// Displayed quantity, in older versions.
        max_show: Decimal = MAX_SHOW,
        /// Price of the last fill.
        last_px: Decimal = LAST_PX,
        /// Quantity of the last fill.
        last_qty: Decimal = LAST_QTY,
        /// Label of the order.
        label: &'a str = DERIBIT_LABEL,
        /// True if market maker protection cancelled the order.
        mm_protection: bool = DERIBIT_MM_PROTECTION,
        /// Pricing of an option order, in the venue's code.
        adv_order_type: &'a str = DERIBIT_ADV_ORDER_TYPE,
        /// Implied volatility of an option order.
        volatility: Decimal = VOLATILITY,
        /// Price of a pegged order.
        pegged_price: Decimal = PEGGED_PRICE,
        /// Price that triggers the order.
        trigger: Trigger = CONDITION_TRIGGER_METHOD,
        /// Trailing offset.
        peg_offset_value: Decimal = PEG_OFFSET_VALUE,
        /// 8 with a trailing offset.
        peg_price_type: PegPriceType = PEG_PRICE_TYPE,
        /// Id of the mass status request of this reply.
        mass_status_req_id: &'a str = MASS_STATUS_REQ_ID,
        /// Type of the mass status request.
        mass_status_req_type: u64 = MASS_STATUS_REQ_TYPE,
        /// Number of reports in the reply.
        tot_num_reports: u64 = TOT_NUM_REPORTS,
        /// Quotes: market maker protection group.
        mmp_group: &'a str = MMP_GROUP,
        /// Quotes: the client's id of the message.
        quote_id: &'a str = QUOTE_ID,
        /// Quotes: the client's id of the set.
        quote_set_id: &'a str = QUOTE_SET_ID,
        /// Quotes: the client's id of the quote.
        quote_entry_id: &'a str = QUOTE_ENTRY_ID,
        /// True if the venue entered the order to liquidate a position.
        is_liquidation: bool = IS_LIQUIDATION,
    }
    {
        /// Fills, unless each has a separate report.
        fills: Fill = NO_FILLS,
    }
}

message! {
    /// Order Cancel Reject (`9`): a cancel or replace request was rejected.
    OrderCancelReject<'a> = ORDER_CANCEL_REJECT
    {}
    {
        /// State of the order.
        ord_status: OrdStatus = ORD_STATUS,
        /// Reject reason: 0 too late, 1 unknown order, 3 already pending, 6 duplicate, 99 other.
        cxl_rej_reason: u64 = CXL_REJ_REASON,
        /// Description of the reason.
        text: &'a str = TEXT,
        /// The venue's id in the request.
        orig_cl_ord_id: &'a str = ORIG_CL_ORD_ID,
        /// The client's id in the request.
        cl_ord_id: &'a str = CL_ORD_ID,
        /// Label in the request.
        label: &'a str = DERIBIT_LABEL,
        /// Remaining quantity.
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
        /// Scope: 1 by symbol, 5 by type, 7 all, 10 by label. Reports have 11 for quotes.
        request_type: u64 = MASS_CANCEL_REQUEST_TYPE,
    }
    {
        /// Label of the orders.
        label: &'a str = DERIBIT_LABEL,
        /// Instrument type of the orders: `FUT`, `OPT`, `FXSPOT`, `FUTCO`, `OPTCO`.
        security_type: &'a str = SECURITY_TYPE,
        /// Instrument of the orders.
        symbol: &'a str = SYMBOL,
        /// Currency of the orders.
        currency: &'a str = CURRENCY,
        /// Whether quotes are rejected for a while.
        freeze_quotes: bool = FREEZE_QUOTES,
    }
    {}
}

entry! {
    /// A cancelled order.
    AffectedOrder<'a> in NO_AFFECTED_ORDERS from ORIG_CL_ORD_ID
    {
        /// The client's id of the order.
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
        /// Scope in the request.
        request_type: u64 = MASS_CANCEL_REQUEST_TYPE,
        /// Scope in the request if successful; 0 or absent if rejected.
        response: u64 = MASS_CANCEL_RESPONSE,
        /// Reject reason: 1 unknown symbol, 5 unknown type.
        reject_reason: u64 = MASS_CANCEL_REJECT_REASON,
        /// Number of cancelled orders.
        total_affected_orders: u64 = TOTAL_AFFECTED_ORDERS,
        /// Description of the reason.
        text: &'a str = TEXT,
        /// Type of a [`QuoteCancel`](super::QuoteCancel).
        quote_cancel_type: u64 = QUOTE_CANCEL_TYPE,
    }
    {
        /// Cancelled orders.
        affected_orders: AffectedOrder = NO_AFFECTED_ORDERS,
    }
}
