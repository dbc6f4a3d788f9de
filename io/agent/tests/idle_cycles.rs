//! Cycles without work: background work, warm-ups, and the counters that include their time.
#![allow(clippy::unwrap_used)] // a failed step of a test is a failed test

use std::sync::{Arc, Mutex};

use tickpath_agent::{
    Agent, AgentError, IdleStrategy, Invoker, Runner, StopSignal, ThreadCounters, ThreadPlan, TscClock,
};
use tickpath_types::Nanos;

/// Calls of the agents of one thread, in order, with their times.
type Log = Arc<Mutex<Vec<(&'static str, Nanos)>>>;

/// An agent that returns preset results, the last one first, and then 0. Each duty cycle takes `work_time`.
#[derive(Default)]
struct ScriptedAgent {
    names: [&'static str; 3],
    work: Vec<usize>,
    background: Vec<usize>,
    work_time: Nanos,
    log: Log,
}

impl ScriptedAgent {
    fn boxed(self, log: &Log) -> Box<dyn Agent> {
        Box::new(ScriptedAgent { log: Arc::clone(log), ..self })
    }

    fn note(&self, kind: usize, now: Nanos) {
        self.log.lock().unwrap().push((self.names[kind], now));
    }
}

impl Agent for ScriptedAgent {
    fn do_work(&mut self, now: Nanos) -> Result<usize, AgentError> {
        self.note(0, now);
        spin(self.work_time);
        Ok(self.work.pop().unwrap_or(0))
    }

    fn do_background_work(&mut self, now: Nanos) -> Result<usize, AgentError> {
        self.note(1, now);
        match self.background.pop() {
            Some(usize::MAX) => Err(AgentError::fatal("no answer")),
            work => Ok(work.unwrap_or(0)),
        }
    }

    fn warm_up(&mut self, now: Nanos) {
        self.note(2, now);
    }

    fn role_name(&self) -> &'static str {
        self.names[0]
    }
}

const FIRST: [&str; 3] = ["first", "first's background", "first's rehearsal"];
const SECOND: [&str; 3] = ["second", "second's background", "second's rehearsal"];

fn spin(time: Nanos) {
    let clock = TscClock::shared();
    let end = clock.now() + time;
    while clock.now() < end {
        std::hint::spin_loop();
    }
}

fn take(log: &Log) -> Vec<&'static str> {
    std::mem::take(&mut *log.lock().unwrap()).into_iter().map(|(name, _)| name).collect()
}

type RunCycle = fn(&mut Invoker) -> Result<usize, String>;

/// Both methods of [`Invoker`] that run a cycle.
fn cycles() -> [RunCycle; 2] {
    [
        |invoker| invoker.run_once(Nanos(7)).map_err(|failure| failure.to_string()),
        |invoker| {
            let clock = TscClock::shared();
            let outcome = invoker.run_timed(&clock, clock.ticks());
            outcome.map(|(work, _)| work).map_err(|failure| failure.to_string())
        },
    ]
}

#[test]
fn background_work_runs_after_an_idle_cycle() {
    for run in cycles() {
        let log = Log::default();
        let first = ScriptedAgent {
            names: FIRST,
            work: vec![1, 0, 0],
            background: vec![5, 0],
            ..ScriptedAgent::default()
        };
        let second = ScriptedAgent { names: SECOND, work: vec![0, 2, 0], ..ScriptedAgent::default() };
        let mut invoker =
            Invoker::new("thread", vec![first.boxed(&log), second.boxed(&log)], &[0, 1, 0]).unwrap();
        assert_eq!(run(&mut invoker), Ok(0));
        let calls = ["first", "second", "first", "first's background", "second's background"];
        assert_eq!(take(&log), calls, "once each, however often the cycle names it");
        assert_eq!(run(&mut invoker), Ok(3), "one of them is enough");
        assert_eq!(take(&log), ["first", "second", "first"]);
        assert_eq!(run(&mut invoker), Ok(5), "and it counts as work");
        assert_eq!(take(&log), calls);
        let counters = invoker.counters();
        assert_eq!((counters.agents[0].work.read(), counters.agents[0].busy_calls.read()), (6, 2));
    }
}

#[test]
fn a_fatal_error_in_background_work_ends_the_cycle() {
    for run in cycles() {
        let log = Log::default();
        let first = ScriptedAgent { names: FIRST, background: vec![usize::MAX], ..ScriptedAgent::default() };
        let second = ScriptedAgent { names: SECOND, ..ScriptedAgent::default() };
        let mut invoker = Invoker::new("thread", vec![first.boxed(&log), second.boxed(&log)], &[]).unwrap();
        assert_eq!(run(&mut invoker), Err("first: no answer".to_owned()));
        assert_eq!(take(&log), ["first", "second", "first's background"]);
    }
}

#[test]
fn each_agent_is_warmed_up() {
    let log = Log::default();
    let agents = [FIRST, SECOND].map(|names| ScriptedAgent { names, ..ScriptedAgent::default() }.boxed(&log));
    let mut invoker = Invoker::new("thread", agents.into(), &[0, 1, 0]).unwrap();
    invoker.warm_up(Nanos(3));
    assert_eq!(*log.lock().unwrap(), [(FIRST[2], Nanos(3)), (SECOND[2], Nanos(3))]);
}

const SLOW: Nanos = Nanos::from_micros(200);

/// Runs one cycle; returns the thread's counters, the ticks that the cycle took, and [`SLOW`] in ticks.
fn timed(agents: [ScriptedAgent; 2]) -> (Arc<ThreadCounters>, u64, u64) {
    let log = Log::default();
    let clock = TscClock::shared();
    let mut invoker = Invoker::new("thread", agents.map(|agent| agent.boxed(&log)).into(), &[]).unwrap();
    let start = clock.ticks();
    let (_, end) = invoker.run_timed(&clock, start).unwrap();
    (invoker.counters(), end - start, clock.nanos_to_ticks(SLOW) - 1)
}

#[test]
fn the_time_of_an_idle_call_counts_to_the_next_busy_one() {
    let idle = || ScriptedAgent { names: FIRST, work_time: SLOW, ..ScriptedAgent::default() };
    let busy = || ScriptedAgent { names: SECOND, work: vec![1], ..ScriptedAgent::default() };

    let (counters, elapsed, slow) = timed([idle(), busy()]);
    assert_eq!((counters.agents[0].busy_ticks.read(), counters.agents[0].busy_calls.read()), (0, 0));
    let busy_ticks = counters.agents[1].busy_ticks.read();
    assert!((slow..=elapsed).contains(&busy_ticks), "{slow} {busy_ticks} {elapsed}");
    assert_eq!(counters.agents[1].call_ticks_max.read(), busy_ticks);

    let (counters, elapsed, slow) = timed([busy(), idle()]);
    assert!(counters.busy_ticks() <= elapsed - slow, "nothing busy came after it in its cycle");

    let background = ScriptedAgent { names: SECOND, background: vec![1], ..ScriptedAgent::default() };
    let (counters, _, slow) = timed([idle(), background]);
    assert!(counters.agents[1].busy_ticks.read() >= slow, "background work comes after it");

    let (counters, ..) = timed([idle(), ScriptedAgent { names: SECOND, ..ScriptedAgent::default() }]);
    assert_eq!(counters.busy_ticks(), 0);
}

#[test]
fn a_call_after_a_busy_one_has_a_new_time() {
    let log = Log::default();
    let clock = TscClock::shared();
    let first = ScriptedAgent { names: FIRST, work: vec![0, 1], work_time: SLOW, ..ScriptedAgent::default() };
    let second = ScriptedAgent { names: SECOND, work: vec![1], ..ScriptedAgent::default() };
    let mut invoker = Invoker::new("thread", vec![first.boxed(&log), second.boxed(&log)], &[]).unwrap();
    for is_later in [true, false] {
        let start = clock.ticks();
        invoker.run_timed(&clock, start).unwrap();
        let calls = std::mem::take(&mut *log.lock().unwrap());
        assert_eq!(calls[0], (FIRST[0], clock.at(start)));
        assert_eq!(calls[1].1 >= calls[0].1 + SLOW, is_later, "{calls:?}");
        assert!(is_later || calls[1].1 == calls[0].1);
    }
}

/// An agent that reports `work` in every cycle, records its warm-ups, and stops the system after
/// [`PLAY_TIME`].
struct BusyAgent {
    work: usize,
    stop: StopSignal,
    first_call: Option<Nanos>,
    warm_ups: Arc<Mutex<Vec<Nanos>>>,
}

const INTERVAL: Nanos = Nanos::from_micros(300);
const PLAY_TIME: Nanos = Nanos::from_millis(20);

impl Agent for BusyAgent {
    fn do_work(&mut self, now: Nanos) -> Result<usize, AgentError> {
        if now.since(*self.first_call.get_or_insert(now)) >= PLAY_TIME {
            self.stop.stop();
        }
        Ok(self.work)
    }

    fn warm_up(&mut self, now: Nanos) {
        self.warm_ups.lock().unwrap().push(now);
    }

    fn role_name(&self) -> &'static str {
        "player"
    }
}

/// Runs two agents on one thread; each reports its `work` in every cycle. Returns their warm-up times.
fn run_agents(idle: IdleStrategy, warm_up_interval: Option<Nanos>, work: [usize; 2]) -> Vec<Nanos> {
    let (stop, warm_ups) = (StopSignal::new(), Arc::default());
    let agent =
        |work| BusyAgent { work, stop: stop.clone(), first_call: None, warm_ups: Arc::clone(&warm_ups) };
    let agents = work.map(|work| Box::new(agent(work)) as Box<dyn Agent>).into();
    let plan =
        ThreadPlan { name: "play".to_owned(), core: None, idle, warm_up_interval, agents, cycle: vec![] };
    Runner::start(vec![plan], TscClock::shared(), stop).unwrap().join().unwrap();
    Arc::try_unwrap(warm_ups).unwrap().into_inner().unwrap()
}

#[test]
fn agents_warm_up_at_the_interval_while_idle() {
    for idle in [IdleStrategy::Spin, IdleStrategy::Yield, IdleStrategy::Park] {
        let warm_ups = run_agents(idle, Some(INTERVAL), [0, 0]);
        assert!(warm_ups.len() >= 4, "{idle:?}: {}", warm_ups.len());
        let times: Vec<_> = warm_ups.chunks(2).map(|both| both[0]).collect();
        assert!(warm_ups.chunks(2).all(|both| both == [both[0]; 2]), "both agents, at one time");
        // Each of the two conversions from ticks may round by one nanosecond.
        let is_apart = |pair: &[Nanos]| pair[1].since(pair[0]) + Nanos(2) >= INTERVAL;
        assert!(times.windows(2).all(is_apart), "{idle:?}: {times:?}");
    }
}

#[test]
fn no_agent_warms_up_while_one_works_or_without_an_interval() {
    assert_eq!(run_agents(IdleStrategy::Spin, Some(INTERVAL), [0, 1]), []);
    assert_eq!(run_agents(IdleStrategy::Spin, Some(Nanos::ZERO), [1, 0]), []);
    assert_eq!(run_agents(IdleStrategy::Spin, None, [0, 0]), []);
}
