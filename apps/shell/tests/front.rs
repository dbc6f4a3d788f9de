//! The shell at the venue's own Deribit front: two clients trade with each other, over the loopback interface.

#![allow(clippy::unwrap_used)]

use std::path::Path;

use tickpath_agent::{Host, Runner, StopSignal, TscClock};
use tickpath_deribit::session::Key;
use tickpath_deribit_front::{DeribitConfig, DeribitServer, DeribitThread, LabelStore};
use tickpath_exchange::{ExchangeConfig, JournalThreads, Venue, VenueTracers};
use tickpath_net::free_multicast_group;
use tickpath_shell::{Failure, Interrupt, Link, Shell, ShellConfig};
use tickpath_timing::NoTrace;

/// A venue that runs on threads of its own.
struct Running {
    stop: StopSignal,
    runner: Runner,
    journal: Option<JournalThreads>,
    front: DeribitThread,
    url: String,
}

impl Running {
    /// A venue as the sample's file describes it, at free addresses, in a folder.
    fn start(folder: &Path) -> Running {
        let configs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../configs");
        let path = folder.join("venue.toml");
        let sample = std::fs::read_to_string(configs.join("deribit.toml")).unwrap();
        let instruments = configs.join("deribit-instruments.toml");
        let text = sample
            .replace("deribit-instruments.toml", &instruments.display().to_string())
            .replace("127.0.0.1:26430", "127.0.0.1:0")
            .replace("127.0.0.1:26433", "127.0.0.1:0")
            .replace("127.0.0.1:26420", "127.0.0.1:0")
            .replace("239.255.26.11:26431", &free_multicast_group().unwrap().to_string())
            .replace("239.255.26.12:26432", &free_multicast_group().unwrap().to_string());
        std::fs::write(&path, text).unwrap();
        let (config, settings) = ExchangeConfig::load(&path).unwrap();
        let deribit = DeribitConfig::from_table(config.deribit.as_ref().unwrap()).unwrap();
        let deribit = deribit.settings(&settings, Some(&path)).unwrap();
        let clock = TscClock::shared();
        let tracers = VenueTracers { order_server: NoTrace, matcher: NoTrace, publisher: NoTrace };
        let venue = Venue::build(&settings, clock, tracers).unwrap();
        let journal = venue.journal.map(|journal| journal.start().unwrap());
        let labels = LabelStore { path: folder.join("labels"), is_synced: false };
        let server = DeribitServer::open(deribit, venue.side_door.unwrap(), &labels, clock).unwrap();
        let url = format!("ws://{}/ws/api/v2", server.local_address());
        let stop = StopSignal::new();
        let plan = config.placement(&Host::describe().cores_allowed).plan(venue.agents).unwrap();
        let runner = Runner::start(plan, clock, stop.clone()).unwrap();
        let front = server.start(clock).unwrap();
        Running { stop, runner, journal, front, url }
    }

    fn stop(self) {
        self.front.join().unwrap();
        self.stop.stop();
        self.runner.join().unwrap();
        drop(self.journal);
    }

    fn shell(&self, client_id: &str) -> Shell {
        let config: ShellConfig =
            tickpath_config::parse("shell.toml", &format!("url = '{}'", self.url)).unwrap();
        let url = config.checked_url().unwrap();
        let key = Some(Key::new(client_id, "test"));
        Shell::new(Link::new(config, url, key.clone()), key, false, Interrupt::default())
    }
}

/// What a command says.
fn said(shell: &mut Shell, command: &str) -> String {
    match shell.execute(command) {
        Ok(done) => done.text,
        Err(failure) => panic!("{command}: {failure}"),
    }
}

/// The code that a command is refused with.
fn refused(shell: &mut Shell, command: &str) -> i64 {
    match shell.execute(command) {
        Err(Failure::Refused { code, .. }) => code,
        other => panic!("{command} was not refused: {other:?}"),
    }
}

/// The id of the order that a command's answer is about.
fn id_of(text: &str) -> &str {
    text.split_whitespace().nth(1).unwrap()
}

#[test]
fn two_clients_trade_with_each_other() {
    let folder = tempfile::tempdir().unwrap();
    let venue = Running::start(folder.path());
    let (mut anna, mut bert) = (venue.shell("anna"), venue.shell("bert"));
    assert!(said(&mut anna, "instruments BTC future").contains("BTC-PERPETUAL"));
    let trades = "user.trades.any.any.raw";
    said(
        &mut anna,
        &format!("subscribe {trades} user.orders.BTC-PERPETUAL.raw book.BTC-PERPETUAL.none.10.100ms"),
    );

    let text = said(&mut anna, "buy BTC-PERPETUAL 20 59900 post_only label=first");
    assert!(text.contains("open: buy 20 BTC-PERPETUAL at 59900") && text.ends_with("label first"), "{text}");
    let id = id_of(&text).to_owned();
    let text = said(&mut anna, &format!("edit {id} amount=30 price=59950"));
    assert!(text.contains("buy 30 BTC-PERPETUAL at 59950"), "{text}");
    assert!(said(&mut bert, "book BTC-PERPETUAL 5").contains("59950"));

    let text = said(&mut bert, "sell BTC-PERPETUAL 10 59950 tif=ioc");
    assert!(text.contains("filled") && text.contains("at 59950"), "{text}");
    said(&mut anna, &format!("wait {trades}"));
    assert!(said(&mut anna, "positions").contains("10"));
    assert!(said(&mut anna, "trades BTC-PERPETUAL").contains("59950"));
    assert!(said(&mut anna, &format!("order {id}")).contains("10 done"));

    assert_eq!(refused(&mut bert, "buy BTC-PERPETUAL 15 59000"), 10_021);
    assert_eq!(refused(&mut bert, &format!("cancel {id}")), 10_004);
    assert!(said(&mut anna, &format!("cancel {id}")).contains("cancelled"));
    assert_eq!(said(&mut anna, "orders"), "no open orders");
    assert!(said(&mut anna, "account BTC").contains("equity"));
    said(&mut anna, "logout");
    drop((anna, bert));
    venue.stop();
}

#[test]
fn an_order_goes_with_the_connection_that_is_lost() {
    let folder = tempfile::tempdir().unwrap();
    let venue = Running::start(folder.path());
    let (mut anna, mut again) = (venue.shell("anna"), venue.shell("anna"));
    let text = said(&mut anna, "buy BTC-PERPETUAL 20 59900");
    let id = id_of(&text).to_owned();
    assert!(said(&mut again, "orders").contains("59900"));
    // Without a logout: the venue takes it back.
    drop(anna);
    let start = std::time::Instant::now();
    while !said(&mut again, &format!("order {id}")).contains("cancelled") {
        assert!(start.elapsed().as_secs() < 60, "the order stays");
        std::thread::sleep(std::time::Duration::from_millis(200));
    }
    drop(again);
    venue.stop();
}
