//! Reads a recorded flow on a separate thread, ahead of the agent that plays it.

use std::thread::{Builder, JoinHandle};
use std::time::Duration;

use tickpath_capture::Recording;
use tickpath_capture::flow::{FlowCounts, FlowStep, Mapper};
use tickpath_lockfree::spsc;

/// Capacity of the ring of steps read ahead; the reader waits while the ring is full.
const READ_AHEAD: usize = 1 << 13;
/// Sleep of the reader between attempts to add to a full ring; playing the ring's steps takes longer.
const RETRY_SLEEP: Duration = Duration::from_millis(1);

/// A recording that is read, decompressed and mapped on a separate thread, so that the player's duty cycles
/// only take steps from a ring. When it is dropped, the thread ends by itself.
pub(crate) struct FlowReader {
    steps: spsc::Consumer<FlowStep>,
    taken: u64,
    thread: JoinHandle<ReaderState>,
}

/// Result of [`FlowReader::peek`].
#[derive(Debug, PartialEq)]
pub(super) enum NextStep<'a> {
    Step(&'a FlowStep),
    /// The ring is empty, but the reader continues.
    NotYet,
    /// There are no more steps.
    End,
}

/// State of the reader's thread, which returns it when it ends.
struct ReaderState {
    mapper: Mapper,
    /// The mapper's counters after each yielded step. Those after the `n`th step are at `n mod length`.
    counts: Box<[FlowCounts]>,
    yielded: u64,
    damage: Option<String>,
}

impl FlowReader {
    /// Starts the reader's thread. Fails if the thread cannot be created.
    pub(crate) fn start(recording: Recording, mapper: Mapper) -> std::io::Result<FlowReader> {
        let (yielding, steps) = spsc::channel(READ_AHEAD);
        // One entry for each step in the ring, and one for the last step taken.
        let counts = vec![FlowCounts::default(); steps.capacity() + 1].into_boxed_slice();
        let state = ReaderState { mapper, counts, yielded: 0, damage: None };
        let thread =
            Builder::new().name("flow-reader".to_owned()).spawn(move || state.read(recording, yielding))?;
        Ok(FlowReader { steps, taken: 0, thread })
    }

    /// Returns the next step without removing it; [`take`](Self::take) removes it.
    pub(super) fn peek(&mut self) -> NextStep<'_> {
        // Check for the end first: in the reverse order, steps added between the two checks would be missed.
        let is_over = self.steps.is_disconnected();
        match self.steps.peek() {
            Some(step) => NextStep::Step(step),
            None if is_over => NextStep::End,
            None => NextStep::NotYet,
        }
    }

    pub(super) fn take(&mut self) {
        self.taken += u64::from(self.steps.try_pop().is_some());
    }

    /// Ends the reader's thread and returns the counters as of the last taken step. If all steps were taken,
    /// also returns the damage that ended the reading early, if any.
    pub(super) fn finish(self) -> (FlowCounts, Option<String>) {
        let FlowReader { mut steps, taken, thread } = self;
        let is_played = steps.is_disconnected() && steps.try_pop().is_none();
        drop(steps);
        let state = thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        if is_played {
            return (state.mapper.counts(), state.damage);
        }
        let index = (taken % state.counts.len() as u64) as usize;
        (if taken == 0 { FlowCounts::default() } else { state.counts[index] }, None)
    }
}

impl ReaderState {
    fn read(mut self, mut recording: Recording, mut steps: spsc::Producer<FlowStep>) -> ReaderState {
        let mut is_read = false;
        while !steps.is_abandoned() {
            if let Some(step) = self.mapper.poll_step() {
                while steps.try_push(step).is_err() {
                    if steps.is_abandoned() {
                        return self;
                    }
                    std::thread::sleep(RETRY_SLEEP);
                }
                self.yielded += 1;
                let index = self.yielded % self.counts.len() as u64;
                self.counts[index as usize] = self.mapper.counts();
            } else if is_read {
                break;
            } else {
                match recording.next_event() {
                    Ok(Some(event)) => self.mapper.handle_event(&event),
                    ended => {
                        // Treat damage as the end of the file, so that the steps before it are played.
                        self.damage = ended.err().map(|error| error.to_string());
                        self.mapper.finish();
                        is_read = true;
                    }
                }
            }
        }
        self
    }
}

#[cfg(test)]
mod tests {
    use std::path::{Path, PathBuf};

    use tempfile::TempDir;
    use tickpath_capture::flow::{FlowLimits, survey};
    use tickpath_flowgen::{ItchDay, ItchDayConfig};

    use super::*;

    /// A recording that is longer than the ring.
    fn recording() -> (TempDir, PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("day.itch");
        let config = ItchDayConfig { messages: 20_000, symbols: 10, live: 200, seed: 1 };
        let mut bytes = Vec::new();
        ItchDay::new(config).unwrap().append_frames(usize::MAX, &mut bytes);
        std::fs::write(&path, bytes).unwrap();
        (folder, path)
    }

    fn mapper(path: &Path) -> Mapper {
        Mapper::new(survey(&mut Recording::open(path).unwrap()).unwrap(), FlowLimits::default())
    }

    /// Reads a recording without a thread; returns its steps with the counters after each, and the final
    /// counters.
    fn expected(path: &Path) -> (Vec<(FlowStep, FlowCounts)>, FlowCounts) {
        let (mut recording, mut mapper) = (Recording::open(path).unwrap(), mapper(path));
        let mut steps = Vec::new();
        loop {
            let event = recording.next_event().unwrap();
            match &event {
                Some(event) => mapper.handle_event(event),
                None => mapper.finish(),
            }
            while let Some(step) = mapper.poll_step() {
                steps.push((step, mapper.counts()));
            }
            if event.is_none() {
                return (steps, mapper.counts());
            }
        }
    }

    fn start(path: &Path) -> FlowReader {
        FlowReader::start(Recording::open(path).unwrap(), mapper(path)).unwrap()
    }

    fn next_step(reader: &mut FlowReader) -> Option<FlowStep> {
        loop {
            let step = match reader.peek() {
                NextStep::Step(step) => *step,
                NextStep::NotYet => {
                    std::thread::yield_now();
                    continue;
                }
                NextStep::End => return None,
            };
            reader.take();
            return Some(step);
        }
    }

    #[test]
    fn steps_arrive_in_order() {
        let (_folder, path) = recording();
        let (steps, counts) = expected(&path);
        assert!(steps.len() > READ_AHEAD, "{} steps do not fill the ring", steps.len());
        let mut reader = start(&path);
        for (number, (step, _)) in steps.iter().enumerate() {
            assert_eq!(next_step(&mut reader).as_ref(), Some(step), "{number}");
        }
        assert_eq!(next_step(&mut reader), None);
        assert_eq!(reader.finish(), (counts, None));
    }

    #[test]
    fn counts_are_those_of_the_steps_that_were_taken() {
        let (_folder, path) = recording();
        let (steps, _) = expected(&path);
        for taken in [1, 100, steps.len() - 1] {
            let mut reader = start(&path);
            for _ in 0..taken {
                next_step(&mut reader).unwrap();
            }
            assert_eq!(reader.finish(), (steps[taken - 1].1, None), "{taken} taken");
        }
        assert_eq!(start(&path).finish(), (FlowCounts::default(), None));
    }
}
