//! Whole systems of agents on threads: start, failure, end.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use tickpath_agent::{
    Agent, AgentError, IdleStrategy, Runner, RunnerError, StopSignal, ThreadPlan, TscClock, WaitSet, Waker,
};
use tickpath_lockfree::spsc;
use tickpath_test_support::wait_for;
use tickpath_types::Nanos;

/// Shared state of the agents of one system.
#[derive(Default)]
struct Shared {
    started: AtomicUsize,
    closed: AtomicUsize,
    calls: AtomicUsize,
}

/// Behaviour of a [`Probe`].
#[derive(Clone, Copy, PartialEq)]
enum Behaviour {
    Live,
    FailAtStart,
    PanicAtStart,
    Fail,
    Panic,
    /// Stops the system after this number of calls.
    StopAfter(usize),
}

struct Probe {
    role: &'static str,
    behaviour: Behaviour,
    agent_count: usize,
    shared: Arc<Shared>,
    stop: StopSignal,
    calls: usize,
    latest: Nanos,
}

impl Agent for Probe {
    fn do_work(&mut self, now: Nanos) -> Result<usize, AgentError> {
        assert_eq!(self.shared.started.load(Ordering::SeqCst), self.agent_count, "an agent ran too early");
        assert!(now >= self.latest, "time went back");
        self.latest = now;
        self.calls += 1;
        self.shared.calls.fetch_add(1, Ordering::SeqCst);
        match self.behaviour {
            Behaviour::Fail if self.calls == 3 => {
                return Err(AgentError::fatal("disk full: free some space"));
            }
            Behaviour::Panic if self.calls == 3 => panic!("index out of range"),
            Behaviour::StopAfter(calls) if self.calls == calls => self.stop.stop(),
            _ => {}
        }
        Ok(self.calls % 2)
    }

    fn role_name(&self) -> &'static str {
        self.role
    }

    fn on_start(&mut self) -> Result<(), AgentError> {
        match self.behaviour {
            Behaviour::FailAtStart => return Err(AgentError::fatal("port 9000 in use: choose another")),
            Behaviour::PanicAtStart => panic!("no start"),
            _ => {}
        }
        self.shared.started.fetch_add(1, Ordering::SeqCst);
        Ok(())
    }

    fn on_close(&mut self) {
        self.shared.closed.fetch_add(1, Ordering::SeqCst);
    }
}

/// Starts a system with one thread per behaviour; each thread has one agent that behaves so.
fn start(
    behaviours: &[Behaviour],
    idle: IdleStrategy,
) -> (Result<Runner, RunnerError>, Arc<Shared>, StopSignal) {
    const NAMES: [&str; 3] = ["first", "second", "third"];
    let (shared, stop) = (Arc::new(Shared::default()), StopSignal::new());
    let plan = |(index, behaviour): (usize, &Behaviour)| ThreadPlan {
        name: format!("{}-thread", NAMES[index]),
        core: None,
        idle,
        warm_up_interval: None,
        agents: vec![Box::new(Probe {
            role: NAMES[index],
            behaviour: *behaviour,
            agent_count: behaviours.len(),
            shared: Arc::clone(&shared),
            stop: stop.clone(),
            calls: 0,
            latest: Nanos::ZERO,
        })],
        cycle: vec![],
    };
    let plans = behaviours.iter().enumerate().map(plan).collect();
    (Runner::start(plans, TscClock::shared(), stop.clone()), shared, stop)
}

#[test]
fn a_system_runs_until_it_is_stopped_under_each_idle_strategy() {
    for idle in [IdleStrategy::Spin, IdleStrategy::Yield, IdleStrategy::Park] {
        let (runner, shared, _) = start(&[Behaviour::Live, Behaviour::StopAfter(300)], idle);
        let reports = runner.unwrap().join().unwrap();
        assert_eq!(shared.closed.load(Ordering::SeqCst), 2);
        assert_eq!(reports.len(), 2);
        let stopper = &reports[1].counters;
        assert_eq!(stopper.name, "second-thread");
        assert_eq!(stopper.cycles.count.read(), 300);
        assert_eq!(stopper.agents[0].role, "second");
        assert_eq!(stopper.agents[0].work.read(), 150);
        assert_eq!(stopper.agents[0].busy_calls.read(), 150);
        assert!(0.0 < stopper.utilisation() && stopper.utilisation() <= 1.0);
        assert!(stopper.cycles.cycle_ticks_max.read() >= stopper.agents[0].call_ticks_max.read());
    }
}

#[test]
fn a_fatal_error_stops_every_thread_and_names_the_role() {
    let (runner, shared, _) =
        start(&[Behaviour::Live, Behaviour::Fail, Behaviour::Live], IdleStrategy::Yield);
    let error = runner.unwrap().join().unwrap_err();
    assert_eq!(error.to_string(), "second: disk full: free some space");
    assert_eq!(shared.closed.load(Ordering::SeqCst), 3);
}

#[test]
fn a_panic_stops_every_thread_and_names_the_thread() {
    let (runner, shared, _) = start(&[Behaviour::Live, Behaviour::Panic], IdleStrategy::Yield);
    let error = runner.unwrap().join().unwrap_err();
    assert_eq!(error.to_string(), "thread second-thread panicked: index out of range");
    assert_eq!(shared.closed.load(Ordering::SeqCst), 1);
}

#[test]
fn a_failed_start_prevents_all_agents_from_working() {
    let outcomes = [
        (Behaviour::FailAtStart, "second: port 9000 in use: choose another"),
        (Behaviour::PanicAtStart, "thread second-thread panicked: no start"),
    ];
    for (behaviour, message) in outcomes {
        let (runner, shared, stop) =
            start(&[Behaviour::Live, behaviour, Behaviour::Live], IdleStrategy::Yield);
        assert_eq!(runner.unwrap_err().to_string(), message);
        assert!(stop.is_stopped());
        assert_eq!(shared.calls.load(Ordering::SeqCst), 0);
        assert_eq!(shared.closed.load(Ordering::SeqCst), shared.started.load(Ordering::SeqCst));
    }
}

#[test]
fn counters_are_read_while_the_system_runs() {
    let (runner, _, stop) = start(&[Behaviour::Live], IdleStrategy::Yield);
    let runner = runner.unwrap();
    let counters = Arc::clone(runner.counters().next().unwrap());
    while counters.cycles.count.read() < 10 || counters.agents[0].work.read() < 5 {
        std::thread::yield_now();
    }
    assert!(!runner.is_finished());
    stop.stop();
    assert_eq!(runner.join().unwrap()[0].counters.cycles.count.read(), counters.cycles.count.read());
}

#[test]
fn a_core_that_does_not_exist_is_a_warning() {
    let (shared, stop) = (Arc::new(Shared::default()), StopSignal::new());
    let probe = Probe {
        role: "pinned",
        behaviour: Behaviour::StopAfter(1),
        agent_count: 1,
        shared,
        stop: stop.clone(),
        calls: 0,
        latest: Nanos::ZERO,
    };
    let plan = ThreadPlan {
        name: "pinned".to_owned(),
        core: Some(usize::MAX),
        idle: IdleStrategy::Yield,
        warm_up_interval: None,
        agents: vec![Box::new(probe)],
        cycle: vec![],
    };
    let runner = Runner::start(vec![plan], TscClock::shared(), stop).unwrap();
    let warnings: Vec<_> = runner.warnings().map(str::to_owned).collect();
    let reports = runner.join().unwrap();
    assert_eq!(warnings.len(), 1);
    assert!(warnings[0].contains("choose one of the allowed cores"), "{}", warnings[0]);
    assert_eq!(reports[0].pin_warning.as_ref(), warnings.first());
}

/// An agent that passes on each number plus one. Only its input ring wakes it.
struct Relay {
    input: spsc::Consumer<u64>,
    output: Option<spsc::Producer<u64>>,
    latest: Arc<AtomicU64>,
}

impl Agent for Relay {
    fn do_work(&mut self, _now: Nanos) -> Result<usize, AgentError> {
        let Some(value) = self.input.try_pop() else { return Ok(0) };
        if let Some(output) = &mut self.output {
            output.try_push(value + 1).map_err(|_| AgentError::fatal("the next relay does not read"))?;
        }
        self.latest.store(value + 1, Ordering::Release);
        Ok(1)
    }

    fn wake_by(&mut self, waker: &Waker) {
        self.input.wake_by(waker);
    }

    fn wait_for(&mut self, _now: Nanos, _wait: &mut WaitSet) {}

    fn role_name(&self) -> &'static str {
        "relay"
    }
}

/// Two chained threads that sleep while no message arrives: each message must wake both.
struct Relays {
    runner: Runner,
    stop: StopSignal,
    input: spsc::Producer<u64>,
    latest: Arc<AtomicU64>,
}

impl Relays {
    fn start() -> Relays {
        let stop = StopSignal::new();
        let (input, first) = spsc::channel(4);
        let (between, second) = spsc::channel(4);
        let latest = Arc::new(AtomicU64::new(0));
        let relays = [(first, Some(between), Arc::default()), (second, None, Arc::clone(&latest))];
        let plans = relays.into_iter().map(|(input, output, latest)| ThreadPlan {
            name: "relay".to_owned(),
            core: None,
            idle: IdleStrategy::Park,
            warm_up_interval: None,
            agents: vec![Box::new(Relay { input, output, latest })],
            cycle: vec![],
        });
        let runner = Runner::start(plans.collect(), TscClock::shared(), stop.clone()).unwrap();
        Relays { runner, stop, input, latest }
    }

    fn sleeps(&self) -> Vec<u64> {
        self.runner.counters().map(|thread| thread.cycles.sleeps.read()).collect()
    }

    fn wait_until(&self, what: &str, is_there: impl Fn(&Relays) -> bool) {
        wait_for(what, || is_there(self).then_some(()));
    }

    fn send(&mut self, value: u64) {
        self.input.try_push(value).unwrap();
        self.wait_until("a wake-up was lost", |relays| relays.latest.load(Ordering::Acquire) == value + 2);
    }
}

#[test]
fn a_message_wakes_every_thread_on_its_way() {
    let mut relays = Relays::start();
    let mut before = vec![0; 2];
    for value in 0..50 {
        // Each thread sleeps again after each message.
        let have_slept =
            |relays: &Relays| relays.sleeps().iter().zip(&before).all(|(now, before)| now > before);
        relays.wait_until("a thread without work does not sleep", have_slept);
        before = relays.sleeps();
        relays.send(value);
    }
    relays.stop.stop();
    relays.runner.join().unwrap();
}

/// Each message is sent after a longer spin than the one before, so they hit every phase of falling asleep.
#[test]
fn no_wake_up_is_lost_while_a_thread_falls_asleep() {
    let mut relays = Relays::start();
    for value in 0..400 {
        for _ in 0..value * 50 {
            std::hint::spin_loop();
        }
        relays.send(value);
    }
    relays.stop.stop();
    relays.runner.join().unwrap();
}

#[test]
fn the_stop_signal_wakes_threads_that_sleep_without_a_deadline() {
    let relays = Relays::start();
    relays.wait_until("a thread without work does not sleep", |relays| {
        relays.sleeps().iter().all(|sleeps| *sleeps > 0)
    });
    relays.stop.stop();
    relays.runner.join().unwrap();
}
