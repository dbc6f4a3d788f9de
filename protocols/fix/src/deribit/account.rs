//! The account: current orders and positions, and balances.

use super::{QtyType, SubscriptionRequestType};
use crate::body::{entry, message};
use crate::decimal::Decimal;

message! {
    /// Order Mass Status Request (`AF`): the reply has a report with `tot_num_reports` and one per order.
    OrderMassStatusRequest<'a> = ORDER_MASS_STATUS_REQUEST
    {
        /// The client's id of the request; for type 1 the id of the order.
        request_id: &'a str = MASS_STATUS_REQ_ID,
        /// 7 all orders, 1 one order.
        request_type: u64 = MASS_STATUS_REQ_TYPE,
    }
    {
        /// Kind of id: 0 the venue's, 1 the client's, 2 a label.
        id_type: u64 = MASS_STATUS_ID_TYPE,
        /// Instrument of the orders.
        symbol: &'a str = SYMBOL,
        /// Currency of the orders.
        currency: &'a str = CURRENCY,
    }
    {}
}

message! {
    /// Request For Positions (`AN`).
    RequestForPositions<'a> = REQUEST_FOR_POSITIONS
    {
        /// The client's id of the request.
        request_id: &'a str = POS_REQ_ID,
        /// 0: positions.
        request_type: u64 = POS_REQ_TYPE,
    }
    {
        /// Snapshot, subscribe or unsubscribe.
        subscription: SubscriptionRequestType = SUBSCRIPTION_REQUEST_TYPE,
        /// Currency of the positions.
        currency: &'a str = CURRENCY,
    }
    {}
}

entry! {
    /// A position.
    Position<'a> in NO_POSITIONS from POS_TYPE
    {
        /// `TQ`: the current position.
        pos_type: &'a str = POS_TYPE,
    }
    {
        /// Long quantity, see `qty_type`.
        long_qty: Decimal = LONG_QTY,
        /// Short quantity, see `qty_type`.
        short_qty: Decimal = SHORT_QTY,
        /// The instrument.
        symbol: &'a str = SYMBOL,
        /// Unit of the quantities; contracts if absent.
        qty_type: QtyType = QTY_TYPE,
        /// Units per contract.
        contract_multiplier: Decimal = CONTRACT_MULTIPLIER,
        /// Mark price.
        mark_price: Decimal = UNDERLYING_SETTL_PRICE,
        /// Side code.
        side: &'a str = SIDE,
        /// Average price.
        settl_price: Decimal = SETTL_PRICE,
        /// Length of `raw_data` in bytes.
        raw_data_length: u64 = RAW_DATA_LENGTH,
        /// `MAINTENANCE;INITIAL;FLOATING`: margins and profit.
        raw_data: &'a str = RAW_DATA,
        /// Liquidation price.
        liquidation_price: Decimal = DERIBIT_LIQUIDATION_PRICE,
        /// Size in coins.
        size_in_currency: Decimal = DERIBIT_SIZE_IN_CURRENCY,
    }
    {}
}

message! {
    /// Position Report (`AP`).
    PositionReport<'a> = POSITION_REPORT
    {}
    {
        /// The venue's id of the report.
        report_id: &'a str = POS_MAINT_RPT_ID,
        /// The client's id of the request.
        request_id: &'a str = POS_REQ_ID,
        /// Type of the request.
        request_type: u64 = POS_REQ_TYPE,
        /// 0 success, 1 not supported, 99 other.
        result: u64 = POS_REQ_RESULT,
    }
    {
        /// The positions.
        positions: Position = NO_POSITIONS,
    }
}

message! {
    /// User Request (`BE`).
    UserRequest<'a> = USER_REQUEST
    {
        /// The client's id of the request.
        request_id: &'a str = USER_REQUEST_ID,
        /// 4: status of the account.
        request_type: u64 = USER_REQUEST_TYPE,
        /// The client's id.
        username: &'a str = USERNAME,
    }
    {
        /// Currency of the account; `BTC` if absent.
        currency: &'a str = CURRENCY,
    }
    {}
}

message! {
    /// User Response (`BF`): balances of one currency.
    UserResponse<'a> = USER_RESPONSE
    {
        /// The client's id of the request.
        request_id: &'a str = USER_REQUEST_ID,
    }
    {
        /// The client's id.
        username: &'a str = USERNAME,
        /// 1: logged on.
        status: u64 = USER_STATUS,
        /// Currency.
        currency: &'a str = CURRENCY,
        /// Balance plus unrealised profits.
        equity: Decimal = USER_EQUITY,
        /// Balance.
        balance: Decimal = USER_BALANCE,
        /// Initial margin.
        initial_margin: Decimal = USER_INITIAL_MARGIN,
        /// Maintenance margin.
        maintenance_margin: Decimal = USER_MAINTENANCE_MARGIN,
        /// Unrealised profit of the session.
        unrealized_pl: Decimal = UNREALIZED_PL,
        /// Realised profit of the session.
        realized_pl: Decimal = REALIZED_PL,
        /// Profit of the session.
        total_pl: Decimal = TOTAL_PL,
        /// Balance available for margin.
        margin_balance: Decimal = MARGIN_BALANCE,
    }
    {}
}
