//! The orders of all accounts: client parameters and venue state.
//!
//! An order is kept from the request until some time after its end, so that late reports are recognised. All
//! memory is allocated at the start.

use tickpath_book::{InsertError, OrderHandle, OrderIndex};
use tickpath_deribit::codes::{OrderType, TimeInForce, Trigger};
use tickpath_gateway_protocol::Text;
use tickpath_types::Side;

use super::news::SymbolText;
use super::seen::scatter;

/// First order id of a gateway instance.
pub const FIRST_ORDER_ID: u64 = 10_000_001;
/// Minimum number of order slots.
pub const PLACES_MIN: u32 = 4;
/// Maximum length of a venue's order id.
pub const EXTERNAL_ID_LEN_MAX: usize = 24;

/// The venue's order id.
pub type ExternalId = Text<EXTERNAL_ID_LEN_MAX>;

/// State of an order in its life cycle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// In flight: the venue has not answered.
    Sent,
    /// Resting in the book.
    Working,
    /// Untriggered: waiting for its trigger.
    Waiting,
    /// Executed completely.
    Completed,
    /// Cancelled before it was executed completely.
    Canceled,
    /// Ended because the order or its instrument expired.
    Expired,
    /// Rejected: never in the book.
    Rejected,
}

impl State {
    /// Whether the order has ended.
    #[must_use]
    pub const fn is_over(self) -> bool {
        matches!(self, State::Completed | State::Canceled | State::Expired | State::Rejected)
    }
}

/// Order parameters; prices and quantities in units of 10^-8.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Terms {
    /// Side.
    pub side: Side,
    /// Order type.
    pub order_type: OrderType,
    /// Time in force.
    pub time_in_force: TimeInForce,
    /// Limit price; 0 for types without one.
    pub price: i64,
    /// Total quantity, including what is executed.
    pub quantity: i64,
    /// Trigger price; 0 if there is none.
    pub stop_price: i64,
    /// Displayed quantity; 0 for all.
    pub shown: i64,
    /// Price that triggers the order, for trigger types.
    pub trigger: Option<Trigger>,
    /// The order must not take liquidity.
    pub post_only: bool,
    /// A post-only order is rejected instead of moved.
    pub reject_post_only: bool,
    /// The order must not increase the position.
    pub reduce_only: bool,
    /// Market maker protection counts the order.
    pub mmp: bool,
}

/// An order.
#[derive(Clone, Copy, Debug)]
pub struct Order {
    /// The gateway's order id.
    pub gateway_id: u64,
    /// The client's order id, unique within its user.
    pub client_id: u64,
    /// Index of the user.
    pub user: u16,
    /// Index of the account.
    pub account: u16,
    /// The client that entered the order, while it is connected.
    pub owner: Option<u32>,
    /// Number of the instrument; 0 if the gateway does not have it.
    pub symbol: u32,
    /// Name of the instrument.
    pub symbol_name: SymbolText,
    /// Order parameters as confirmed by the venue.
    pub terms: Terms,
    /// The venue's order id; empty until known.
    pub external_id: ExternalId,
    /// The gateway's order id in the label, assigned by the instance that entered the order.
    pub label_id: u64,
    /// Order state.
    pub state: State,
    /// Executed quantity as reported by the venue.
    pub filled: i64,
    /// Executed quantity as the sum of the fills sent.
    pub traded: i64,
    /// Mean execution price.
    pub average_price: i64,
    /// Time of the venue's last change, in ms since 1970.
    pub updated_ms: u64,
    /// Whether FIX reported that change before the WebSocket did.
    pub is_by_fix: bool,
    /// Creation time at the venue, in ms since 1970.
    pub created_ms: u64,
    /// Time when the client created the order, by the monotonic clock; 0 if another instance entered it.
    pub create_ns: u64,
    /// Deadline after which the venue rejects the order's request, in ms since 1970.
    pub valid_until_ms: u64,
    /// Uncertainty about the order's status after a request without an answer.
    pub doubt: Doubt,
    /// Whether the order is one side of a mass quote.
    pub is_quote: bool,
    /// Whether a cancellation was requested, which is repeated if its answer is lost.
    pub is_cancel_wanted: bool,
    /// Whether the gateway itself wants the cancellation, independent of a client's request.
    pub is_cancel_owed: bool,
    /// Whether the cancellation is queued for sending.
    pub is_cancel_queued: bool,
    /// Whether a client of this instance has changed the order.
    pub is_changed_here: bool,
    /// Whether another party has changed an earlier instance's order since it was found.
    pub is_changed_elsewhere: bool,
    /// Session in the label: this instance's, or an earlier one's.
    pub session: u64,
}

/// Uncertainty about an order's status.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Doubt {
    /// The status is certain.
    #[default]
    None,
    /// A status query is due: the connection was lost, or an answer is overdue.
    Unasked,
    /// The status query is in flight.
    Asked,
    /// The venue did not find the order; it is queried again when no request can arrive any more.
    Unknown,
    /// The venue's report is undecodable: the query is repeated from time to time, and nothing waits for it.
    Unreadable,
}

/// Reason why an order cannot be stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoRoom {
    /// All slots have live orders.
    Full,
    /// The user has already used the client order id.
    Duplicate,
}

/// All orders, with an index for each of their ids.
#[derive(Debug)]
pub struct Orders {
    slots: Vec<Option<Order>>,
    free: Vec<u32>,
    /// Ring of ended orders, oldest first.
    over: std::collections::VecDeque<u32>,
    over_max: usize,
    by_gateway: OrderIndex,
    by_client: OrderIndex,
    by_external: OrderIndex,
    next_id: u64,
    /// First slot that was never used.
    used: u32,
    /// Value of `used` before the last insertion.
    used_before: u32,
    seed: u64,
}

impl Orders {
    /// Creates a table for `max` orders, a quarter of it for ended ones. `seed` randomises the hashes of ids
    /// that others choose, so that no one can provoke collisions.
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

    /// The gateway's id for the next order.
    #[must_use]
    pub const fn next_id(&self) -> u64 {
        self.next_id
    }

    /// Number of orders that have not ended.
    #[must_use]
    pub fn live_count(&self) -> usize {
        self.slots.len() - self.free.len() - self.over.len()
    }

    /// Stores an order under the next gateway id, which becomes its `gateway_id`; returns its slot.
    ///
    /// # Errors
    /// [`NoRoom`] if there is no capacity, or the client's order id is in use.
    #[inline(always)]
    pub fn insert(&mut self, order: Order) -> Result<u32, NoRoom> {
        self.keep(order, false)
    }

    /// Like `insert`, for an order found at the venue. If its client's order id is in use, the order is
    /// indexed by its other ids only.
    ///
    /// # Errors
    /// [`NoRoom::Full`] if there is no capacity.
    pub fn adopt(&mut self, order: Order) -> Result<u32, NoRoom> {
        let is_id_used = self.by_client.find(self.client_key(order.user, order.client_id)).is_some();
        self.keep(order, is_id_used)
    }

    #[inline(always)]
    fn keep(&mut self, order: Order, is_id_used: bool) -> Result<u32, NoRoom> {
        let gateway_id = self.next_id;
        let slot = self.take_slot(gateway_id, order.user, (!is_id_used).then_some(order.client_id))?;
        let label_id = if order.label_id == 0 { gateway_id } else { order.label_id };
        self.slots[slot as usize] =
            Some(Order { gateway_id, label_id, external_id: ExternalId::EMPTY, ..order });
        if !order.external_id.is_empty() {
            self.set_external_id(slot, order.external_id);
        }
        self.next_id += 1;
        (self.used_before, self.used) = (self.used, self.used.max(slot + 1));
        Ok(slot)
    }

    /// Takes a free slot and enters it in the indices of ids.
    fn take_slot(&mut self, gateway_id: u64, user: u16, client_id: Option<u64>) -> Result<u32, NoRoom> {
        let client_key = client_id.map(|id| self.client_key(user, id));
        if self.free.is_empty() {
            if client_key.is_some_and(|key| self.by_client.find(key).is_some()) {
                return Err(NoRoom::Duplicate);
            }
            self.forget_oldest();
        }
        let slot = *self.free.last().ok_or(NoRoom::Full)?;
        let handle = OrderHandle::new(slot + 1).expect("slots count from 1 there");
        if let Some(key) = client_key {
            self.by_client.insert(key, handle).map_err(|error| match error {
                InsertError::Duplicate(_) => NoRoom::Duplicate,
                _ => NoRoom::Full,
            })?;
        }
        if self.by_gateway.insert(gateway_id, handle).is_err() {
            if let Some(key) = client_key {
                self.by_client.remove(key);
            }
            return Err(NoRoom::Full);
        }
        self.free.pop();
        Ok(slot)
    }

    /// Removes the order that ended first, to free a slot.
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

    /// Records that the order has ended; it is kept for a while.
    pub fn end(&mut self, slot: u32) {
        self.over.push_back(slot);
        if self.over.len() > self.over_max {
            self.forget_oldest();
        }
    }

    /// Restores an order that was wrongly recorded as ended.
    pub fn revive(&mut self, slot: u32) {
        self.over.retain(|known| *known != slot);
    }

    /// Sets the venue's id of an order.
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
        // Two orders cannot have the same id; otherwise the index keeps the first.
        let _ = self.by_external.insert(self.external_key(account, id.as_str()), handle);
    }

    /// Whether an order can be stored without removing another.
    #[must_use]
    pub fn has_free_place(&self) -> bool {
        !self.free.is_empty()
    }

    /// Undoes the last insertion: the next order gets the same ids and the same slot.
    pub fn take_back(&mut self, slot: u32) {
        debug_assert_eq!(self.get(slot).map(|order| order.gateway_id + 1), Some(self.next_id));
        self.forget(slot);
        self.next_id -= 1;
        self.used = self.used_before;
    }

    /// Returns the order in a slot.
    #[inline]
    #[must_use]
    pub fn get(&self, slot: u32) -> Option<&Order> {
        self.slots.get(slot as usize)?.as_ref()
    }

    /// Returns the order in a slot, mutable.
    #[inline]
    pub fn get_mut(&mut self, slot: u32) -> Option<&mut Order> {
        self.slots.get_mut(slot as usize)?.as_mut()
    }

    /// Returns the slot of a gateway id.
    #[must_use]
    pub fn by_gateway_id(&self, id: u64) -> Option<u32> {
        self.by_gateway.find(id).map(|handle| handle.slot() - 1)
    }

    /// Returns the slot of a client's id.
    #[must_use]
    pub fn by_client_id(&self, user: u16, id: u64) -> Option<u32> {
        let slot = self.by_client.find(self.client_key(user, id))?.slot() - 1;
        let order = self.get(slot)?;
        (order.user == user && order.client_id == id).then_some(slot)
    }

    /// Returns the slot of a venue's id.
    #[must_use]
    pub fn by_external_id(&self, account: u16, id: &str) -> Option<u32> {
        let slot = self.by_external.find(self.external_key(account, id))?.slot() - 1;
        let order = self.get(slot)?;
        (order.account == account && order.external_id.as_str() == id).then_some(slot)
    }

    /// Slots of all orders that have not ended, from `from` on.
    pub fn live_from(&self, from: u32) -> impl Iterator<Item = u32> + '_ {
        let live = |slot: &u32| self.get(*slot).is_some_and(|order| !order.state.is_over());
        (from..self.used).filter(live)
    }

    /// Upper bound of the slots in use.
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
        // Removing one order keeps the other's id.
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
        // Two ended orders are kept; the third has freed its slot.
        assert_eq!((orders.live_count(), orders.by_client_id(1, 0)), (5, None));
        assert!(orders.insert(order(1, 99)).is_ok() && orders.insert(order(1, 100)).is_ok());
        assert_eq!(orders.by_client_id(1, 1), None);
        assert_eq!(orders.live_from(0).count(), 7);
    }
}
