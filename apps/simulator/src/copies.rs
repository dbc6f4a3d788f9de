//! A client that reads drop copies. Its parameters are drawn from a separate random stream, so that the run's
//! other random choices stay the same.

use std::net::{Ipv4Addr, SocketAddrV4};

use tickpath_exchange::{DropCopySettings, JournalSettings, Password, UserPorts, UserSettings};
use tickpath_journal::Policy;
use tickpath_simnet::HostId;
use tickpath_types::{Nanos, Rng, SessionId};

use crate::client::{Client, ClientBehaviour};
use crate::faults::{FaultEvent, FaultLevel};
use crate::hosts::PASSWORD;
use crate::net::SimNetwork;
use crate::profile::behaviour;
use crate::recovery::ALL_SNAPSHOTS;
use crate::{CopyReader, Timed};

pub(crate) const HOST: HostId = HostId(200);
const ADDRESS: SocketAddrV4 = SocketAddrV4::new(Ipv4Addr::new(10, 0, 0, 1), 7_004);
const NAME: &str = "CLERK";
/// Upper bound of the number of messages in a run.
const MESSAGES_MAX: usize = 1 << 16;

/// The drop copy settings of a run, and the parameters of the reader.
#[derive(Clone, Debug)]
pub(crate) struct CopyProfile {
    settings: DropCopySettings,
    /// Indexes of the watched users; `None` for all users.
    copies_of: Option<Vec<usize>>,
    /// True if the log keeps all commands, so that every past copy can be requested.
    is_log_whole: bool,
    behaviour: ClientBehaviour,
    pub(crate) fault_events: Vec<(Nanos, FaultEvent)>,
    seed: u64,
}

impl CopyProfile {
    /// Draws the profile; `None` for half of the runs, which have no reader of drop copies.
    pub(crate) fn new(seed: u64, fault_level: FaultLevel, clients: usize, active: Nanos) -> Option<Self> {
        let rng = &mut Rng::new(seed ^ 0x63_6f_70_69_65_73);
        let is_present = rng.below(2) == 0;
        let retained_messages = [MESSAGES_MAX, 64, 16][rng.below(3) as usize];
        let first = rng.below(clients as u64) as usize;
        let copies_of = (rng.below(3) == 0).then(|| vec![first, (first + 1) % clients]);
        let is_log_whole = rng.below(3) > 0;
        let behaviour = ClientBehaviour {
            // The reader disconnects more often than other clients, so that it often requests copies again.
            leave_ppt: if fault_level == FaultLevel::Full { rng.below(100) } else { 0 },
            ..behaviour(rng, fault_level == FaultLevel::Full)
        };
        let mut fault_events = Vec::new();
        if fault_level == FaultLevel::Full {
            for _ in 0..rng.below(4) {
                let (at, time) = (Nanos(rng.below(active.0)), Nanos::from_millis(1 + rng.below(300)));
                let event =
                    if rng.below(2) == 0 { FaultEvent::KillReader } else { FaultEvent::Cut(HOST, time) };
                fault_events.push((at, event));
            }
        }
        let settings = DropCopySettings { address: ADDRESS, max_connections: 2, retained_messages };
        let seed = rng.next();
        is_present.then_some(CopyProfile { settings, copies_of, is_log_whole, behaviour, fault_events, seed })
    }

    /// Returns the settings of the user that reads drop copies.
    pub(crate) fn user(&self, users: &[UserSettings]) -> UserSettings {
        let names = |places: &Vec<usize>| places.iter().map(|place| users[*place].name.clone()).collect();
        UserSettings {
            ports: UserPorts { order_entry: false, drop_copy: true, deribit: false },
            copies_of: self.copies_of.as_ref().map(names),
            ..UserSettings::new(NAME, Password::plain(PASSWORD))
        }
    }

    pub(crate) fn journal(&self, journal: JournalSettings) -> JournalSettings {
        let keep_snapshots = if self.is_log_whole { ALL_SNAPSHOTS } else { journal.keep_snapshots };
        JournalSettings { keep_snapshots, drop_copy: Some(self.settings.clone()), ..journal }
    }

    /// Returns the reader, a client that sends no requests.
    pub(crate) fn reader(&self, network: &SimNetwork, policy: Policy, clients: usize) -> Client {
        let reset_sequence = match (self.is_log_whole, policy) {
            (true, Policy::Async) => Some(1),
            (true, _) => None,
            // Copies that the reader missed may be unavailable: after repeated refusals it requests only new
            // ones.
            (false, _) => Some(0),
        };
        let behaviour = ClientBehaviour { reset_sequence, ..self.behaviour };
        let session = SessionId(clients as u16 + 1);
        Client::new(session, NAME, network.of(HOST), ADDRESS, behaviour, None, self.seed)
    }

    pub(crate) fn observe(&self, reader: &Client, users: usize, failures: Vec<Timed<String>>) -> CopyReader {
        CopyReader {
            watched: self.copies_of.clone().unwrap_or_else(|| (0..users).collect()),
            is_log_whole: self.is_log_whole,
            log: reader.log.clone(),
            failures,
        }
    }
}
