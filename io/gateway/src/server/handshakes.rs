//! Callers before login.

use std::io::{self, ErrorKind, Read, Write};

use tickpath_admission::{PreLogin, PreLoginLimits};
use tickpath_gateway_protocol::frame::{
    FRAME_LEN_MAX, Frame, FrameError, PREFIX_LEN, Refusal, RefusalReason, VERSION, Welcome, frame_len,
};
use tickpath_gateway_protocol::{Event, Request};
use tickpath_shm::channel::{Caller, Channel, ChannelListener};
use tickpath_types::Nanos;

use super::rings::ClientRings;
use super::{DoorCounters, Login, LoginId};

/// Maximum number of callers accepted per turn of housekeeping.
const ACCEPTS_PER_TURN: usize = 64;

/// A caller and the state of its handshake.
#[derive(Debug)]
struct Handshake {
    caller: Caller,
    state: State,
}

#[derive(Debug)]
enum State {
    /// The hello is being read; `len` is the number of bytes received.
    Reading { bytes: Box<[u8; FRAME_LEN_MAX]>, len: usize },
    /// The hello is complete, and the login is pending.
    Waiting(LoginId),
}

/// Result of checking a caller.
enum Step {
    /// Nothing has arrived.
    Wait,
    Login(Login),
    /// The handshake is over.
    End,
}

/// All handshakes.
#[derive(Debug)]
pub(super) struct Handshakes {
    places: Box<[Option<Handshake>]>,
    /// Limits, by slot and process.
    pre_login: PreLogin<u32>,
    logins: u64,
}

impl Handshakes {
    pub(super) fn new(limits: PreLoginLimits) -> Handshakes {
        let places = (0..limits.connections.max(1)).map(|_| None).collect();
        Handshakes { places, pre_login: PreLogin::new(limits), logins: 0 }
    }

    pub(super) const fn places(&self) -> usize {
        self.places.len()
    }

    /// Accepts some callers. At the limit, the oldest of the process with the most is closed.
    pub(super) fn accept(&mut self, listener: &ChannelListener, now: Nanos, counters: &mut DoorCounters) {
        for _ in 0..ACCEPTS_PER_TURN {
            let caller = match listener.try_accept() {
                Ok(Some(caller)) => caller,
                Ok(None) => return,
                Err(_) => {
                    // E.g. no descriptors are left: the caller stays in the queue.
                    counters.failed += 1;
                    return;
                }
            };
            counters.calls += 1;
            if caller.stream().set_nonblocking(true).is_err() {
                counters.failed += 1;
                continue;
            }
            let process = caller.peer().pid;
            if let Some(place) = self.pre_login.victim(process) {
                counters.evicted += 1;
                self.free(place as usize);
            }
            let place = self.places.iter().position(Option::is_none);
            let place = place.expect("there are as many places as may wait");
            self.pre_login.admit(now, place as u64, process);
            let state = State::Reading { bytes: Box::new([0; FRAME_LEN_MAX]), len: 0 };
            self.places[place] = Some(Handshake { caller, state });
        }
    }

    /// Closes the callers whose deadline has passed.
    pub(super) fn expire(&mut self, now: Nanos, counters: &mut DoorCounters) {
        while let Some(place) = self.pre_login.expired(now) {
            counters.timed_out += 1;
            self.free(place as usize);
        }
    }

    fn free(&mut self, place: usize) -> Option<Handshake> {
        self.pre_login.remove(place as u64);
        self.places[place].take()
    }

    /// Checks one slot; returns a login when a caller's hello is complete.
    pub(super) fn look(&mut self, place: usize, now: Nanos, counters: &mut DoorCounters) -> Option<Login> {
        let handshake = self.places[place].as_mut()?;
        let step = match &handshake.state {
            State::Reading { .. } => handshake.read(&mut self.logins, counters),
            State::Waiting(_) => handshake.wait(counters),
        };
        match step {
            Step::Wait => {}
            Step::Login(login) => {
                self.pre_login.postpone(place as u64, now);
                return Some(login);
            }
            Step::End => drop(self.free(place)),
        }
        None
    }

    /// Removes and returns the caller of a pending login.
    pub(super) fn take(&mut self, login: LoginId) -> Option<Caller> {
        let place = self.place_of(login)?;
        self.free(place).map(|handshake| handshake.caller)
    }

    pub(super) fn is_waiting(&self, login: LoginId) -> bool {
        self.place_of(login).is_some()
    }

    pub(super) fn postpone(&mut self, login: LoginId, user: Option<usize>, at: Nanos, is_trusted: bool) {
        if let Some(place) = self.place_of(login) {
            self.pre_login.postpone_login(place as u64, user, at, is_trusted);
        }
    }

    fn place_of(&self, login: LoginId) -> Option<usize> {
        let is_it = |handshake: &Handshake| matches!(handshake.state, State::Waiting(id) if id == login);
        self.places.iter().position(|place| place.as_ref().is_some_and(is_it))
    }

    /// Refuses all callers; returns their number.
    pub(super) fn refuse_all(&mut self, refusal: Refusal) -> u64 {
        let all = (0..self.places.len()).filter_map(|place| self.free(place));
        all.map(|handshake| refuse(&handshake.caller, refusal)).count() as u64
    }
}

impl Handshake {
    /// Continues reading, never beyond the hello.
    fn read(&mut self, logins: &mut u64, counters: &mut DoorCounters) -> Step {
        let State::Reading { bytes, len } = &mut self.state else { return Step::Wait };
        loop {
            let wanted = match bytes.first_chunk::<PREFIX_LEN>().filter(|_| *len >= PREFIX_LEN) {
                None => PREFIX_LEN,
                Some(prefix) => match frame_len(*prefix) {
                    Ok(wanted) => wanted,
                    Err(error) => return self.malformed(error, counters),
                },
            };
            if *len >= wanted && wanted > PREFIX_LEN {
                break;
            }
            match self.caller.stream().read(&mut bytes[*len..wanted]) {
                Ok(0) => {
                    counters.gave_up += 1;
                    return Step::End;
                }
                Ok(read) => *len += read,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Step::Wait,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(_) => {
                    counters.gave_up += 1;
                    return Step::End;
                }
            }
        }
        let decoded = Frame::decode(&bytes[..*len]);
        // The buffer held a password.
        bytes.fill(0);
        std::hint::black_box(&mut **bytes);
        match decoded {
            Ok(Some((Frame::Hello(hello), _))) => {
                *logins += 1;
                let id = LoginId(*logins);
                self.state = State::Waiting(id);
                Step::Login(Login { id, hello: Box::new(hello), peer: self.caller.peer() })
            }
            Err(error) => self.malformed(error, counters),
            Ok(_) => self.malformed(FrameError::Malformed, counters),
        }
    }

    /// Refuses a caller whose message is invalid.
    fn malformed(&self, error: FrameError, counters: &mut DoorCounters) -> Step {
        counters.malformed += 1;
        let reason = match error {
            FrameError::Version { .. } => RefusalReason::VERSION,
            _ => RefusalReason::MALFORMED,
        };
        refuse(&self.caller, Refusal { reason, version: VERSION, retry_after_ns: 0 });
        Step::End
    }

    /// Checks whether a waiting caller has disconnected; any further byte is an error.
    fn wait(&self, counters: &mut DoorCounters) -> Step {
        let mut more = [0; 1];
        match self.caller.stream().read(&mut more) {
            Ok(0) => counters.gave_up += 1,
            Ok(_) => return self.malformed(FrameError::Malformed, counters),
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => {
                return Step::Wait;
            }
            Err(_) => counters.gave_up += 1,
        }
        Step::End
    }
}

/// Sends a refusal; ignores whether the caller receives it.
pub(super) fn refuse(caller: &Caller, refusal: Refusal) {
    let _ = say(caller, &Frame::Refusal(refusal));
}

/// Sends the welcome and passes the rings to the caller; `None` if it has disconnected.
pub(super) fn welcome(
    caller: Caller,
    welcome: Welcome,
    rings: ClientRings,
) -> Option<Channel<Event, Request>> {
    say(&caller, &Frame::Welcome(welcome)).ok()?;
    caller.grant_rings(rings).ok()
}

/// Sends a frame. The socket's buffer is empty, so the frame fits at once unless the caller has disconnected.
fn say(caller: &Caller, frame: &Frame) -> io::Result<()> {
    let mut bytes = [0; FRAME_LEN_MAX];
    let len = frame.encode(&mut bytes).expect("there is room for the longest frame");
    caller.stream().write_all(&bytes[..len])
}
