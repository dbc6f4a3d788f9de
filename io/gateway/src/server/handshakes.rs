//! Callers that are not in yet.

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

/// Callers accepted in one turn of housekeeping.
const ACCEPTS_PER_TURN: usize = 64;

/// A place for one caller.
#[derive(Debug)]
struct Handshake {
    caller: Caller,
    state: State,
}

#[derive(Debug)]
enum State {
    /// It is saying who it is; so many bytes have come.
    Reading { bytes: Box<[u8; FRAME_LEN_MAX]>, len: usize },
    /// It has said so and waits.
    Waiting(LoginId),
}

/// What a look at a caller gave.
enum Step {
    /// Nothing yet.
    Wait,
    Login(Login),
    /// It is done with.
    End,
}

/// All of them.
#[derive(Debug)]
pub(super) struct Handshakes {
    places: Box<[Option<Handshake>]>,
    /// By places and processes.
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

    /// Takes some of those who call. Where there is no capacity the oldest of the process that has the most is closed.
    pub(super) fn accept(&mut self, listener: &ChannelListener, now: Nanos, counters: &mut DoorCounters) {
        for _ in 0..ACCEPTS_PER_TURN {
            let caller = match listener.try_accept() {
                Ok(Some(caller)) => caller,
                Ok(None) => return,
                Err(_) => {
                    // Out of descriptors, for instance: the caller stays in the queue.
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

    /// Closes those whose time is over.
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

    /// Looks at one place; a login when a caller has said who it is.
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

    /// The caller that waits to be judged.
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

    /// Refuses all; how many.
    pub(super) fn refuse_all(&mut self, refusal: Refusal) -> u64 {
        let all = (0..self.places.len()).filter_map(|place| self.free(place));
        all.map(|handshake| refuse(&handshake.caller, refusal)).count() as u64
    }
}

impl Handshake {
    /// Reads on, never beyond the hello.
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
        // It held a password.
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

    /// Tells the caller that it was not understood.
    fn malformed(&self, error: FrameError, counters: &mut DoorCounters) -> Step {
        counters.malformed += 1;
        let reason = match error {
            FrameError::Version { .. } => RefusalReason::VERSION,
            _ => RefusalReason::MALFORMED,
        };
        refuse(&self.caller, Refusal { reason, version: VERSION, retry_after_ns: 0 });
        Step::End
    }

    /// Sees whether the caller has gone; it has nothing more to say.
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

/// Says no; whether the caller hears it is its own affair.
pub(super) fn refuse(caller: &Caller, refusal: Refusal) {
    let _ = say(caller, &Frame::Refusal(refusal));
}

/// Says yes and hands the rings over; `None` when the caller has gone.
pub(super) fn welcome(
    caller: Caller,
    welcome: Welcome,
    rings: ClientRings,
) -> Option<Channel<Event, Request>> {
    say(&caller, &Frame::Welcome(welcome)).ok()?;
    caller.grant_made(rings).ok()
}

/// The socket's buffer is empty, so it takes a frame whole and at once, or the caller is gone.
fn say(caller: &Caller, frame: &Frame) -> io::Result<()> {
    let mut bytes = [0; FRAME_LEN_MAX];
    let len = frame.encode(&mut bytes).expect("there is room for the longest frame");
    caller.stream().write_all(&bytes[..len])
}
