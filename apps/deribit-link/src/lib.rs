//! Keeps a client's session with a venue that speaks Deribit's dialect alive, by duty cycles.
//!
//! A [`Link`] connects - TCP or TLS, directly or through a proxy - logs in, answers the venue's questions for a sign of
//! life, renews tokens, subscribes, and connects again after each loss, with pauses that grow. What the venue says goes to
//! a [`Listener`] straight from the receive buffer. A request is told one of four things, once: its reply, that none came
//! in time, that the connection was lost before one, or, at once, that it was not sent. After the two in the middle nobody
//! but the venue knows whether it was done: ask it, and never send an order twice.
//!
//! A [`FixLink`] does the same with a venue's FIX door, for orders alone: logon, heartbeats, sequence numbers.
//!
//! A link waits for nothing: names are looked up on a thread of their own, and each duty cycle does a bounded amount. After
//! start-up nothing is allocated but by losses, by logins, and by changes of subscriptions.
//!
//! ```no_run
//! use tickpath_deribit::session::{SessionConfig, SessionEvent};
//! use tickpath_deribit_link::{Link, LinkConfig, Listener, Received, Route};
//! use tickpath_types::Nanos;
//!
//! struct Print;
//!
//! impl Listener for Print {
//!     fn on_event(&mut self, at: Received, event: SessionEvent<'_>) {
//!         if let SessionEvent::Notification(notification) = event {
//!             assert!(!notification.channel.is_empty() && at.at > Nanos::ZERO);
//!         }
//!     }
//! }
//!
//! let route = Route::direct("wss://test.deribit.com/ws/api/v2".parse()?, None);
//! let mut link: Link = Link::new(LinkConfig::new(route, SessionConfig::new("sample", "1", None)));
//! link.subscribe("ticker.BTC-PERPETUAL.100ms")?;
//! link.connect(Nanos::ZERO);
//! for now in (1..100).map(Nanos::from_millis) {
//!     link.do_work(now, &mut Print);
//! }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod fix;
mod link;
mod listener;
mod lookup;
mod loss;
mod pauses;
mod route;
mod state;

pub use fix::{FixChange, FixLink, FixLinkConfig, FixListener, FixRoute};
pub use link::{Link, LinkConfig, LinkStats};
pub use listener::{Change, Listener, Received, Unanswered};
pub use lookup::Resolver;
pub use loss::Loss;
pub use route::{Proxy, ProxyError, Route};
pub use state::Standing;
