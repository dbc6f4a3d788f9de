//! A run loop allocates nothing after its start.

use std::time::{Duration, Instant};

use tickpath_agent::{
    Agent, AgentError, CountingAllocator, IdleStrategy, Runner, StopSignal, ThreadPlan, TscClock,
    thread_allocations,
};
use tickpath_types::Nanos;

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;

const CYCLES: usize = 300;
/// Time without work after which a parking thread certainly sleeps.
const QUIET: Duration = Duration::from_millis(2);

/// An agent that reads its thread's count of allocations in its second call and again in its last.
struct AllocationChecker {
    calls: usize,
    allocations_at_start: u64,
    stop: StopSignal,
}

impl Agent for AllocationChecker {
    fn do_work(&mut self, _now: Nanos) -> Result<usize, AgentError> {
        self.calls += 1;
        let allocations = thread_allocations();
        match self.calls {
            2 => self.allocations_at_start = allocations,
            CYCLES => {
                self.stop.stop();
                if allocations != self.allocations_at_start {
                    let more = allocations - self.allocations_at_start;
                    return Err(AgentError::fatal(format!("{more} allocations in {CYCLES} cycles")));
                }
            }
            _ => {}
        }
        // Long periods without work, so that the idle strategy reaches its last stage.
        if self.calls % 100 == 50 {
            let start = Instant::now();
            while start.elapsed() < QUIET {}
        }
        Ok(usize::from(self.calls.is_multiple_of(100)))
    }

    fn role_name(&self) -> &'static str {
        "auditor"
    }
}

#[test]
fn the_run_loop_allocates_nothing() {
    for idle in [IdleStrategy::Spin, IdleStrategy::Yield, IdleStrategy::Park] {
        let stop = StopSignal::new();
        let checker = AllocationChecker { calls: 0, allocations_at_start: 0, stop: stop.clone() };
        let plan = ThreadPlan {
            name: "audited".to_owned(),
            core: None,
            idle,
            warm_up_interval: None,
            agents: vec![Box::new(checker)],
            cycle: vec![0, 0],
        };
        let reports = Runner::start(vec![plan], TscClock::shared(), stop).unwrap().join().unwrap();
        assert_eq!(reports[0].counters.cycles.sleeps.read() > 0, idle == IdleStrategy::Park);
    }
    assert!(thread_allocations() > 0, "the allocator above counts");
}
