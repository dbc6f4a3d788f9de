//! FIX 4.4: codec, session state machine for both roles, and the messages of Deribit's dialect.
//!
//! Nothing here opens a socket, reads a clock or draws a random number: bytes, times and nonces are
//! arguments. Messages are decoded and encoded in place; prices and quantities are exact decimals. Any input
//! of a peer may be rejected, but never causes a panic, and its cost is bounded by its length.
//!
//! | module | content |
//! |---|---|
//! | [`Message`], [`Writer`] | decoding from a receive buffer, encoding into a buffer |
//! | [`Decimal`], [`parse_time`] | exact numbers and times |
//! | [`Body`], [`Group`] | messages as structures, with repeating groups |
//! | [`session`] | logon, heartbeats, sequence numbers, resends, logout |
//! | [`deribit`] | Deribit's messages in both directions, its logon, its quantities |
//!
//! ```
//! use tickpath_fix::deribit::{Credentials, NewOrderSingle, SideCode};
//! use tickpath_fix::session::{Header, Listener, NoStore, Refusal, Session, SessionConfig};
//! use tickpath_fix::{Body, Decimal, Message, MsgType};
//! use tickpath_types::Nanos;
//!
//! /// A venue that writes down what is ordered.
//! #[derive(Default)]
//! struct Orders(Vec<(String, Decimal)>);
//! impl Listener for Orders {
//!     fn on_message(&mut self, header: &Header<'_>, message: &Message<'_>) -> Result<(), Refusal> {
//!         if header.msg_type == MsgType::NEW_ORDER_SINGLE {
//!             let order = NewOrderSingle::decode(message)?;
//!             self.0.push((order.symbol.to_owned(), order.order_qty));
//!         }
//!         Ok(())
//!     }
//! }
//!
//! let now = Nanos(1_767_225_600_000_000_000);
//! let mut client = Session::new(SessionConfig::deribit_client("ME"), NoStore);
//! let mut venue = Session::new(SessionConfig::deribit_server(), NoStore);
//! let (mut reports, mut orders) = (Orders::default(), Orders::default());
//! client.connect(now, &Credentials { username: Some("me"), ..Credentials::default() }).unwrap();
//! venue.accept(now).unwrap();
//!
//! // The Logon goes over, and its answer comes back.
//! let bytes = client.output().to_vec();
//! client.handle_sent(now, bytes.len());
//! venue.handle_bytes(now, &bytes, &mut orders);
//! let bytes = venue.output().to_vec();
//! venue.handle_sent(now, bytes.len());
//! client.handle_bytes(now, &bytes, &mut reports);
//!
//! // And an order.
//! let order = NewOrderSingle {
//!     cl_ord_id: "1",
//!     side: SideCode::BUY,
//!     order_qty: Decimal::from(100),
//!     price: Decimal::parse(b"87500.5"),
//!     symbol: "BTC-PERPETUAL",
//!     ..NewOrderSingle::default()
//! };
//! assert_eq!(client.send(now, &order), Ok(2));
//! venue.handle_bytes(now, client.output(), &mut orders);
//! assert_eq!(orders.0, [("BTC-PERPETUAL".to_owned(), Decimal::from(100))]);
//! ```

mod body;
mod decimal;
pub mod deribit;
mod error;
mod field;
mod message;
mod msg_type;
pub mod session;
pub mod tag;
mod time;
mod writer;

pub use body::{Body, Entries, Entry, Group};
pub use decimal::{DECIMAL_LEN_MAX, Decimal, SCALE_MAX};
pub use error::{FieldError, FrameError, SessionRejectReason, WriteError};
pub use field::{Field, Fields, SOH, Value};
pub use message::{MESSAGE_LEN_MAX, Message, MsgType, Parsed};
pub use time::{TIME_LEN_MAX, parse_date, parse_time, write_time};
pub use writer::Writer;
