//! Agents, runners, idle strategies, core pinning, the stop signal, the calibrated TSC clock, atomically
//! created files and Unix sockets.
//!
//! An [`Agent`] is a component that works in short duty cycles on a thread that its runner provides. The
//! [`ThreadPlan`]s of a [`Runner`] determine which agents share a thread, its core, their order and the
//! idling of the thread. A test drives the same agents in one thread under simulated time with an
//! [`Invoker`].
//!
//! ```
//! use tickpath_agent::{Agent, AgentError, Invoker};
//! use tickpath_types::Nanos;
//!
//! struct Countdown(usize);
//!
//! impl Agent for Countdown {
//!     fn do_work(&mut self, _now: Nanos) -> Result<usize, AgentError> {
//!         let work = self.0.min(1);
//!         self.0 -= work;
//!         Ok(work)
//!     }
//!     fn role_name(&self) -> &'static str {
//!         "countdown"
//!     }
//! }
//!
//! let mut invoker = Invoker::new("test", vec![Box::new(Countdown(3))], &[0, 0])?;
//! invoker.start()?;
//! assert_eq!(invoker.run_once(Nanos(1_000))?, 2);
//! assert_eq!(invoker.run_once(Nanos(2_000))?, 1);
//! assert_eq!(invoker.run_once(Nanos(3_000))?, 0);
//! assert_eq!(invoker.counters().agents[0].work.read(), 3);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Nothing in a run loop allocates, locks, formats or logs until an agent fails.

mod agent;
mod allocations;
mod background;
mod clock;
mod counters;
mod host;
mod idle;
mod invoker;
mod jitter;
mod kernel_time;
mod park;
mod part_file;
mod resident;
mod runner;
mod stop;
mod unix_listener;

pub use agent::{Agent, AgentError, AgentFailure};
pub use allocations::{CountingAllocator, counts_allocations, thread_allocations};
pub use background::BackgroundThread;
pub use clock::{ClockSource, Drift, TscClock};
pub use counters::{AgentCounters, CycleCounters, ThreadCounters};
pub use host::{Host, TscFacts};
pub use idle::IdleStrategy;
pub use invoker::{Invoker, PlanError};
pub use jitter::{Jitter, measure_jitter};
pub use kernel_time::KernelTime;
pub use park::{Parker, Rest, WaitSet};
pub use part_file::PartFile;
pub use resident::release_code_pages;
pub use runner::{
    FINISH_TIMEOUT, PinGuard, Runner, RunnerError, ThreadPlan, ThreadReport, pin_current_thread,
};
pub use stop::StopSignal;
pub use tickpath_lockfree::Counter;
pub use tickpath_lockfree::wake::Waker;
pub use unix_listener::{ListenError, Peer, UnixListener};
