//! Days of Databento DBN (schema mbo) and of LOBSTER, generated from the order flow of an ITCH day.

use std::collections::HashMap;
use std::io::Write as _;

use anyhow::Context as _;
use dbn::encode::EncodeRecord as _;
use dbn::encode::dbn::Encoder;
use dbn::{MboMsg, Metadata, RecordHeader, SType, Schema, rtype};
use tickpath_flowgen::{ItchDay, ItchDayConfig};
use tickpath_nasdaq::itch50::MESSAGE_LEN_MAX;
use tickpath_types::{Nanos, Price, Qty};
use xxhash_rust::xxh3::Xxh3DefaultBuilder;

use crate::itch_orders::{self, Order, OrderListener};

/// Writes the events of a day in one format.
trait EventWriter {
    fn add(&mut self, ts: Nanos, order: &Order) -> anyhow::Result<()>;

    /// An order with its last quantity is removed.
    fn delete(&mut self, ts: Nanos, order: &Order) -> anyhow::Result<()>;

    /// An order has lost `by` without a trade; its quantity is the rest, not zero.
    fn reduce(&mut self, ts: Nanos, order: &Order, by: Qty) -> anyhow::Result<()>;

    /// An order has traded `by`; its quantity is the rest, perhaps zero.
    fn fill(&mut self, ts: Nanos, order: &Order, by: Qty) -> anyhow::Result<()>;

    /// The order `old` becomes `new`, whose id the format may change.
    fn replace(&mut self, ts: Nanos, old: &Order, new: &mut Order) -> anyhow::Result<()>;
}

/// Returns a file of DBN, schema mbo, with the order flow of this day.
pub(crate) fn dbn(flow: &ItchDayConfig) -> anyhow::Result<Vec<u8>> {
    let metadata = Metadata::builder()
        .dataset("GLBX.MDP3".to_owned())
        .schema(Some(Schema::Mbo))
        .start(DAY_START_NS)
        .stype_in(Some(SType::RawSymbol))
        .stype_out(SType::InstrumentId)
        .build();
    let mut writer = DbnWriter { encoder: Encoder::new(Vec::new(), &metadata)? };
    convert(flow, &mut writer)?;
    Ok(std::mem::take(writer.encoder.get_mut()))
}

/// Returns a LOBSTER message file with the order flow of this day, which has one symbol.
pub(crate) fn lobster(flow: &ItchDayConfig) -> anyhow::Result<Vec<u8>> {
    let mut writer = LobsterWriter(Vec::new());
    convert(flow, &mut writer)?;
    Ok(writer.0)
}

/// Passes the order flow of a day to `writer`.
fn convert(flow: &ItchDayConfig, writer: &mut impl EventWriter) -> anyhow::Result<()> {
    let mut converter = Converter { resting: HashMap::default(), writer };
    let mut day = ItchDay::new(*flow)?;
    let mut buffer = [0; MESSAGE_LEN_MAX];
    while let Some(len) = day.next_message(&mut buffer) {
        itch_orders::apply(&buffer[..len], &mut converter)?;
    }
    Ok(())
}

/// Passes the changes of orders on, each with the order.
struct Converter<'a, W> {
    /// The resting orders by their references in the ITCH day.
    resting: HashMap<u64, Order, Xxh3DefaultBuilder>,
    writer: &'a mut W,
}

impl<W: EventWriter> Converter<'_, W> {
    /// Reduces an order, and writes that by `write`.
    fn lower(
        &mut self,
        id: u64,
        by: Qty,
        write: impl FnOnce(&mut W, &Order) -> anyhow::Result<()>,
    ) -> anyhow::Result<()> {
        let order = self.resting.get_mut(&id).context("a reduced order")?;
        order.qty.0 -= by.0;
        write(self.writer, order)?;
        if order.qty.is_zero() {
            self.resting.remove(&id);
        }
        Ok(())
    }
}

impl<W: EventWriter> OrderListener for Converter<'_, W> {
    fn add(&mut self, ts: Nanos, order: Order) -> anyhow::Result<()> {
        self.writer.add(ts, &order)?;
        self.resting.insert(order.id, order);
        Ok(())
    }

    fn remove(&mut self, ts: Nanos, id: u64) -> anyhow::Result<()> {
        let order = self.resting.remove(&id).context("a deleted order")?;
        self.writer.delete(ts, &order)
    }

    fn reduce(&mut self, ts: Nanos, id: u64, by: Qty) -> anyhow::Result<()> {
        self.lower(id, by, |writer, order| writer.reduce(ts, order, by))
    }

    fn execute(&mut self, ts: Nanos, id: u64, by: Qty) -> anyhow::Result<()> {
        self.lower(id, by, |writer, order| writer.fill(ts, order, by))
    }

    fn replace(&mut self, ts: Nanos, id: u64, new_id: u64, price: Price, qty: Qty) -> anyhow::Result<()> {
        let old = self.resting.remove(&id).context("a replaced order")?;
        let mut new = Order { id: new_id, price, qty, ..old };
        self.writer.replace(ts, &old, &mut new)?;
        self.resting.insert(new_id, new);
        Ok(())
    }
}

/// Start of the day in DBN, in nanoseconds since 1970-01-01 UTC.
const DAY_START_NS: u64 = 1_795_150_800_000_000_000;
/// Units of a DBN price in a unit of [`Price`].
const DBN_UNITS: i64 = 100_000;

/// Writes the records that CME's feed has: an order keeps its id when it is modified, and each trade has a
/// record, then one for each fill, then the outcome for each order.
struct DbnWriter {
    encoder: Encoder<Vec<u8>>,
}

impl DbnWriter {
    fn record(&mut self, ts: Nanos, action: u8, order: &Order, qty: Qty) -> anyhow::Result<()> {
        let ts_event = DAY_START_NS + ts.0;
        let record = MboMsg {
            hd: RecordHeader::new::<MboMsg>(rtype::MBO, 1, u32::from(order.instrument), ts_event),
            order_id: order.id,
            price: order.price.0 * DBN_UNITS,
            size: u32::try_from(qty.0)?,
            action: action as _,
            side: [b'B', b'A'][order.side.index()] as _,
            ts_recv: ts_event,
            ..MboMsg::default()
        };
        Ok(self.encoder.encode_record(&record)?)
    }
}

impl EventWriter for DbnWriter {
    fn add(&mut self, ts: Nanos, order: &Order) -> anyhow::Result<()> {
        self.record(ts, b'A', order, order.qty)
    }

    fn delete(&mut self, ts: Nanos, order: &Order) -> anyhow::Result<()> {
        self.record(ts, b'C', order, order.qty)
    }

    fn reduce(&mut self, ts: Nanos, order: &Order, by: Qty) -> anyhow::Result<()> {
        match order.qty {
            Qty::ZERO => self.record(ts, b'C', order, by),
            left => self.record(ts, b'M', order, left),
        }
    }

    fn fill(&mut self, ts: Nanos, order: &Order, by: Qty) -> anyhow::Result<()> {
        let incoming = Order { id: 0, side: order.side.opposite(), ..*order };
        self.record(ts, b'T', &incoming, by)?;
        self.record(ts, b'F', order, by)?;
        self.reduce(ts, order, by)
    }

    fn replace(&mut self, ts: Nanos, old: &Order, new: &mut Order) -> anyhow::Result<()> {
        new.id = old.id;
        self.record(ts, b'M', new, new.qty)
    }
}

/// Writes lines of text. A replacement is a deletion and a new order.
struct LobsterWriter(Vec<u8>);

impl LobsterWriter {
    fn line(&mut self, ts: Nanos, kind: u8, order: &Order, qty: Qty) -> anyhow::Result<()> {
        let (seconds, ns) = (ts.0 / 1_000_000_000, ts.0 % 1_000_000_000);
        let (Order { id, price, .. }, direction) = (order, [1, -1][order.side.index()]);
        Ok(writeln!(self.0, "{seconds}.{ns:09},{kind},{id},{},{},{direction}", qty.0, price.0)?)
    }
}

impl EventWriter for LobsterWriter {
    fn add(&mut self, ts: Nanos, order: &Order) -> anyhow::Result<()> {
        self.line(ts, 1, order, order.qty)
    }

    fn delete(&mut self, ts: Nanos, order: &Order) -> anyhow::Result<()> {
        self.line(ts, 3, order, order.qty)
    }

    fn reduce(&mut self, ts: Nanos, order: &Order, by: Qty) -> anyhow::Result<()> {
        let kind = if order.qty.is_zero() { 3 } else { 2 };
        self.line(ts, kind, order, by)
    }

    fn fill(&mut self, ts: Nanos, order: &Order, by: Qty) -> anyhow::Result<()> {
        self.line(ts, 4, order, by)
    }

    fn replace(&mut self, ts: Nanos, old: &Order, new: &mut Order) -> anyhow::Result<()> {
        self.delete(ts, old)?;
        self.add(ts, new)
    }
}
