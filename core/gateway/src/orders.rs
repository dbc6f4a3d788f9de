//! The orders of all accounts: what clients asked for, and what the venue made of it.
//!
//! An order is kept from the request on, and for a while after its end, so that late news of it is known to be late.
//! Room is taken once, at the start.

use tickpath_book::{OrderHandle, OrderIndex};
use tickpath_deribit::codes::{OrderType, TimeInForce, Trigger};
use tickpath_gateway_protocol::Text;
use tickpath_types::Side;

use super::news::SymbolText;
use super::seen::scatter;

/// The gateway's first order id.
pub const FIRST_ORDER_ID: u64 = 10_000_001;
/// Places of orders at least.
pub const PLACES_MIN: u32 = 4;
/// Most characters of a venue's order id.
pub const EXTERNAL_ID_LEN_MAX: usize = 24;

/// The venue's order id.
pub type ExternalId = Text<EXTERNAL_ID_LEN_MAX>;

/// Where an order is in its life.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// On its way: the venue has not said what became of it.
    Sent,
    /// In the book.
    Working,
    /// It waits for its trigger.
    Waiting,
    /// Executed in full.
    Completed,
    /// Out of the book before it was executed in full.
    Canceled,
    /// The same, since its time or its instrument's was over.
    Expired,
    /// It never was in the book.
    Rejected,
}

impl State {
    /// Whether nothing can happen to the order any more.
    #[must_use]
    pub const fn is_over(self) -> bool {
        matches!(self, State::Completed | State::Canceled | State::Expired | State::Rejected)
    }
}

/// What an order is to do; prices and quantities in units of 10^-8.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Terms {
    /// Bought or sold.
    pub side: Side,
    /// What it is.
    pub order_type: OrderType,
    /// How long it stays.
    pub time_in_force: TimeInForce,
    /// Its price; 0 for types without one.
    pub price: i64,
    /// All of its quantity, with what is executed.
    pub quantity: i64,
    /// The price that fires it; 0 where there is none.
    pub stop_price: i64,
    /// What the book shows; 0 for all.
    pub shown: i64,
    /// The price that is watched, of trigger types.
    pub trigger: Option<Trigger>,
    /// It must not take liquidity.
    pub post_only: bool,
    /// It is refused rather than moved; with `post_only`.
    pub reject_post_only: bool,
    /// It must not make the position larger.
    pub reduce_only: bool,
    /// Market maker protection counts it.
    pub mmp: bool,
}

/// An order.
#[derive(Clone, Copy, Debug)]
pub struct Order {
    /// The gateway's id.
    pub gateway_id: u64,
    /// The client's id, unique within its user.
    pub client_id: u64,
    /// Whose it is.
    pub user: u16,
    /// The account that trades.
    pub account: u16,
    /// The connection that entered it, as long as it is there.
    pub owner: Option<u32>,
    /// The instrument's number; 0 where it is none of this gateway's.
    pub symbol: u32,
    /// The instrument's name.
    pub symbol_name: SymbolText,
    /// What it is to do, as far as the venue has confirmed it.
    pub terms: Terms,
    /// The venue's id; empty until it is known.
    pub external_id: ExternalId,
    /// The gateway's id in its label: that of the life that entered it.
    pub label_id: u64,
    /// Where it is.
    pub state: State,
    /// Executed so far, as the venue says.
    pub filled: i64,
    /// Executed so far, by the trades that were told.
    pub traded: i64,
    /// Mean price of its executions.
    pub average_price: i64,
    /// When the venue changed it last, in ms since 1970.
    pub updated_ms: u64,
    /// FIX told of that change, before the WebSocket did.
    pub is_by_fix: bool,
    /// When it was created at the venue, in ms since 1970.
    pub created_ms: u64,
    /// When the client made it, by the monotonic clock; 0 when another life of the gateway entered it.
    pub create_ns: u64,
    /// The venue takes its request no later than this, in ms since 1970.
    pub valid_until_ms: u64,
    /// What was sent and has no answer: the order may or may not be there, or be changed.
    pub doubt: Doubt,
    /// It is one side of a mass quote.
    pub is_quote: bool,
    /// Its cancellation was asked for, and is to be asked for again where the answer is lost.
    pub is_cancel_wanted: bool,
    /// The gateway itself wants it cancelled, whatever becomes of a client's own request.
    pub is_cancel_owed: bool,
    /// Its cancellation waits to be handed over.
    pub is_cancel_queued: bool,
    /// A client of this life has changed it.
    pub is_changed_here: bool,
    /// Of an earlier life, and somebody else has changed it since it was found.
    pub is_changed_elsewhere: bool,
    /// Its session in the label: this gateway's, or that of an earlier life.
    pub session: u64,
}

/// What of an order is not certain.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Doubt {
    /// Nothing.
    #[default]
    None,
    /// It must be asked for: the connection was lost, or an answer did not come.
    Unasked,
    /// It was asked for.
    Asked,
    /// The venue did not know it; it is asked again once no request can arrive any more.
    Unknown,
    /// The venue's words on it cannot be read: it is asked for again from time to time, and nothing waits for it.
    Unreadable,
}

/// Why there is no room for an order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoRoom {
    /// As many orders live as there is room for.
    Full,
    /// The user has used the client order id.
    Duplicate,
}

/// All orders, found by each of their ids.
#[derive(Debug)]
pub struct Orders {
    slots: Vec<Option<Order>>,
    free: Vec<u32>,
    /// Orders that are over, oldest first: a ring.
    over: std::collections::VecDeque<u32>,
    over_max: usize,
    by_gateway: OrderIndex,
    by_client: OrderIndex,
    by_external: OrderIndex,
    next_id: u64,
    /// Places from this one on were never used.
    used: u32,
    /// The same before the last insertion.
    used_before: u32,
    seed: u64,
}

impl Orders {
    /// Room for `max` orders, a quarter of it for those that are over. `seed` scatters ids that others choose, so that
    /// nobody can choose ids that collide.
    #[must_use]
    pub fn new(max: u32, seed: u64) -> Orders {
        let max = max.max(PLACES_MIN);
        Orders {
            slots: vec![None; max as usize],
            free: (0..max).rev().collect(),
            over: std::collections::VecDeque::with_capacity(max as usize),
            over_max: max as usize / 4,
            by_gateway: OrderIndex::new(max),
            by_client: OrderIndex::new(max),
            by_external: OrderIndex::new(max),
            next_id: FIRST_ORDER_ID,
            used: 0,
            used_before: 0,
            seed,
        }
    }

    /// The id that the next order gets.
    #[must_use]
    pub const fn next_id(&self) -> u64 {
        self.next_id
    }

    /// Orders that are not over.
    #[must_use]
    pub fn live_count(&self) -> usize {
        self.slots.len() - self.free.len() - self.over.len()
    }

    /// Takes an order in, under the next gateway id, which is its `gateway_id` from then on.
    ///
    /// # Errors
    /// [`NoRoom`].
    pub fn insert(&mut self, order: Order) -> Result<u32, NoRoom> {
        if self.by_client.find(self.client_key(order.user, order.client_id)).is_some() {
            return Err(NoRoom::Duplicate);
        }
        self.keep(order, false)
    }

    /// The same for an order that lives at the venue, whatever its client's id is: where that is another order's already, this
    /// one is found by its other ids alone.
    ///
    /// # Errors
    /// [`NoRoom::Full`].
    pub fn adopt(&mut self, order: Order) -> Result<u32, NoRoom> {
        let is_id_used = self.by_client.find(self.client_key(order.user, order.client_id)).is_some();
        self.keep(order, is_id_used)
    }

    #[inline]
    fn keep(&mut self, mut order: Order, is_id_used: bool) -> Result<u32, NoRoom> {
        order.gateway_id = self.next_id;
        if order.label_id == 0 {
            order.label_id = order.gateway_id;
        }
        let slot = self.insert_as(order, is_id_used)?;
        self.next_id += 1;
        (self.used_before, self.used) = (self.used, self.used.max(slot + 1));
        Ok(slot)
    }

    #[inline]
    fn insert_as(&mut self, order: Order, is_id_used: bool) -> Result<u32, NoRoom> {
        let client_key = self.client_key(order.user, order.client_id);
        if self.free.is_empty() {
            self.forget_oldest();
        }
        let slot = self.free.pop().ok_or(NoRoom::Full)?;
        let handle = OrderHandle::new(slot + 1).expect("slots count from 1 there");
        let is_in = self.by_gateway.insert(order.gateway_id, handle).is_ok()
            && (is_id_used || self.by_client.insert(client_key, handle).is_ok());
        if !is_in {
            self.by_gateway.remove(order.gateway_id);
            self.free.push(slot);
            return Err(NoRoom::Full);
        }
        self.slots[slot as usize] = Some(Order { external_id: ExternalId::default(), ..order });
        self.set_external_id(slot, order.external_id);
        Ok(slot)
    }

    /// Makes room by forgetting the order that ended first.
    fn forget_oldest(&mut self) {
        if let Some(slot) = self.over.pop_front() {
            self.forget(slot);
        }
    }

    fn forget(&mut self, slot: u32) {
        let Some(order) = self.slots[slot as usize].take() else { return };
        self.by_gateway.remove(order.gateway_id);
        let client_key = self.client_key(order.user, order.client_id);
        if self.by_client.find(client_key).is_some_and(|handle| handle.slot() == slot + 1) {
            self.by_client.remove(client_key);
        }
        if !order.external_id.is_empty() {
            self.by_external.remove(self.external_key(order.account, order.external_id.as_str()));
        }
        self.free.push(slot);
    }

    /// The order is over; it is kept for a while.
    pub fn end(&mut self, slot: u32) {
        self.over.push_back(slot);
        if self.over.len() > self.over_max {
            self.forget_oldest();
        }
    }

    /// An order that was taken to be over is not: it is kept as others that live.
    pub fn revive(&mut self, slot: u32) {
        self.over.retain(|known| *known != slot);
    }

    /// Names the venue's id of an order.
    pub fn set_external_id(&mut self, slot: u32, id: ExternalId) {
        let Some(order) = &mut self.slots[slot as usize] else { return };
        if id.is_empty() || order.external_id == id {
            return;
        }
        let (account, old) = (order.account, std::mem::replace(&mut order.external_id, id));
        if !old.is_empty() {
            self.by_external.remove(self.external_key(account, old.as_str()));
        }
        let handle = OrderHandle::new(slot + 1).expect("slots count from 1 there");
        // Two orders of one id cannot be; the first is found then.
        let _ = self.by_external.insert(self.external_key(account, id.as_str()), handle);
    }

    /// Whether an order can be kept without another's being forgotten.
    #[must_use]
    pub fn has_free_place(&self) -> bool {
        !self.free.is_empty()
    }

    /// Undoes the last insertion: the order's ids and its place are those of the next one again.
    pub fn take_back(&mut self, slot: u32) {
        debug_assert_eq!(self.get(slot).map(|order| order.gateway_id + 1), Some(self.next_id));
        self.forget(slot);
        self.next_id -= 1;
        self.used = self.used_before;
    }

    /// The order at a place.
    #[must_use]
    pub fn get(&self, slot: u32) -> Option<&Order> {
        self.slots.get(slot as usize)?.as_ref()
    }

    /// The order at a place.
    pub fn get_mut(&mut self, slot: u32) -> Option<&mut Order> {
        self.slots.get_mut(slot as usize)?.as_mut()
    }

    /// The place of a gateway id.
    #[must_use]
    pub fn by_gateway_id(&self, id: u64) -> Option<u32> {
        self.by_gateway.find(id).map(|handle| handle.slot() - 1)
    }

    /// The place of a client's id.
    #[must_use]
    pub fn by_client_id(&self, user: u16, id: u64) -> Option<u32> {
        let slot = self.by_client.find(self.client_key(user, id))?.slot() - 1;
        let order = self.get(slot)?;
        (order.user == user && order.client_id == id).then_some(slot)
    }

    /// The place of a venue's id.
    #[must_use]
    pub fn by_external_id(&self, account: u16, id: &str) -> Option<u32> {
        let slot = self.by_external.find(self.external_key(account, id))?.slot() - 1;
        let order = self.get(slot)?;
        (order.account == account && order.external_id.as_str() == id).then_some(slot)
    }

    /// The places of all orders that are not over, from `from` on.
    pub fn live_from(&self, from: u32) -> impl Iterator<Item = u32> + '_ {
        let live = |slot: &u32| self.get(*slot).is_some_and(|order| !order.state.is_over());
        (from..self.used).filter(live)
    }

    /// Orders are at places below this one.
    #[must_use]
    pub const fn used(&self) -> u32 {
        self.used
    }

    fn client_key(&self, user: u16, id: u64) -> u64 {
        scatter(id ^ self.seed) ^ scatter(u64::from(user) ^ self.seed.rotate_left(32))
    }

    fn external_key(&self, account: u16, id: &str) -> u64 {
        let start = scatter(u64::from(account) ^ self.seed.rotate_left(16));
        id.bytes().fold(start, |key, byte| scatter(key ^ u64::from(byte)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn order(user: u16, client_id: u64) -> Order {
        Order {
            gateway_id: 0,
            client_id,
            user,
            account: 0,
            owner: None,
            symbol: 0,
            symbol_name: SymbolText::EMPTY,
            terms: Terms {
                side: Side::Buy,
                order_type: OrderType::Limit,
                time_in_force: TimeInForce::GoodTilCancelled,
                price: 1,
                quantity: 1,
                stop_price: 0,
                shown: 0,
                trigger: None,
                post_only: false,
                reject_post_only: false,
                reduce_only: false,
                mmp: false,
            },
            external_id: ExternalId::default(),
            label_id: 0,
            state: State::Sent,
            filled: 0,
            traded: 0,
            average_price: 0,
            updated_ms: 0,
            is_by_fix: false,
            created_ms: 0,
            create_ns: 0,
            valid_until_ms: 0,
            doubt: Doubt::None,
            is_quote: false,
            is_cancel_wanted: false,
            is_cancel_queued: false,
            is_cancel_owed: false,
            is_changed_here: false,
            is_changed_elsewhere: false,
            session: 0,
        }
    }

    #[test]
    fn an_order_whose_clients_id_is_taken_is_adopted_all_the_same() {
        let mut orders = Orders::new(8, 42);
        let first = orders.insert(order(1, 1001)).unwrap();
        let beside = Order { account: 1, external_id: ExternalId::cut("ETH-9"), ..order(1, 1001) };
        let second = orders.adopt(beside).unwrap();
        assert_eq!(orders.by_client_id(1, 1001), Some(first));
        assert_eq!(orders.by_external_id(1, "ETH-9"), Some(second));
        assert_eq!(orders.by_gateway_id(FIRST_ORDER_ID + 1), Some(second));
        // What ends does not take the other's id with it.
        orders.forget(second);
        assert_eq!((orders.by_client_id(1, 1001), orders.live_count()), (Some(first), 1));
        orders.forget(first);
        assert_eq!((orders.by_client_id(1, 1001), orders.used()), (None, 2));
    }

    #[test]
    fn orders_are_found_by_each_id_until_they_are_forgotten() {
        let mut orders = Orders::new(8, 42);
        let first = orders.insert(order(1, 1001)).unwrap();
        let second = orders.insert(order(2, 1001)).unwrap();
        assert_eq!(orders.insert(order(1, 1001)), Err(NoRoom::Duplicate));
        orders.set_external_id(first, ExternalId::cut("ETH-1"));
        assert_eq!(orders.by_gateway_id(FIRST_ORDER_ID + 1), Some(second));
        assert_eq!((orders.by_client_id(1, 1001), orders.by_client_id(2, 1001)), (Some(first), Some(second)));
        assert_eq!(
            (orders.by_external_id(0, "ETH-1"), orders.by_external_id(1, "ETH-1")),
            (Some(first), None)
        );
        orders.set_external_id(first, ExternalId::cut("ETH-2"));
        assert_eq!(
            (orders.by_external_id(0, "ETH-1"), orders.by_external_id(0, "ETH-2")),
            (None, Some(first))
        );
        orders.forget(second);
        assert_eq!((orders.by_client_id(2, 1001), orders.live_count()), (None, 1));
    }

    #[test]
    fn an_order_that_lives_after_all_is_not_forgotten() {
        let mut orders = Orders::new(8, 42);
        let slot = orders.insert(order(1, 0)).unwrap();
        orders.get_mut(slot).unwrap().state = State::Rejected;
        orders.end(slot);
        orders.get_mut(slot).unwrap().state = State::Working;
        orders.revive(slot);
        assert_eq!(orders.live_count(), 1);
        for id in 1..6 {
            let other = orders.insert(order(1, id)).unwrap();
            orders.get_mut(other).unwrap().state = State::Canceled;
            orders.end(other);
        }
        assert_eq!((orders.by_client_id(1, 0), orders.live_count()), (Some(slot), 1));
    }

    #[test]
    fn room_is_made_by_what_is_over_alone() {
        let mut orders = Orders::new(8, 42);
        let slots: Vec<u32> = (0..8).map(|id| orders.insert(order(1, id)).unwrap()).collect();
        assert_eq!(orders.insert(order(1, 99)), Err(NoRoom::Full));
        for slot in &slots[..3] {
            orders.get_mut(*slot).unwrap().state = State::Canceled;
            orders.end(*slot);
        }
        // Two may be over and remembered; the third made room.
        assert_eq!((orders.live_count(), orders.by_client_id(1, 0)), (5, None));
        assert!(orders.insert(order(1, 99)).is_ok() && orders.insert(order(1, 100)).is_ok());
        assert_eq!(orders.by_client_id(1, 1), None);
        assert_eq!(orders.live_from(0).count(), 7);
    }
}
