//! What each user may do: what the configuration says of it, and what was commanded since.
//!
//! A command holds until the configuration says something else about the same thing: a limit that the file has changed
//! since the venue was started last is the file's, and every other is as it was commanded. So both are in the log.

use std::fmt;

use tickpath_matching::CommandKind;
use tickpath_types::{InstrumentId, InstrumentTable, Price, Qty};
use xxhash_rust::xxh3::Xxh3;

use crate::gate::{Gate, UserLimits};
use crate::token_bucket::RateLimit;
use crate::users::UserSettings;

/// What the configuration says of a user.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Configured {
    pub(crate) limits: UserLimits,
    /// Digest of the ids of what the user may trade, in their order; 0 for everything.
    pub(crate) instruments: u64,
}

/// What the log says of one user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct UserFacts {
    /// New orders of this user alone are refused.
    pub(crate) is_killed: bool,
    /// The limits that hold.
    pub(crate) limits: UserLimits,
    /// What the configuration said when the venue was started last; `None` where the log is older than such notes.
    pub(crate) configured: Option<Configured>,
    /// Instruments that the user may trade, or may not, by command: whatever the configuration's list says.
    pub(crate) commanded: Vec<(InstrumentId, bool)>,
}

/// What a user may do when the venue starts.
pub(crate) struct Standing {
    pub(crate) limits: UserLimits,
    /// As [`UserFacts::commanded`].
    pub(crate) commanded: Vec<(InstrumentId, bool)>,
    configured: Configured,
}

impl Default for UserFacts {
    /// Of a user that the log knows nothing of: nothing is limited, and everything may be traded.
    fn default() -> Self {
        let configured = Some(Configured::default());
        UserFacts { is_killed: false, limits: UserLimits::default(), configured, commanded: Vec::new() }
    }
}

impl UserFacts {
    /// Takes note of a command about the user.
    pub(crate) fn note(&mut self, kind: &CommandKind) {
        match *kind {
            CommandKind::KillSession { is_killed } => self.is_killed = is_killed,
            CommandKind::SetLimits { open_orders, order_qty, order_notional } => {
                let rate = self.limits.rate;
                self.limits = UserLimits { rate, ..engine_limits(open_orders, order_qty, order_notional) };
            }
            CommandKind::SetMessageRate { per_second, burst } => self.limits.rate = rate(per_second, burst),
            CommandKind::AllowInstrument { instrument, is_allowed } => {
                match self.commanded.iter_mut().find(|(known, _)| *known == instrument) {
                    Some(known) => known.1 = is_allowed,
                    None => self.commanded.push((instrument, is_allowed)),
                }
            }
            CommandKind::LimitsConfigured {
                per_second,
                burst,
                open_orders,
                order_qty,
                order_notional,
                instruments,
            } => {
                if self.configured.is_none_or(|before| before.instruments != instruments) {
                    self.commanded.clear();
                }
                let limits = UserLimits {
                    rate: rate(per_second, burst),
                    ..engine_limits(open_orders, order_qty, order_notional)
                };
                self.configured = Some(Configured { limits, instruments });
            }
            _ => {}
        }
    }
}

/// How the log writes that there is no limit.
const NO_RATE: RateLimit = RateLimit { per_second: 0, burst: 0 };

fn rate(per_second: u32, burst: u32) -> Option<RateLimit> {
    (per_second > 0).then_some(RateLimit { per_second, burst })
}

/// Without a rate, which the engine knows nothing of.
fn engine_limits(open_orders: u32, order_qty: Qty, order_notional: u64) -> UserLimits {
    UserLimits {
        rate: None,
        open_orders: Some(open_orders).filter(|limit| *limit != u32::MAX),
        order_qty: Some(order_qty).filter(|limit| *limit != Qty(u64::MAX)),
        order_notional: Some(order_notional).filter(|limit| *limit != u64::MAX),
    }
}

/// What whoever goes on with the log is told of a rate.
pub(crate) fn rate_command(limit: Option<RateLimit>) -> CommandKind {
    let RateLimit { per_second, burst } = limit.unwrap_or(NO_RATE);
    CommandKind::SetMessageRate { per_second, burst }
}

impl Configured {
    fn of(user: &UserSettings) -> Configured {
        // As it comes back from the log, where the highest numbers stand for no limit.
        let UserLimits { rate, open_orders, order_qty, order_notional } = user.limits;
        let limits = engine_limits(
            open_orders.unwrap_or(u32::MAX),
            order_qty.unwrap_or(Qty(u64::MAX)),
            order_notional.unwrap_or(u64::MAX),
        );
        Configured { limits: UserLimits { rate, ..limits }, instruments: digest(user.instruments.as_deref()) }
    }

    fn as_command(self) -> CommandKind {
        let UserLimits { rate, open_orders, order_qty, order_notional } = self.limits;
        let RateLimit { per_second, burst } = rate.unwrap_or(NO_RATE);
        CommandKind::LimitsConfigured {
            per_second,
            burst,
            open_orders: open_orders.unwrap_or(u32::MAX),
            order_qty: order_qty.unwrap_or(Qty(u64::MAX)),
            order_notional: order_notional.unwrap_or(u64::MAX),
            instruments: self.instruments,
        }
    }
}

/// The same for the same instruments, in whatever order they are listed.
fn digest(allowed: Option<&[InstrumentId]>) -> u64 {
    let Some(allowed) = allowed else { return 0 };
    let mut ids: Vec<u16> = allowed.iter().map(|id| id.0).collect();
    ids.sort_unstable();
    ids.dedup();
    let mut hasher = Xxh3::new();
    ids.iter().for_each(|id| hasher.update(&id.to_le_bytes()));
    hasher.digest().max(1)
}

impl Standing {
    /// Of a user as the file describes it, after a log that says so much of it.
    pub(crate) fn new(user: &UserSettings, facts: &UserFacts) -> Standing {
        let configured = Configured::of(user);
        let Some(before) = facts.configured else {
            return Standing { limits: configured.limits, commanded: Vec::new(), configured };
        };
        let (file, log) = (configured.limits, facts.limits);
        let is_same_list = before.instruments == configured.instruments;
        Standing {
            limits: UserLimits {
                rate: later(before.limits.rate, file.rate, log.rate),
                open_orders: later(before.limits.open_orders, file.open_orders, log.open_orders),
                order_qty: later(before.limits.order_qty, file.order_qty, log.order_qty),
                order_notional: later(before.limits.order_notional, file.order_notional, log.order_notional),
            },
            commanded: if is_same_list { facts.commanded.clone() } else { Vec::new() },
            configured,
        }
    }

    /// What lets the user's requests pass, where the file lists what it may trade.
    pub(crate) fn gate(&self, listed: Option<&[InstrumentId]>, instruments: &InstrumentTable) -> Gate {
        let mut gate = Gate::new(self.limits.rate, listed, instruments);
        self.commanded.iter().for_each(|(id, is_allowed)| _ = gate.allow(*id, *is_allowed));
        gate
    }

    /// What the log must be told of it: last, what the file says, for until that is in the log a limit that the file
    /// changed must count as changed.
    pub(crate) fn commands(&self, facts: &UserFacts) -> impl Iterator<Item = CommandKind> {
        let (wanted, configured) = (self.limits.as_command(), self.configured);
        let limits = (facts.limits.as_command() != wanted).then_some(wanted);
        let rate = (facts.limits.rate != self.limits.rate).then(|| rate_command(self.limits.rate));
        let note = (facts.configured != Some(configured)).then(|| configured.as_command());
        limits.into_iter().chain(rate).chain(note)
    }

    /// What holds by command and is not what the file says, and what was commanded and holds no longer, in words.
    pub(crate) fn notices(
        &self,
        name: &str,
        facts: &UserFacts,
        instruments: &InstrumentTable,
    ) -> Vec<String> {
        let [now, file, log] = [&self.limits, &self.configured.limits, &facts.limits].map(in_words);
        let before = facts.configured.map(|before| in_words(&before.limits));
        let mut notices = Vec::new();
        for (place, limit) in LIMITS.into_iter().enumerate() {
            let (now, file, log) = (&now[place], &file[place], &log[place]);
            let was_commanded = before.as_ref().is_some_and(|before| before[place] != *log);
            if now != file {
                notices.push(format!(
                    "user {name}: {limit}={now} as commanded, and not {file} as the file says"
                ));
            } else if was_commanded && now != log {
                notices.push(format!(
                    "user {name}: {limit}={now} as the file says now, and not {log} as commanded"
                ));
            }
        }
        for (id, is_allowed) in &facts.commanded {
            let Some(symbol) = instruments.symbol(*id) else { continue };
            let word = if *is_allowed { "may" } else { "may not" };
            notices.push(match self.commanded.is_empty() {
                false => format!("user {name} {word} trade {symbol} as commanded"),
                true => format!(
                    "user {name}: that it {word} trade {symbol} holds no longer, for the file has another list"
                ),
            });
        }
        notices
    }
}

/// As commands name them.
const LIMITS: [&str; 4] = ["messages", "open-orders", "qty", "notional"];

/// In the order of their names.
fn in_words(limits: &UserLimits) -> [String; LIMITS.len()] {
    let UserLimits { rate, open_orders, order_qty, order_notional } = *limits;
    let rate = rate.map(|RateLimit { per_second, burst }| format!("{per_second}/{burst}"));
    let notional = order_notional.map(|limit| Price(i64::try_from(limit).unwrap_or(i64::MAX)));
    [shown(rate), shown(open_orders), shown(order_qty), shown(notional)]
}

/// The file's word where it has changed, and otherwise what was commanded.
fn later<T: PartialEq>(before: T, file: T, log: T) -> T {
    if file == before { log } else { file }
}

fn shown(limit: Option<impl fmt::Display>) -> String {
    limit.map_or_else(|| "none".to_owned(), |limit| limit.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::login::Password;

    fn user(open_orders: u32, instruments: Option<&[u16]>) -> UserSettings {
        let ids = |ids: &[u16]| ids.iter().copied().map(InstrumentId).collect();
        UserSettings {
            limits: UserLimits { open_orders: Some(open_orders), ..UserLimits::default() },
            instruments: instruments.map(ids),
            ..UserSettings::new("ANNA", Password::plain("secret"))
        }
    }

    /// A start of the venue with its commands in the log.
    fn start(user: &UserSettings, facts: &mut UserFacts) -> Standing {
        let standing = Standing::new(user, facts);
        let commands: Vec<CommandKind> = standing.commands(facts).collect();
        commands.iter().for_each(|kind| facts.note(kind));
        assert_eq!((facts.limits, &facts.commanded), (standing.limits, &standing.commanded));
        assert_eq!(standing.commands(facts).count(), 0, "said once");
        standing
    }

    fn allow(id: u16, is_allowed: bool) -> CommandKind {
        CommandKind::AllowInstrument { instrument: InstrumentId(id), is_allowed }
    }

    #[test]
    fn what_was_commanded_holds_until_the_file_says_something_else_of_the_same_limit() {
        let mut facts = UserFacts::default();
        start(&user(100, None), &mut facts);
        facts.note(&CommandKind::SetLimits { open_orders: 5, order_qty: Qty(7), order_notional: u64::MAX });
        facts.note(&CommandKind::SetMessageRate { per_second: 10, burst: 3 });
        let standing = start(&user(100, None), &mut facts);
        let rate = Some(RateLimit { per_second: 10, burst: 3 });
        let commanded =
            UserLimits { rate, open_orders: Some(5), order_qty: Some(Qty(7)), order_notional: None };
        assert_eq!(standing.limits, commanded);
        let table = InstrumentTable::new(&[]);
        let said = standing.notices("ANNA", &facts, &table);
        assert_eq!(said[1], "user ANNA: open-orders=5 as commanded, and not 100 as the file says");
        assert_eq!(said.len(), 3, "{said:?}");
        let said = Standing::new(&user(200, None), &facts).notices("ANNA", &facts, &table);
        assert_eq!(said[1], "user ANNA: open-orders=200 as the file says now, and not 5 as commanded");
        assert_eq!(said.len(), 3, "{said:?}");
        let standing = start(&user(200, None), &mut facts);
        assert_eq!(standing.limits, UserLimits { open_orders: Some(200), ..commanded });
        let standing = start(&user(200, None), &mut facts);
        assert_eq!(standing.limits, UserLimits { open_orders: Some(200), ..commanded });
    }

    #[test]
    fn a_start_that_died_between_its_commands_is_made_up_for() {
        let mut facts = UserFacts::default();
        start(&user(100, Some(&[1])), &mut facts);
        facts.note(&CommandKind::SetLimits { open_orders: 5, order_qty: Qty(7), order_notional: 9 });
        facts.note(&allow(3, true));
        let changed = user(200, Some(&[1, 2]));
        let commands: Vec<CommandKind> = Standing::new(&changed, &facts).commands(&facts).collect();
        assert_eq!(commands.len(), 2);
        for in_the_log in 0..=commands.len() {
            let mut facts = facts.clone();
            commands[..in_the_log].iter().for_each(|kind| facts.note(kind));
            let standing = start(&changed, &mut facts);
            assert_eq!(standing.limits.open_orders, Some(200), "{in_the_log}");
            assert_eq!((standing.limits.order_qty, standing.commanded.len()), (Some(Qty(7)), 0));
        }
    }

    #[test]
    fn instruments_are_those_commanded_until_the_list_changes() {
        let mut facts = UserFacts::default();
        start(&user(9, Some(&[2, 1])), &mut facts);
        for (id, is_allowed) in [(3, true), (1, false), (3, false), (3, true)] {
            facts.note(&allow(id, is_allowed));
        }
        let standing = start(&user(9, Some(&[1, 2, 2])), &mut facts);
        let commanded = [(InstrumentId(3), true), (InstrumentId(1), false)];
        assert_eq!(standing.commanded, commanded, "another order is no other list");
        for changed in [None, Some(&[][..]), Some(&[1, 2, 3])] {
            let mut facts = facts.clone();
            assert_eq!(start(&user(9, changed), &mut facts).commanded, [], "{changed:?}");
        }
    }

    #[test]
    fn after_a_log_that_is_older_than_notes_all_is_as_the_file_says() {
        let limits = UserLimits { open_orders: Some(5), ..UserLimits::default() };
        let mut facts = UserFacts { limits, configured: None, ..UserFacts::default() };
        let plain = UserSettings::new("ANNA", Password::plain("secret"));
        assert_eq!(start(&plain, &mut facts).limits, UserLimits::default());
        assert_eq!(facts, UserFacts::default());
    }
}
