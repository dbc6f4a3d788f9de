//! Snapshots of the engine's state, their restoration, and the digest of the state.

use tickpath_book::{Order, OrderBooks, state_hash};
use tickpath_faults::failpoint;
use tickpath_types::{
    EnterOrder, Instrument, InstrumentId, MatchId, OrderId, Price, Qty, SessionId, Side, TradingState,
    UserRefNum,
};
use xxhash_rust::xxh3::Xxh3;

use super::Engine;
use super::context::Progress;
use super::executions::{Execution, Executions};
use super::listing::{Listing, Listings};
use super::matcher::Matcher;
use super::orders::OpenOrders;
use super::owner::{Owner, order_key};
use super::sessions::Session;
use super::special::{InstructionBytes, Layer, SpecialOrder, Specials, is_special};
use crate::codec::hash_field;
use crate::limits::check_instrument;
use crate::snapshot::{Reader, Writer};
use crate::{EngineCounters, EngineLimits, SnapshotError};

type Result<T, E = SnapshotError> = std::result::Result<T, E>;

const SPECIAL_ORDER: SnapshotError = SnapshotError::Value("special order");

impl<B: OrderBooks<Owner>> Engine<B> {
    /// Digest (XXH3, 64 bits) of everything that later events depend on. Walks all books.
    #[must_use]
    pub fn state_hash(&self) -> u64 {
        let Matcher { orders, executions } = &self.matcher;
        let Progress { last_command, last_market, last_order_id, last_match_id, counters: _ } = self.progress;
        let mut hasher = Xxh3::new();
        let layers: &[Layer] = &Layer::ALL;
        failpoint!(StateHashIgnoresHidden: layers = &layers[..1]);
        for layer in layers {
            let hash = state_hash(orders.layer(*layer), |hasher, order| hash_field(order.data, hasher));
            hasher.update(&hash.to_le_bytes());
        }
        for counter in [last_command.0, last_market.0, last_order_id.0, last_match_id.0] {
            hash_field(counter, &mut hasher);
        }
        for listing in orders.listings.iter() {
            hash_field(listing.instrument.id, &mut hasher);
            hasher.update(&[listing.state as u8]);
            for price in [listing.last_price, listing.band_reference, listing.band_width] {
                hash_field(price, &mut hasher);
            }
        }
        orders.sessions.hash(&mut hasher);
        orders.specials.hash(&mut hasher);
        executions.hash(last_match_id, &mut hasher);
        hasher.digest()
    }

    /// Appends to `out` everything that later events depend on, with the books' queues in order: about 60
    /// bytes per open order. Walks all books and may allocate, so call it while idle or on a copy.
    pub fn snapshot(&self, out: &mut Vec<u8>) {
        let Engine { matcher: Matcher { orders, executions }, progress, prefetched: _ } = self;
        let mut progress = *progress;
        // The pattern names every field, so that a new field does not compile until it is handled here.
        let OpenOrders {
            limits: _, // given to `restore`
            listings,
            sessions,
            books: _, // `put_layer` writes these three
            hidden: _,
            stops: _,
            index: _, // derived from the orders
            specials,
            scratch: _,
            carried: _,
        } = orders;
        let mut writer = Writer::new(out);
        writer.put(self.state_hash());
        for (_, count) in counts(&mut progress) {
            writer.put(*count);
        }
        writer.put(sessions.sessions.len() as u16);
        for Session { last_user_ref, open_orders: _, max_plain_orders: _ } in &sessions.sessions {
            writer.put(*last_user_ref);
        }
        put_added_instruments(listings, &mut writer);
        for Listing { instrument, state, .. } in listings.iter() {
            writer.put(instrument.id);
            writer.put(definition_hash(instrument));
            writer.put(*state);
        }
        writer.put(InstrumentId(0)); // the end: no instrument has this id
        put_layer(orders, Layer::Displayed, &mut writer);
        for Listing { last_price, band_reference, band_width, .. } in listings.iter() {
            for price in [last_price, band_reference, band_width] {
                writer.put(*price);
            }
        }
        writer.put(sessions.is_killed);
        for rules in &sessions.rules {
            writer.put(*rules);
        }
        put_entries(specials, &mut writer);
        put_layer(orders, Layer::Hidden, &mut writer);
        put_layer(orders, Layer::Stop, &mut writer);
        put_executions(executions, progress.last_match_id, &mut writer);
        writer.finish();
    }

    /// Restores the engine that [`Engine::snapshot`] wrote to these bytes. Instruments and `max_sessions`
    /// must be the same, the other limits no lower.
    ///
    /// # Errors
    /// [`SnapshotError`] when the bytes are damaged or do not match instruments and limits. The limits alone
    /// determine the allocations.
    pub fn restore(instruments: &[Instrument], limits: EngineLimits, bytes: &[u8]) -> Result<Engine<B>> {
        let mut reader = Reader::new(bytes)?;
        let mut engine: Engine<B> = Engine::untouched(instruments, limits)?;
        let Engine { matcher: Matcher { orders, executions }, progress, .. } = &mut engine;
        let expected = reader.take("state hash")?;
        for (name, count) in counts(progress) {
            *count = reader.take_count(name)?;
        }
        let (max_sessions, found) = (reader.take("sessions")?, limits.max_sessions);
        if max_sessions != found {
            return Err(SnapshotError::Sessions { expected: max_sessions, found });
        }
        for session in &mut orders.sessions.sessions {
            session.last_user_ref = reader.take("user_ref")?;
        }
        for _ in 0..reader.take::<u16>("instruments")? {
            let instrument: Instrument = reader.take("instrument")?;
            check_instrument(&instrument, &limits)?;
            if !orders.add_instrument(&instrument) {
                return Err(SnapshotError::Instrument(instrument.id));
            }
        }
        restore_listings(&mut orders.listings, &mut reader)?;
        restore_layer(orders, Layer::Displayed, &mut reader)?;
        for listing in orders.listings.iter_mut() {
            for price in [&mut listing.last_price, &mut listing.band_reference, &mut listing.band_width] {
                *price = reader.take("price")?;
            }
        }
        let is_killed = reader.take("flag")?;
        for rules in &mut orders.sessions.rules {
            *rules = reader.take("rules")?;
        }
        orders.sessions.set_killed(is_killed);
        restore_entries(orders, &mut reader)?;
        restore_layer(orders, Layer::Hidden, &mut reader)?;
        restore_layer(orders, Layer::Stop, &mut reader)?;
        for instrument in orders.listings.ids().collect::<Vec<_>>() {
            orders.update_listing(instrument);
        }
        if orders.specials.iter().any(|(_, order)| order.in_layers == [None; 3]) {
            return Err(SPECIAL_ORDER);
        }
        restore_executions(executions, progress.last_match_id, &mut reader)?;
        reader.finish()?;
        let found = engine.state_hash();
        if found == expected { Ok(engine) } else { Err(SnapshotError::StateHash { expected, found }) }
    }
}

/// Sequence numbers, ids and counters by name. The patterns name every field, so that a new field does not
/// compile until it is added here.
fn counts(progress: &mut Progress) -> [(&'static str, &mut u64); 9] {
    let Progress { last_command, last_market, last_order_id, last_match_id, counters } = progress;
    let EngineCounters { commands, rejected, duplicates, ignored, executions } = counters;
    [
        ("last_command", &mut last_command.0),
        ("last_market", &mut last_market.0),
        ("last_order_id", &mut last_order_id.0),
        ("last_match_id", &mut last_match_id.0),
        ("commands", commands),
        ("rejected", rejected),
        ("duplicates", duplicates),
        ("ignored", ignored),
        ("executions", executions),
    ]
}

/// Writes the instruments added during the day, whose definitions are not stored elsewhere.
fn put_added_instruments(listings: &Listings, writer: &mut Writer<'_>) {
    failpoint!(SnapshotMissesAdded => return writer.put(0_u16));
    let added = || listings.iter().filter(|listing| listing.is_added);
    writer.put(added().count() as u16);
    for listing in added() {
        writer.put(listing.instrument);
    }
}

fn restore_listings(listings: &mut Listings, reader: &mut Reader<'_>) -> Result<()> {
    for Listing { instrument, state, .. } in listings.iter_mut() {
        let id: InstrumentId = reader.take("instrument")?;
        if reader.take::<u64>("definition")? != definition_hash(instrument) || id != instrument.id {
            return Err(SnapshotError::Instrument(id.min(instrument.id)));
        }
        *state = reader.take::<TradingState>("state")?;
    }
    match reader.take("instrument")? {
        InstrumentId(0) => Ok(()),
        instrument => Err(SnapshotError::Instrument(instrument)),
    }
}

/// Writes one layer's orders or parts of orders: for each side of each book the count, then the orders.
fn put_layer<B: OrderBooks<Owner>>(orders: &OpenOrders<B>, layer: Layer, writer: &mut Writer<'_>) {
    let books = orders.layer(layer);
    for (instrument, side) in sides(&orders.listings) {
        let count: u32 = books.levels(instrument, side).map(|level| level.order_count).sum();
        failpoint!(SnapshotMissesOrder: count = count.saturating_sub(1));
        writer.put(count);
        for (_, order) in books.orders(instrument, side).take(count as usize) {
            let Order { id, instrument: _, side: _, price, qty, data } = order;
            writer.put(id.0);
            writer.put(price);
            writer.put(qty);
            writer.put(data);
        }
    }
}

fn restore_layer<B: OrderBooks<Owner>>(
    orders: &mut OpenOrders<B>,
    layer: Layer,
    reader: &mut Reader<'_>,
) -> Result<()> {
    for (instrument, side) in sides(&orders.listings).collect::<Vec<_>>() {
        for _ in 0..reader.take::<u32>("orders")? {
            let id = OrderId(reader.take("id")?);
            let (price, qty): (Price, Qty) = (reader.take("price")?, reader.take("qty")?);
            let data: Owner = reader.take("owner")?;
            if data.executed.checked_add(qty.0).is_none() {
                return Err(SnapshotError::Value("executed"));
            }
            let order = Order { id, instrument, side, price, qty, data };
            let handle = orders.layer_mut(layer).add(order).map_err(|_| SnapshotError::Limits)?;
            let key = order_key(data.session, data.user_ref);
            if layer == Layer::Displayed {
                orders.sessions.find(data.session).ok_or(SnapshotError::Value("session"))?;
                orders.sessions.count_opened(data.session);
                orders.index.insert(key, handle).map_err(|_| SnapshotError::Limits)?;
                continue;
            }
            let wrong = SnapshotError::Value("part of a special order");
            let entry = orders.index.find(key).filter(|handle| is_special(*handle)).ok_or(wrong)?;
            if orders.specials.order_mut(entry).in_layers[layer as usize].replace(handle).is_some() {
                return Err(wrong);
            }
        }
    }
    Ok(())
}

/// All sides of all books, in the order of the state hash.
fn sides(listings: &Listings) -> impl Iterator<Item = (InstrumentId, Side)> {
    listings.ids().flat_map(|instrument| Side::BOTH.map(|side| (instrument, side)))
}

fn put_entries(specials: &Specials, writer: &mut Writer<'_>) {
    let mut entries: Vec<SpecialOrder> = specials.iter().map(|(_, order)| *order).collect();
    entries.sort_unstable_by_key(|order| order.entry);
    writer.put(specials.last_entry);
    writer.put(entries.len() as u32);
    for special in entries {
        let InstructionBytes { leading, trailing } = InstructionBytes::of(special.instructions());
        // The patterns name every field, so that a new field does not compile until it is handled here.
        let SpecialOrder { session, order, entry, parts, in_layers: [displayed, ..] } = special;
        let EnterOrder {
            user_ref,
            instrument,
            side,
            qty: _, // the quantities, like the other layers, follow from the books
            price,
            time_in_force,
            post_only,
            min_qty: _,
            special: _, // its bytes are written separately
            attributes,
            client_order_id,
        } = order;
        writer.put(entry);
        writer.put(session);
        writer.put(user_ref);
        writer.put(instrument);
        writer.put(price);
        writer.put_bytes(&leading);
        writer.put(parts);
        writer.put(attributes);
        writer.put(client_order_id);
        writer.put(side);
        writer.put(time_in_force);
        writer.put(post_only);
        writer.put_bytes(&trailing);
        writer.put(displayed.is_some());
    }
}

/// Reads a special order's entry, and a flag that is true if the order has a displayed part.
fn take_entry(reader: &mut Reader<'_>) -> Result<(SpecialOrder, bool)> {
    let (entry, session) = (reader.take("entry")?, reader.take("session")?);
    let mut order = EnterOrder::limit(
        reader.take("user_ref")?,
        reader.take("instrument")?,
        Side::Buy,
        Qty::ZERO,
        reader.take("price")?,
    );
    let leading = reader.take_bytes()?;
    let parts = reader.take("parts")?;
    order.attributes = reader.take("attributes")?;
    order.client_order_id = reader.take("client_order_id")?;
    order.side = reader.take("side")?;
    order.time_in_force = reader.take("time_in_force")?;
    order.post_only = reader.take("flag")?;
    let instructions = InstructionBytes { leading, trailing: reader.take_bytes()? }.instructions();
    order.special = Some(instructions.map_err(|_| SnapshotError::Value("terms"))?);
    let is_displayed = reader.take("flag")?;
    Ok((SpecialOrder { session, order, entry, parts, in_layers: [None; 3] }, is_displayed))
}

fn restore_entries<B: OrderBooks<Owner>>(orders: &mut OpenOrders<B>, reader: &mut Reader<'_>) -> Result<()> {
    orders.specials.last_entry = reader.take_count("last_entry")?;
    for _ in 0..reader.take::<u32>("entries")? {
        let (mut special, is_displayed) = take_entry(reader)?;
        if !orders.specials.has_capacity(u64::from(special.parts)) || special.parts == 0 {
            return Err(SnapshotError::Limits);
        }
        let (session, user_ref) = special.name();
        orders.sessions.find(session).ok_or(SnapshotError::Value("session"))?;
        let key = order_key(session, user_ref);
        let known = orders.index.remove(key);
        match (known, is_displayed) {
            (Some(handle), true) if !is_special(handle) => special.set_part(Layer::Displayed, known),
            (None, false) => orders.sessions.count_opened(session),
            _ => return Err(SPECIAL_ORDER),
        }
        let handle = orders.specials.restore(special);
        orders.index.insert(key, handle).map_err(|_| SnapshotError::Limits)?;
    }
    Ok(())
}

fn put_executions(executions: &Executions, last: MatchId, writer: &mut Writer<'_>) {
    writer.put(executions.valid_executions(last).count() as u32);
    for (id, execution) in executions.valid_executions(last) {
        writer.put(id);
        for (session, user_ref) in execution.orders() {
            writer.put(session);
            writer.put(user_ref);
        }
        writer.put(execution.instrument());
    }
}

fn restore_executions(executions: &mut Executions, last: MatchId, reader: &mut Reader<'_>) -> Result<()> {
    let mut before = MatchId(0);
    for _ in 0..reader.take::<u32>("executions")? {
        let id = reader.take("match_id")?;
        if id <= before || !executions.is_remembered(id, last) {
            return Err(SnapshotError::Value("match id"));
        }
        before = id;
        let mut name =
            || -> Result<(SessionId, UserRefNum)> { Ok((reader.take("session")?, reader.take("user_ref")?)) };
        let (first, rested) = (name()?, name()?);
        executions.record(id, Execution::new(first, rested, reader.take("instrument")?));
    }
    Ok(())
}

/// Digest of all fields of an instrument's definition.
fn definition_hash(instrument: &Instrument) -> u64 {
    let Instrument { id, symbol, tick_size, lot_size, max_qty, reference_price, collar_low, collar_high } =
        *instrument;
    let mut hasher = Xxh3::new();
    hash_field(id, &mut hasher);
    hash_field(symbol, &mut hasher);
    for price in [tick_size, reference_price, collar_low, collar_high] {
        hash_field(price, &mut hasher);
    }
    for qty in [lot_size, max_qty] {
        hash_field(qty, &mut hasher);
    }
    hasher.digest()
}
