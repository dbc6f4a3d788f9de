//! The door to clients as the core uses it: who is let in, and to whom events go.

use std::collections::HashMap;

use rustc_hash::FxBuildHasher;
use tickpath_agent::TscClock;
use tickpath_gateway_io::{ClientId, Door as LocalDoor, DoorEvent, Login, LoginId};
use tickpath_gateway_protocol::Event;
use tickpath_gateway_protocol::frame::{RefusalReason, capability};
use tickpath_types::Nanos;

use crate::core::{Core, Door, Venue};
use crate::users::{Bans, CheckAnswer, LoginChecker};

/// What happens at the door that one duty cycle takes at most.
const EVENTS_PER_CYCLE: usize = 64;
/// Logins whose passwords are being checked at most.
const LOGINS_MAX: usize = 64;

/// A caller whose password is being checked.
#[derive(Clone, Copy)]
struct Checked {
    check: u64,
    login: LoginId,
    wants_trading: bool,
}

/// What every client may do, as far as that follows from the configuration.
#[derive(Clone, Copy, Debug)]
pub struct Capabilities {
    /// Clients' orders are cancelled when they go.
    pub cancels: bool,
    /// Real money.
    pub is_production: bool,
    /// Nothing is sent to the venue.
    pub is_dry_run: bool,
}

/// The door, and who is in.
pub struct Doorway {
    door: LocalDoor,
    checker: LoginChecker,
    bans: Bans,
    /// Users that have an account, by their places.
    traders: Vec<bool>,
    capabilities: Capabilities,
    clients: HashMap<u32, ClientId, FxBuildHasher>,
    logins: Vec<Checked>,
}

impl Doorway {
    /// An open door. `traders` says of each user whether it has an account.
    #[must_use]
    pub fn new(
        door: LocalDoor,
        checker: LoginChecker,
        bans: Bans,
        traders: Vec<bool>,
        capabilities: Capabilities,
    ) -> Doorway {
        let clients = HashMap::with_capacity_and_hasher(2 * door.config().clients_max, FxBuildHasher);
        Doorway {
            door,
            checker,
            bans,
            traders,
            capabilities,
            clients,
            logins: Vec::with_capacity(LOGINS_MAX),
        }
    }

    /// The door itself.
    #[must_use]
    pub const fn door(&self) -> &LocalDoor {
        &self.door
    }

    /// Takes what has happened at the door; how much it was.
    #[inline]
    pub fn poll(
        &mut self,
        now: Nanos,
        ahead_ns: u64,
        clock: TscClock,
        core: &mut Core,
        venue: &mut impl Venue,
    ) -> usize {
        let mut work = 0;
        while work < EVENTS_PER_CYCLE
            && let Some(event) = self.door.poll(Nanos(now.0.saturating_sub(ahead_ns)))
        {
            work += 1;
            match event {
                DoorEvent::Request(client, request) => {
                    core.handle_request(clock.now(), client.number(), &request, self, venue);
                }
                DoorEvent::Login(login) => self.check(now, &login),
                DoorEvent::Left(client, _) => {
                    self.clients.remove(&client.number());
                    core.handle_leave(client.number());
                }
                DoorEvent::Heartbeat(..) => {}
            }
        }
        if self.checker.is_waiting()
            && let Some(answer) = self.checker.poll()
        {
            self.settle(now, answer, core);
            work += 1;
        }
        work
    }

    /// Has the password of a caller checked.
    #[cold]
    fn check(&mut self, now: Nanos, login: &Login) {
        let hello = &login.hello;
        let user = self.checker.user(hello.user.as_str());
        let banned = user.and_then(|user| self.bans.until(now, usize::from(user)));
        if let Some(until) = banned {
            return self.door.refuse(login.id, RefusalReason::BANNED, Nanos(until.0.saturating_sub(now.0)));
        }
        if self.logins.len() >= LOGINS_MAX {
            return self.door.refuse(login.id, RefusalReason::TOO_MANY, Nanos::ZERO);
        }
        match self.checker.submit(0, hello.user.as_str(), &hello.password) {
            Some(check) => {
                let wants_trading = hello.wants_trading();
                self.logins.push(Checked { check, login: login.id, wants_trading });
            }
            None => self.door.refuse(login.id, RefusalReason::TOO_MANY, Nanos::ZERO),
        }
    }

    /// Lets a caller in whose password is its own.
    #[cold]
    fn settle(&mut self, now: Nanos, answer: CheckAnswer, core: &mut Core) {
        let Some(place) = self.logins.iter().position(|login| login.check == answer.id) else { return };
        let Checked { login, wants_trading, .. } = self.logins.swap_remove(place);
        let Some(user) = answer.user else {
            return self.door.refuse(login, RefusalReason::CREDENTIALS, Nanos::ZERO);
        };
        let has_account = self.traders.get(usize::from(user)).copied().unwrap_or(false);
        if wants_trading && !has_account {
            return self.door.refuse(login, RefusalReason::NO_TRADING, Nanos::ZERO);
        }
        let Capabilities { cancels, is_production, is_dry_run } = self.capabilities;
        let mut all = 0;
        for (is_so, bit) in [
            (wants_trading, capability::TRADING),
            (cancels && wants_trading, capability::CANCEL_ON_DISCONNECT),
            (is_production, capability::PRODUCTION),
            (is_dry_run, capability::DRY_RUN),
        ] {
            all |= if is_so { bit } else { 0 };
        }
        let _ = now;
        if let Some(client) = self.door.admit(login, all) {
            self.clients.insert(client.number(), client);
            core.handle_join(client.number(), user, wants_trading);
        }
    }

    /// Lets nobody in any more, and cuts off who is in.
    pub fn stop(&mut self) {
        self.door.stop();
    }
}

impl Door for Doorway {
    #[inline]
    fn send(&mut self, client: u32, mut event: Event) {
        if let Some(client) = self.clients.get(&client) {
            // One that takes no more is cut off, which the next polls say.
            let _ = self.door.send(*client, &mut event);
        }
    }

    #[inline]
    fn broadcast(&mut self, mut event: Event) {
        self.door.broadcast(&mut event);
    }

    fn follow(&mut self, client: u32, symbol: u32) {
        if let Some(client) = self.clients.get(&client) {
            let _ = self.door.send_instrument_ready(*client, symbol);
        }
    }

    fn room(&self, client: u32) -> usize {
        self.clients.get(&client).map_or(0, |client| self.door.room(*client) as usize)
    }
}
