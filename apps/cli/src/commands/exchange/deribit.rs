//! The Deribit front of `tickpath exchange`.

use anyhow::Context;
use tickpath_agent::TscClock;
use tickpath_deribit_front::{DeribitConfig, DeribitServer, LabelStore};
use tickpath_exchange::{FrontPort, VenueSettings};
use tickpath_journal::Policy;

use super::{Args, Front, StartFront};

/// Opens the Deribit front of a venue with these settings.
///
/// # Errors
/// Invalid settings under `[deribit]`, no journal, or an unusable file of the front beside the journal.
pub fn open(
    args: &Args,
    venue: &VenueSettings,
    port: FrontPort,
    clock: TscClock,
) -> anyhow::Result<StartFront> {
    let deribit = DeribitConfig::load(&args.config)?.context("deribit: the table is missing")?;
    let settings =
        deribit.settings(venue, Some(&args.config)).map_err(|error| error.in_file(&args.config))?;
    let has_tls = settings.tls.is_some();
    let journal = venue.journal.as_ref().context("deribit: it reads the journal: choose a journal.policy")?;
    let mut path = journal.folder.clone().into_os_string();
    path.push(".deribit-labels");
    let labels = LabelStore {
        path: path.into(),
        journal: journal.folder.clone(),
        is_synced: journal.policy != Policy::Async,
        accepts_loss: args.accept_loss,
    };
    let server = DeribitServer::open(settings, port, &labels, clock)?;
    Ok(Box::new(move |console, clock| {
        server.notices().iter().for_each(|notice| console.print_stdout(notice));
        let address = server.local_address();
        let s = if has_tls { "s" } else { "" };
        console.print_stdout(format_args!(
            "  Deribit          ws{s}://{address}/ws/api/v2   JSON-RPC over WebSocket"
        ));
        console.print_stdout(format_args!(
            "  Deribit          http{s}://{address}/api/v2/   the same over HTTP"
        ));
        if let Some(address) = server.fix_address() {
            let over = if has_tls { " over TLS" } else { "" };
            console.print_stdout(format_args!(
                "  Deribit FIX      {address}   FIX 4.4{over}, TargetCompID DERIBITSERVER"
            ));
        }
        let view = server.view();
        let thread = server.start(clock)?;
        Ok(Front {
            progress: Box::new(move || view.to_string()),
            join: Box::new(move || thread.join().context("the Deribit front closed before the venue did")),
        })
    }))
}
