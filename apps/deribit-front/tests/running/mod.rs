//! A whole venue with its Deribit front, on separate threads, at free addresses of the loopback interface.
#![allow(dead_code)] // each test uses only a part

use std::net::SocketAddrV4;
use std::path::Path;

use tickpath_agent::{Host, Runner, StopSignal, TscClock};
use tickpath_deribit_front::{
    DeribitConfig, DeribitServer, DeribitThread, DeribitView, FaultSwitch, LabelStore,
};
use tickpath_exchange::{Endpoints, ExchangeConfig, JournalThreads, Venue, VenueTracers};
use tickpath_test_venue::sample;
use tickpath_timing::NoTrace;

/// A running venue; [`stop`](Running::stop) ends it.
pub struct Running {
    stop: StopSignal,
    runner: Runner,
    journal: Option<JournalThreads>,
    recovery: Option<tickpath_agent::BackgroundThread>,
    front: DeribitThread,
    /// Address of the WebSocket and HTTP port.
    pub address: SocketAddrV4,
    /// Address of the FIX port.
    pub fix_address: Option<SocketAddrV4>,
    /// Endpoints of the venue itself.
    pub endpoints: Endpoints,
    /// Counters of the front.
    pub view: DeribitView,
    /// Fault switch of the front.
    pub faults: FaultSwitch,
}

impl Running {
    /// Starts a venue with the sample configuration in a folder; `change` may modify its text.
    pub fn start(folder: &Path, change: impl Fn(String) -> String) -> Running {
        let path = folder.join("venue.toml");
        if !path.exists() {
            std::fs::write(&path, change(sample("deribit.toml"))).unwrap();
        }
        Running::start_again(folder, false)
    }

    /// Restarts the venue of a folder; it may accept a damaged journal.
    pub fn start_again(folder: &Path, accepts_loss: bool) -> Running {
        let path = folder.join("venue.toml");
        let (config, mut settings) = ExchangeConfig::load(&path).unwrap();
        settings.journal.as_mut().unwrap().accept_loss = accepts_loss;
        let deribit = DeribitConfig::from_table(config.deribit.as_ref().unwrap()).unwrap();
        let deribit = deribit.settings(&settings, Some(&path)).unwrap();
        let clock = TscClock::shared();
        let tracers = VenueTracers { order_server: NoTrace, matcher: NoTrace, publisher: NoTrace };
        let venue = Venue::build(&settings, clock, tracers).unwrap();
        let endpoints = venue.endpoints;
        let recovery = venue.market_recovery.map(|recovery| recovery.start(clock).unwrap());
        let journal = venue.journal.map(|journal| journal.start().unwrap());
        let journal_folder = settings.journal.as_ref().unwrap().folder.clone();
        let labels = LabelStore {
            path: folder.join("labels"),
            journal: journal_folder,
            is_synced: false,
            accepts_loss,
        };
        let server = DeribitServer::open(deribit, venue.front_port.unwrap(), &labels, clock).unwrap();
        let (address, faults) = (server.local_address(), server.faults().unwrap());
        let (fix_address, view) = (server.fix_address(), server.view());
        let stop = StopSignal::new();
        let plan = config.placement(&Host::describe().cores_allowed).plan(venue.agents).unwrap();
        let runner = Runner::start(plan, clock, stop.clone()).unwrap();
        let front = server.start(clock).unwrap();
        Running { endpoints, recovery, stop, runner, journal, front, address, fix_address, view, faults }
    }

    /// Returns the URL of its WebSocket.
    pub fn url(&self) -> String {
        format!("ws://{}/ws/api/v2", self.address)
    }

    pub fn stop(self) {
        self.front.join().unwrap();
        self.stop.stop();
        self.runner.join().unwrap();
        drop((self.journal, self.recovery));
    }
}
