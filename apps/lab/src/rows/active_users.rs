//! Order to answer at a venue with one, a hundred and a thousand users, all of them active.

use tickpath_agent::IdleStrategy;
use tickpath_exchange::{Password, UserSettings, Venue, VenueSettings};
use tickpath_matching::EngineLimits;
use tickpath_net::raise_open_files;
use tickpath_trader::OrderEntry;

use super::echo::TRIPS;
use super::prelude::*;
use crate::support::paced;
use crate::support::venue::{self, NO_TRACERS, RunningVenue, USER, instruments};

pub(super) const MEASUREMENTS: &[Measurement] = &[on_two_cores(
    &[
        row("users_1", "us").note(
            "order to its acceptance over loopback TCP through the whole venue on one core, with one user; p50, \
             20 us between trips",
        ),
        row("users_100", "us")
            .note("the same with 100 users logged in, each with a connection, who send orders in turn; p50")
            .limit("users_1"),
        row("users_1000", "us").note("the same with 1,000 users, p50").limit("users_1"),
    ],
    open,
)];

const USERS: [u16; 3] = [1, 100, 1_000];
/// Open files of the process besides both ends of the users' connections.
const OTHER_FILES: u64 = 256;

fn open(lab: &Lab<'_>) -> anyhow::Result<Round> {
    let wanted = 2 * u64::from(USERS[2]) + OTHER_FILES;
    let allowed = raise_open_files(wanted)?;
    if allowed < wanted {
        bail!(Missing(format!("needs {wanted} open files, and this process may open {allowed}")));
    }
    let mut round = 0;
    each_round(lab, move |context| {
        let trips = in_turn::<_, 3>(&mut round, |place| measure(context, USERS[place]))?;
        Ok(trips.map(|[p50, p99]| Sample::with_note(p50, format!("p99 {p99:.1} us"))))
    })
}

/// Returns p50 and p99 of the round trips at a venue with `users` users, in microseconds.
fn measure(context: &Context, users: u16) -> anyhow::Result<[f64; 2]> {
    let clock = context.clock;
    let measured = context.effort.count(TRIPS);
    // Each user sends at least one order before the measurement.
    let warm_up = (measured / 10).max(users.into());
    let orders = (warm_up + measured) as u64;
    let name = |number| format!("{USER}{number:03}");
    let settings = venue::settings(instruments(1), orders as u32)?;
    let settings = VenueSettings {
        max_connections: users.into(),
        users: (0..users).map(|number| UserSettings::new(name(number), Password::plain(USER))).collect(),
        limits: EngineLimits { max_sessions: users + 1, ..settings.limits },
        ..settings
    };
    let Venue { agents, endpoints, view, .. } = Venue::build(&settings, clock, NO_TRACERS)?;
    let ticks = venue::run_with_venue(context, IdleStrategy::Spin, agents, |stop| {
        let mut venue = RunningVenue { clock, stop };
        let mut log_in =
            |number| venue::log_in(endpoints.order_entry, &name(number), instruments(1), &mut venue);
        let mut clients = (0..users).map(&mut log_in).collect::<anyhow::Result<Vec<OrderEntry>>>()?;
        let count = clients.len();
        let ticks = paced::trips(context, warm_up, measured, |number| {
            let client = &mut clients[number as usize % count];
            context.timed(|| venue::enter(client, number as u32, &mut venue))
        })?;
        clients.iter_mut().for_each(|client| client.logout(clock.now()));
        Ok(ticks)
    });
    let mut ticks = ticks?;
    venue::check_final_state(&view, orders)?;
    let logins = view.order_server.logins.read();
    ensure!(logins == u64::from(users), "{logins} users logged in");
    Ok([0.5, 0.99].map(|wanted| context.quantile_ns(&mut ticks, wanted) / 1_000.0))
}
