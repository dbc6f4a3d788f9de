//! The end of a system: agents finish accepted work before any of them is closed, within a time limit.
#![allow(clippy::unwrap_used)] // a failed step of a test is a failed test

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use tickpath_agent::{
    Agent, AgentError, FINISH_TIMEOUT, IdleStrategy, Runner, StopSignal, ThreadPlan, TscClock,
};
use tickpath_types::Nanos;

/// An agent that passes on one item of its predecessor per call, and is done when it has passed all items.
struct Link {
    role: &'static str,
    /// Number of items passed by the predecessor.
    before: Arc<AtomicUsize>,
    passed: Arc<AtomicUsize>,
    /// Total number of items to pass.
    count: usize,
    closed: Arc<Mutex<Vec<(&'static str, usize)>>>,
    stop: StopSignal,
}

impl Agent for Link {
    fn do_work(&mut self, _now: Nanos) -> Result<usize, AgentError> {
        self.stop.stop();
        Ok(1)
    }

    fn finish(&mut self, _now: Nanos) -> Result<bool, AgentError> {
        let passed = self.passed.load(Ordering::SeqCst);
        if passed == self.count {
            return Ok(true);
        }
        if passed < self.before.load(Ordering::SeqCst) {
            self.passed.store(passed + 1, Ordering::SeqCst);
            // A recoverable error does not end the agent.
            return Err(AgentError::recoverable("passed one"));
        }
        Ok(false)
    }

    fn role_name(&self) -> &'static str {
        self.role
    }

    fn on_close(&mut self) {
        self.closed.lock().unwrap().push((self.role, self.passed.load(Ordering::SeqCst)));
    }
}

/// Runs a chain of links, one thread per list of roles. The first link finds `available` items, and each must
/// pass `count`. Returns the number of items that each had passed when it was closed, and the duration.
fn run(
    threads: &[&[&'static str]],
    available: usize,
    count: usize,
) -> (Vec<(&'static str, usize)>, Duration) {
    let stop = StopSignal::new();
    let closed = Arc::new(Mutex::new(Vec::new()));
    let mut before = Arc::new(AtomicUsize::new(available));
    let mut link = |role| {
        let passed = Arc::new(AtomicUsize::new(0));
        let before = std::mem::replace(&mut before, Arc::clone(&passed));
        let (closed, stop) = (Arc::clone(&closed), stop.clone());
        Box::new(Link { role, before, passed, count, closed, stop }) as Box<dyn Agent>
    };
    let plans = threads.iter().map(|roles| ThreadPlan {
        name: roles.join("+"),
        core: None,
        idle: IdleStrategy::Yield,
        warm_up_interval: None,
        agents: roles.iter().map(|role| link(*role)).collect(),
        cycle: vec![],
    });
    let plans: Vec<_> = plans.collect();
    let start = Instant::now();
    Runner::start(plans, TscClock::shared(), stop.clone()).unwrap().join().unwrap();
    let mut closed = closed.lock().unwrap().clone();
    closed.sort_unstable();
    (closed, start.elapsed())
}

#[test]
fn agents_wait_for_one_another_on_one_thread_and_on_several() {
    let threads: [&[&[&str]]; 3] = [&[&["a", "b", "c"]], &[&["c", "b", "a"]], &[&["a"], &["b"], &["c"]]];
    for roles in threads {
        let (closed, _) = run(roles, 50, 50);
        assert_eq!(closed, [("a", 50), ("b", 50), ("c", 50)]);
    }
}

#[test]
fn an_agent_that_does_not_finish_is_closed_at_the_deadline() {
    let (closed, elapsed) = run(&[&["a"], &["b"]], 7, 50);
    assert_eq!(closed, [("a", 7), ("b", 7)]);
    assert!(elapsed >= Duration::from_nanos(FINISH_TIMEOUT.0), "{elapsed:?}");
}
