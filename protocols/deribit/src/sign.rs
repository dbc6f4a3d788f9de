//! Client signatures: `client_signature` over a WebSocket, `deri-hmac-sha256` over HTTP.
//!
//! Time and nonce are arguments. A secret is borrowed for the call and not stored.

use std::fmt;

use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

type HmacSha256 = Hmac<Sha256>;

/// Length of a signature in hexadecimal.
pub const SIGNATURE_LEN: usize = 64;
/// Validity of a signature after its timestamp, in milliseconds.
pub const SIGNATURE_VALID_MS: u64 = 60_000;

/// A signature in lowercase hexadecimal. `Debug` does not show it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Signature([u8; SIGNATURE_LEN]);

impl Signature {
    /// Hexadecimal text of the signature.
    #[must_use]
    pub fn as_str(&self) -> &str {
        std::str::from_utf8(&self.0).expect("hexadecimal digits are ASCII")
    }

    fn of(mac: HmacSha256) -> Signature {
        const HEX: &[u8; 16] = b"0123456789abcdef";
        let mut text = [0; SIGNATURE_LEN];
        for (pair, byte) in text.chunks_exact_mut(2).zip(mac.finalize().into_bytes()) {
            pair.copy_from_slice(&[HEX[usize::from(byte >> 4)], HEX[usize::from(byte & 15)]]);
        }
        Signature(text)
    }
}

impl fmt::Debug for Signature {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[signature]")
    }
}

/// Signs for `public/auth`: timestamp, nonce and data, one line each, the last without a line end.
///
/// ```
/// use tickpath_deribit::sign::client_signature;
///
/// let signature = client_signature(b"AMANDASECRECT", 1_576_074_319_000, "1iqt2wls", "");
/// assert_eq!(signature.as_str(), "56590594f97921b09b18f166befe0d1319b198bbcdad7ca73382de2f88fe9aa1");
/// ```
#[must_use]
pub fn client_signature(secret: &[u8], timestamp_ms: u64, nonce: &str, data: &str) -> Signature {
    Signature::of(client_mac(secret, timestamp_ms, nonce, data))
}

/// Verifies a signature of [`client_signature`], in constant time for any wrong one.
#[must_use]
pub fn verify_client_signature(
    secret: &[u8],
    timestamp_ms: u64,
    nonce: &str,
    data: &str,
    signature: &str,
) -> bool {
    let digit = |byte: u8| (byte as char).to_digit(16).filter(|_| !byte.is_ascii_uppercase());
    let mut bytes = [0; SIGNATURE_LEN / 2];
    if signature.len() != SIGNATURE_LEN {
        return false;
    }
    for (byte, pair) in bytes.iter_mut().zip(signature.as_bytes().chunks_exact(2)) {
        let (Some(high), Some(low)) = (digit(pair[0]), digit(pair[1])) else { return false };
        *byte = (high * 16 + low) as u8;
    }
    client_mac(secret, timestamp_ms, nonce, data).verify_slice(&bytes).is_ok()
}

fn keyed(secret: &[u8], timestamp_ms: u64, nonce: &str) -> HmacSha256 {
    let mut mac = HmacSha256::new_from_slice(secret).expect("a key of any length is good");
    mac.update(itoa::Buffer::new().format(timestamp_ms).as_bytes());
    mac.update(b"\n");
    mac.update(nonce.as_bytes());
    mac.update(b"\n");
    mac
}

fn client_mac(secret: &[u8], timestamp_ms: u64, nonce: &str, data: &str) -> HmacSha256 {
    let mut mac = keyed(secret, timestamp_ms, nonce);
    mac.update(data.as_bytes());
    mac
}

/// An HTTP request to sign.
#[derive(Clone, Copy)]
pub struct HttpRequest<'a> {
    /// `GET` or `POST`.
    pub method: &'a str,
    /// Path and query, starting with the slash.
    pub uri: &'a str,
    /// Request body; may be empty.
    pub body: &'a [u8],
}

/// Signs an HTTP request: timestamp, nonce, method, path with query, and body, one line each.
#[must_use]
pub fn http_signature(secret: &[u8], timestamp_ms: u64, nonce: &str, request: HttpRequest<'_>) -> Signature {
    let mut mac = keyed(secret, timestamp_ms, nonce);
    for part in [request.method.as_bytes(), request.uri.as_bytes(), request.body] {
        mac.update(part);
        mac.update(b"\n");
    }
    Signature::of(mac)
}

/// Appends the value of the `Authorization` header of a signed request.
pub fn write_authorization(
    client_id: &str,
    timestamp_ms: u64,
    nonce: &str,
    signature: &Signature,
    out: &mut Vec<u8>,
) {
    for part in [
        "deri-hmac-sha256 id=",
        client_id,
        ",ts=",
        itoa::Buffer::new().format(timestamp_ms),
        ",nonce=",
        nonce,
        ",sig=",
        signature.as_str(),
    ] {
        out.extend_from_slice(part.as_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECRET: &[u8] = b"AMANDASECRECT";
    const TIMESTAMP: u64 = 1_576_074_319_000;
    const NONCE: &str = "1iqt2wls";

    #[test]
    fn signatures_are_verified_and_others_refused() {
        let signature = client_signature(SECRET, TIMESTAMP, NONCE, "data");
        let verify = |nonce, data, text: &str| verify_client_signature(SECRET, TIMESTAMP, nonce, data, text);
        let good = signature.as_str();
        assert!(verify(NONCE, "data", good));
        assert!(!verify(NONCE, "", good) && !verify("other", "data", good));
        assert!(!verify(NONCE, "data", &good.to_uppercase()) && !verify(NONCE, "data", &good[1..]));
        assert!(!verify(NONCE, "data", &"\u{e9}".repeat(32)) && !verify(NONCE, "data", &"g".repeat(64)));
        assert_eq!(format!("{signature:?}"), "[signature]");
    }

    #[test]
    fn http_requests_are_signed_with_their_lines() {
        let request =
            HttpRequest { method: "GET", uri: "/api/v2/private/get_positions?currency=BTC", body: b"" };
        let signature = http_signature(SECRET, TIMESTAMP, NONCE, request);
        let lines = "GET\n/api/v2/private/get_positions?currency=BTC\n\n";
        assert_eq!(signature, client_signature(SECRET, TIMESTAMP, NONCE, lines));
        let mut header = Vec::new();
        write_authorization("AMANDA", TIMESTAMP, NONCE, &signature, &mut header);
        let text = String::from_utf8(header).unwrap();
        assert_eq!(
            text,
            format!("deri-hmac-sha256 id=AMANDA,ts=1576074319000,nonce=1iqt2wls,sig={}", signature.as_str())
        );
    }
}
