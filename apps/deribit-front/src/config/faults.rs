//! `[deribit.faults]`: fault injection for testing clients.

use std::net::SocketAddrV4;

use serde::{Deserialize, Serialize};
use tickpath_config::{ConfigError, Duration};
use tickpath_types::Nanos;

use super::{ppm, value};
use crate::faults::{FaultKind, FaultPlan};

/// `[deribit.faults]`: each chance is a fraction of 1, as text.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct FaultsConfig {
    /// Seed of the fault schedule.
    pub seed: u64,
    /// Each connection, each second: it ends without notice.
    pub cut: Option<String>,
    /// Each connection, each second: it stays open, and nothing is read or sent any more.
    pub half_open: Option<String>,
    /// Each order request: its connection ends before the request is read.
    pub request_lost: Option<String>,
    /// Each order request: it is executed, and its connection ends before the reply.
    pub reply_cut: Option<String>,
    /// Each order request: it is executed, and its reply is never sent.
    pub reply_lost: Option<String>,
    /// Each order request: it is executed, and its reply is delayed.
    pub reply_slow: Option<String>,
    /// Each order request: it is rejected with 10028.
    pub rate_limited: Option<String>,
    /// Each order request: it is rejected with a retryable code, drawn from 10040, 10041, 10047, 10066, 11094
    /// and 13028.
    pub refused: Option<String>,
    /// Each private request: the access token expires early.
    pub token_expired: Option<String>,
    /// Each private request: all tokens of the connection are revoked.
    pub tokens_revoked: Option<String>,
    /// Each FIX Logon: it is rejected.
    pub logon_refused: Option<String>,
    /// Each heartbeat: it is not sent.
    pub heartbeat_missed: Option<String>,
    /// Each book change to each subscriber: it is sent twice.
    pub book_duplicated: Option<String>,
    /// Each book change to each subscriber: it is sent after the next one.
    pub book_swapped: Option<String>,
    /// Each book change to each subscriber: it is not sent.
    pub book_dropped: Option<String>,
    /// Each second: the venue closes all connections and refuses new ones.
    pub maintenance: Option<String>,
    /// Duration of a half-open connection.
    pub half_open_for: Option<Duration>,
    /// Duration of maintenance.
    pub maintenance_for: Option<Duration>,
    /// Delay of a slow reply.
    pub reply_delay: Option<Duration>,
    /// Time after 08:00 UTC during which order requests are rejected with 10041; none when absent.
    pub settlement_for: Option<Duration>,
}

/// Default durations of a half-open connection, of maintenance and of a reply delay.
const HALF_OPEN_FOR: Duration = Duration(Nanos::from_secs(60));
const MAINTENANCE_FOR: Duration = Duration(Nanos::from_secs(5));
const REPLY_DELAY: Duration = Duration(Nanos::from_millis(500));

impl FaultsConfig {
    /// Returns the checked fault plan of a front at these addresses.
    ///
    /// # Errors
    /// [`ConfigError::Value`] for an invalid chance, or for faults on a front that other machines can reach.
    pub(super) fn plan(
        &self,
        addresses: impl IntoIterator<Item = SocketAddrV4>,
    ) -> Result<FaultPlan, ConfigError> {
        let micros = |given: Option<Duration>, otherwise: Duration| given.unwrap_or(otherwise).0.0 / 1_000;
        let mut plan = FaultPlan {
            seed: self.seed,
            half_open_us: micros(self.half_open_for, HALF_OPEN_FOR),
            maintenance_us: micros(self.maintenance_for, MAINTENANCE_FOR),
            reply_delay_us: micros(self.reply_delay, REPLY_DELAY),
            settlement_us: micros(self.settlement_for, Duration(Nanos::ZERO)),
            ..FaultPlan::default()
        };
        for (kind, chance) in self.chances() {
            let Some(chance) = chance else { continue };
            let name = format!("faults.{}", kind.key());
            let part = ppm(&name, chance)?;
            plan.ppm[kind as usize] =
                u32::try_from(part).map_err(|_| value(format!("{name}: '{chance}' must be 0 to 1")))?;
        }
        let mut others = addresses.into_iter().filter(|address| !address.ip().is_loopback());
        if (plan.settlement_us > 0 || plan.ppm.iter().any(|ppm| *ppm > 0))
            && let Some(address) = others.next()
        {
            return Err(value(format!(
                "faults are for this machine alone and {address} is not the loopback interface: remove [deribit.faults]"
            )));
        }
        Ok(plan)
    }

    fn chances(&self) -> [(FaultKind, &Option<String>); FaultKind::ALL.len()] {
        [
            (FaultKind::Cut, &self.cut),
            (FaultKind::HalfOpen, &self.half_open),
            (FaultKind::RequestLost, &self.request_lost),
            (FaultKind::ReplyCut, &self.reply_cut),
            (FaultKind::ReplyLost, &self.reply_lost),
            (FaultKind::ReplySlow, &self.reply_slow),
            (FaultKind::RateLimited, &self.rate_limited),
            (FaultKind::Refused, &self.refused),
            (FaultKind::TokenExpired, &self.token_expired),
            (FaultKind::TokensRevoked, &self.tokens_revoked),
            (FaultKind::LogonRefused, &self.logon_refused),
            (FaultKind::HeartbeatMissed, &self.heartbeat_missed),
            (FaultKind::BookDuplicated, &self.book_duplicated),
            (FaultKind::BookSwapped, &self.book_swapped),
            (FaultKind::BookDropped, &self.book_dropped),
            (FaultKind::Maintenance, &self.maintenance),
        ]
    }
}
