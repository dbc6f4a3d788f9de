//! The same events seen from other sides: the venue's lives, the time of each command, each client's copy of its stream.

use tickpath_journal::Policy;
use tickpath_types::{Nanos, Sequence};

use crate::{ClientEventKind, ClientLog, Death, Observed, VenueEvent};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    /// The run ended before it.
    Alive,
    /// It said goodbye.
    Stopped,
    /// It died.
    Crashed,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Life {
    pub(super) started_at: Nanos,
    pub(super) ended_at: Nanos,
    pub(super) end: End,
    /// Its disk failed before the end.
    pub(super) has_failed: bool,
    /// The last command that it found.
    pub(super) after: Sequence,
    /// The last of its own commands that is in the log at the end of the run.
    pub(super) last: Sequence,
}

/// Acknowledged commands that were lost although every promise was kept: the power went under `async`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Loss {
    pub(super) at: Nanos,
    /// The last command that was left.
    pub(super) last: Sequence,
}

/// A client's copy of its stream: message 1 and all that were received after it; `None` for one that never was.
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

/// See the module.
pub(super) struct Views {
    pub(super) lives: Vec<Life>,
    pub(super) losses: Vec<Loss>,
    /// When each command of the log was sequenced, by its number less one; `None` when nobody saw it.
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

    /// True when what was told at `at` of `command` need not be true any more.
    pub(super) fn may_be_lost(&self, at: Nanos, command: Sequence) -> bool {
        self.losses.iter().any(|loss| loss.at >= at && command > loss.last)
    }

    /// The same of what the log, as it is in the end, does not cause at all.
    pub(super) fn may_be_unknown(&self, at: Nanos) -> bool {
        self.losses.iter().any(|loss| loss.at >= at)
    }

    pub(super) fn time_of(&self, command: Sequence) -> Option<Nanos> {
        *self.times.get((command.0 as usize).checked_sub(1)?)?
    }

    /// The last command that was sequenced by this time.
    pub(super) fn sequenced_by(&self, at: Nanos) -> Sequence {
        let last = self.times.iter().rposition(|time| time.is_some_and(|time| time <= at));
        Sequence(last.map_or(0, |place| place as u64 + 1))
    }

    /// The last command that was sequenced by this time, be it in the log at the end or not.
    pub(super) fn known_by(observed: &Observed, at: Nanos) -> Sequence {
        let steps = observed.log.sequenced.partition_point(|step| step.at <= at);
        steps.checked_sub(1).map_or(Sequence(0), |last| observed.log.sequenced[last].what)
    }

    /// The life of this time.
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
                if *death == Death::Power {
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
