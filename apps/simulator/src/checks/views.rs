//! Views of the same events: the venue's instances, the time of each command, each client's received stream.

use tickpath_journal::Policy;
use tickpath_types::{Nanos, Sequence};

use crate::{ClientEventKind, ClientLog, HostFailure, Observed, VenueEvent};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    /// It was still alive at the end of the run.
    Alive,
    /// It stopped in the regular way.
    Stopped,
    /// It crashed.
    Crashed,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Life {
    pub(super) started_at: Nanos,
    pub(super) ended_at: Nanos,
    pub(super) end: End,
    /// Its disk failed before the end.
    pub(super) has_failed: bool,
    /// The last command that it recovered.
    pub(super) after: Sequence,
    /// The last command of this instance that is in the log at the end of the run.
    pub(super) last: Sequence,
}

/// Acknowledged commands that were lost without a broken guarantee: a power loss under `async`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Loss {
    pub(super) at: Nanos,
    /// The last remaining command.
    pub(super) last: Sequence,
}

/// A client's received stream, from message 1 on; `None` for a message that it never received.
type Copy = Vec<Option<Vec<u8>>>;

fn copy_of(client: &ClientLog) -> Copy {
    let mut messages = Copy::new();
    for event in &client.events {
        if let ClientEventKind::Received { sequence, bytes } = &event.kind
            && let Some(place) = (sequence.0 as usize).checked_sub(1)
        {
            messages.resize(messages.len().max(place + 1), None);
            messages[place] = Some(bytes.clone());
        }
    }
    messages
}

/// The derived views; see the module.
pub(super) struct Views {
    pub(super) lives: Vec<Life>,
    pub(super) losses: Vec<Loss>,
    /// Time at which each command of the log was sequenced, by its number minus one; `None` if unobserved.
    pub(super) times: Vec<Option<Nanos>>,
    /// By user.
    pub(super) copies: Vec<Copy>,
}

impl Views {
    pub(super) fn of(observed: &Observed) -> Views {
        let (mut lives, losses) = lives_of(observed);
        let mut last = Sequence(observed.log.commands.len() as u64);
        for life in lives.iter_mut().rev() {
            life.last = last;
            last = last.min(life.after);
        }
        let copies = observed.clients.iter().map(copy_of).collect();
        let times = times_of(observed, &lives);
        Views { lives, losses, times, copies }
    }

    /// Returns true if a message about `command`, sent at `at`, may no longer be valid.
    pub(super) fn may_be_lost(&self, at: Nanos, command: Sequence) -> bool {
        self.losses.iter().any(|loss| loss.at >= at && command > loss.last)
    }

    /// Returns the same for a message that the final log does not cause at all.
    pub(super) fn may_be_unknown(&self, at: Nanos) -> bool {
        self.losses.iter().any(|loss| loss.at >= at)
    }

    pub(super) fn time_of(&self, command: Sequence) -> Option<Nanos> {
        *self.times.get((command.0 as usize).checked_sub(1)?)?
    }

    /// Returns the last command that was sequenced by this time.
    pub(super) fn sequenced_by(&self, at: Nanos) -> Sequence {
        let last = self.times.iter().rposition(|time| time.is_some_and(|time| time <= at));
        Sequence(last.map_or(0, |place| place as u64 + 1))
    }

    /// Returns the last command that was sequenced by this time, even if the final log lacks it.
    pub(super) fn known_by(observed: &Observed, at: Nanos) -> Sequence {
        let steps = observed.log.sequenced.partition_point(|step| step.at <= at);
        steps.checked_sub(1).map_or(Sequence(0), |last| observed.log.sequenced[last].what)
    }

    /// Returns the instance at this time.
    pub(super) fn life_at(&self, at: Nanos) -> Option<usize> {
        self.lives.iter().rposition(|life| life.started_at <= at)
    }
}

fn lives_of(observed: &Observed) -> (Vec<Life>, Vec<Loss>) {
    let mut lives: Vec<Life> = Vec::new();
    let mut losses = Vec::new();
    let mut power_lost_at = None;
    for event in &observed.venue {
        match &event.what {
            VenueEvent::Started { last, .. } => {
                if let Some(at) = power_lost_at.take()
                    && observed.setup.policy == Policy::Async
                {
                    losses.push(Loss { at, last: *last });
                }
                lives.push(Life {
                    started_at: event.at,
                    ended_at: observed.ended_at,
                    end: End::Alive,
                    has_failed: false,
                    after: *last,
                    last: *last,
                });
            }
            VenueEvent::Refused(_) => {}
            VenueEvent::CutAtStart => _ = power_lost_at.get_or_insert(event.at),
            VenueEvent::Crashed(death) => {
                if *death == HostFailure::Power {
                    power_lost_at.get_or_insert(event.at);
                }
                end(&mut lives, event.at, End::Crashed);
            }
            VenueEvent::Stopped => end(&mut lives, event.at, End::Stopped),
            VenueEvent::DiskFailed => _ = lives.last_mut().map(|life| life.has_failed = true),
        }
    }
    (lives, losses)
}

fn end(lives: &mut [Life], at: Nanos, how: End) {
    if let Some(life) = lives.last_mut() {
        (life.ended_at, life.end) = (at, how);
    }
}

fn times_of(observed: &Observed, lives: &[Life]) -> Vec<Option<Nanos>> {
    let mut times = vec![None; observed.log.commands.len()];
    let mut lives = lives.iter().peekable();
    let mut known = 0;
    for step in &observed.log.sequenced {
        while let Some(life) = lives.next_if(|life| life.started_at <= step.at) {
            known = life.after.0;
        }
        let (from, to) = (known as usize, (step.what.0 as usize).min(times.len()));
        if let Some(times) = times.get_mut(from..to) {
            times.fill(Some(step.at));
        }
        known = step.what.0;
    }
    times
}
