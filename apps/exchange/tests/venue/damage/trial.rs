//! A trial: damages a file, starts the venue, and compares its messages with the clients' records.

use std::path::Path;

use tickpath_journal::{Folder, InspectOptions, Snapshots, inspect};
use tickpath_types::{Sequence, Side};

use super::client::{Link, RetransmissionClient};
use super::damages::{Random, Target, damage};
use super::writer::{Log, venue_settings};
use crate::support::{Rig, USERS, build, enter, request_packet};

/// Number of market data messages that are compared.
const MARKET_COUNT: u64 = 25;
/// Maximum number of duty cycles to wait for a response.
const TURNS_MAX: u32 = 5_000;
/// A UserRefNum that no user has used.
const FRESH_REF: u32 = 100_000;

/// The outcome of a trial.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Outcome {
    /// The venue started with the old session name, and has all recorded messages.
    Whole,
    /// The venue refused to start. With the loss accepted, it started with another session name.
    Refused,
    /// The venue refused to start even with the loss accepted, so a backup is needed.
    CopyNeeded,
    /// The venue started with another session name although the loss was not accepted.
    Renamed,
    /// The venue started with the old session name, and a recorded message is missing.
    Lost,
    /// The venue started with the old session name, and another message has the number of a recorded one.
    Twice,
}

impl Outcome {
    pub const ALL: [Outcome; 6] = [
        Outcome::Whole,
        Outcome::Refused,
        Outcome::CopyNeeded,
        Outcome::Renamed,
        Outcome::Lost,
        Outcome::Twice,
    ];

    pub fn name(self) -> &'static str {
        match self {
            Outcome::Whole => "whole",
            Outcome::Refused => "refused",
            Outcome::CopyNeeded => "copy needed",
            Outcome::Renamed => "renamed",
            Outcome::Lost => "lost",
            Outcome::Twice => "used twice",
        }
    }
}

/// Asserts that a venue starts on the undamaged log. Otherwise trials with this log would prove nothing.
pub fn check_undamaged(log: &Log) {
    let copy = log.copy();
    let (outcome, description) = start_and_compare(log, copy.path());
    assert_eq!(outcome, Outcome::Whole, "{}: {description}", log.name());
}

/// Damages a copy of the log. Returns the damage, the outcome, and a description of the problem, if any.
pub fn run_trial(log: &Log, random: &mut Random) -> (Target, &'static str, Outcome, Option<String>) {
    let copy = log.copy();
    let (target, kind, path) = damage(copy.path(), random);
    let name = path.file_name().unwrap().to_string_lossy().into_owned();
    let verified = verify(copy.path());
    let (mut outcome, description) = start_and_compare(log, copy.path());
    let mut problem = None;
    if outcome == Outcome::Refused {
        let again = start(log, copy.path(), false).err();
        let is_named = description.contains(&name)
            || has_number(&description, "record ")
            || has_number(&description, "command ");
        if again.is_none() || !is_named || verified.is_none() {
            problem = Some(format!("refused ({description}), then {again:?}; verify says {verified:?}"));
        }
        match start(log, copy.path(), true) {
            Err(description) => {
                outcome = Outcome::CopyNeeded;
                problem = Some(format!("refused although the loss is accepted: {description}"));
            }
            Ok(mut rig) => {
                let accepted = log_in(&mut rig, USERS[0], 1).accepted.unwrap().0;
                let known = log.recorded.iter().any(|(session, _)| *session == accepted);
                drop(rig);
                let kept =
                    start(log, copy.path(), false).map(|mut rig| log_in(&mut rig, USERS[0], 1).accepted);
                if known
                    || kept.as_ref().ok().and_then(Option::as_ref).is_none_or(|(name, _)| *name != accepted)
                {
                    problem = Some(format!("accepted as {accepted}, and after that {kept:?}"));
                }
            }
        }
    } else if outcome != Outcome::Whole {
        // The logs come from processes that were stopped or killed, without a power loss. So no session may
        // be renamed unless a loss is accepted.
        problem = Some(description);
    }
    let problem = problem.map(|description| {
        let kept = copy.keep();
        format!("{}, {kind} of {name}, {}: {description}", log.name(), kept.display())
    });
    (target, kind, outcome, problem)
}

/// True if `text` has a digit right after `word`, as in a message that gives the position of the damage.
fn has_number(text: &str, word: &str) -> bool {
    text.match_indices(word)
        .any(|(at, _)| text[at + word.len()..].starts_with(|first: char| first.is_ascii_digit()))
}

/// Returns the first defect as `tickpath journal verify` would report it.
fn verify(folder: &Path) -> Option<String> {
    let folder = Folder::new(folder).unwrap();
    let found = match inspect(&folder, &InspectOptions::default()) {
        Err(error) => return Some(error.to_string()),
        Ok(found) => found,
    };
    let Some(session) = found.session else { return Some("no journal".to_owned()) };
    let snapshots = Snapshots::new(folder, session);
    let bad =
        snapshots.list().unwrap().into_iter().find_map(|sequence| match snapshots.read(sequence).unwrap() {
            Ok(_) if sequence > found.last_sequence() => Some(format!("{sequence} covers more")),
            Ok(_) => None,
            Err(damage) => Some(damage.to_string()),
        });
    let missing = || snapshots.newest(Sequence(u64::MAX)).unwrap().skipped.pop().map(|skipped| skipped.file);
    bad.or_else(missing)
}

/// Starts a venue on the folder and compares its messages with the clients' records. Returns the outcome
/// and its description.
pub fn start_and_compare(log: &Log, folder: &Path) -> (Outcome, String) {
    let mut rig = match start(log, folder, false) {
        Err(description) => return (Outcome::Refused, description),
        Ok(rig) => rig,
    };
    let mut outcome = (Outcome::Whole, String::new());
    for (user, (session, recorded)) in USERS.iter().zip(&log.recorded) {
        let mut link = log_in(&mut rig, user, 1);
        let (name, _) = link.accepted.clone().unwrap();
        if name != *session {
            return (Outcome::Renamed, name);
        }
        // All earlier messages have arrived once the response to this order arrives.
        link.send(&request_packet(&enter(FRESH_REF, Side::Buy, 1, 900_000)));
        let fresh = rig.until("the answer to a new order", |_| {
            link.read();
            link.answer_to(FRESH_REF)
        });
        let same = recorded.iter().zip(&link.messages).take_while(|(recorded, now)| recorded == now).count();
        if same < recorded.len() {
            let description = format!(
                "{user} recorded {} messages, the first {same} are as they were, {} are there",
                recorded.len(),
                link.messages.len()
            );
            // If the new order's response has the number of the first missing message, that message is lost.
            let is_lost = fresh == same;
            outcome = outcome.max((if is_lost { Outcome::Lost } else { Outcome::Twice }, description));
        }
    }
    outcome.max(compare_market(log, &mut rig))
}

/// Compares the last recorded market data messages with those that are retransmitted.
fn compare_market(log: &Log, rig: &mut Rig) -> (Outcome, String) {
    let (session, last) = log.market.last().expect("market data was recorded");
    let first = last.saturating_sub(MARKET_COUNT) + 1;
    let count = (last - first + 1) as u16;
    let mut requester = RetransmissionClient::request(rig.endpoints.retransmission, &session, first, count);
    // The venue does not answer requests for lost messages, so stop after `TURNS_MAX` duty cycles.
    (0..TURNS_MAX).find(|_| {
        rig.turn();
        requester.read()
    });
    for number in first..=last {
        let key = (session.clone(), number);
        if let Some(recorded) = log.market.messages.get(&key) {
            match requester.market.messages.get(&key) {
                None => return (Outcome::Lost, format!("message {number} of market data is gone")),
                Some(now) if now != recorded => {
                    return (Outcome::Twice, format!("message {number} of market data is another"));
                }
                Some(_) => {}
            }
        }
    }
    (Outcome::Whole, String::new())
}

fn start(log: &Log, folder: &Path, accept_loss: bool) -> Result<Rig, String> {
    let mut settings = venue_settings(folder, log.policy);
    settings.journal.as_mut().unwrap().accept_loss = accept_loss;
    build(&settings).map(Rig::of).map_err(|error| format!("{error:#}"))
}

fn log_in(rig: &mut Rig, user: &str, next: u64) -> Link {
    let mut link = Link::log_in(rig.endpoints.order_entry, user, next);
    rig.until("the login", |_| {
        link.read();
        assert!(!link.is_closed, "{user} is not let in");
        link.accepted.is_some().then_some(())
    });
    link
}
