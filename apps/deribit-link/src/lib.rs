//! Keeps a client's session with a venue with Deribit's API alive, by duty cycles.
//!
//! A [`Link`] connects by TCP or TLS, directly or through a proxy. It logs in, answers heartbeat requests,
//! renews tokens, subscribes, and reconnects after each loss with growing pauses. The venue's messages go to
//! a [`Listener`] straight from the receive buffer. Each request has exactly one outcome: a reply, a
//! time-out, a lost connection, or an immediate error because it was not sent. After a time-out or a loss
//! only the venue knows whether the request was executed: query it, and never send an order twice.
//!
//! A [`FixLink`] does the same with a FIX endpoint, for orders only: logon, heartbeats, sequence numbers.
//!
//! A link never blocks: a separate thread looks up names, and each duty cycle does a bounded amount of work.
//! After start-up only losses, logins and changes of subscriptions allocate.
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
