//! The state that a venue begins with, and its first commands.

use std::sync::Arc;

use anyhow::Context;
use tickpath_faults::failpoint;
use tickpath_matching::CommandKind;
use tickpath_types::{
    AddInstrumentError, Instrument, InstrumentTable, Nanos, SelfTradePrevention, SessionId,
};
use tickpath_venue::day::Day;
use tickpath_venue::{Entitlements, LogCommandKind, MAX_LOGGED_MESSAGE, Replica, Stream, Users};

use super::settings::VenueSettings;
use super::view::VenueView;

/// The venue's first commands, and the state that they are made of.
pub(super) struct Opening {
    pub(super) day: Day,
    /// Steps of the schedule that were due while the venue was down.
    pub(super) missed: Vec<String>,
    pub(super) entitlements: Vec<Entitlements>,
    pub(super) commands: Vec<(SessionId, LogCommandKind)>,
}

impl Opening {
    /// Shows the users' limits in `view`, adds instruments that are new in the file to the table, and to `notices` how the
    /// venue differs from its configuration.
    pub(super) fn of(
        settings: &VenueSettings,
        replica: &Replica,
        view: &VenueView,
        now: Nanos,
        notices: &mut Vec<String>,
    ) -> anyhow::Result<Opening> {
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
        let added = add_listed(settings, table, notices).context("instruments")?;
        for ((user, replayed), entitlements) in known().zip(&entitlements) {
            notices.extend(entitlements.notices(&user.name, replayed, table));
        }
        let commands = opening(settings, replica, &entitlements, added, &mut day);
        Ok(Opening { day, missed, entitlements, commands })
    }
}

/// The users with what was sent to them before the start.
pub(super) fn users(
    settings: &VenueSettings,
    entitlements: &[Entitlements],
    streams: Vec<Stream<MAX_LOGGED_MESSAGE>>,
    instruments: &InstrumentTable,
    max: usize,
) -> Users {
    let logs = streams.into_iter().map(|user| {
        failpoint!(UserLogForgottenAtStart => return tickpath_venue::SessionLog::new(user.messages.capacity()));
        user.messages
    });
    Users::new(&settings.users, entitlements, logs, instruments, max)
}

/// Adds the instruments that are new in the file to the table, so that readers of the log find them.
fn add_listed(
    settings: &VenueSettings,
    table: &InstrumentTable,
    notices: &mut Vec<String>,
) -> Result<Vec<Instrument>, AddInstrumentError> {
    let listed = settings.instruments.as_slice();
    for known in table.iter().skip(listed.len()) {
        notices.push(format!("instrument {} was added before and stays: the file lacks it", known.symbol));
    }
    let new: Vec<Instrument> =
        listed.iter().filter(|instrument| instrument.id >= table.next_id()).copied().collect();
    for instrument in &new {
        table.add(*instrument)?;
        notices.push(format!("instrument {} is new in the file and is added", instrument.symbol));
    }
    Ok(new)
}

/// The venue's own first commands, as far as the log has not got them: the users' limits and what becomes of their trades
/// with themselves, the instruments that are new and, without a schedule, that the day begins and every instrument opens
/// for trading.
fn opening(
    settings: &VenueSettings,
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
        // Deribit's clients change it themselves: what they chose last stays.
        let is_set = set == Some((strategy, account))
            || user.ports.deribit
                && set.is_some_and(|(chosen, own)| chosen != SelfTradePrevention::None && own == account);
        (!is_set).then_some((session, CommandKind::SetSelfTradePrevention { strategy, account }.into()))
    }));
    let mut emit = |kind: CommandKind| opening.push((SessionId::default(), kind.into()));
    added.into_iter().for_each(|instrument| emit(CommandKind::AddInstrument(instrument)));
    // With a schedule the day begins when it says.
    match settings.day.schedule {
        None => day.open_at_once(&mut emit),
        Some(_) => day.open_more(&mut emit),
    }
    opening
}
