//! Measures duty cycles, clock reads, clock calibration and jitter on this host.
//!
//! Run it with `cargo bench -p tickpath-agent`. Without `--bench`, as in a test run, it makes few calls and
//! measures neither calibrations nor jitter.

use std::hint::black_box;
use std::time::Instant;

use nix::time::{ClockId, clock_gettime};
use tickpath_agent::{Agent, AgentError, Host, Invoker, KernelTime, TscClock, measure_jitter};
use tickpath_types::Nanos;

struct Idle;

impl Agent for Idle {
    fn do_work(&mut self, now: Nanos) -> Result<usize, AgentError> {
        Ok(usize::from(black_box(now) == Nanos::ZERO))
    }

    fn role_name(&self) -> &'static str {
        "idle"
    }
}

struct Busy;

impl Agent for Busy {
    fn do_work(&mut self, now: Nanos) -> Result<usize, AgentError> {
        Ok(usize::from(black_box(now) != Nanos::ZERO))
    }

    fn role_name(&self) -> &'static str {
        "busy"
    }
}

fn main() {
    let is_bench = std::env::args().any(|argument| argument == "--bench");
    let calls = if is_bench { 3_000_000 } else { 1_000 };
    println!("{}", Host::describe());
    let clock = TscClock::shared();
    println!("source  {}", clock.source());
    clock_reads(calls, clock);
    duty_cycles(calls, clock);
    if is_bench {
        calibrations();
        println!("jitter  {}", measure_jitter(&clock, Nanos::from_secs(2)));
    }
}

fn clock_reads(calls: usize, clock: TscClock) {
    let mut kernel_time = KernelTime::new(clock);
    let kernel_ns = clock.now().0;
    report("ticks", median_cost(calls, || clock.ticks()));
    report("now", median_cost(calls, || clock.now().0));
    report("clock_gettime", median_cost(calls, || clock_gettime(ClockId::CLOCK_REALTIME).is_ok().into()));
    report("kernel time", median_cost(calls, || kernel_time.ticks(kernel_ns, clock.ticks())));
    report("sample", median_cost(calls / 10, || clock.sample().tsc));
}

fn duty_cycles(calls: usize, clock: TscClock) {
    let idle = |count: usize| (0..count).map(|_| Box::new(Idle) as Box<dyn Agent>).collect();
    let busy = |count: usize| (0..count).map(|_| Box::new(Busy) as Box<dyn Agent>).collect();
    let kinds: [(_, Vec<Box<dyn Agent>>); 3] = [
        ("1 agent without work", idle(1)),
        ("4 agents without work", idle(4)),
        ("4 agents with work", busy(4)),
    ];
    for (name, agents) in kinds {
        let agent_count = agents.len() as u64;
        let mut invoker = Invoker::new("bench", agents, &[]).expect("each agent runs once");
        let cost = median_cost(calls / 4, || {
            let (work, end) = invoker.run_timed(&clock, clock.ticks()).expect("these agents do not fail");
            assert!(work == 0 || work as u64 == agent_count);
            end
        });
        report(&format!("cycle of {name}"), cost);
    }
}

/// Prints the deviation of nine calibrations from their median, in parts per million, and the clock's drift.
fn calibrations() {
    let mut rates: Vec<_> = (0..9).map(|_| TscClock::calibrate().calibration().ticks_per_second()).collect();
    rates.sort_unstable();
    let [low, median, high] = [rates[0], rates[4], rates[8]];
    let ppm = |rate: u64| (rate as f64 - median as f64) / median as f64 * 1e6;
    println!("rate    {median} ticks/s, 9 calibrations within {:.3} and +{:.3} ppm", ppm(low), ppm(high));
    println!("drift   {:?}", TscClock::shared().drift());
}

fn report(name: &str, cost: f64) {
    println!("{name:<32} {cost:6.1} ns");
}

/// Returns the cost of a call in nanoseconds: the median over batches of 1,000 calls.
fn median_cost(calls: usize, mut call: impl FnMut() -> u64) -> f64 {
    const BATCH: usize = 1_000;
    let mut costs: Vec<_> = (0..calls.div_ceil(BATCH))
        .map(|_| {
            let start = Instant::now();
            for _ in 0..BATCH {
                black_box(call());
            }
            start.elapsed().as_nanos() as f64 / BATCH as f64
        })
        .collect();
    costs.sort_by(f64::total_cmp);
    costs[costs.len() / 2]
}
