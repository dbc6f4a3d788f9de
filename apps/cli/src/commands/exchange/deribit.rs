//! The Deribit front of `tickpath exchange`.

use anyhow::Context;
use tickpath_agent::TscClock;
use tickpath_config::Console;
use tickpath_deribit_front::{DeribitConfig, DeribitServer, DeribitThread, DeribitView, LabelStore};
use tickpath_exchange::{SideDoor, VenueSettings};
use tickpath_journal::Policy;

use super::{Args, Front};

struct DeribitFront {
    state: State,
    view: DeribitView,
    has_tls: bool,
}

enum State {
    Open(Box<DeribitServer>),
    Running(DeribitThread),
    Ended,
}

/// Opens the Deribit front beside a venue of these settings.
///
/// # Errors
/// Bad settings under `[deribit]`, or side files of the journal that cannot be used.
pub fn open(
    args: &Args,
    venue: &VenueSettings,
    port: SideDoor,
    clock: TscClock,
) -> anyhow::Result<Box<dyn Front>> {
    let deribit = DeribitConfig::load(&args.config)?.context("deribit: the table is missing")?;
    let settings =
        deribit.settings(venue, Some(&args.config)).map_err(|error| error.in_file(&args.config))?;
    let has_tls = settings.tls.is_some();
    let journal = venue.journal.as_ref().context("deribit: it follows the log: choose a journal.policy")?;
    let mut path = journal.folder.clone().into_os_string();
    path.push(".deribit-labels");
    let labels = LabelStore {
        path: path.into(),
        is_synced: journal.policy != Policy::Async,
        accepts_loss: args.accept_loss,
    };
    let server = DeribitServer::open(settings, port, &labels, clock)?;
    let view = server.view();
    Ok(Box::new(DeribitFront { state: State::Open(Box::new(server)), view, has_tls }))
}

impl Front for DeribitFront {
    fn start(&mut self, console: &mut Console, clock: TscClock) -> anyhow::Result<()> {
        let State::Open(server) = std::mem::replace(&mut self.state, State::Ended) else { return Ok(()) };
        server.notices().iter().for_each(|notice| console.say(notice));
        let address = server.local_address();
        let s = if self.has_tls { "s" } else { "" };
        console.say(format_args!("  Deribit          ws{s}://{address}/ws/api/v2   JSON-RPC over WebSocket"));
        console.say(format_args!("  Deribit          http{s}://{address}/api/v2/   the same over HTTP"));
        if let Some(address) = server.fix_address() {
            let over = if self.has_tls { " over TLS" } else { "" };
            console.say(format_args!(
                "  Deribit FIX      {address}   FIX 4.4{over}, TargetCompID DERIBITSERVER"
            ));
        }
        self.state = State::Running(server.start(clock)?);
        Ok(())
    }

    fn progress(&self) -> String {
        self.view.to_string()
    }

    fn join(&mut self) -> anyhow::Result<()> {
        match std::mem::replace(&mut self.state, State::Ended) {
            State::Running(thread) => thread.join().context("the Deribit front closed before the venue did"),
            State::Open(_) | State::Ended => Ok(()),
        }
    }
}
