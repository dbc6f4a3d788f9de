//! Reads recorded order-by-order market data as one normalised stream of events, and maps it to requests that
//! drive a live venue.
//!
//! A [`Recording`] opens a file of any [`Format`] and yields [`RecordedEvent`]s in constant memory: Databento
//! DBN of schema MBO, LOBSTER message files, and ITCH 5.0 BinaryFILEs, each plain or compressed. A
//! [`DbnFile`] also reads Databento's schemas of levels, trades or definitions. The readers accept any
//! [`std::io::Read`]. They return events, or an error with its position and remedy, and never panic. [`flow`]
//! maps the events to order requests. [`Packets`] reads the UDP and TCP payloads in pcap and pcapng captures,
//! [`StreamReader`] the bytes of a TCP stream in them. [`ItchBlocks`] reads the raw messages of an ITCH file,
//! and [`table`] writes CSV and Parquet.
//!
//! ```
//! use tickpath_capture::flow::{FlowLimits, Mapper, SurveyBuilder};
//! use tickpath_capture::{Depth, EventReader, LobsterReader};
//!
//! let text = "\
//! 34200.5,1,11,100,2238100,1
//! 34201.0,4,11,40,2238100,1
//! ";
//! let open = || LobsterReader::new(text.as_bytes(), "AMZN", Depth::Partial { levels: Some(1) });
//!
//! let mut reader = open();
//! let mut survey = SurveyBuilder::new(reader.info());
//! while let Some(event) = reader.next_event()? {
//!     survey.handle_event(&event);
//! }
//! let survey = survey.finish(reader.symbols());
//! assert_eq!(survey.instruments()[0].symbol.as_str(), "AMZN");
//!
//! let mut mapper = Mapper::new(survey, FlowLimits::default());
//! let mut reader = open();
//! while let Some(event) = reader.next_event()? {
//!     mapper.handle_event(&event);
//!     while let Some(step) = mapper.poll_step() {
//!         println!("{:?} {:?}, expecting {:?}", step.role, step.request, step.expected);
//!     }
//! }
//! mapper.finish();
//! assert_eq!(mapper.counts().executions.eligible, 1);
//! # Ok::<(), tickpath_capture::ReadError>(())
//! ```

mod binaryfile;
#[cfg(feature = "dbn")]
mod dbn_levels;
mod digits;
mod error;
mod event_reader;
pub mod flow;
mod format;
mod input;
mod itch_blocks;
mod lobster;
mod lobster_book;
#[cfg(feature = "dbn")]
mod mbo;
mod packets;
mod recording;
pub mod table;
mod window;

pub use binaryfile::ItchReader;
#[cfg(feature = "dbn")]
pub use dbn_levels::{DbnDefinition, DbnFile, DbnLevels};
pub use error::{CaptureError, Position, ReadError};
pub use event_reader::EventReader;
pub use format::{Format, RecordingFile, decompress};
pub use input::InputMeter;
pub use itch_blocks::{ItchBlock, ItchBlocks};
pub use lobster::{LOBSTER_LINE_LEN_MAX, LobsterReader};
pub use lobster_book::{LOBSTER_LEVELS_MAX, LobsterBookReader, LobsterBookRow, order_book_file_for};
#[cfg(feature = "dbn")]
pub use mbo::{DBN_METADATA_LEN_MAX, DbnReader};
pub use packets::{PACKET_LEN_MAX, PacketBlock, PacketCounters, Packets};
pub use recording::Recording;
pub use tickpath_recording::{
    Depth, EventKind, IgnoredReason, Level, PRICE_DECIMALS, Packet, RecordedEvent, RecordingInfo, Segment,
    Status, StreamCounters, StreamData, StreamReader, TimeBase, Transport,
};
