//! Deribit messages as a user of serde declares them: the members that recorded messages have, with binary
//! floating point for prices and amounts, and texts borrowed from the frame.
#![allow(dead_code, reason = "a peer decodes all members, and the row reads only some of them")]

use serde::Deserialize;

/// A notification about an order book.
#[derive(Deserialize)]
pub(crate) struct BookNotification<'a> {
    /// Borrowed, as all texts, so that the peer copies none.
    pub(crate) method: &'a str,
    #[serde(borrow)]
    pub(crate) params: BookParams<'a>,
}

#[derive(Deserialize)]
pub(crate) struct BookParams<'a> {
    pub(crate) channel: &'a str,
    #[serde(borrow)]
    pub(crate) data: Book<'a>,
}

#[derive(Deserialize)]
pub(crate) struct Book<'a> {
    #[serde(rename = "type")]
    pub(crate) kind: BookKind,
    pub(crate) timestamp: u64,
    pub(crate) prev_change_id: Option<u64>,
    pub(crate) instrument_name: &'a str,
    pub(crate) change_id: u64,
    pub(crate) bids: Vec<Level>,
    pub(crate) asks: Vec<Level>,
}

#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum BookKind {
    Snapshot,
    Change,
}

/// Action, price and amount of a level.
#[derive(Clone, Copy, Deserialize)]
pub(crate) struct Level(pub(crate) LevelAction, pub(crate) f64, pub(crate) f64);

#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum LevelAction {
    New,
    Change,
    Delete,
}

/// The reply to an order.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct OrderReply<'a> {
    pub(crate) id: i64,
    #[serde(borrow)]
    pub(crate) result: OrderResult<'a>,
    pub(crate) us_in: u64,
    pub(crate) us_out: u64,
    pub(crate) testnet: bool,
}

#[derive(Deserialize)]
pub(crate) struct OrderResult<'a> {
    #[serde(borrow)]
    pub(crate) order: Order<'a>,
    #[serde(borrow)]
    pub(crate) trades: Vec<Trade<'a>>,
}

#[derive(Deserialize)]
pub(crate) struct Order<'a> {
    pub(crate) label: Option<&'a str>,
    pub(crate) price: Option<f64>,
    pub(crate) user_id: Option<u64>,
    pub(crate) amount: f64,
    pub(crate) direction: Direction,
    pub(crate) time_in_force: Option<TimeInForce>,
    pub(crate) instrument_name: &'a str,
    pub(crate) web: bool,
    pub(crate) api: bool,
    pub(crate) order_id: &'a str,
    pub(crate) creation_timestamp: u64,
    pub(crate) replaced: bool,
    pub(crate) filled_amount: Option<f64>,
    pub(crate) last_update_timestamp: u64,
    pub(crate) post_only: bool,
    pub(crate) reduce_only: bool,
    pub(crate) average_price: Option<f64>,
    pub(crate) mmp: bool,
    pub(crate) contracts: Option<f64>,
    pub(crate) reject_post_only: Option<bool>,
    pub(crate) order_state: OrderState,
    pub(crate) order_type: OrderType,
    pub(crate) is_liquidation: bool,
    pub(crate) risk_reducing: bool,
}

#[derive(Deserialize)]
pub(crate) struct Trade<'a> {
    pub(crate) label: Option<&'a str>,
    pub(crate) timestamp: u64,
    pub(crate) state: Option<OrderState>,
    pub(crate) price: f64,
    pub(crate) user_id: Option<u64>,
    pub(crate) amount: f64,
    pub(crate) direction: Direction,
    pub(crate) index_price: Option<f64>,
    pub(crate) instrument_name: &'a str,
    pub(crate) trade_seq: u64,
    pub(crate) api: bool,
    pub(crate) mark_price: Option<f64>,
    pub(crate) order_id: &'a str,
    pub(crate) tick_direction: Option<u8>,
    pub(crate) profit_loss: Option<f64>,
    pub(crate) post_only: bool,
    pub(crate) reduce_only: bool,
    pub(crate) self_trade: Option<bool>,
    pub(crate) mmp: bool,
    pub(crate) contracts: Option<f64>,
    pub(crate) trade_id: &'a str,
    pub(crate) fee_currency: Option<&'a str>,
    pub(crate) fee: Option<f64>,
    pub(crate) order_type: Option<OrderType>,
    pub(crate) risk_reducing: bool,
    pub(crate) liquidity: Option<Liquidity>,
}

#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Direction {
    Buy,
    Sell,
}

#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum TimeInForce {
    GoodTilCancelled,
    GoodTilDay,
    FillOrKill,
    ImmediateOrCancel,
}

#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum OrderState {
    Open,
    Filled,
    Rejected,
    Cancelled,
    Untriggered,
}

#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum OrderType {
    Limit,
    Market,
    StopLimit,
    StopMarket,
}

/// `M` for maker, `T` for taker.
#[derive(Clone, Copy, Deserialize)]
pub(crate) enum Liquidity {
    M,
    T,
}
