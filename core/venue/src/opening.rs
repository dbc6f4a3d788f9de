//! The state with which a venue starts, and its first commands.

use std::sync::Arc;

use tickpath_faults::failpoint;
use tickpath_matching::CommandKind;
use tickpath_nasdaq::moldudp64::Session;
use tickpath_types::{
    AddInstrumentError, Instrument, InstrumentTable, Nanos, SelfTradePrevention, SessionId,
};

use crate::day::{Day, DaySettings};
use crate::entitlements::Entitlements;
use crate::internal_commands::InternalCommands;
use crate::log_command::LogCommandKind;
use crate::logins::Logins;
use crate::message_log::MAX_LOGGED_MESSAGE;
use crate::order_entry::OrderEntry;
use crate::replica::{Replica, Stream};
use crate::sequencer::Sequencer;
use crate::user_registry::UserRegistry;
use crate::user_settings::UserSettings;
use crate::users::Users;
use crate::view::VenueView;

/// Settings with which a venue starts.
#[derive(Clone, Copy)]
pub struct OpeningSettings<'a> {
    /// Settings of the trading day.
    pub day: &'a DaySettings,
    /// The users in the order of their session ids.
    pub users: &'a [UserSettings],
    /// Instruments in the configuration.
    pub instruments: &'a InstrumentTable,
}

/// The venue's first commands, and the state in which it starts.
pub struct Opening<'a> {
    users: &'a [UserSettings],
    day: Day,
    /// Descriptions of the schedule steps that fell due while the venue was down.
    pub missed: Vec<String>,
    entitlements: Vec<Entitlements>,
    /// The first commands, each with the session of the user it concerns, or 0 for the venue.
    pub commands: Vec<(SessionId, LogCommandKind)>,
}

impl<'a> Opening<'a> {
    /// Computes the opening from the replica. Publishes the users' limits in `view`, adds the configuration's
    /// new instruments to the table, and reports in `notices` how configuration and replica differ.
    ///
    /// # Errors
    /// [`AddInstrumentError`] when a new instrument cannot be added.
    pub fn of(
        settings: OpeningSettings<'a>,
        replica: &Replica,
        view: &VenueView,
        now: Nanos,
        notices: &mut Vec<String>,
    ) -> Result<Opening<'a>, AddInstrumentError> {
        let (table, replayed) = (&replica.streams.table, &replica.replayed);
        let states = Arc::clone(&view.states);
        let mut day = Day::new(settings.day.clone(), table.clone(), states, &replayed.day);
        let missed = match &settings.day.schedule {
            Some(schedule) => schedule.missed(replayed.day.schedule, day.has_started(), now),
            None => Vec::new(),
        };
        let known = || settings.users.iter().zip(&replayed.users);
        let entitlements: Vec<Entitlements> =
            known().map(|(user, replayed)| Entitlements::new(user, replayed)).collect();
        for (user, entitlements) in view.users.iter().zip(&entitlements) {
            user.limits.set(&entitlements.limits);
        }
        let added = add_listed(settings, table, notices)?;
        for ((user, replayed), entitlements) in known().zip(&entitlements) {
            notices.extend(entitlements.notices(&user.name, replayed, table));
        }
        let commands = opening(settings, replica, &entitlements, added, &mut day);
        Ok(Opening { users: settings.users, day, missed, entitlements, commands })
    }

    /// Order entry for `session`; `streams` has the messages sent to each user so far.
    #[must_use]
    pub fn order_entry<P>(
        self,
        session: Session,
        streams: Vec<Stream<MAX_LOGGED_MESSAGE>>,
        instruments: &InstrumentTable,
        registry: &UserRegistry,
        logins: Logins<P>,
        sequencer: Sequencer,
    ) -> OrderEntry<P> {
        let logs = streams.into_iter().map(|user| {
            failpoint!(UserLogForgottenAtStart => return crate::SessionLog::new(user.messages.capacity()));
            user.messages
        });
        let users =
            Users::new(session, self.users, &self.entitlements, logs, instruments, registry.capacity());
        let commands = InternalCommands::new(self.day, instruments.clone(), registry.clone());
        OrderEntry { users, logins, sequencer, commands }
    }
}

/// Adds the configuration's new instruments to the table before commands name them, so log readers find them.
fn add_listed(
    settings: OpeningSettings<'_>,
    table: &InstrumentTable,
    notices: &mut Vec<String>,
) -> Result<Vec<Instrument>, AddInstrumentError> {
    let listed = settings.instruments.as_slice();
    for known in table.iter().skip(listed.len()) {
        notices.push(format!("instrument {} was added before and stays: the file lacks it", known.symbol));
    }
    let new: Vec<Instrument> = listed.iter().filter(|it| it.id >= table.next_id()).copied().collect();
    for instrument in &new {
        table.add(*instrument)?;
        notices.push(format!("instrument {} is new in the file and is added", instrument.symbol));
    }
    Ok(new)
}

/// The venue's first commands, except those already in the log: the users' limits, their self-trade
/// prevention, new instruments and, without a schedule, the start of the day with all instruments trading.
fn opening(
    settings: OpeningSettings<'_>,
    replica: &Replica,
    entitlements: &[Entitlements],
    added: Vec<Instrument>,
    day: &mut Day,
) -> Vec<(SessionId, LogCommandKind)> {
    let mut opening = Vec::new();
    for ((entitlements, replayed), session) in entitlements.iter().zip(&replica.replayed.users).zip(1..) {
        opening.extend(entitlements.commands(replayed).map(|kind| (SessionId(session), kind)));
    }
    let users = settings.users.iter().zip((1..).map(SessionId));
    opening.extend(users.filter_map(|(user, session)| {
        let (strategy, account) = (user.self_trade_prevention, session);
        let set = replica.engine.self_trade_prevention(session);
        // Deribit clients set their own self-trade prevention: their last choice remains.
        let is_set = set == Some((strategy, account))
            || user.ports.deribit
                && set.is_some_and(|(chosen, own)| chosen != SelfTradePrevention::None && own == account);
        (!is_set).then_some((session, CommandKind::SetSelfTradePrevention { strategy, account }.into()))
    }));
    let mut emit = |kind: CommandKind| opening.push((SessionId::default(), kind.into()));
    added.into_iter().for_each(|instrument| emit(CommandKind::AddInstrument(instrument)));
    // With a schedule, its steps start the day.
    match settings.day.schedule {
        None => day.open_at_once(&mut emit),
        Some(_) => day.open_more(&mut emit),
    }
    opening
}
