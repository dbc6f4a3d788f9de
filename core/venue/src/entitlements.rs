//! The limits and the allowed instruments of each user, from the configuration and from commands.
//!
//! A setting made by a command holds until the configuration file changes that setting. The log therefore
//! also records the configured settings at each start. A limit that the file has changed since the last start
//! comes from the file, every other limit from the commands.

use std::fmt;

use tickpath_matching::CommandKind;
use tickpath_types::{InstrumentId, InstrumentTable, Price};
use xxhash_rust::xxh3::Xxh3;

use crate::log_command::{LogCommandKind, VenueCommandKind};
use crate::request_filter::RequestFilter;
use crate::token_bucket::RateLimit;
use crate::user_limits::{UserLimits, rate};
use crate::user_settings::UserSettings;

/// The configured limits and instruments of a user.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Configured {
    /// The limits.
    pub limits: UserLimits,
    /// Digest of the ids of the tradable instruments; 0 when all are tradable.
    pub instruments: u64,
}

/// The state of one user that a replay of the log yields.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReplayedUser {
    /// True while new orders of this user are refused because the user was killed individually.
    pub is_killed: bool,
    /// The effective limits.
    pub limits: UserLimits,
    /// The configuration at the venue's last start; `None` if an older version wrote the log without it.
    pub configured: Option<Configured>,
    /// Instruments that commands allowed (true) or forbade (false), overriding the configuration's list.
    pub commanded: Vec<(InstrumentId, bool)>,
}

/// A user's limits, and the instruments allowed or forbidden by commands, at the venue's start.
pub struct Entitlements {
    /// The effective limits.
    pub limits: UserLimits,
    /// Instruments that commands allowed or forbade, as in [`ReplayedUser::commanded`].
    pub commanded: Vec<(InstrumentId, bool)>,
    configured: Configured,
}

impl Default for ReplayedUser {
    /// For a user without log entries: no limits, all instruments allowed.
    fn default() -> Self {
        let configured = Some(Configured::default());
        ReplayedUser { is_killed: false, limits: UserLimits::default(), configured, commanded: Vec::new() }
    }
}

impl ReplayedUser {
    /// Applies a log command about the user.
    pub fn update(&mut self, kind: &LogCommandKind) {
        use LogCommandKind::{Engine, Venue};
        match *kind {
            Engine(CommandKind::KillSession { is_killed }) => self.is_killed = is_killed,
            Engine(CommandKind::SetLimits { open_orders, order_qty, order_notional }) => {
                self.limits = self.limits.with_engine(open_orders, order_qty, order_notional);
            }
            Venue(VenueCommandKind::SetMessageRate { per_second, burst }) => {
                self.limits.rate = rate(per_second, burst);
            }
            Venue(VenueCommandKind::AllowInstrument { instrument, is_allowed }) => {
                match self.commanded.iter_mut().find(|(known, _)| *known == instrument) {
                    Some(known) => known.1 = is_allowed,
                    None => self.commanded.push((instrument, is_allowed)),
                }
            }
            Venue(VenueCommandKind::LimitsConfigured {
                per_second,
                burst,
                open_orders,
                order_qty,
                order_notional,
                instruments,
            }) => {
                if self.configured.is_none_or(|before| before.instruments != instruments) {
                    self.commanded.clear();
                }
                let limits = UserLimits { rate: rate(per_second, burst), ..UserLimits::default() };
                let limits = limits.with_engine(open_orders, order_qty, order_notional);
                self.configured = Some(Configured { limits, instruments });
            }
            _ => {}
        }
    }
}

impl Configured {
    fn of(user: &UserSettings) -> Configured {
        // The log encodes "no limit" as the highest value, so a limit of that value is no limit here too.
        let (open_orders, order_qty, order_notional) = user.limits.engine_numbers();
        let limits = user.limits.with_engine(open_orders, order_qty, order_notional);
        Configured { limits, instruments: digest(user.instruments.as_deref()) }
    }

    fn as_command(self) -> VenueCommandKind {
        let (open_orders, order_qty, order_notional) = self.limits.engine_numbers();
        let (per_second, burst) = self.limits.rate_numbers();
        VenueCommandKind::LimitsConfigured {
            per_second,
            burst,
            open_orders,
            order_qty,
            order_notional,
            instruments: self.instruments,
        }
    }
}

/// Digest of a list of instruments, independent of its order; 0 without a list.
fn digest(allowed: Option<&[InstrumentId]>) -> u64 {
    let Some(allowed) = allowed else { return 0 };
    let mut ids: Vec<u16> = allowed.iter().map(|id| id.0).collect();
    ids.sort_unstable();
    ids.dedup();
    let mut hasher = Xxh3::new();
    ids.iter().for_each(|id| hasher.update(&id.to_le_bytes()));
    hasher.digest().max(1)
}

impl Entitlements {
    /// The entitlements of a configured user; `replayed` is the state of that user that results from the log.
    #[must_use]
    pub fn new(user: &UserSettings, replayed: &ReplayedUser) -> Entitlements {
        let configured = Configured::of(user);
        let Some(before) = replayed.configured else {
            return Entitlements { limits: configured.limits, commanded: Vec::new(), configured };
        };
        let (file, log) = (configured.limits, replayed.limits);
        let is_same_list = before.instruments == configured.instruments;
        Entitlements {
            limits: UserLimits {
                rate: effective_limit(before.limits.rate, file.rate, log.rate),
                open_orders: effective_limit(before.limits.open_orders, file.open_orders, log.open_orders),
                order_qty: effective_limit(before.limits.order_qty, file.order_qty, log.order_qty),
                order_notional: effective_limit(
                    before.limits.order_notional,
                    file.order_notional,
                    log.order_notional,
                ),
            },
            commanded: if is_same_list { replayed.commanded.clone() } else { Vec::new() },
            configured,
        }
    }

    /// Creates the user's request filter; `listed` is the configuration's list of instruments, if any.
    #[must_use]
    pub fn filter(&self, listed: Option<&[InstrumentId]>, instruments: &InstrumentTable) -> RequestFilter {
        let mut filter = RequestFilter::new(self.limits.rate, listed, instruments);
        self.commanded.iter().for_each(|(id, is_allowed)| _ = filter.allow(*id, *is_allowed));
        filter
    }

    /// The log commands that record changed entitlements. The command that records the configuration comes
    /// last: if the start is interrupted before it is logged, the next start finds the same changes.
    pub fn commands(&self, replayed: &ReplayedUser) -> impl Iterator<Item = LogCommandKind> {
        let (target, configured) = (self.limits.as_command(), self.configured);
        let limits = (replayed.limits.as_command() != target).then_some(target);
        let rate = (replayed.limits.rate != self.limits.rate).then(|| self.limits.rate_command());
        let record = (replayed.configured != Some(configured)).then(|| configured.as_command());
        let of_venue = rate.into_iter().chain(record).map(LogCommandKind::Venue);
        limits.map(LogCommandKind::Engine).into_iter().chain(of_venue)
    }

    /// Describes the settings made by commands: those that override the file, and those that it replaced.
    #[must_use]
    pub fn notices(&self, name: &str, replayed: &ReplayedUser, instruments: &InstrumentTable) -> Vec<String> {
        let [now, file, log] = [&self.limits, &self.configured.limits, &replayed.limits].map(describe_limits);
        let before = replayed.configured.map(|before| describe_limits(&before.limits));
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
        for (id, is_allowed) in &replayed.commanded {
            let Some(symbol) = instruments.symbol(*id) else { continue };
            let word = if *is_allowed { "may" } else { "may not" };
            notices.push(match self.commanded.is_empty() {
                false => format!("user {name} {word} trade {symbol} as commanded"),
                true => format!(
                    "user {name} {word} trade {symbol}: this command no longer applies, the file has another list"
                ),
            });
        }
        notices
    }
}

/// Names of the limits in administrator commands.
const LIMITS: [&str; 4] = ["messages", "open-orders", "qty", "notional"];

/// Values of the limits, in the order of [`LIMITS`].
fn describe_limits(limits: &UserLimits) -> [String; LIMITS.len()] {
    let UserLimits { rate, open_orders, order_qty, order_notional } = *limits;
    let rate = rate.map(|RateLimit { per_second, burst }| format!("{per_second}/{burst}"));
    let notional = order_notional.map(|limit| Price(i64::try_from(limit).unwrap_or(i64::MAX)));
    [format_limit(rate), format_limit(open_orders), format_limit(order_qty), format_limit(notional)]
}

/// The file's limit if it differs from `before`, its value at the last start; otherwise the log's limit.
fn effective_limit<T: PartialEq>(before: T, file: T, log: T) -> T {
    if file == before { log } else { file }
}

fn format_limit(limit: Option<impl fmt::Display>) -> String {
    limit.map_or_else(|| "none".to_owned(), |limit| limit.to_string())
}

#[cfg(test)]
mod tests {
    use tickpath_types::Qty;

    use super::*;
    use crate::password::Password;

    fn user(open_orders: u32, instruments: Option<&[u16]>) -> UserSettings {
        let ids = |ids: &[u16]| ids.iter().copied().map(InstrumentId).collect();
        UserSettings {
            limits: UserLimits { open_orders: Some(open_orders), ..UserLimits::default() },
            instruments: instruments.map(ids),
            ..UserSettings::new("ANNA", Password::plain("secret"))
        }
    }

    /// Computes the entitlements as a venue's start does, and applies their log commands to `replayed`.
    fn start(user: &UserSettings, replayed: &mut ReplayedUser) -> Entitlements {
        let entitlements = Entitlements::new(user, replayed);
        let commands: Vec<LogCommandKind> = entitlements.commands(replayed).collect();
        commands.iter().for_each(|kind| replayed.update(kind));
        assert_eq!((replayed.limits, &replayed.commanded), (entitlements.limits, &entitlements.commanded));
        assert_eq!(entitlements.commands(replayed).count(), 0, "said once");
        entitlements
    }

    fn allow(id: u16, is_allowed: bool) -> LogCommandKind {
        VenueCommandKind::AllowInstrument { instrument: InstrumentId(id), is_allowed }.into()
    }

    #[test]
    fn commanded_limits_hold_until_the_file_changes_them() {
        let mut replayed = ReplayedUser::default();
        start(&user(100, None), &mut replayed);
        replayed.update(
            &CommandKind::SetLimits { open_orders: 5, order_qty: Qty(7), order_notional: u64::MAX }.into(),
        );
        replayed.update(&VenueCommandKind::SetMessageRate { per_second: 10, burst: 3 }.into());
        let entitlements = start(&user(100, None), &mut replayed);
        let rate = Some(RateLimit { per_second: 10, burst: 3 });
        let commanded =
            UserLimits { rate, open_orders: Some(5), order_qty: Some(Qty(7)), order_notional: None };
        assert_eq!(entitlements.limits, commanded);
        let table = InstrumentTable::new(&[]);
        let notices = entitlements.notices("ANNA", &replayed, &table);
        assert_eq!(notices[1], "user ANNA: open-orders=5 as commanded, and not 100 as the file says");
        assert_eq!(notices.len(), 3, "{notices:?}");
        let notices = Entitlements::new(&user(200, None), &replayed).notices("ANNA", &replayed, &table);
        assert_eq!(notices[1], "user ANNA: open-orders=200 as the file says now, and not 5 as commanded");
        assert_eq!(notices.len(), 3, "{notices:?}");
        let entitlements = start(&user(200, None), &mut replayed);
        assert_eq!(entitlements.limits, UserLimits { open_orders: Some(200), ..commanded });
        let entitlements = start(&user(200, None), &mut replayed);
        assert_eq!(entitlements.limits, UserLimits { open_orders: Some(200), ..commanded });
    }

    #[test]
    fn an_interrupted_start_is_completed() {
        let mut replayed = ReplayedUser::default();
        start(&user(100, Some(&[1])), &mut replayed);
        replayed
            .update(&CommandKind::SetLimits { open_orders: 5, order_qty: Qty(7), order_notional: 9 }.into());
        replayed.update(&allow(3, true));
        let changed = user(200, Some(&[1, 2]));
        let commands: Vec<_> = Entitlements::new(&changed, &replayed).commands(&replayed).collect();
        assert_eq!(commands.len(), 2);
        for in_the_log in 0..=commands.len() {
            let mut replayed = replayed.clone();
            commands[..in_the_log].iter().for_each(|kind| replayed.update(kind));
            let entitlements = start(&changed, &mut replayed);
            assert_eq!(entitlements.limits.open_orders, Some(200), "{in_the_log}");
            assert_eq!((entitlements.limits.order_qty, entitlements.commanded.len()), (Some(Qty(7)), 0));
        }
    }

    #[test]
    fn commanded_instruments_hold_until_the_list_changes() {
        let mut replayed = ReplayedUser::default();
        start(&user(9, Some(&[2, 1])), &mut replayed);
        for (id, is_allowed) in [(3, true), (1, false), (3, false), (3, true)] {
            replayed.update(&allow(id, is_allowed));
        }
        let entitlements = start(&user(9, Some(&[1, 2, 2])), &mut replayed);
        let commanded = [(InstrumentId(3), true), (InstrumentId(1), false)];
        assert_eq!(entitlements.commanded, commanded, "another order is no other list");
        for changed in [None, Some(&[][..]), Some(&[1, 2, 3])] {
            let mut replayed = replayed.clone();
            assert_eq!(start(&user(9, changed), &mut replayed).commanded, [], "{changed:?}");
        }
    }

    #[test]
    fn logs_without_configured_limits_use_the_file() {
        let limits = UserLimits { open_orders: Some(5), ..UserLimits::default() };
        let mut replayed = ReplayedUser { limits, configured: None, ..ReplayedUser::default() };
        let plain = UserSettings::new("ANNA", Password::plain("secret"));
        assert_eq!(start(&plain, &mut replayed).limits, UserLimits::default());
        assert_eq!(replayed, ReplayedUser::default());
    }
}
