//! The source of ticks, which it generates on the server's thread or on separate threads.

use std::sync::mpsc::{Receiver, SyncSender, TryRecvError, sync_channel};
use std::thread::JoinHandle;

use anyhow::Context;
use tickpath_agent::StopSignal;
use tickpath_flowgen::{TickGenerator, TickGeneratorConfig};
use tickpath_ticks::message::{Tick, TickKind};
use tickpath_types::Nanos;
use zerocopy::FromZeros;

use super::tick_writer::{SymbolState, TickWriter};

/// Number of ticks in a block. The threads take turns, one block each, so the sequence numbers of every block
/// are known in advance.
const BLOCK: usize = 512;
/// Number of blocks that a thread generates in advance.
const BLOCKS_AHEAD: usize = 8;

/// Generates ticks in the order of their sequence numbers.
pub(super) enum Source {
    /// On the caller's thread.
    Inline(Box<TickWriter>),
    /// On separate threads.
    Threads(Threads),
}

impl Source {
    /// Starts generating the ticks of a market on this number of threads, at most one per symbol.
    pub(super) fn start(market: &TickGeneratorConfig, threads: usize) -> anyhow::Result<Source> {
        if threads <= 1 {
            let tick_writer = TickWriter::new(TickGenerator::new(market)?, 1, market.symbols.len());
            return Ok(Source::Inline(Box::new(tick_writer)));
        }
        Threads::start(market, threads).map(Source::Threads)
    }

    /// Returns the states of the symbols after all ticks that [`take`](Source::take) has returned.
    pub(super) fn states(&self) -> &[SymbolState] {
        match self {
            Source::Inline(tick_writer) => tick_writer.states(),
            Source::Threads(threads) => &threads.states,
        }
    }

    /// Writes the next ticks into `buffer`; the first has place `place`. Returns their number, which is less
    /// than the buffer's length if the threads have not generated enough.
    #[inline]
    pub(super) fn take(&mut self, place: u64, buffer: &mut [Tick], next_ts: impl FnMut() -> Nanos) -> usize {
        match self {
            Source::Inline(tick_writer) => {
                tick_writer.make(place, buffer, next_ts);
                buffer.len()
            }
            Source::Threads(threads) => threads.take(place, buffer, next_ts),
        }
    }
}

type Block = Box<[Tick; BLOCK]>;

/// One thread that generates ticks.
struct Worker {
    full: Receiver<Block>,
    empty: SyncSender<Block>,
    thread: Option<JoinHandle<()>>,
}

/// The threads that generate ticks. `block` is the current block of thread `turn`, of which `taken` ticks
/// were used.
pub(super) struct Threads {
    workers: Vec<Worker>,
    stop: StopSignal,
    turn: usize,
    block: Option<Block>,
    taken: usize,
    states: Vec<SymbolState>,
}

impl Threads {
    fn start(market: &TickGeneratorConfig, threads: usize) -> anyhow::Result<Threads> {
        let stop = StopSignal::new();
        let parts = market.split(threads);
        let count = parts.len();
        let start = |(turn, part): (usize, &TickGeneratorConfig)| {
            let tick_writer =
                TickWriter::new(TickGenerator::new(part)?, part.first_symbol + 1, part.symbols.len());
            Worker::start(tick_writer, turn, count, stop.clone())
        };
        let workers = parts.iter().enumerate().map(start).collect::<anyhow::Result<_>>()?;
        let states = vec![SymbolState { symbol_sequence: 1, ..SymbolState::default() }; market.symbols.len()];
        Ok(Threads { workers, stop, turn: 0, block: None, taken: 0, states })
    }

    fn take(&mut self, place: u64, buffer: &mut [Tick], mut next_ts: impl FnMut() -> Nanos) -> usize {
        let mut done = 0;
        while done < buffer.len() {
            let Some(block) = &self.block else {
                match self.workers[self.turn].full.try_recv() {
                    Ok(block) => self.block = Some(block),
                    Err(TryRecvError::Empty | TryRecvError::Disconnected) => break,
                }
                continue;
            };
            let ticks = &block[self.taken..];
            let count = ticks.len().min(buffer.len() - done);
            for (message, tick) in buffer[done..done + count].iter_mut().zip(ticks) {
                *message = *tick;
                message.ts_generate = next_ts().0.into();
                note(&mut self.states, tick, place + done as u64);
                done += 1;
            }
            self.taken += count;
            if self.taken == BLOCK {
                self.return_block();
            }
        }
        done
    }

    /// Returns the used block to its thread for refilling, and advances to the next thread.
    fn return_block(&mut self) {
        if let Some(block) = self.block.take() {
            // Fails only if the thread has ended: the channel has capacity for all blocks.
            let _ = self.workers[self.turn].empty.try_send(block);
        }
        self.turn = (self.turn + 1) % self.workers.len();
        self.taken = 0;
    }
}

/// Records a tick in the state of its symbol.
#[inline]
fn note(states: &mut [SymbolState], tick: &Tick, place: u64) {
    let state = &mut states[usize::from(tick.header.instrument.get()) - 1];
    state.symbol_sequence += 1;
    match tick.kind() {
        Some(TickKind::Trade(trade)) => state.volume = trade.volume.get(),
        Some(TickKind::Quote(_)) => state.quoted = place + 1,
        _ => {}
    }
}

impl Drop for Threads {
    fn drop(&mut self) {
        self.stop.stop();
        for worker in self.workers.drain(..) {
            let Worker { full, empty, thread } = worker;
            // Closing the channels ends a thread that waits on one of them.
            drop((full, empty));
            if let Some(thread) = thread {
                // Ignore the result: the thread returns nothing, and the panic hook has reported a panic.
                let _ = thread.join();
            }
        }
    }
}

impl Worker {
    fn start(
        mut tick_writer: TickWriter,
        turn: usize,
        turns: usize,
        stop: StopSignal,
    ) -> anyhow::Result<Worker> {
        let (to_server, full) = sync_channel::<Block>(BLOCKS_AHEAD);
        let (empty, from_server) = sync_channel::<Block>(BLOCKS_AHEAD);
        for _ in 0..BLOCKS_AHEAD {
            let block = Box::new([Tick::new_zeroed(); BLOCK]);
            empty.try_send(block).expect("the channel holds all blocks");
        }
        let mut place = (turn * BLOCK) as u64;
        let thread = std::thread::Builder::new().name(format!("ticks-{turn}"));
        let run = move || {
            while !stop.is_stopped() {
                let Ok(mut block) = from_server.recv() else { return };
                tick_writer.make(place, &mut *block, || Nanos::ZERO);
                place += (turns * BLOCK) as u64;
                if to_server.send(block).is_err() {
                    return;
                }
            }
        };
        let thread = thread.spawn(run).context("cannot start a tick generator thread: use --threads 1")?;
        Ok(Worker { full, empty, thread: Some(thread) })
    }
}

#[cfg(test)]
mod tests {
    use tickpath_flowgen::MarketRegime;

    use super::*;

    fn ticks(threads: usize, count: usize) -> Vec<Tick> {
        let market = TickGeneratorConfig::market(MarketRegime::Bull, 10, 5);
        let mut source = Source::start(&market, threads).unwrap();
        let mut ticks = vec![Tick::new_zeroed(); count];
        let (mut done, mut ts) = (0, 0);
        while done < count {
            let end = count.min(done + 100);
            done += source.take(done as u64, &mut ticks[done..end], || {
                ts += 1;
                Nanos(ts)
            });
            std::thread::yield_now();
        }
        let mut expected = vec![SymbolState { symbol_sequence: 1, ..SymbolState::default() }; 10];
        ticks.iter().enumerate().for_each(|(place, tick)| note(&mut expected, tick, place as u64));
        assert_eq!(source.states(), expected);
        ticks
    }

    #[test]
    fn threads_generate_a_reproducible_sequence() {
        let made = ticks(3, 10_000);
        for (place, tick) in made.iter().enumerate() {
            assert_eq!(
                (tick.header.sequence.get(), tick.ts_generate.get()),
                (place as u64 + 1, place as u64 + 1)
            );
        }
        let mut next = [1; 10];
        for tick in &made {
            let next = &mut next[usize::from(tick.header.instrument.get()) - 1];
            assert_eq!(tick.header.symbol_sequence.get(), *next);
            *next += 1;
        }
        assert!(next.iter().all(|next| *next > 500), "{next:?}");
        assert_eq!(made, ticks(3, 10_000));
    }

    #[test]
    fn one_thread_generates_on_the_callers_thread() {
        assert_eq!(ticks(1, 5_000), ticks(1, 5_000));
    }
}
