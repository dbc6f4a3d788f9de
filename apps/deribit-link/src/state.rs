//! Connection states, shared by the links of both protocols.

use std::net::SocketAddrV4;

use tickpath_types::Nanos;

use crate::lookup::NameService;
use crate::loss::Loss;

/// The status of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// Disconnected on request.
    Off,
    /// Connecting or reconnecting.
    Connecting,
    /// Requests may be sent.
    Ready,
}

/// The state of a connection: `O` is an opening connection, `C` an open one.
#[derive(Debug)]
pub(crate) enum State<O, C> {
    /// No connection is requested.
    Off,
    /// A pause before the next connection.
    Pausing { until: Nanos },
    /// The address is being looked up.
    Looking { deadline: Nanos },
    /// TCP, proxy and TLS are in progress.
    Opening(O),
    /// The connection is open; the login may still be in progress.
    Open(C),
}

impl<O, C> State<O, C> {
    /// The status; `is_ready` is that of the session.
    pub(crate) const fn standing(&self, is_ready: bool) -> Standing {
        match self {
            State::Off => Standing::Off,
            State::Open(_) if is_ready => Standing::Ready,
            _ => Standing::Connecting,
        }
    }

    /// Names the pending step: `login` once the connection is open, before that the result of `of_opening`.
    pub(crate) fn stage(
        &self,
        is_ready: bool,
        login: &'static str,
        of_opening: impl FnOnce(&O) -> &'static str,
    ) -> &'static str {
        match self {
            State::Off => "off",
            State::Pausing { .. } => "pause before the next connection",
            State::Looking { .. } => "name service",
            State::Opening(opening) => of_opening(opening),
            State::Open(_) if is_ready => "ready",
            State::Open(_) => login,
        }
    }

    /// Requests a connection at once; false if one is open or being made.
    pub(crate) fn want(&mut self, now: Nanos) -> bool {
        let is_idle = matches!(self, State::Off | State::Pausing { .. });
        if is_idle {
            *self = State::Pausing { until: now };
        }
        is_idle
    }

    /// Looks up the address, starting after the pause; `None` while the lookup is in progress.
    pub(crate) fn look_up(
        &mut self,
        now: Nanos,
        timeout: Nanos,
        names: &mut NameService,
        (host, port): (&str, u16),
    ) -> Result<Option<SocketAddrV4>, Loss> {
        let lookup = match self {
            State::Pausing { .. } => {
                *self = State::Looking { deadline: now + timeout };
                names.ask(host, port)
            }
            _ => names.poll(host, port),
        };
        let is_late = matches!(self, State::Looking { deadline } if now >= *deadline);
        names.settle(lookup, host, port, is_late)
    }
}
