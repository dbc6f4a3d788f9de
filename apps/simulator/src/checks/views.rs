//! Views derived from the observations: the venue's instances, the time of each command, each client's
//! stream.

use tickpath_journal::Policy;
use tickpath_types::{Nanos, Sequence};

use crate::{ClientEventKind, ClientLog, HostFailure, Observed, VenueEvent};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum InstanceEnd {
    /// No end of the instance was recorded.
    Alive,
    /// The operator or the end of the run stopped the instance.
    Stopped,
    /// The instance crashed.
    Crashed,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct VenueInstance {
    pub(super) started_at: Nanos,
    pub(super) ended_at: Nanos,
    pub(super) end: InstanceEnd,
    /// True if the instance's disk failed before the instance ended.
    pub(super) has_failed: bool,
    /// Last command that the instance recovered at its start.
    pub(super) after: Sequence,
    /// The last command of this instance that is in the log at the end of the run.
    pub(super) last: Sequence,
}

/// A power loss under policy `async`: it may lose acknowledged commands without breaking a guarantee.
#[derive(Clone, Copy, Debug)]
pub(super) struct Loss {
    pub(super) at: Nanos,
    /// The last command that remained in the log.
    pub(super) last: Sequence,
}

/// A client's received stream, from message 1 on; `None` for a message that it never received.
type ReceivedStream = Vec<Option<Vec<u8>>>;

fn received_stream(client: &ClientLog) -> ReceivedStream {
    let mut messages = ReceivedStream::new();
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

/// The views derived from the observations of a run.
pub(super) struct Views {
    pub(super) instances: Vec<VenueInstance>,
    pub(super) losses: Vec<Loss>,
    /// Time at which each command of the log was sequenced, from command 1 on; `None` if unobserved.
    pub(super) times: Vec<Option<Nanos>>,
    /// Received stream of each user.
    pub(super) received_streams: Vec<ReceivedStream>,
}

impl Views {
    pub(super) fn of(observed: &Observed) -> Views {
        let (mut instances, losses) = instances_of(observed);
        let mut last = Sequence(observed.log.commands.len() as u64);
        for instance in instances.iter_mut().rev() {
            instance.last = last;
            last = last.min(instance.after);
        }
        let received_streams = observed.clients.iter().map(received_stream).collect();
        let times = times_of(observed, &instances);
        Views { instances, losses, times, received_streams }
    }

    /// Returns true if a power loss at or after `at` may have removed `command` from the log.
    pub(super) fn may_be_lost(&self, at: Nanos, command: Sequence) -> bool {
        self.losses.iter().any(|loss| loss.at >= at && command > loss.last)
    }

    /// Returns true if a message sent at `at` may be about a command that the final log does not contain.
    pub(super) fn may_be_unknown(&self, at: Nanos) -> bool {
        self.losses.iter().any(|loss| loss.at >= at)
    }

    pub(super) fn time_of(&self, command: Sequence) -> Option<Nanos> {
        *self.times.get((command.0 as usize).checked_sub(1)?)?
    }

    /// Returns the last command of the final log that was sequenced by this time.
    pub(super) fn sequenced_by(&self, at: Nanos) -> Sequence {
        let last = self.times.iter().rposition(|time| time.is_some_and(|time| time <= at));
        Sequence(last.map_or(0, |place| place as u64 + 1))
    }

    /// Returns the last command that was sequenced by this time, even if the final log lacks it.
    pub(super) fn known_by(observed: &Observed, at: Nanos) -> Sequence {
        let steps = observed.log.sequenced.partition_point(|step| step.at <= at);
        steps.checked_sub(1).map_or(Sequence(0), |last| observed.log.sequenced[last].value)
    }

    /// Returns the index of the latest instance that had started by this time.
    pub(super) fn instance_at(&self, at: Nanos) -> Option<usize> {
        self.instances.iter().rposition(|instance| instance.started_at <= at)
    }
}

fn instances_of(observed: &Observed) -> (Vec<VenueInstance>, Vec<Loss>) {
    let mut instances: Vec<VenueInstance> = Vec::new();
    let mut losses = Vec::new();
    let mut power_lost_at = None;
    for event in &observed.venue {
        match &event.value {
            VenueEvent::Started { last, .. } => {
                if let Some(at) = power_lost_at.take()
                    && observed.setup.policy == Policy::Async
                {
                    losses.push(Loss { at, last: *last });
                }
                instances.push(VenueInstance {
                    started_at: event.at,
                    ended_at: observed.ended_at,
                    end: InstanceEnd::Alive,
                    has_failed: false,
                    after: *last,
                    last: *last,
                });
            }
            VenueEvent::Refused(_) => {}
            VenueEvent::PowerLostAtStart => _ = power_lost_at.get_or_insert(event.at),
            VenueEvent::Crashed(failure) => {
                if *failure == HostFailure::Power {
                    power_lost_at.get_or_insert(event.at);
                }
                end(&mut instances, event.at, InstanceEnd::Crashed);
            }
            VenueEvent::Stopped => end(&mut instances, event.at, InstanceEnd::Stopped),
            VenueEvent::DiskFailed => _ = instances.last_mut().map(|instance| instance.has_failed = true),
        }
    }
    (instances, losses)
}

fn end(instances: &mut [VenueInstance], at: Nanos, how: InstanceEnd) {
    if let Some(instance) = instances.last_mut() {
        (instance.ended_at, instance.end) = (at, how);
    }
}

fn times_of(observed: &Observed, instances: &[VenueInstance]) -> Vec<Option<Nanos>> {
    let mut times = vec![None; observed.log.commands.len()];
    let mut instances = instances.iter().peekable();
    let mut known = 0;
    for step in &observed.log.sequenced {
        while let Some(instance) = instances.next_if(|instance| instance.started_at <= step.at) {
            known = instance.after.0;
        }
        let (from, to) = (known as usize, (step.value.0 as usize).min(times.len()));
        if let Some(times) = times.get_mut(from..to) {
            times.fill(Some(step.at));
        }
        known = step.value.0;
    }
    times
}
