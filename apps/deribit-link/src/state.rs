//! How far a connection is: what links of either protocol go through.

use std::net::SocketAddrV4;

use tickpath_types::Nanos;

use crate::lookup::NameService;
use crate::loss::Loss;

/// Whether there is a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// No connection is wanted.
    Off,
    /// It is being made, or made again.
    Connecting,
    /// Requests may be sent.
    Ready,
}

/// How far a connection is; `O` is one that is being opened, `C` one that stands.
#[derive(Debug)]
pub(crate) enum State<O, C> {
    /// None is wanted.
    Off,
    /// A pause before the next connection.
    Pausing { until: Nanos },
    /// The address is being looked up.
    Looking { deadline: Nanos },
    /// TCP, proxy, TLS.
    Opening(O),
    /// It stands; the login may still be on its way.
    Open(C),
}

impl<O, C> State<O, C> {
    /// Where it stands, if its session is ready or not.
    pub(crate) const fn standing(&self, is_ready: bool) -> Standing {
        match self {
            State::Off => Standing::Off,
            State::Open(_) if is_ready => Standing::Ready,
            _ => Standing::Connecting,
        }
    }

    /// What is being waited for, in words: `login` once the connection stands, and before that what `of_opening` says.
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

    /// Wants a connection at once; false where there is one, or one is being made.
    pub(crate) fn want(&mut self, now: Nanos) -> bool {
        let is_idle = matches!(self, State::Off | State::Pausing { .. });
        if is_idle {
            *self = State::Pausing { until: now };
        }
        is_idle
    }

    /// Looks the address up, which begins when the pause is over; none while it is waited for.
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
