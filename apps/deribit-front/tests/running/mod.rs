//! A venue with its Deribit front, on threads of its own and over the loopback interface.

use std::net::SocketAddrV4;
use std::path::Path;

use tickpath_agent::{Host, Runner, StopSignal, TscClock};
use tickpath_deribit_front::{DeribitConfig, DeribitServer, DeribitThread, LabelStore};
use tickpath_exchange::{ExchangeConfig, JournalThreads, Venue, VenueTracers};
use tickpath_net::free_multicast_group;
use tickpath_timing::NoTrace;

/// A venue that runs on threads of its own.
pub struct Running {
    stop: StopSignal,
    runner: Option<Runner>,
    journal: Option<JournalThreads>,
    front: Option<DeribitThread>,
    /// Of WebSockets and HTTP.
    pub address: SocketAddrV4,
    /// Of FIX.
    pub fix_address: Option<SocketAddrV4>,
}

impl Running {
    /// A venue as the sample's file describes it, at free addresses, in a folder.
    pub fn start(folder: &Path) -> Running {
        Running::start_with(folder, |text| text)
    }

    /// The same with changes of the file, where the folder has none yet.
    pub fn start_with(folder: &Path, change: impl Fn(String) -> String) -> Running {
        let configs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../configs");
        let path = folder.join("venue.toml");
        if !path.exists() {
            let sample = std::fs::read_to_string(configs.join("deribit.toml")).unwrap();
            let instruments = configs.join("deribit-instruments.toml");
            let text = sample
                .replace("deribit-instruments.toml", &instruments.display().to_string())
                .replace("127.0.0.1:26430", "127.0.0.1:0")
                .replace("127.0.0.1:26433", "127.0.0.1:0")
                .replace("127.0.0.1:26420", "127.0.0.1:0")
                .replace("239.255.26.11:26431", &free_multicast_group().unwrap().to_string())
                .replace("239.255.26.12:26432", &free_multicast_group().unwrap().to_string())
                .replace("[deribit]\n", "[deribit]\nmatching_rate = 1000\nmatching_burst = 1000\n");
            std::fs::write(&path, change(text)).unwrap();
        }
        let (config, settings) = ExchangeConfig::load(&path).unwrap();
        let deribit = DeribitConfig::from_table(config.deribit.as_ref().unwrap()).unwrap();
        let deribit = deribit.settings(&settings, Some(&path)).unwrap();
        let clock = TscClock::shared();
        let tracers = VenueTracers { order_server: NoTrace, matcher: NoTrace, publisher: NoTrace };
        let venue = Venue::build(&settings, clock, tracers).unwrap();
        let journal = venue.journal.map(|journal| journal.start().unwrap());
        let labels = LabelStore { path: folder.join("labels"), is_synced: false };
        let server = DeribitServer::open(deribit, venue.side_door.unwrap(), &labels, clock).unwrap();
        let (address, fix_address) = (server.local_address(), server.fix_address());
        let stop = StopSignal::new();
        let plan = config.placement(&Host::describe().cores_allowed).plan(venue.agents).unwrap();
        let runner = Runner::start(plan, clock, stop.clone()).unwrap();
        let front = server.start(clock).unwrap();
        Running { stop, runner: Some(runner), journal, front: Some(front), address, fix_address }
    }

    /// Everything of it ends.
    pub fn stop(mut self) {
        self.front.take().unwrap().join().unwrap();
        self.stop.stop();
        self.runner.take().unwrap().join().unwrap();
        drop(self.journal.take());
    }
}
