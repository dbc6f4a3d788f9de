//! The engine's state as bytes, and back.

use tickpath_book::{Order, OrderBooks};
use tickpath_faults::failpoint;
use tickpath_types::{
    Instrument, InstrumentId, MatchId, OrderId, Price, Qty, Sequence, SessionId, Side, TradingState,
    UserRefNum,
};
use xxhash_rust::xxh3::Xxh3;

use super::Engine;
use super::listing::Listing;
use super::owner::{Owner, order_key};
use super::resting::Resting;
use super::sessions::{Session, Sessions};
use crate::snapshot::{Reader, Writer};
use crate::{EngineCounters, EngineLimits, SnapshotError};

impl<B: OrderBooks<Owner>> Engine<B> {
    /// Appends everything that later events depend on to `out`, with the books' queues in order: about 60 bytes
    /// an open order. Walks all books and may allocate, so it is for a moment or a copy off the hot path.
    pub fn snapshot(&self, out: &mut Vec<u8>) {
        // Every field is named, so that a new one is not forgotten.
        let Engine {
            limits: _, // given anew
            resting:
                Resting {
                    books,
                    hidden: _, // by `put_special`
                    stops: _,
                    index: _,    // follows from the orders
                    specials: _, // by `put_special`
                },
            listings,
            sessions: Sessions { sessions, rules: _, is_killed: _, max_open_orders: _ }, // the others by `put_special`
            executions: _,
            scratch: _, // empty between commands
            carried: _,
            last_command,
            last_market,
            last_order_id,
            last_match_id,
            counters,
        } = self;
        let mut writer = Writer::new(out);
        writer.put(self.state_hash().to_le_bytes());
        for count in [last_command.0, last_market.0, last_order_id.0, last_match_id.0] {
            writer.put(count.to_le_bytes());
        }
        let EngineCounters { commands, rejected, duplicates, ignored, executions } = *counters;
        for count in [commands, rejected, duplicates, ignored, executions] {
            writer.put(count.to_le_bytes());
        }
        put_sessions(sessions, &mut writer);
        self.put_added_instruments(&mut writer);
        for Listing { instrument, state, .. } in listings.iter() {
            writer.put(instrument.id.0.to_le_bytes());
            writer.put(definition_hash(instrument).to_le_bytes());
            writer.put([state.code()]);
        }
        writer.put([0, 0]); // no instrument has this id
        for instrument in listings.ids() {
            for side in Side::BOTH {
                put_orders(books, instrument, side, &mut writer);
            }
        }
        self.put_special(&mut writer);
        writer.finish();
    }

    /// An engine that goes on as the one did whose [`Engine::snapshot`] these bytes are. Instruments and
    /// `max_sessions` must be the same, the other limits no lower.
    ///
    /// # Errors
    /// [`SnapshotError`] when the bytes are damaged or do not suit instruments and limits. What is allocated
    /// follows from the limits alone.
    pub fn restore(
        instruments: &[Instrument],
        limits: EngineLimits,
        bytes: &[u8],
    ) -> Result<Engine<B>, SnapshotError> {
        let mut reader = Reader::new(bytes)?;
        let mut engine: Engine<B> = Engine::untouched(instruments, limits)?;
        let expected = reader.take_u64()?;
        engine.last_command = Sequence(reader.take_count("last_command")?);
        engine.last_market = Sequence(reader.take_count("last_market")?);
        engine.last_order_id = OrderId(reader.take_count("last_order_id")?);
        engine.last_match_id = MatchId(reader.take_count("last_match_id")?);
        engine.counters = EngineCounters {
            commands: reader.take_count("commands")?,
            rejected: reader.take_count("rejected")?,
            duplicates: reader.take_count("duplicates")?,
            ignored: reader.take_count("ignored")?,
            executions: reader.take_count("executions")?,
        };
        engine.restore_sessions(&mut reader)?;
        engine.restore_added_instruments(&mut reader)?;
        engine.restore_listings(&mut reader)?;
        for instrument in engine.listings.ids().collect::<Vec<_>>() {
            for side in Side::BOTH {
                engine.restore_orders(instrument, side, &mut reader)?;
            }
        }
        engine.restore_special(&mut reader)?;
        reader.finish()?;
        match engine.state_hash() {
            found if found == expected => Ok(engine),
            found => Err(SnapshotError::StateHash { expected, found }),
        }
    }

    fn restore_sessions(&mut self, reader: &mut Reader<'_>) -> Result<(), SnapshotError> {
        let (expected, found) = (reader.take_u16()?, self.limits.max_sessions);
        if expected != found {
            return Err(SnapshotError::Sessions { expected, found });
        }
        for session in &mut self.sessions.sessions {
            session.last_user_ref = UserRefNum(reader.take_u32()?);
        }
        Ok(())
    }

    fn restore_listings(&mut self, reader: &mut Reader<'_>) -> Result<(), SnapshotError> {
        for Listing { instrument, state, .. } in self.listings.iter_mut() {
            let id = InstrumentId(reader.take_u16()?);
            let definition = reader.take_u64()?;
            if id != instrument.id || definition_hash(instrument) != definition {
                return Err(SnapshotError::Instrument { instrument: id.min(instrument.id) });
            }
            let code = reader.take_u8()?;
            *state = TradingState::from_code(code).ok_or(SnapshotError::Value { field: "state" })?;
        }
        match InstrumentId(reader.take_u16()?) {
            InstrumentId(0) => Ok(()),
            instrument => Err(SnapshotError::Instrument { instrument }),
        }
    }

    fn restore_orders(
        &mut self,
        instrument: InstrumentId,
        side: Side,
        reader: &mut Reader<'_>,
    ) -> Result<(), SnapshotError> {
        for _ in 0..reader.take_u32()? {
            let order = take_order(instrument, side, reader)?;
            let Owner { session, user_ref, .. } = order.data;
            let handle = self.resting.books.add(order).map_err(|_| SnapshotError::Limits)?;
            self.sessions.find(session).ok_or(SnapshotError::Value { field: "session" })?;
            self.sessions.count_opened(session);
            self.resting
                .index
                .insert(order_key(session, user_ref), handle)
                .map_err(|_| SnapshotError::Limits)?;
        }
        Ok(())
    }
}

/// Of a session its open orders follow from the books.
fn put_sessions(sessions: &[Session], writer: &mut Writer<'_>) {
    writer.put((sessions.len() as u16).to_le_bytes());
    for Session { last_user_ref, open_orders: _, max_plain_orders: _ } in sessions {
        writer.put(last_user_ref.0.to_le_bytes());
    }
}

pub(super) fn put_orders<B: OrderBooks<Owner>>(
    books: &B,
    instrument: InstrumentId,
    side: Side,
    writer: &mut Writer<'_>,
) {
    let count: u32 = books.levels(instrument, side).map(|level| level.order_count).sum();
    failpoint!(SnapshotMissesOrder: count = count.saturating_sub(1));
    writer.put(count.to_le_bytes());
    for (_, order) in books.orders(instrument, side).take(count as usize) {
        let Order { id, instrument: _, side: _, price, qty, data } = order;
        let Owner { executed, user_ref, session, capacity, cross_type } = data;
        writer.put(id.0.to_le_bytes());
        writer.put(price.0.to_le_bytes());
        writer.put(qty.0.to_le_bytes());
        writer.put(executed.to_le_bytes());
        writer.put(user_ref.0.to_le_bytes());
        writer.put(session.0.to_le_bytes());
        writer.put([capacity, cross_type]);
    }
}

pub(super) fn take_order(
    instrument: InstrumentId,
    side: Side,
    reader: &mut Reader<'_>,
) -> Result<Order<Owner>, SnapshotError> {
    let id = OrderId(reader.take_u64()?);
    let price = Price(reader.take_u64()?.cast_signed());
    let qty = Qty(reader.take_u64()?);
    let executed = reader.take_u64()?;
    let user_ref = UserRefNum(reader.take_u32()?);
    let session = SessionId(reader.take_u16()?);
    let [capacity, cross_type] = reader.take()?;
    if executed.checked_add(qty.0).is_none() {
        return Err(SnapshotError::Value { field: "executed" });
    }
    Ok(Order {
        id,
        instrument,
        side,
        price,
        qty,
        data: Owner { executed, user_ref, session, capacity, cross_type },
    })
}

/// Digest of everything that a definition says.
fn definition_hash(instrument: &Instrument) -> u64 {
    let Instrument { id, symbol, tick_size, lot_size, max_qty, reference_price, collar_low, collar_high } =
        *instrument;
    let mut hasher = Xxh3::new();
    hasher.update(&id.0.to_le_bytes());
    hasher.update(&symbol.0);
    for price in [tick_size, reference_price, collar_low, collar_high] {
        hasher.update(&price.0.to_le_bytes());
    }
    for qty in [lot_size, max_qty] {
        hasher.update(&qty.0.to_le_bytes());
    }
    hasher.digest()
}
