//! The Deribit API v2 dialect of JSON-RPC, both ends: a client's and a venue's.
//!
//! Nothing here opens a socket, reads a clock or draws a random number: frames, times and nonces are
//! arguments. Prices and amounts are exact decimals. A frame is read once, in place, without allocation. Any
//! input of a peer may be rejected, but never causes a panic.
//!
//! | module | content |
//! |---|---|
//! | [`number`] | exact decimals |
//! | [`scan`] | strict JSON, value by value |
//! | [`text`] | strings in place in a frame, and secrets |
//! | [`field`] | reading and writing of values |
//! | [`envelope`] | the client's end: replies and notifications in, requests out |
//! | [`request`] | the venue's end: requests in, replies and notifications out |
//! | [`messages`] | params, results and data, one structure each |
//! | [`codes`] | text codes of fields |
//! | [`method`], [`channel`], [`error_code`] | names and codes, with their meanings |
//! | [`resolution`] | lengths of candles |
//! | [`sign`] | signatures of clients |
//! | [`continuity`] | continuity check of book messages |
//! | [`credits`] | rate limit credits |
//! | [`session`] | a client: login, heartbeats, matching of replies to requests, subscriptions |
//!
//! ```
//! use tickpath_deribit::envelope::{Id, Inbound, ServerTime, write_request};
//! use tickpath_deribit::messages::{GetOrderState, Hello, Version};
//! use tickpath_deribit::method::Method;
//! use tickpath_deribit::request::{Request, write_refusal, write_result};
//! use tickpath_deribit::text::Text;
//!
//! // A client says hello ...
//! let mut frame = Vec::new();
//! let hello = Hello { client_name: Text::new("tickpath"), client_version: Text::new("0.1.0") };
//! write_request(Id::Number(1), Method::Hello, &hello, &mut frame);
//!
//! // ... the venue reads it and answers ...
//! let request = Request::parse(&frame).unwrap();
//! assert_eq!((request.id, request.method), (Id::Number(1), Method::Hello));
//! assert_eq!(request.params::<Hello>().unwrap().client_name, "tickpath");
//! let mut reply = Vec::new();
//! let version = Version { version: Text::new("1.2.26") };
//! write_result(request.id, &version, ServerTime { us_in: 5, us_out: 7 }, true, &mut reply);
//!
//! // ... and the client reads the answer.
//! let Ok(Inbound::Response(response)) = Inbound::parse(&reply) else { panic!("a response") };
//! assert_eq!(response.id, Some(Id::Number(1)));
//! assert_eq!(response.outcome.unwrap().parse::<Version>().unwrap(), version);
//!
//! // What is wrong is refused with the code of the real venue.
//! let refusal = Request::parse(br#"{"id":2,"method":"private/get_order_state","params":{}}"#)
//!     .and_then(|request| request.params::<GetOrderState>().map(drop))
//!     .unwrap_err();
//! assert_eq!((refusal.code.code(), refusal.param), (-32602, "order_id"));
//! ```

pub mod channel;
pub mod codes;
pub mod continuity;
pub mod credits;
mod digits;
pub mod envelope;
pub mod error_code;
pub mod field;
pub mod messages;
pub mod method;
pub mod number;
pub mod prepared;
pub mod request;
pub mod resolution;
pub mod scan;
pub mod session;
pub mod sign;
pub mod text;
