//! Runs agents on threads until the stop signal is raised.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Sender};
use std::thread::{self, JoinHandle};

use nix::sched::{CpuSet, sched_getaffinity, sched_setaffinity};
use nix::unistd::Pid;
use tickpath_types::Nanos;

use crate::agent::{Agent, AgentFailure};
use crate::clock::TscClock;
use crate::counters::ThreadCounters;
use crate::idle::{IdleStrategy, Idler};
use crate::invoker::{Invoker, PlanError};
use crate::park::Parker;
use crate::stop::StopSignal;

/// Maximum time for agents to [finish](Agent::finish) accepted work, once the system is stopping; then they
/// are closed in their present state.
pub const FINISH_TIMEOUT: Nanos = Nanos::from_secs(2);
/// Minimum duration of a cycle without work that counts as a stall of the host.
const STALL_MIN: Nanos = Nanos::from_micros(10);
/// Time for which a [parking](IdleStrategy::Park) thread stays awake after its latest work: with a
/// message every millisecond, it never sleeps.
const AWAKE_FOR: Nanos = Nanos::from_millis(1);

/// Plan of one thread: its core, its idling, and its agents with the order of their calls.
pub struct ThreadPlan {
    /// Name of the thread in reports and in the operating system; Linux shows its first 15 bytes.
    pub name: String,
    /// Core to pin the thread to; `None` leaves it to the scheduler.
    pub core: Option<usize>,
    /// Behaviour after a cycle without work.
    pub idle: IdleStrategy,
    /// Interval of the agents' [warm-up](Agent::warm_up) while there is no work; `None` for no warm-up.
    pub warm_up_interval: Option<Nanos>,
    /// The agents of the thread.
    pub agents: Vec<Box<dyn Agent>>,
    /// Order of the calls as indices into `agents`, which may repeat; if empty, each agent is called once.
    pub cycle: Vec<usize>,
}

/// The result of an ended thread.
#[derive(Clone, Debug)]
pub struct ThreadReport {
    /// The thread's final counts.
    pub counters: Arc<ThreadCounters>,
    /// The reason why the thread could not be pinned to its core; `None` if it was, or has no planned core.
    pub pin_warning: Option<String>,
}

/// The reason why a system did not start, or failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RunnerError {
    /// The plan cannot be run; the error says what to change.
    #[error(transparent)]
    Plan(#[from] PlanError),
    /// The system refused to start a thread, mostly because there are too many.
    #[error("cannot start thread {name}: {source}")]
    Spawn {
        /// Name of the thread.
        name: String,
        /// The system's error.
        source: std::io::Error,
    },
    /// The system could not create the eventfd that wakes a sleeping thread, usually because the limit
    /// of open files is reached.
    #[error("thread {name} cannot sleep: {source}: raise the limit of open files")]
    Park {
        /// Name of the thread.
        name: String,
        /// The system's error.
        source: std::io::Error,
    },
    /// An agent reported a fatal error; every other thread was stopped.
    #[error(transparent)]
    Agent(#[from] AgentFailure),
    /// An agent panicked, which is a defect; every other thread was stopped.
    #[error("thread {name} panicked: {message}")]
    Panicked {
        /// Name of the thread.
        name: String,
        /// Message of the panic.
        message: String,
    },
}

/// A running system of agents. If dropped without [`join`](Runner::join), it runs until it is stopped.
///
/// Costs two clock reads per cycle through a thread's agents, and one more read and a few stores per duty
/// cycle with work. With reads of 9 ns: 27 ns per cycle, 11 ns per agent without work and 22 ns per agent
/// with work.
#[derive(Debug)]
pub struct Runner {
    threads: Vec<RunningThread>,
    stop: StopSignal,
}

#[derive(Debug)]
struct RunningThread {
    name: String,
    report: ThreadReport,
    handle: JoinHandle<Result<(), AgentFailure>>,
}

impl Runner {
    /// Starts the threads. Returns when every agent's `on_start` has succeeded; no agent does work before.
    ///
    /// `stop` ends all threads; the runner also raises it when an agent fails.
    ///
    /// # Errors
    /// [`RunnerError`] when a plan cannot be run, a thread cannot be started, or an agent does not start;
    /// all threads have then ended.
    pub fn start(plans: Vec<ThreadPlan>, clock: TscClock, stop: StopSignal) -> Result<Runner, RunnerError> {
        let loops =
            plans.into_iter().map(|plan| Loop::new(plan, clock, &stop)).collect::<Result<Vec<_>, _>>()?;
        let start_flag = Arc::new(AtomicBool::new(false));
        let mut runner = Runner { threads: Vec::with_capacity(loops.len()), stop };
        let (ready_sender, ready) = mpsc::channel();
        for duty_loop in loops {
            if let Err(error) = runner.spawn(duty_loop, ready_sender.clone(), Arc::clone(&start_flag)) {
                runner.stop.stop();
                runner.join().ok(); // the error is that of the refused thread, not a later one
                return Err(error);
            }
        }
        drop(ready_sender);
        let mut ready_count = 0;
        for (index, pin_warning) in ready {
            runner.threads[index].report.pin_warning = pin_warning;
            ready_count += 1;
        }
        if ready_count < runner.threads.len() {
            return Err(runner.join().expect_err("a thread whose agents did not start ends with the reason"));
        }
        start_flag.store(true, Ordering::Release);
        Ok(runner)
    }

    fn spawn(
        &mut self,
        duty_loop: Loop,
        ready: Ready,
        start_flag: Arc<AtomicBool>,
    ) -> Result<(), RunnerError> {
        let index = self.threads.len();
        let name = duty_loop.name.clone();
        let report = ThreadReport { counters: duty_loop.invoker.counters(), pin_warning: None };
        let handle = thread::Builder::new()
            .name(name.clone())
            .spawn(move || duty_loop.run(index, ready, &start_flag))
            .map_err(|source| RunnerError::Spawn { name: name.clone(), source })?;
        self.threads.push(RunningThread { name, report, handle });
        Ok(())
    }

    /// Live counters, one entry per thread in the order of the plans.
    pub fn counters(&self) -> impl Iterator<Item = &Arc<ThreadCounters>> {
        self.threads.iter().map(|thread| &thread.report.counters)
    }

    /// Messages about threads that could not be pinned to their core, to be reported once.
    pub fn warnings(&self) -> impl Iterator<Item = &str> {
        self.threads.iter().filter_map(|thread| thread.report.pin_warning.as_deref())
    }

    /// True when every thread has ended.
    #[must_use]
    pub fn is_finished(&self) -> bool {
        self.threads.iter().all(|thread| thread.handle.is_finished())
    }

    /// Waits until every thread has ended; raise the stop signal to end them.
    ///
    /// # Errors
    /// The error of the first thread, in the order of the plans, whose agent failed or panicked.
    pub fn join(self) -> Result<Vec<ThreadReport>, RunnerError> {
        // Every thread is joined, also when an early one has failed.
        let ended: Vec<_> = self.threads.into_iter().map(RunningThread::join).collect();
        ended.into_iter().collect()
    }
}

impl RunningThread {
    fn join(self) -> Result<ThreadReport, RunnerError> {
        match self.handle.join() {
            Ok(Ok(())) => Ok(self.report),
            Ok(Err(failure)) => Err(RunnerError::Agent(failure)),
            Err(panic) => Err(RunnerError::Panicked { name: self.name, message: panic_message(&*panic) }),
        }
    }
}

fn panic_message(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("no message").to_owned()
}

/// Channel on which a thread reports its index and pin warning once its agents have started.
type Ready = Sender<(usize, Option<String>)>;

/// The run loop of one thread.
struct Loop {
    name: String,
    core: Option<usize>,
    idler: Idler,
    /// Puts the thread to sleep while it has no work; `None` unless it [parks](IdleStrategy::Park).
    parker: Option<Parker>,
    warm_up_interval: Option<Nanos>,
    invoker: Invoker,
    clock: TscClock,
    stop: StopSignal,
}

impl Loop {
    fn new(plan: ThreadPlan, clock: TscClock, stop: &StopSignal) -> Result<Loop, RunnerError> {
        let mut invoker = Invoker::new(&plan.name, plan.agents, &plan.cycle)?;
        let idler = Idler::new(plan.idle);
        let parker = (plan.idle == IdleStrategy::Park).then(|| Parker::new(clock)).transpose();
        let parker = parker.map_err(|source| RunnerError::Park { name: plan.name.clone(), source })?;
        if let Some(parker) = &parker {
            invoker.wake_by(parker.waker());
            stop.wake(parker.waker());
        }
        Ok(Loop {
            name: plan.name,
            core: plan.core,
            idler,
            parker,
            warm_up_interval: plan.warm_up_interval,
            invoker,
            clock,
            stop: stop.clone(),
        })
    }

    fn run(mut self, index: usize, ready: Ready, start_flag: &AtomicBool) -> Result<(), AgentFailure> {
        // Raises the stop signal on every exit, so that the end of one thread, also by a panic, ends all.
        let _guard = StopOnDrop(self.stop.clone());
        // Pin before the agents start, so that the memory that they touch first is near their core.
        let pin_warning = self.core.and_then(|core| pin_current_thread(core).err());
        let outcome = self
            .start(index, pin_warning, ready, start_flag)
            .and_then(|()| self.run_cycles())
            .and_then(|()| self.finish());
        self.invoker.close();
        outcome
    }

    /// Lets the agents finish their accepted work.
    fn finish(&mut self) -> Result<(), AgentFailure> {
        let deadline = self.clock.now() + FINISH_TIMEOUT;
        loop {
            let now = self.clock.now();
            if self.invoker.finish(now)? || now >= deadline {
                return Ok(());
            }
            // Nothing is urgent any more, and another thread may be doing the work that this one awaits.
            thread::yield_now();
        }
    }

    /// Starts the agents, reports their start, and waits until all other threads' agents have started.
    fn start(
        &mut self,
        index: usize,
        pin_warning: Option<String>,
        ready: Ready,
        start_flag: &AtomicBool,
    ) -> Result<(), AgentFailure> {
        self.invoker.start()?;
        ready.send((index, pin_warning)).ok(); // the receiver waits until the last sender is dropped
        drop(ready);
        while !start_flag.load(Ordering::Acquire) && !self.stop.is_stopped() {
            thread::yield_now();
        }
        Ok(())
    }

    fn run_cycles(&mut self) -> Result<(), AgentFailure> {
        let counters = self.invoker.counters();
        let counts = &counters.cycles;
        let stall_ticks_min = self.clock.nanos_to_ticks(STALL_MIN);
        let warm_up_ticks = self.warm_up_interval.map(|interval| self.clock.nanos_to_ticks(interval));
        let mut own_since = self.clock.ticks();
        let awake_ticks = self.clock.nanos_to_ticks(AWAKE_FOR);
        let (mut warmed_up_at, mut worked_at) = (own_since, own_since);
        counts.start_ticks.set(own_since);
        while !self.stop.is_stopped() {
            let (work, end) = self.invoker.run_timed(&self.clock, self.clock.ticks())?;
            let cycle_ticks = end.saturating_sub(own_since);
            counts.count.add(1);
            counts.latest_ticks.set(end);
            counts.cycle_ticks_max.raise_to(cycle_ticks);
            if work == 0 && cycle_ticks > stall_ticks_min {
                counts.stalls.add(1);
                counts.stalled_ticks.add(cycle_ticks);
            }
            let is_quiet = work == 0 && end.saturating_sub(worked_at) >= awake_ticks;
            let has_rested = if work > 0 {
                worked_at = end;
                self.stay_awake();
                self.idler.idle(work)
            } else if is_quiet && self.parker.is_some() {
                self.rest();
                true
            } else {
                self.idler.idle(work)
            };
            own_since = if has_rested { self.clock.ticks() } else { end };
            if work == 0 && warm_up_ticks.is_some_and(|ticks| own_since.saturating_sub(warmed_up_at) >= ticks)
            {
                self.invoker.warm_up(self.clock.at(own_since));
                own_since = self.clock.ticks();
                warmed_up_at = own_since;
            }
        }
        Ok(())
    }
}

impl Loop {
    #[inline]
    fn stay_awake(&mut self) {
        if let Some(parker) = &mut self.parker {
            parker.note_work();
        }
    }

    /// Announces a sleep, so that one more cycle can find earlier work. If it finds none, the next call
    /// sleeps.
    #[cold]
    fn rest(&mut self) {
        let Some(parker) = &mut self.parker else { return };
        if parker.is_announced() {
            self.invoker.count_sleep();
            parker.sleep(|now, wait| self.invoker.wait_for(now, wait));
        } else {
            parker.announce();
        }
    }
}

struct StopOnDrop(StopSignal);

impl Drop for StopOnDrop {
    fn drop(&mut self) {
        self.0.stop();
    }
}

/// Pins the calling thread to one core.
///
/// # Errors
/// A message: the core does not exist or this process may not use it.
pub fn pin_current_thread(core: usize) -> Result<(), String> {
    let mut cores = CpuSet::new();
    cores
        .set(core)
        .and_then(|()| sched_setaffinity(Pid::from_raw(0), &cores))
        .map_err(|error| format!("not pinned to core {core}: {error}: choose one of the allowed cores"))
}

/// Keeps the calling thread on one core until it is dropped.
#[derive(Debug)]
pub struct PinGuard {
    before: CpuSet,
    /// Makes the guard `!Send`: it must be dropped on the pinned thread.
    _thread: std::marker::PhantomData<*const ()>,
}

impl PinGuard {
    /// Pins the calling thread.
    ///
    /// # Errors
    /// As [`pin_current_thread`].
    pub fn pin(core: usize) -> Result<PinGuard, String> {
        let before = sched_getaffinity(Pid::from_raw(0)).map_err(|error| format!("affinity: {error}"))?;
        pin_current_thread(core)?;
        Ok(PinGuard { before, _thread: std::marker::PhantomData })
    }
}

impl Drop for PinGuard {
    fn drop(&mut self) {
        // If this fails, the thread remains pinned.
        let _ = sched_setaffinity(Pid::from_raw(0), &self.before);
    }
}
