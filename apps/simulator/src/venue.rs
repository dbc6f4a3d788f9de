//! The simulated venue: its instruments, users and settings.

use tickpath_exchange::{LoginPolicy, Password, UserSettings, VenueSettings};
use tickpath_matching::EngineLimits;
use tickpath_nasdaq::moldudp64::Session;
use tickpath_types::{Instrument, InstrumentId, InstrumentTable, Nanos, Price, Qty, Symbol};

use crate::hosts::{LINES, ORDER_ENTRY, PASSWORD, RETRANSMISSION, user_name};
use crate::profile::Profile;
use crate::recovery::RecoveryProfile;

/// Returns the instruments that exist at the start of a run.
pub(crate) fn instruments(count: u16) -> InstrumentTable {
    let numbered = (1..=count).zip(["ALPHA", "BRAVO", "CHARLIE"]);
    InstrumentTable::new(&numbered.map(|(id, symbol)| instrument(id, symbol)).collect::<Vec<_>>())
}

pub(crate) fn instrument(id: u16, symbol: &str) -> Instrument {
    let symbol = Symbol::new(symbol).expect("they are short");
    let in_cents = Instrument::in_cents(InstrumentId(id), symbol, Price(1_000_000));
    Instrument { max_qty: Qty(100_000), ..in_cents }
}

pub(crate) fn venue_settings(
    profile: &Profile,
    recovery: &RecoveryProfile,
    instruments: &InstrumentTable,
) -> VenueSettings {
    let user = |place: usize| UserSettings {
        cancel_on_disconnect: profile.graces[place],
        limits: profile.limits[place],
        self_trade_prevention: profile.preventions[place],
        ..UserSettings::new(user_name(place), Password::plain(PASSWORD))
    };
    let users: Vec<_> = (0..profile.clients).map(user).collect();
    let session = Session::new("SIMULATED").expect("it is short");
    VenueSettings {
        order_entry: ORDER_ENTRY,
        max_connections: profile.clients + 3,
        retained_responses: 1 << 14,
        login: LoginPolicy { delay: Nanos::from_millis(1), ..LoginPolicy::default() },
        retransmission: RETRANSMISSION,
        retained_messages: recovery.retained_messages,
        market_recovery: recovery.market_recovery(),
        day: profile.day.clone(),
        limits: EngineLimits {
            max_open_orders: 512,
            max_open_orders_per_session: 128,
            // Sessions of the clients, the reader of drop copies, and the venue itself.
            max_sessions: profile.clients as u16 + 2,
            max_index_pages: 64,
            max_index_pages_per_session: 16,
            max_special_orders: 512,
            max_recent_executions: 1 << 10,
            ..EngineLimits::default()
        },
        prefault: false,
        ..VenueSettings::on_loopback(session, instruments.clone(), LINES, users)
    }
}
