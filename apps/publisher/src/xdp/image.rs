//! The state of an XDP channel, built from its messages. Refreshes are written from it.

use std::collections::{BTreeMap, HashMap};

use tickpath_nyse::{
    AddOrder, AddOrderRefresh, DeleteOrder, Imbalance, Listener, ModifyOrder, OrderExecution, PositionChange,
    ReplaceOrder, SecurityStatus, SecurityStatusCode, SequenceNumberReset, SourceTimeReference, SymbolClear,
    SymbolIndexMapping, decode,
};
use zerocopy::IntoBytes;

/// The state of one symbol.
#[derive(Default)]
struct SymbolImage {
    mapping: Option<SymbolIndexMapping>,
    imbalance: Option<Imbalance>,
    status: Option<SecurityStatus>,
    /// Orders by arrival number, which gives their priority.
    orders: BTreeMap<u64, AddOrderRefresh>,
    last_symbol_seq_num: u32,
}

/// The market state of one XDP channel, built from its messages.
pub(super) struct Image {
    symbols: BTreeMap<u32, SymbolImage>,
    /// Arrival number of each order, by symbol index and order id.
    locations: HashMap<(u32, u64), u64>,
    arrivals: u64,
    orders_max: usize,
    is_whole: bool,
    /// Current second of Unix time, for messages that give only the nanoseconds within it.
    secs: u32,
}

impl Image {
    pub(super) fn new(orders_max: u32) -> Image {
        Image {
            symbols: BTreeMap::new(),
            locations: HashMap::new(),
            arrivals: 0,
            orders_max: orders_max as usize,
            is_whole: true,
            secs: 0,
        }
    }

    /// Clears the state.
    pub(super) fn restart(&mut self) {
        *self = Image::new(self.orders_max as u32);
    }

    /// False once the capacity for orders was exceeded: no refresh is available then.
    pub(super) const fn is_whole(&self) -> bool {
        self.is_whole
    }

    /// Sets the current second to that of a packet's send time, if no second is known yet.
    pub(super) fn record_time(&mut self, sent_ns: u64) {
        if self.secs == 0 {
            self.secs = u32::try_from(sent_ns / 1_000_000_000).unwrap_or(u32::MAX);
        }
    }

    /// Applies the next message. A damaged message changes nothing.
    pub(super) fn apply(&mut self, message: &[u8]) {
        let _ = decode(message, self);
    }

    /// Returns the indexes of the symbols whose mapping is known.
    pub(super) fn symbols(&self) -> impl Iterator<Item = u32> {
        self.symbols.iter().filter(|(_, symbol)| symbol.mapping.is_some()).map(|(index, _)| *index)
    }

    /// Returns the mapping of a symbol index.
    pub(super) fn mapping(&self, index: u32) -> Option<&[u8]> {
        self.symbols.get(&index)?.mapping.as_ref().map(IntoBytes::as_bytes)
    }

    /// Returns the SymbolSeqNum of the last message about a symbol; 0 if there was none.
    pub(super) fn last_symbol_seq_num(&self, index: u32) -> u32 {
        self.symbols.get(&index).map_or(0, |symbol| symbol.last_symbol_seq_num)
    }

    /// Passes each message of a symbol's refresh to `handle`: mapping, imbalance, status, orders.
    pub(super) fn for_each(&self, index: u32, mut handle: impl FnMut(&[u8])) {
        let Some(symbol) = self.symbols.get(&index) else { return };
        symbol.mapping.iter().for_each(|message| handle(message.as_bytes()));
        symbol.imbalance.iter().for_each(|message| handle(message.as_bytes()));
        symbol.status.iter().for_each(|message| handle(message.as_bytes()));
        for order in symbol.orders.values() {
            let order = AddOrderRefresh { symbol_seq_num: symbol.last_symbol_seq_num.into(), ..*order };
            handle(order.as_bytes());
        }
    }

    fn symbol(&mut self, index: u32, symbol_seq_num: u32) -> &mut SymbolImage {
        let symbol = self.symbols.entry(index).or_default();
        symbol.last_symbol_seq_num = symbol.last_symbol_seq_num.max(symbol_seq_num);
        symbol
    }

    fn add(&mut self, order: AddOrderRefresh) {
        let (index, id) = (order.symbol_index.get(), order.order_id.get());
        self.take(index, id);
        self.is_whole &= self.locations.len() < self.orders_max;
        if !self.is_whole {
            return;
        }
        self.arrivals += 1;
        let place = self.arrivals;
        self.locations.insert((index, id), place);
        self.symbol(index, order.symbol_seq_num.get()).orders.insert(place, order);
    }

    fn take(&mut self, index: u32, id: u64) -> Option<AddOrderRefresh> {
        let place = self.locations.remove(&(index, id))?;
        self.symbol(index, 0).orders.remove(&place)
    }

    fn order(&mut self, index: u32, id: u64) -> Option<&mut AddOrderRefresh> {
        let place = *self.locations.get(&(index, id))?;
        self.symbols.get_mut(&index)?.orders.get_mut(&place)
    }

    fn clear(&mut self, index: u32) {
        let orders = std::mem::take(&mut self.symbol(index, 0).orders);
        for order in orders.values() {
            self.locations.remove(&(index, order.order_id.get()));
        }
    }
}

impl Listener for Image {
    fn on_sequence_number_reset(&mut self, message: &SequenceNumberReset) {
        self.restart();
        self.secs = message.source_time.get();
    }

    fn on_source_time_reference(&mut self, message: &SourceTimeReference) {
        self.secs = message.source_time.get();
    }

    fn on_symbol_index_mapping(&mut self, message: &SymbolIndexMapping) {
        self.symbol(message.symbol_index.get(), 0).mapping = Some(*message);
    }

    fn on_symbol_clear(&mut self, message: &SymbolClear) {
        let index = message.symbol_index.get();
        self.clear(index);
        let symbol = self.symbol(index, 0);
        (symbol.imbalance, symbol.status) = (None, None);
        symbol.last_symbol_seq_num = message.next_source_seq_num.get().saturating_sub(1);
    }

    fn on_security_status(&mut self, message: &SecurityStatus) {
        let index = message.symbol_index.get();
        self.symbol(index, message.symbol_seq_num.get()).status = Some(*message);
        if message.security_status == SecurityStatusCode::CLOSED {
            // At the close, orders expire without delete messages.
            self.clear(index);
        }
    }

    fn on_imbalance(&mut self, message: &Imbalance) {
        let (index, number) = (message.symbol_index.get(), message.symbol_seq_num.get());
        self.symbol(index, number).imbalance = Some(*message);
    }

    fn on_add_order(&mut self, message: &AddOrder) {
        let AddOrder { source_time_ns, symbol_index, symbol_seq_num, order_id, price, volume, .. } = *message;
        let (secs, side, firm) = (self.secs, message.side, message.firm_id);
        let (time, number) = (source_time_ns, symbol_seq_num);
        self.add(AddOrderRefresh::new(
            secs,
            time,
            symbol_index,
            number,
            order_id,
            price,
            volume,
            side,
            firm,
            0,
        ));
    }

    fn on_modify_order(&mut self, message: &ModifyOrder) {
        let (index, id) = (message.symbol_index.get(), message.order_id.get());
        self.symbol(index, message.symbol_seq_num.get());
        let Some(order) = self.order(index, id) else { return };
        let keeps_priority = message.price == order.price && message.position_change != PositionChange::LOST;
        let changed = AddOrderRefresh { price: message.price, volume: message.volume, ..*order };
        if message.volume.get() == 0 {
            self.take(index, id);
        } else if keeps_priority {
            *order = changed;
        } else {
            self.add(changed);
        }
    }

    fn on_delete_order(&mut self, message: &DeleteOrder) {
        let index = message.symbol_index.get();
        self.symbol(index, message.symbol_seq_num.get());
        self.take(index, message.order_id.get());
    }

    fn on_order_execution(&mut self, message: &OrderExecution) {
        let (index, id) = (message.symbol_index.get(), message.order_id.get());
        self.symbol(index, message.symbol_seq_num.get());
        let Some(order) = self.order(index, id) else { return };
        match order.volume.get().saturating_sub(message.volume.get()) {
            0 => _ = self.take(index, id),
            left => order.volume.set(left),
        }
    }

    fn on_replace_order(&mut self, message: &ReplaceOrder) {
        let index = message.symbol_index.get();
        self.symbol(index, message.symbol_seq_num.get());
        if let Some(order) = self.take(index, message.order_id.get()) {
            let ReplaceOrder { new_order_id, price, volume, .. } = *message;
            self.add(AddOrderRefresh { order_id: new_order_id, price, volume, ..order });
        }
    }

    // The messages below change no book: only their symbol sequence numbers are recorded.
    fn on_non_displayed_trade(&mut self, message: &tickpath_nyse::NonDisplayedTrade) {
        self.symbol(message.symbol_index.get(), message.symbol_seq_num.get());
    }

    fn on_cross_trade(&mut self, message: &tickpath_nyse::CrossTrade) {
        self.symbol(message.symbol_index.get(), message.symbol_seq_num.get());
    }

    fn on_trade_cancel(&mut self, message: &tickpath_nyse::TradeCancel) {
        self.symbol(message.symbol_index.get(), message.symbol_seq_num.get());
    }

    fn on_cross_correction(&mut self, message: &tickpath_nyse::CrossCorrection) {
        self.symbol(message.symbol_index.get(), message.symbol_seq_num.get());
    }

    fn on_retail_price_improvement(&mut self, message: &tickpath_nyse::RetailPriceImprovement) {
        self.symbol(message.symbol_index.get(), message.symbol_seq_num.get());
    }
}
