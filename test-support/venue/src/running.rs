//! A venue on running threads.

use std::path::Path;

use tickpath_agent::{Agent, BackgroundThread, Host, IdleStrategy, Runner, StopSignal, ThreadPlan, TscClock};
use tickpath_exchange::{
    AdminClient, AdminCommand, AdminOutcome, Endpoints, ExchangeConfig, JournalThreads, Venue, VenueSettings,
    VenueView,
};
use tickpath_test_support::wait_for;

use crate::settings::build;

/// A venue that runs until it is stopped or dropped.
pub struct RunningVenue {
    stop: StopSignal,
    runner: Option<Runner>,
    threads: (Option<JournalThreads>, Option<BackgroundThread>),
    admin: AdminClient,
    /// The venue's addresses.
    pub endpoints: Endpoints,
    /// The venue's counters and its final state.
    pub view: VenueView,
}

impl RunningVenue {
    /// Starts a venue on one thread.
    #[must_use]
    pub fn start(settings: &VenueSettings) -> RunningVenue {
        RunningVenue::of(build(settings).unwrap(), on_one_thread)
    }

    /// Starts a venue from its configuration file.
    #[must_use]
    pub fn from_file(path: &Path) -> RunningVenue {
        let (config, settings) = ExchangeConfig::load(path).unwrap();
        let placement = config.placement(&Host::describe().cores_allowed);
        RunningVenue::of(build(&settings).unwrap(), |agents| placement.plan(agents).unwrap())
    }

    /// Starts a venue with its agents on the threads that `plan` creates.
    #[must_use]
    pub fn of(venue: Venue, plan: impl FnOnce(Vec<Box<dyn Agent>>) -> Vec<ThreadPlan>) -> RunningVenue {
        let Venue { agents, endpoints, view, admin, journal, market_recovery, .. } = venue;
        let clock = TscClock::system();
        let journal = journal.map(|journal| journal.start().unwrap());
        let recovery = market_recovery.map(|recovery| recovery.start(clock).unwrap());
        let stop = StopSignal::new();
        let runner = Some(Runner::start(plan(agents), clock, stop.clone()).unwrap());
        RunningVenue { stop, runner, threads: (journal, recovery), admin, endpoints, view }
    }

    /// Sends a command to the venue and returns its outcome.
    pub fn command(&mut self, command: AdminCommand) -> AdminOutcome {
        let id = self.admin.submit(command).unwrap();
        let answer = wait_for("an answer to the administrator", || self.admin.poll());
        assert_eq!(answer.id, id);
        answer.outcome
    }

    /// Number of sleeps of each thread.
    #[must_use]
    pub fn sleeps(&self) -> Vec<u64> {
        self.runner.iter().flat_map(Runner::counters).map(|thread| thread.cycles.sleeps.read()).collect()
    }

    /// Requests the venue's stop without waiting for it, so that clients can read the last messages.
    pub fn begin_to_stop(&self) {
        self.stop.stop();
    }

    /// Stops the venue.
    pub fn stop(&mut self) {
        self.stop.stop();
        if let Some(runner) = self.runner.take() {
            runner.join().unwrap();
        }
        self.threads = (None, None);
    }
}

impl Drop for RunningVenue {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.stop.stop();
        } else {
            self.stop();
        }
    }
}

/// Puts all agents on one thread, which sleeps while idle.
#[must_use]
pub fn on_one_thread(agents: Vec<Box<dyn Agent>>) -> Vec<ThreadPlan> {
    vec![plan("venue", IdleStrategy::Park, agents)]
}

/// Puts each agent on a separate thread.
#[must_use]
pub fn on_own_threads(agents: Vec<Box<dyn Agent>>, idle: IdleStrategy) -> Vec<ThreadPlan> {
    agents.into_iter().map(|agent| plan(agent.role_name(), idle, vec![agent])).collect()
}

fn plan(name: &str, idle: IdleStrategy, agents: Vec<Box<dyn Agent>>) -> ThreadPlan {
    ThreadPlan { name: name.to_owned(), core: None, idle, warm_up_interval: None, agents, cycle: vec![] }
}
