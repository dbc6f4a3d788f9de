//! Replays recorded market data, as events or packets, through order books to a listener and a report.
//!
//! [`Captures`] handles captured packets of any protocol: it finds their channels, puts them in sequence and
//! applies their messages to books. A [`Replay`] handles messages of one recording that are already in order,
//! such as [`RecordedEvent`]s. A [`Listener`] receives trades, best prices and books as they change. A
//! [`RecordingReport`] has counts, statistics and the results of consistency checks. This crate opens
//! no files and reads no clock.
//!
//! ```
//! use tickpath_recording::{
//!     Bbo, BookSize, EventKind, Events, Level, Listener, Lobster, MessageView, Pass, RecordedEvent, RecordingInfo,
//!     Replay, Selection, Source, TimeBase, Depth,
//! };
//! use tickpath_types::{InstrumentId, Price, Qty, Side, Zone};
//!
//! #[derive(Default)]
//! struct Bids(Vec<i64>);
//! impl Listener for Bids {
//!     fn on_bbo(&mut self, _view: &MessageView<'_>, _symbol: &str, bbo: Bbo) {
//!         self.0.push(bbo.bid.0);
//!     }
//! }
//!
//! let level = Level { side: Side::Buy, price: Price(1_000_000) };
//! let kind = EventKind::Add { order_id: 7, level, qty: Qty(100) };
//! let events = [RecordedEvent { ts_ns: 34_200_000_000_000, kind, ..RecordedEvent::NOTHING }];
//! let (time_base, depth) = (TimeBase::Midnight, Depth::Full);
//! let info = RecordingInfo { time_base, depth, sums_fills: false, price_decimals: 4 };
//!
//! let mut pass = Pass::new(Selection::default(), Bids::default());
//! let calendar = pass.selection.calendar(info.time_base, Zone::EASTERN);
//! let mut replay = Replay::new(Events::<Lobster>::new(info), calendar);
//! replay.begin(&mut pass, 0)?;
//! replay.create_books(&pass.selection, || BookSize { max_instrument: InstrumentId(1), max_orders: 10 });
//! let source = Source { info, symbols: &["AMZN".to_owned()], is_snapshot: false };
//! let wanted = replay.decode(&mut pass, &events, &source)?;
//! replay.apply(&mut pass, wanted, source, |index| format!("event {index}"));
//! assert_eq!(pass.listener.0, [1_000_000]);
//! assert!(replay.finish(&pass).is_trustworthy());
//! # Ok::<(), tickpath_recording::Error>(())
//! ```

mod books;
mod captures;
mod digest;
mod error;
mod event;
mod growing_books;
mod integrity;
mod listener;
mod moment;
mod packet;
mod protocol;
mod protocol_name;
mod protocols;
mod reference_check;
mod registry;
mod replay;
mod report;
mod selection;
mod state;
mod statistics;
mod stream;
mod updates;
mod view;

pub use books::{BookSize, ORDERS_MAX_DEFAULT};
pub use captures::{CaptureReport, Captures, ChannelReport, UnknownPackets};
pub use digest::{Checksums, Digest};
pub use error::Error;
pub use event::{
    Depth, EventKind, IgnoredReason, Level, PRICE_DECIMALS, RecordedEvent, RecordingInfo, Status, TimeBase,
};
pub use integrity::{Crossed, Finding, Integrity};
pub use listener::{Listener, WorkStep};
pub use moment::{Calendar, Moment, ParseMomentError, RecordedTime};
pub use packet::{Packet, Segment, Transport};
pub use protocol::{RecordedProtocol, Source};
pub use protocol_name::Protocol;
pub use protocols::dbn::{DBN_LEVELS_MAX, DbnLevel, DbnLevelRecords, DbnOrders, DbnRecord, DbnSchema};
pub use protocols::event_books::{EVENT_GROUP_LEN, EventBooks};
pub use protocols::events::{EventFormat, Events, apply_at_once, size_of_events};
pub use protocols::itch::{Itch, size_of_messages};
pub use protocols::lobster::Lobster;
pub use reference_check::ModelReport;
pub use registry::ParseProtocolError;
pub use replay::{EndReason, PART_LEN, Pass, Replay};
pub use report::{RecordingReport, Reliability, SYMBOLS_SHOWN, SymbolBook, TypeCount};
pub use selection::{Selection, Tables};
pub use statistics::{SymbolStatistics, gcd};
pub use stream::{STREAM_HELD_MAX, StreamCounters, StreamData, StreamReader};
pub use updates::Updates;
pub use view::{Bbo, MessageView, OrderEffect, TradeInfo};
