//! Days of Databento DBN (schema mbo) and of LOBSTER, generated from the order flow of an ITCH day.

use std::collections::HashMap;
use std::io::Write as _;

use anyhow::Context as _;
use dbn::encode::EncodeRecord as _;
use dbn::encode::dbn::Encoder;
use dbn::{MboMsg, Metadata, RecordHeader, SType, Schema, rtype};
use tickpath_flowgen::{ItchDay, ItchDayConfig};
use tickpath_nasdaq::itch50::{MESSAGE_LEN_MAX, Message};
use tickpath_types::{Nanos, OrderId, Price, Qty, Side};
use xxhash_rust::xxh3::Xxh3DefaultBuilder;

/// An order that rests.
struct Resting {
    id: u64,
    instrument: u16,
    side: Side,
    price: Price,
    qty: Qty,
}

/// Writes the events of a day in one format.
trait EventWriter {
    fn add(&mut self, ts: Nanos, order: &Resting) -> anyhow::Result<()>;

    /// An order with its last quantity is removed.
    fn delete(&mut self, ts: Nanos, order: &Resting) -> anyhow::Result<()>;

    /// An order has lost `by` without a trade; its quantity is the rest, not zero.
    fn reduce(&mut self, ts: Nanos, order: &Resting, by: Qty) -> anyhow::Result<()>;

    /// An order has traded `by`; its quantity is the rest, perhaps zero.
    fn fill(&mut self, ts: Nanos, order: &Resting, by: Qty) -> anyhow::Result<()>;

    /// The order `old` becomes `new`, whose id the format may change.
    fn replace(&mut self, ts: Nanos, old: &Resting, new: &mut Resting) -> anyhow::Result<()>;
}

/// Returns a file of DBN, schema mbo, with the order flow of this day.
pub(crate) fn dbn(flow: &ItchDayConfig) -> anyhow::Result<Vec<u8>> {
    let metadata = Metadata::builder()
        .dataset("XNAS.ITCH".to_owned())
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
    let mut resting: HashMap<OrderId, Resting, Xxh3DefaultBuilder> = HashMap::default();
    let mut day = ItchDay::new(*flow)?;
    let mut buffer = [0; MESSAGE_LEN_MAX];
    while let Some(len) = day.next_message(&mut buffer) {
        macro_rules! add {
            ($message:ident) => {{
                let order = Resting {
                    id: $message.order_ref.get().0,
                    instrument: $message.stock_locate.get().0,
                    side: $message.side.side().context("the side of an order")?,
                    price: $message.price.get(),
                    qty: $message.shares.get(),
                };
                writer.add($message.timestamp.get(), &order)?;
                resting.insert($message.order_ref.get(), order);
            }};
        }
        macro_rules! reduce {
            ($message:ident, $by:expr, $write:ident) => {{
                let (id, by, ts) = ($message.order_ref.get(), $by, $message.timestamp.get());
                let order = resting.get_mut(&id).context("a reduced order")?;
                order.qty.0 -= by.0;
                writer.$write(ts, order, by)?;
                if order.qty.is_zero() {
                    resting.remove(&id);
                }
            }};
        }
        match Message::parse(&buffer[..len]).context("a message of a generated day")? {
            Message::AddOrder(add) => add!(add),
            Message::AddOrderMpid(add) => add!(add),
            Message::OrderDelete(delete) => {
                let order = resting.remove(&delete.order_ref.get()).context("a deleted order")?;
                writer.delete(delete.timestamp.get(), &order)?;
            }
            Message::OrderCancel(cancel) => reduce!(cancel, cancel.canceled_shares.get(), reduce),
            Message::OrderExecuted(executed) => reduce!(executed, executed.executed_shares.get(), fill),
            Message::OrderExecutedWithPrice(executed) => {
                reduce!(executed, executed.executed_shares.get(), fill);
            }
            Message::OrderReplace(replace) => {
                let old = resting.remove(&replace.original_order_ref.get()).context("a replaced order")?;
                let new_ref = replace.new_order_ref.get();
                let mut new =
                    Resting { id: new_ref.0, price: replace.price.get(), qty: replace.shares.get(), ..old };
                writer.replace(replace.timestamp.get(), &old, &mut new)?;
                resting.insert(new_ref, new);
            }
            _ => {}
        }
    }
    Ok(())
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
    fn record(&mut self, ts: Nanos, action: u8, order: &Resting, qty: Qty) -> anyhow::Result<()> {
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
    fn add(&mut self, ts: Nanos, order: &Resting) -> anyhow::Result<()> {
        self.record(ts, b'A', order, order.qty)
    }

    fn delete(&mut self, ts: Nanos, order: &Resting) -> anyhow::Result<()> {
        self.record(ts, b'C', order, order.qty)
    }

    fn reduce(&mut self, ts: Nanos, order: &Resting, by: Qty) -> anyhow::Result<()> {
        match order.qty {
            Qty::ZERO => self.record(ts, b'C', order, by),
            left => self.record(ts, b'M', order, left),
        }
    }

    fn fill(&mut self, ts: Nanos, order: &Resting, by: Qty) -> anyhow::Result<()> {
        let incoming = Resting { id: 0, side: order.side.opposite(), ..*order };
        self.record(ts, b'T', &incoming, by)?;
        self.record(ts, b'F', order, by)?;
        self.reduce(ts, order, by)
    }

    fn replace(&mut self, ts: Nanos, old: &Resting, new: &mut Resting) -> anyhow::Result<()> {
        new.id = old.id;
        self.record(ts, b'M', new, new.qty)
    }
}

/// Writes lines of text. A replacement is a deletion and a new order.
struct LobsterWriter(Vec<u8>);

impl LobsterWriter {
    fn line(&mut self, ts: Nanos, kind: u8, order: &Resting, qty: Qty) -> anyhow::Result<()> {
        let (seconds, ns) = (ts.0 / 1_000_000_000, ts.0 % 1_000_000_000);
        let (Resting { id, price, .. }, direction) = (order, [1, -1][order.side.index()]);
        Ok(writeln!(self.0, "{seconds}.{ns:09},{kind},{id},{},{},{direction}", qty.0, price.0)?)
    }
}

impl EventWriter for LobsterWriter {
    fn add(&mut self, ts: Nanos, order: &Resting) -> anyhow::Result<()> {
        self.line(ts, 1, order, order.qty)
    }

    fn delete(&mut self, ts: Nanos, order: &Resting) -> anyhow::Result<()> {
        self.line(ts, 3, order, order.qty)
    }

    fn reduce(&mut self, ts: Nanos, order: &Resting, by: Qty) -> anyhow::Result<()> {
        let kind = if order.qty.is_zero() { 3 } else { 2 };
        self.line(ts, kind, order, by)
    }

    fn fill(&mut self, ts: Nanos, order: &Resting, by: Qty) -> anyhow::Result<()> {
        self.line(ts, 4, order, by)
    }

    fn replace(&mut self, ts: Nanos, old: &Resting, new: &mut Resting) -> anyhow::Result<()> {
        self.delete(ts, old)?;
        self.add(ts, new)
    }
}
