//! Logon: authentication of a client by a hash of a time, a nonce and its secret.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use sha2::{Digest, Sha256};

use crate::body::message;

/// Length of a password: base64 of 32 bytes.
pub const PASSWORD_LEN: usize = 44;
/// Minimum number of random bytes in a nonce.
pub const NONCE_LEN_MIN: usize = 32;
/// Maximum number of random bytes in a nonce.
pub const NONCE_LEN_MAX: usize = 512;
/// Maximum length of RawData: 20 digits, a point, and the nonce in base64.
pub const RAW_DATA_LEN_MAX: usize = 20 + 1 + NONCE_LEN_MAX.div_ceil(3) * 4;

message! {
    /// Fields of a client's Logon (`A`), except the heartbeat interval, which the session writes.
    Credentials<'a> = LOGON
    {}
    {
        /// Length of RawData; required by the standard, but not by Deribit.
        raw_data_length: u64 = RAW_DATA_LENGTH,
        /// `TIMESTAMP.NONCE`, see [`raw_data`]. Deribit sends no RawDataLength before it.
        raw_data: &'a str = RAW_DATA,
        /// The client's id.
        username: &'a str = USERNAME,
        /// Password, see [`password`].
        password: &'a str = PASSWORD,
        /// Whether orders are cancelled when the connection ends; if absent, the account setting applies.
        cancel_on_disconnect: bool = CANCEL_ON_DISCONNECT,
        /// Whether the venue's tags are below 10,000; not supported.
        use_wordsafe_tags: bool = USE_WORDSAFE_TAGS,
        /// Application id.
        app_id: &'a str = DERIBIT_APP_ID,
        /// base64(sha256(RawData ++ secret of the application)), see [`password`].
        app_sig: &'a str = DERIBIT_APP_SIG,
        /// Whether replies and notifications are in a single sequence.
        sequential: bool = DERIBIT_SEQUENTIAL,
        /// Whether unsolicited execution reports are suppressed.
        unsubscribe_execution_reports: bool = UNSUBSCRIBE_EXECUTION_REPORTS,
        /// Whether reports are limited to orders of this connection.
        connection_only_execution_reports: bool = CONNECTION_ONLY_EXECUTION_REPORTS,
        /// Whether each fill has a separate report.
        report_fills_as_exec_reports: bool = REPORT_FILLS_AS_EXEC_REPORTS,
        /// Whether instrument lists include tick size steps.
        display_increment_steps: bool = DISPLAY_INCREMENT_STEPS,
    }
    {}
}

/// The nonce has an invalid number of bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a nonce of {len} random bytes: give 32 to 512")]
pub struct NonceError {
    /// Number of bytes.
    pub len: usize,
}

/// Writes RawData: milliseconds since the Unix epoch, a point, and the nonce (random bytes) in base64.
///
/// Deribit rejects a timestamp that is not above the previous one: see [`LogonClock`].
///
/// # Errors
/// If the nonce does not have [`NONCE_LEN_MIN`] to [`NONCE_LEN_MAX`] bytes.
pub fn raw_data<'b>(
    timestamp_ms: u64,
    nonce: &[u8],
    out: &'b mut [u8; RAW_DATA_LEN_MAX],
) -> Result<&'b str, NonceError> {
    if !(NONCE_LEN_MIN..=NONCE_LEN_MAX).contains(&nonce.len()) {
        return Err(NonceError { len: nonce.len() });
    }
    let mut digits = itoa::Buffer::new();
    let digits = digits.format(timestamp_ms).as_bytes();
    out[..digits.len()].copy_from_slice(digits);
    out[digits.len()] = b'.';
    let start = digits.len() + 1;
    let len = STANDARD.encode_slice(nonce, &mut out[start..]).expect("the buffer holds the longest nonce");
    Ok(std::str::from_utf8(&out[..start + len]).expect("digits and base64 are text"))
}

/// Timestamp in RawData, in milliseconds since the Unix epoch; `None` if it is not `TIMESTAMP.NONCE`.
#[must_use]
pub fn timestamp_of(raw_data: &str) -> Option<u64> {
    use crate::field::Value;
    let (timestamp, nonce) = raw_data.split_once('.')?;
    (!nonce.is_empty()).then(|| u64::read(timestamp.as_bytes())).flatten()
}

/// base64(sha256(RawData ++ secret)): proof that the client has the secret.
#[must_use]
pub fn password(raw_data: &str, secret: &[u8]) -> [u8; PASSWORD_LEN] {
    let digest = Sha256::new().chain_update(raw_data).chain_update(secret).finalize();
    let mut out = [0; PASSWORD_LEN];
    STANDARD.encode_slice(digest, &mut out).expect("44 bytes hold base64 of 32");
    out
}

/// Verifies a password for this RawData and secret, in constant time.
#[must_use]
pub fn verify(raw_data: &str, secret: &[u8], given: &[u8]) -> bool {
    let expected = password(raw_data, secret);
    let difference = expected.iter().zip(given).fold(0, |all, (a, b)| all | (a ^ b));
    given.len() == PASSWORD_LEN && difference == 0
}

/// Timestamps that increase with every logon, even within a millisecond or after a clock adjustment.
#[derive(Clone, Copy, Debug, Default)]
pub struct LogonClock {
    last_ms: u64,
}

impl LogonClock {
    /// Creates a clock with timestamps above `last_ms`, in milliseconds since the Unix epoch.
    #[must_use]
    pub const fn after(last_ms: u64) -> LogonClock {
        LogonClock { last_ms }
    }

    /// Returns the timestamp of a logon at `now_ms`.
    pub fn next(&mut self, now_ms: u64) -> u64 {
        self.last_ms = now_ms.max(self.last_ms.saturating_add(1));
        self.last_ms
    }

    /// For a venue: accepts a client's timestamp if it is above the previous one, and stores the maximum.
    pub fn admit(&mut self, timestamp_ms: u64) -> bool {
        let is_later = timestamp_ms > self.last_ms;
        self.last_ms = self.last_ms.max(timestamp_ms);
        is_later
    }
}
