//! The line protocol of the admin socket: a line of words in, a line of JSON out.

use serde_json::{Value, json};
use tickpath_types::{InstrumentTable, SessionId, Symbol, TradingState};

use super::{AdminCommand, AdminOutcome};
use crate::VenueView;

/// What a line asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Request {
    Status,
    Users,
    Command(AdminCommand),
}

/// The commands, as an unknown one is answered.
const COMMANDS: &str = "status, users, halt SYMBOL, resume SYMBOL, kill USER, unkill USER, kill-all, unkill-all, \
                        disconnect USER, unlock USER, drain";

/// Reads a line.
///
/// # Errors
/// What is wrong with it, in one line that says what there is instead.
pub(super) fn parse(line: &str, instruments: &InstrumentTable, view: &VenueView) -> Result<Request, String> {
    let mut words = line.split_ascii_whitespace();
    let (name, argument) = (words.next().unwrap_or(""), words.next());
    if words.next().is_some() {
        return Err(format!("'{name}' takes one word at most"));
    }
    let alone = |request| match argument {
        None => Ok(request),
        Some(argument) => Err(format!("'{name}' stands alone: '{argument}' is too much")),
    };
    let user = || {
        let user = argument.ok_or_else(|| format!("'{name}' needs the name of a user: see users"))?;
        let place = view.users.iter().position(|known| known.name.eq_ignore_ascii_case(user));
        place.map(|place| SessionId(place as u16 + 1)).ok_or_else(|| format!("no user '{user}': see users"))
    };
    let set_state = |state| {
        let symbol = argument.ok_or_else(|| format!("'{name}' needs the symbol of an instrument"))?;
        let found =
            Symbol::new(&symbol.to_ascii_uppercase()).ok().and_then(|symbol| instruments.find(symbol));
        let instrument = found.ok_or_else(|| format!("no instrument '{symbol}'"))?;
        Ok(Request::Command(AdminCommand::SetTradingState { instrument, state }))
    };
    let command = |command| Ok(Request::Command(command));
    match name {
        "status" => alone(Request::Status),
        "users" => alone(Request::Users),
        "halt" => set_state(TradingState::Halted),
        "resume" => set_state(TradingState::Trading),
        "kill" => command(AdminCommand::Kill(Some(user()?))),
        "unkill" => command(AdminCommand::Unkill(Some(user()?))),
        "kill-all" => alone(Request::Command(AdminCommand::Kill(None))),
        "unkill-all" => alone(Request::Command(AdminCommand::Unkill(None))),
        "disconnect" => command(AdminCommand::Disconnect(user()?)),
        "unlock" => command(AdminCommand::Unlock(user()?)),
        "drain" => alone(Request::Command(AdminCommand::Drain)),
        _ => Err(format!("no command '{name}': there are {COMMANDS}")),
    }
}

/// The answer to `status`: every counter under its name.
pub(super) fn status(view: &VenueView) -> Value {
    let (server, matcher, publisher) = (&view.order_server, &view.matcher, &view.publisher);
    json!({
        "ok": true,
        "is_killed": server.is_killed.read() != 0,
        "is_draining": server.is_draining.read() != 0,
        "users": view.users.len(),
        "users_connected": view.users.iter().filter(|user| user.is_connected.read() != 0).count(),
        "connections": server.connections.read(),
        "connections_refused": server.connections_refused.read(),
        "accept_errors": server.accept_errors.read(),
        "disconnects": server.disconnects.read(),
        "slow_clients": server.slow_clients.read(),
        "logins": server.logins.read(),
        "logins_refused": server.logins_refused.read(),
        "wrong_passwords": server.wrong_passwords.read(),
        "logins_delayed": server.logins_delayed.read(),
        "lockouts": server.lockouts.read(),
        "logins_locked_out": server.logins_locked_out.read(),
        "logins_unchecked": server.logins_unchecked.read(),
        "checks_dropped": server.checks_dropped.read(),
        "cancels_on_disconnect": server.cancels_on_disconnect.read(),
        "requests": server.requests.read(),
        "requests_refused": server.requests_refused.read(),
        "malformed": server.malformed.read(),
        "commands": server.commands.read(),
        "admin_commands": server.admin_commands.read(),
        "executions": matcher.executions.read(),
        "market_messages": publisher.messages.read(),
        "retransmitted": publisher.retransmitted.read(),
        "drop_copies": view.drop_copy.copies.read(),
        "drop_copy_readers_slow": view.drop_copy.slow_readers.read(),
        "drop_copy_has_failed": view.drop_copy.has_failed.read() != 0,
    })
}

/// The answer to `users`; `now_ns` since the Unix epoch.
pub(super) fn users(view: &VenueView, now_ns: u64) -> Value {
    let users: Vec<Value> = view
        .users
        .iter()
        .map(|user| {
            json!({
                "name": user.name,
                "is_connected": user.is_connected.read() != 0,
                "is_killed": user.is_killed.read() != 0,
                "is_locked": user.locked_until.read() > now_ns,
                "logins": user.logins.read(),
                "wrong_passwords": user.wrong_passwords.read(),
                "requests_refused": user.requests_refused.read(),
            })
        })
        .collect();
    json!({ "ok": true, "users": users })
}

/// The answer to a command that the venue has taken.
pub(super) fn outcome(outcome: AdminOutcome) -> Value {
    match outcome {
        AdminOutcome::Done { commands } => json!({ "ok": true, "commands": commands }),
        AdminOutcome::UnknownUser => error("no such user: see users"),
        AdminOutcome::NotConnected => error("the user is not connected"),
    }
}

/// An answer that nothing was done.
pub(super) fn error(message: &str) -> Value {
    json!({ "ok": false, "error": message })
}
