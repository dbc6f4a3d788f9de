//! The state of an IEX channel, built from its messages. SNAP answers are written from it.

use std::collections::{BTreeMap, HashMap};

use tickpath_iex::{
    AddOrder, ClearBook, Feed, Listener, OfficialPrice, OperationalHaltStatus, OrderDelete, OrderExecuted,
    OrderModify, PriceLevelUpdate, QuoteUpdate, RetailLiquidityIndicator, SecurityDirectory, SecurityEvent,
    ShortSalePriceTestStatus, SystemEvent, SystemEventCode, TradingStatus, decode,
};
use zerocopy::IntoBytes;

/// The latest messages of one symbol.
#[derive(Default)]
struct SymbolImage {
    directory: Option<SecurityDirectory>,
    trading: Option<TradingStatus>,
    event: Option<SecurityEvent>,
    halt: Option<OperationalHaltStatus>,
    price_test: Option<ShortSalePriceTestStatus>,
    official: Option<OfficialPrice>,
    quote: Option<QuoteUpdate>,
    interest: Option<RetailLiquidityIndicator>,
    /// Price levels, by message type (which gives the side) and price.
    levels: BTreeMap<(u8, i64), PriceLevelUpdate>,
    /// Orders by arrival number, which gives their priority.
    orders: BTreeMap<u64, AddOrder>,
}

/// The market state of one IEX channel, built from its messages.
pub(crate) struct Image {
    feed: Feed,
    system: Option<SystemEvent>,
    symbols: BTreeMap<[u8; 8], SymbolImage>,
    /// Symbol and arrival number of each order, by order id.
    locations: HashMap<u64, ([u8; 8], u64)>,
    arrivals: u64,
    /// Number of orders and price levels in the image; `entries_max` is its limit.
    entry_count: usize,
    entries_max: usize,
    is_whole: bool,
}

impl Image {
    pub(crate) fn new(feed: Feed, entries_max: u32) -> Image {
        Image {
            feed,
            system: None,
            symbols: BTreeMap::new(),
            locations: HashMap::new(),
            arrivals: 0,
            entry_count: 0,
            entries_max: entries_max as usize,
            is_whole: true,
        }
    }

    /// Clears the state.
    pub(crate) fn restart(&mut self) {
        *self = Image::new(self.feed, self.entries_max as u32);
    }

    /// False once the capacity was exceeded: no snapshot is available then.
    pub(crate) const fn is_whole(&self) -> bool {
        self.is_whole
    }

    /// Applies the next message. A damaged message changes nothing.
    pub(crate) fn apply(&mut self, message: &[u8]) {
        let _ = decode(message, self);
    }

    fn symbol(&mut self, symbol: [u8; 8]) -> &mut SymbolImage {
        self.symbols.entry(symbol).or_default()
    }

    fn has_capacity(&mut self) -> bool {
        self.is_whole &= self.entry_count < self.entries_max;
        self.is_whole
    }

    fn add(&mut self, order: AddOrder) {
        self.remove(order.order_id.get().0);
        if !self.has_capacity() {
            return;
        }
        self.arrivals += 1;
        self.entry_count += 1;
        let (symbol, place) = (order.symbol.0, self.arrivals);
        self.locations.insert(order.order_id.get().0, (symbol, place));
        self.symbol(symbol).orders.insert(place, order);
    }

    fn remove(&mut self, id: u64) -> Option<AddOrder> {
        let (symbol, place) = self.locations.remove(&id)?;
        self.entry_count -= 1;
        self.symbol(symbol).orders.remove(&place)
    }

    /// Passes each message of a snapshot to `handle`.
    pub(crate) fn for_each(&self, mut handle: impl FnMut(&[u8])) {
        let mut handle_all = |message: Option<&[u8]>| message.into_iter().for_each(&mut handle);
        for symbol in self.symbols.values() {
            handle_all(symbol.directory.as_ref().map(IntoBytes::as_bytes));
        }
        handle_all(self.system.as_ref().map(IntoBytes::as_bytes));
        for symbol in self.symbols.values() {
            handle_all(symbol.trading.as_ref().map(IntoBytes::as_bytes));
            handle_all(symbol.event.as_ref().map(IntoBytes::as_bytes));
            handle_all(symbol.halt.as_ref().map(IntoBytes::as_bytes));
            handle_all(symbol.price_test.as_ref().map(IntoBytes::as_bytes));
            handle_all(symbol.official.as_ref().map(IntoBytes::as_bytes));
            handle_all(symbol.quote.as_ref().map(IntoBytes::as_bytes));
            symbol.levels.values().for_each(|level| handle_all(Some(level.as_bytes())));
            symbol.orders.values().for_each(|order| handle_all(Some(order.as_bytes())));
            handle_all(symbol.interest.as_ref().map(IntoBytes::as_bytes));
        }
    }
}

impl Listener for Image {
    fn on_system_event(&mut self, message: &SystemEvent) {
        self.system = Some(*message);
        if message.event == SystemEventCode::END_OF_MESSAGES {
            self.locations.clear();
            self.entry_count = 0;
            for symbol in self.symbols.values_mut() {
                symbol.levels.clear();
                symbol.orders.clear();
                symbol.quote = None;
            }
        }
    }

    fn on_security_directory(&mut self, message: &SecurityDirectory) {
        self.symbol(message.symbol.0).directory = Some(*message);
    }

    fn on_trading_status(&mut self, message: &TradingStatus) {
        self.symbol(message.symbol.0).trading = Some(*message);
    }

    fn on_security_event(&mut self, message: &SecurityEvent) {
        self.symbol(message.symbol.0).event = Some(*message);
    }

    fn on_operational_halt_status(&mut self, message: &OperationalHaltStatus) {
        self.symbol(message.symbol.0).halt = Some(*message);
    }

    fn on_short_sale_price_test_status(&mut self, message: &ShortSalePriceTestStatus) {
        self.symbol(message.symbol.0).price_test = Some(*message);
    }

    fn on_official_price(&mut self, message: &OfficialPrice) {
        self.symbol(message.symbol.0).official = Some(*message);
    }

    fn on_retail_liquidity_indicator(&mut self, message: &RetailLiquidityIndicator) {
        self.symbol(message.symbol.0).interest = Some(*message);
    }

    fn on_quote_update(&mut self, message: &QuoteUpdate) {
        self.symbol(message.symbol.0).quote = Some(*message);
    }

    fn on_price_level_update(&mut self, message: &PriceLevelUpdate) {
        let key = (message.message_type, message.price.get().0);
        if message.size.get().is_zero() {
            let was_there = self.symbol(message.symbol.0).levels.remove(&key).is_some();
            self.entry_count -= usize::from(was_there);
        } else if self.has_capacity() {
            // Event flag 1 marks each level of a snapshot as a complete book event.
            let level = PriceLevelUpdate { event_flags: 1.into(), ..*message };
            let is_new = self.symbol(message.symbol.0).levels.insert(key, level).is_none();
            self.entry_count += usize::from(is_new);
        }
    }

    fn on_add_order(&mut self, message: &AddOrder) {
        self.add(*message);
    }

    fn on_order_modify(&mut self, message: &OrderModify) {
        let id = message.order_id.get().0;
        let Some((symbol, place)) = self.locations.get(&id).copied() else { return };
        let Some(order) = self.symbol(symbol).orders.get_mut(&place) else { return };
        let keeps_priority = message.flags.has(tickpath_iex::ModifyFlags::KEEPS_PRIORITY)
            && message.price == order.price
            && message.size.get() <= order.size.get();
        let changed = AddOrder { size: message.size, price: message.price, ..*order };
        if message.size.get().is_zero() {
            self.remove(id);
        } else if keeps_priority {
            *order = changed;
        } else {
            self.add(AddOrder { timestamp: message.timestamp, ..changed });
        }
    }

    fn on_order_executed(&mut self, message: &OrderExecuted) {
        let id = message.order_id.get().0;
        let Some((symbol, place)) = self.locations.get(&id).copied() else { return };
        let Some(order) = self.symbol(symbol).orders.get_mut(&place) else { return };
        match order.size.get().0.checked_sub(message.size.get().0) {
            None | Some(0) => _ = self.remove(id),
            Some(left) => order.size = u32::try_from(left).unwrap_or(u32::MAX).into(),
        }
    }

    fn on_order_delete(&mut self, message: &OrderDelete) {
        self.remove(message.order_id.get().0);
    }

    fn on_clear_book(&mut self, message: &ClearBook) {
        let orders = std::mem::take(&mut self.symbol(message.symbol.0).orders);
        self.entry_count -= orders.len();
        for order in orders.values() {
            self.locations.remove(&order.order_id.get().0);
        }
    }
}
