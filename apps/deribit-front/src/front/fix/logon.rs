//! Logon and logout by FIX.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use tickpath_deribit::sign::SIGNATURE_VALID_MS;
use tickpath_fix::deribit::{Credentials, LogonClock, NONCE_LEN_MAX, NONCE_LEN_MIN, timestamp_of, verify};
use tickpath_fix::session::{LogonDecision, Logout};
use tickpath_fix::{Body, Message};

use super::Front;
use crate::config::FrontSettings;
use crate::faults::FaultKind;
use crate::front::MAINTENANCE;
use crate::record::Record;

/// Clocks that refuse what may have been used before the start: signatures are good for a minute.
pub(super) fn clocks(settings: &FrontSettings, now_us: u64) -> Vec<LogonClock> {
    let first = (now_us / 1_000).saturating_sub(SIGNATURE_VALID_MS);
    vec![LogonClock::after(first); settings.keys.len()]
}

impl Front {
    pub(super) fn decide_fix_logon(&mut self, number: u64, message: &Message<'_>) {
        let decision = match self.log_on_by_fix(number, message) {
            Ok(()) => {
                self.counters.logins.add(1);
                LogonDecision::Accept
            }
            Err(why) => {
                self.counters.logins_refused.add(1);
                LogonDecision::Refuse(why)
            }
        };
        self.with_session(number, |session, now, inbox| session.decide_logon(now, decision, inbox));
    }

    /// Who the client is, if it shows it; the connection then acts for its account.
    fn log_on_by_fix(&mut self, number: u64, message: &Message<'_>) -> Result<(), &'static str> {
        if self.maintenance().is_some() {
            return Err(MAINTENANCE);
        }
        let credentials = Credentials::decode(message).map_err(|_| "a field of the Logon is wrong")?;
        let username = credentials.username.ok_or("Username (553) is missing")?;
        let raw_data = credentials.raw_data.ok_or("RawData (96) is missing")?;
        let password = credentials.password.ok_or("Password (554) is missing")?;
        if credentials.use_wordsafe_tags == Some(true) {
            return Err("UseWordsafeTags (9002) is not supported");
        }
        if credentials.app_id.is_some() {
            return Err("DeribitAppId (9004): no applications are registered here");
        }
        let key = self.settings.keys.iter().position(|key| key.client_id == username);
        let key = key.ok_or("invalid_credentials")?;
        let timestamp = timestamp_of(raw_data).ok_or("RawData (96) is no timestamp.nonce")?;
        let nonce = raw_data.split_once('.').map_or("", |(_, nonce)| nonce);
        let nonce_len = STANDARD.decode(nonce).map_err(|_| "the nonce of RawData (96) is no base64")?.len();
        if !(NONCE_LEN_MIN..=NONCE_LEN_MAX).contains(&nonce_len) {
            return Err("the nonce of RawData (96) has not 32 to 512 bytes");
        }
        if !verify(raw_data, self.settings.keys[key].secret.as_bytes(), password.as_bytes()) {
            return Err("invalid_credentials");
        }
        if timestamp > self.now_ms() + SIGNATURE_VALID_MS {
            return Err("unauthorized: the timestamp of RawData (96) is in the future");
        }
        if self.faults.happens(FaultKind::LogonRefused) {
            return Err("temporarily_unavailable");
        }
        if timestamp + SIGNATURE_VALID_MS < self.now_ms() {
            return Err("unauthorized: the timestamp of RawData (96) is more than a minute old");
        }
        let account = self.settings.keys[key].account;
        let peer = self.link(number).map(|link| *link.session.peer()).unwrap_or_default();
        let is_taken = self.fix.up.values().any(|(own, name)| *own == account && *name == peer);
        if is_taken {
            return Err("a session of this SenderCompID is logged on already");
        }
        if !self.fix.clocks[key].admit(timestamp) {
            return Err("unauthorized: the timestamp of RawData (96) must be above the last one's");
        }
        self.write_down(Record::FixLogon { client_id: username.to_owned(), timestamp_ms: timestamp });
        let cancels = self.accounts[account].cancels_on_disconnect;
        if let Some(connection) = self.connections.get_mut(&number) {
            connection.account = Some(account);
            connection.scope = self.settings.keys[key].scope.clone();
            connection.cancels_on_disconnect = credentials.cancel_on_disconnect.unwrap_or(cancels);
            if let Some(link) = connection.fix.as_deref_mut() {
                link.is_unsubscribed = credentials.unsubscribe_execution_reports == Some(true);
                link.is_own_only = credentials.connection_only_execution_reports == Some(true);
                link.has_fills_apart = credentials.report_fills_as_exec_reports == Some(true);
            }
        }
        self.fix.up.insert(number, (account, peer));
        Ok(())
    }

    /// A Logon of before a restart is not good again.
    pub(in crate::front) fn take_fix_logon(&mut self, client_id: &str, timestamp_ms: u64) {
        let keys = self.settings.keys.iter();
        for (clock, _) in self.fix.clocks.iter_mut().zip(keys).filter(|(_, key)| key.client_id == client_id) {
            clock.admit(timestamp_ms);
        }
    }

    /// A client logs out: with cancel on disconnect its orders go at once, unless it says otherwise.
    pub(super) fn log_out_fix(&mut self, number: u64, message: &Message<'_>) {
        let keeps =
            Logout::decode(message).is_ok_and(|logout| logout.dont_cancel_on_disconnect == Some(true));
        self.leave_fix(number);
        if let Some(connection) = self.connections.get_mut(&number) {
            let cancels = std::mem::take(&mut connection.cancels_on_disconnect) && !keeps;
            if cancels {
                self.cancel_on_disconnect_of(number);
            }
        }
    }
}
