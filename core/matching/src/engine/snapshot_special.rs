//! What a snapshot keeps beside displayed orders, and what follows from it.

use tickpath_book::OrderBooks;
use tickpath_faults::failpoint;
use tickpath_types::{
    ClientOrderId, Instrument, InstrumentId, MatchId, OrderAttributes, Price, Qty, SelfTradePrevention,
    SessionId, Side, TimeInForce, UserRefNum,
};

use super::Engine;
use super::executions::Execution;
use super::listing::Listing;
use super::owner::{Owner, order_key};
use super::sessions::SessionRules;
use super::snapshot::{put_orders, take_order};
use super::special::{SpecialOrder, TermsBytes, is_special};
use crate::SnapshotError;
use crate::codec::{Field, FieldReader, FieldWriter};
use crate::limits::check_instrument;
use crate::snapshot::{Reader, Writer};

impl<B: OrderBooks<Owner>> Engine<B> {
    /// The instruments that were added during the day: nothing else says how they are defined.
    pub(super) fn put_added_instruments(&self, writer: &mut Writer<'_>) {
        failpoint!(SnapshotMissesAdded => return writer.put(0_u16.to_le_bytes()));
        let added = || self.listings.iter().filter(|listing| listing.is_added);
        writer.put((added().count() as u16).to_le_bytes());
        for listing in added() {
            let mut fields = [0; Instrument::LEN];
            Instrument::write(listing.instrument, &mut FieldWriter(&mut fields));
            writer.put(fields);
        }
    }

    pub(super) fn restore_added_instruments(&mut self, reader: &mut Reader<'_>) -> Result<(), SnapshotError> {
        for _ in 0..reader.take_u16()? {
            let fields: [u8; Instrument::LEN] = reader.take()?;
            let instrument = Instrument::read("instrument", &mut FieldReader(&fields))
                .map_err(|_| SnapshotError::Value { field: "instrument" })?;
            check_instrument(&instrument, &self.limits)?;
            if !self.listings.add(Listing { is_added: true, ..Listing::new(instrument) }) {
                return Err(SnapshotError::Instrument { instrument: instrument.id });
            }
        }
        Ok(())
    }

    pub(super) fn put_special(&self, writer: &mut Writer<'_>) {
        for Listing { last_price, band_reference, band_width, .. } in self.listings.iter() {
            for price in [last_price, band_reference, band_width] {
                writer.put(price.0.to_le_bytes());
            }
        }
        writer.put([u8::from(self.sessions.is_killed)]);
        for rules in &self.sessions.rules {
            let SessionRules {
                max_open_orders,
                max_qty,
                max_notional,
                prevention,
                account,
                is_killed,
                is_disabled,
            } = *rules;
            writer.put(max_open_orders.to_le_bytes());
            writer.put(max_qty.0.to_le_bytes());
            writer.put(max_notional.to_le_bytes());
            writer.put(account.0.to_le_bytes());
            writer.put([prevention.code(), is_killed.into(), is_disabled.into()]);
        }
        self.put_entries(writer);
        let instruments = || self.listings.ids();
        for books in [&self.resting.hidden, &self.resting.stops.books] {
            for instrument in instruments() {
                for side in Side::BOTH {
                    put_orders(books, instrument, side, writer);
                }
            }
        }
        let executions = || self.executions.standing(self.last_match_id);
        writer.put((executions().count() as u32).to_le_bytes());
        for (id, execution) in executions() {
            writer.put(id.0.to_le_bytes());
            for (session, user_ref) in execution.orders() {
                writer.put(session.0.to_le_bytes());
                writer.put(user_ref.0.to_le_bytes());
            }
            writer.put(execution.instrument().0.to_le_bytes());
        }
    }

    fn put_entries(&self, writer: &mut Writer<'_>) {
        let mut entries: Vec<SpecialOrder> = self.resting.specials.iter().map(|(_, order)| *order).collect();
        entries.sort_unstable_by_key(|order| order.entry);
        writer.put(self.resting.specials.last_entry.to_le_bytes());
        writer.put((entries.len() as u32).to_le_bytes());
        for order in entries {
            // Every field is named, so that a new one is not forgotten.
            let SpecialOrder {
                session,
                user_ref,
                instrument,
                side,
                price,
                time_in_force,
                post_only,
                terms,
                attributes: OrderAttributes { display, capacity, intermarket_sweep, cross_type },
                client_order_id,
                entry,
                parts,
                displayed,
                hidden: _, // follows from the books
                stop: _,
            } = order;
            let terms = TermsBytes::of(terms);
            writer.put(entry.to_le_bytes());
            writer.put(session.0.to_le_bytes());
            writer.put(user_ref.0.to_le_bytes());
            writer.put(instrument.0.to_le_bytes());
            writer.put(price.0.to_le_bytes());
            writer.put(terms.ahead);
            writer.put(parts.to_le_bytes());
            writer.put([display, capacity, intermarket_sweep, cross_type]);
            writer.put(client_order_id.0);
            let is_displayed = displayed.is_some();
            writer.put([side.code(), time_in_force.code(), post_only.into()]);
            writer.put(terms.behind);
            writer.put([is_displayed.into()]);
        }
    }

    pub(super) fn restore_special(&mut self, reader: &mut Reader<'_>) -> Result<(), SnapshotError> {
        for listing in self.listings.iter_mut() {
            for price in [&mut listing.last_price, &mut listing.band_reference, &mut listing.band_width] {
                *price = Price(reader.take_u64()?.cast_signed());
            }
        }
        let is_killed = take_flag(reader)?;
        for rules in &mut self.sessions.rules {
            *rules = take_rules(reader)?;
        }
        self.sessions.set_killed(is_killed);
        self.restore_entries(reader)?;
        let instruments: Vec<InstrumentId> = self.listings.ids().collect();
        for is_stop in [false, true] {
            for instrument in &instruments {
                for side in Side::BOTH {
                    self.restore_parts(is_stop, *instrument, side, reader)?;
                }
            }
        }
        for instrument in instruments {
            self.update_listing(instrument);
        }
        if self
            .resting
            .specials
            .iter()
            .any(|(_, order)| [order.displayed, order.hidden, order.stop] == [None; 3])
        {
            return Err(SnapshotError::Value { field: "special order" });
        }
        self.restore_executions(reader)
    }

    fn restore_executions(&mut self, reader: &mut Reader<'_>) -> Result<(), SnapshotError> {
        let mut before = MatchId(0);
        for _ in 0..reader.take_u32()? {
            let id = MatchId(reader.take_u64()?);
            if id <= before || !self.executions.is_remembered(id, self.last_match_id) {
                return Err(SnapshotError::Value { field: "match id" });
            }
            before = id;
            let [first, rested] = [take_name(reader)?, take_name(reader)?];
            let instrument = InstrumentId(reader.take_u16()?);
            self.executions.record(id, Execution::new(first, rested, instrument));
        }
        Ok(())
    }

    fn restore_entries(&mut self, reader: &mut Reader<'_>) -> Result<(), SnapshotError> {
        self.resting.specials.last_entry = reader.take_count("last_entry")?;
        for _ in 0..reader.take_u32()? {
            let (mut order, is_displayed) = take_entry(reader)?;
            if !self.resting.specials.has_room(u64::from(order.parts)) || order.parts == 0 {
                return Err(SnapshotError::Limits);
            }
            self.sessions.find(order.session).ok_or(SnapshotError::Value { field: "session" })?;
            let key = order_key(order.session, order.user_ref);
            let known = self.resting.index.remove(key);
            match (known, is_displayed) {
                (Some(handle), true) if !is_special(handle) => order.displayed = known,
                (None, false) => self.sessions.count_opened(order.session),
                _ => return Err(SnapshotError::Value { field: "special order" }),
            }
            let handle = self.resting.specials.restore(order);
            self.resting.index.insert(key, handle).map_err(|_| SnapshotError::Limits)?;
        }
        Ok(())
    }

    fn restore_parts(
        &mut self,
        is_stop: bool,
        instrument: InstrumentId,
        side: Side,
        reader: &mut Reader<'_>,
    ) -> Result<(), SnapshotError> {
        for _ in 0..reader.take_u32()? {
            let order = take_order(instrument, side, reader)?;
            let wrong = SnapshotError::Value { field: "part of a special order" };
            let entry = self.resting.index.find(order_key(order.data.session, order.data.user_ref));
            let entry = entry.filter(|handle| is_special(*handle)).ok_or(wrong)?;
            let books = if is_stop { &mut self.resting.stops.books } else { &mut self.resting.hidden };
            let part = books.add(order).map_err(|_| SnapshotError::Limits)?;
            let special = self.resting.specials.order_mut(entry);
            let place = if is_stop { &mut special.stop } else { &mut special.hidden };
            if place.replace(part).is_some() {
                return Err(wrong);
            }
        }
        Ok(())
    }
}

fn take_name(reader: &mut Reader<'_>) -> Result<(SessionId, UserRefNum), SnapshotError> {
    Ok((SessionId(reader.take_u16()?), UserRefNum(reader.take_u32()?)))
}

fn take_entry(reader: &mut Reader<'_>) -> Result<(SpecialOrder, bool), SnapshotError> {
    let wrong = |field| SnapshotError::Value { field };
    let entry = reader.take_u64()?;
    let session = SessionId(reader.take_u16()?);
    let user_ref = UserRefNum(reader.take_u32()?);
    let instrument = InstrumentId(reader.take_u16()?);
    let price = Price(reader.take_u64()?.cast_signed());
    let ahead = reader.take()?;
    let parts = reader.take_u32()?;
    let [display, capacity, intermarket_sweep, cross_type] = reader.take()?;
    let client_order_id = ClientOrderId(reader.take()?);
    let [side, time_in_force] = reader.take()?;
    let post_only = take_flag(reader)?;
    let terms = TermsBytes { ahead, behind: reader.take()? }.terms();
    let is_displayed = take_flag(reader)?;
    let order = SpecialOrder {
        session,
        user_ref,
        instrument,
        side: Side::from_code(side).ok_or(wrong("side"))?,
        price,
        time_in_force: TimeInForce::from_code(time_in_force).ok_or(wrong("time_in_force"))?,
        post_only,
        terms: terms.map_err(|_| wrong("terms"))?,
        attributes: OrderAttributes { display, capacity, intermarket_sweep, cross_type },
        client_order_id,
        entry,
        parts,
        displayed: None,
        hidden: None,
        stop: None,
    };
    Ok((order, is_displayed))
}

fn take_rules(reader: &mut Reader<'_>) -> Result<SessionRules, SnapshotError> {
    let max_open_orders = reader.take_u32()?;
    let max_qty = Qty(reader.take_u64()?);
    let max_notional = reader.take_u64()?;
    let account = SessionId(reader.take_u16()?);
    let strategy = SelfTradePrevention::from_code(reader.take_u8()?);
    Ok(SessionRules {
        max_open_orders,
        max_qty,
        max_notional,
        prevention: strategy.ok_or(SnapshotError::Value { field: "self-trade prevention" })?,
        account,
        is_killed: take_flag(reader)?,
        is_disabled: take_flag(reader)?,
    })
}

fn take_flag(reader: &mut Reader<'_>) -> Result<bool, SnapshotError> {
    match reader.take_u8()? {
        0 => Ok(false),
        1 => Ok(true),
        _ => Err(SnapshotError::Value { field: "flag" }),
    }
}
