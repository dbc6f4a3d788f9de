//! FIX Logon and Logout.

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
use crate::front::peers::PublicPool;
use crate::front::waiting_logins::Shown;
use crate::record::Record;

const BAD_FIELD: &str = "a field of the Logon is wrong";
const TAKEN: &str = "a session of another key is logged on as this SenderCompID";
/// Logout text for a session whose client logged on again.
const TAKEN_OVER: &str = "another Logon has this SenderCompID (49): this session is over";

/// Creates a guard per key against replayed Logons. It rejects timestamps whose signatures have expired; the records
/// of earlier Logons raise it to the last accepted one.
pub(super) fn clocks(settings: &FrontSettings, now_us: u64) -> Vec<LogonClock> {
    let first = (now_us / 1_000).saturating_sub(SIGNATURE_VALID_MS);
    vec![LogonClock::after(first); settings.keys.len()]
}

/// Verified signer of a Logon.
struct Signer {
    /// Place of the signing key.
    key: usize,
    timestamp: u64,
}

impl Front {
    pub(super) fn decide_fix_logon(&mut self, number: u64, message: &Message<'_>) {
        let named = self.key_of_logon(message);
        match self.put_off(number, named, || Shown::Fix(message.as_bytes().to_vec())) {
            Ok(true) => {}
            Ok(false) => self.check_fix_logon(number, message),
            Err(fault) => self.answer_logon(number, LogonDecision::Refuse(fault.code.message())),
        }
    }

    /// Checks a Logon that is not, or no longer, postponed.
    pub(in crate::front) fn check_fix_logon(&mut self, number: u64, message: &Message<'_>) {
        let decision = match self.log_on_by_fix(number, message, self.key_of_logon(message)) {
            Ok(()) => {
                self.counters.logins.add(1);
                LogonDecision::Accept
            }
            Err(why) => {
                self.counters.logins_refused.add(1);
                LogonDecision::Refuse(why)
            }
        };
        self.answer_logon(number, decision);
    }

    fn answer_logon(&mut self, number: u64, decision: LogonDecision) {
        self.with_session(number, |session, now, inbox| session.decide_logon(now, decision, inbox));
    }

    fn key_of_logon(&self, message: &Message<'_>) -> Option<usize> {
        Credentials::decode(message).ok().and_then(|shown| self.key_named(shown.username?))
    }

    /// Authenticates the client and logs the connection on to its account.
    fn log_on_by_fix(
        &mut self,
        number: u64,
        message: &Message<'_>,
        named: Option<usize>,
    ) -> Result<(), &'static str> {
        if self.maintenance().is_some() {
            return Err(MAINTENANCE);
        }
        let Signer { key, timestamp } = match self.shown_key(message) {
            Ok(shown) => shown,
            Err(why) => {
                // A failed Logon costs credits, which bounds the number of guesses.
                self.charge_refused(number, PublicPool::RefusedLogin(named))
                    .map_err(|fault| fault.code.message())?;
                return Err(why);
            }
        };
        self.trust(number, key);
        if self.faults.happens(FaultKind::LogonRefused) {
            return Err("temporarily_unavailable");
        }
        let credentials = Credentials::decode(message).map_err(|_| BAD_FIELD)?;
        let account = self.settings.keys[key].account;
        let peer = self.link(number).map(|link| *link.session.peer()).unwrap_or_default();
        let mut others = self.fix.up.iter();
        let holder =
            others.find(|(_, (own, name))| *own == account && *name == peer).map(|(holder, _)| *holder);
        if holder.and_then(|holder| self.link(holder)).is_some_and(|link| link.key != key) {
            return Err(TAKEN);
        }
        if !self.fix.clocks[key].admit(timestamp) {
            return Err("unauthorized: the timestamp of RawData (96) must be above the last one's");
        }
        if let Some(holder) = holder {
            self.take_over(holder);
        }
        self.write_down(Record::FixLogon {
            client_id: self.settings.keys[key].client_id.clone(),
            timestamp_ms: timestamp,
        });
        let cancels = self.accounts[account].cancels_on_disconnect;
        if let Some(connection) = self.connections.get_mut(&number) {
            connection.account = Some(account);
            connection.scope = self.settings.keys[key].scope.clone();
            connection.cancels_on_disconnect = credentials.cancel_on_disconnect.unwrap_or(cancels);
            if let Some(link) = connection.fix.as_deref_mut() {
                link.key = key;
                link.is_unsubscribed = credentials.unsubscribe_execution_reports == Some(true);
                link.is_own_only = credentials.connection_only_execution_reports == Some(true);
                link.has_fills_apart = credentials.report_fills_as_exec_reports == Some(true);
            }
        }
        self.fix.up.insert(number, (account, peer));
        Ok(())
    }

    /// Verifies the signature of a Logon; returns its key and timestamp.
    fn shown_key(&self, message: &Message<'_>) -> Result<Signer, &'static str> {
        let credentials = Credentials::decode(message).map_err(|_| BAD_FIELD)?;
        let username = credentials.username.ok_or("Username (553) is missing")?;
        let raw_data = credentials.raw_data.ok_or("RawData (96) is missing")?;
        let password = credentials.password.ok_or("Password (554) is missing")?;
        if credentials.use_wordsafe_tags == Some(true) {
            return Err("UseWordsafeTags (9002) is not supported");
        }
        if credentials.app_id.is_some() {
            return Err("DeribitAppId (9004): no applications are registered here");
        }
        let key = self.key_named(username).ok_or("invalid_credentials")?;
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
        if timestamp + SIGNATURE_VALID_MS < self.now_ms() {
            return Err("unauthorized: the timestamp of RawData (96) is more than a minute old");
        }
        Ok(Signer { key, timestamp })
    }

    /// Ends the previous session of a client that logs on again: its connection is lost or no longer needed.
    /// With cancel on disconnect this cancels its orders.
    fn take_over(&mut self, holder: u64) {
        self.end_orders_of_fix(holder, false);
        self.with_session(holder, |session, now, _| session.end(now, TAKEN_OVER));
    }

    /// Restores the clock of a key, so that Logons from before a restart cannot be replayed.
    pub(in crate::front) fn take_fix_logon(&mut self, client_id: &str, timestamp_ms: u64) {
        let keys = self.settings.keys.iter();
        for (clock, _) in self.fix.clocks.iter_mut().zip(keys).filter(|(_, key)| key.client_id == client_id) {
            clock.admit(timestamp_ms);
        }
    }

    /// Handles a Logout: cancel on disconnect applies at once, unless the client declines.
    pub(super) fn log_out_fix(&mut self, number: u64, message: &Message<'_>) {
        let keeps =
            Logout::decode(message).is_ok_and(|logout| logout.dont_cancel_on_disconnect == Some(true));
        self.end_orders_of_fix(number, keeps);
    }

    /// Ends the subscriptions of a session and applies its cancel on disconnect.
    fn end_orders_of_fix(&mut self, number: u64, keeps: bool) {
        self.leave_fix(number);
        if let Some(connection) = self.connections.get_mut(&number) {
            let cancels = std::mem::take(&mut connection.cancels_on_disconnect) && !keeps;
            if cancels {
                self.cancel_on_disconnect_of(number);
            }
        }
    }
}
