//! Who is there: authentication, heartbeats, subscriptions, cancel on disconnect.

use crate::codes::{CancelOnDisconnectScope, GrantType};
use crate::field::{Field, List, message};
use crate::scan::{ScanError, Scanner};
use crate::text::{Secret, Text};

/// Params of a method that has none; those that are sent all the same are passed over.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NoParams {}

impl<'a> Field<'a> for NoParams {
    fn read(scanner: &mut Scanner<'a>) -> Result<Self, ScanError> {
        scanner.open_object()?;
        while scanner.next_key()?.is_some() {
            scanner.skip()?;
        }
        Ok(NoParams {})
    }

    fn write(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(b"{}");
    }
}

message! {
    /// Params of `public/auth`. Which are needed depends on the grant.
    pub struct Auth<'a> {
        /// The way of showing who one is.
        pub grant_type: GrantType,
        /// The key's id.
        pub client_id: Option<Text<'a>>,
        /// The key's secret; of `client_credentials`.
        pub client_secret: Option<Secret<'a>>,
        /// The token of an earlier reply; of `refresh_token`.
        pub refresh_token: Option<Secret<'a>>,
        /// Milliseconds since 1970, valid for 60 s; of `client_signature`.
        pub timestamp: Option<u64>,
        /// Lowercase hexadecimal, see [`sign`](crate::sign); of `client_signature`.
        pub signature: Option<Secret<'a>>,
        /// A text used once; of `client_signature`.
        pub nonce: Option<Text<'a>>,
        /// Signed as well, may be empty; of `client_signature`.
        pub data: Option<Text<'a>>,
        /// Echoed.
        pub state: Option<Text<'a>>,
        /// What the token is to allow, separated by spaces.
        pub scope: Option<Text<'a>>,
    }
}

impl<'a> Auth<'a> {
    const fn of(grant_type: GrantType) -> Auth<'a> {
        Auth {
            grant_type,
            client_id: None,
            client_secret: None,
            refresh_token: None,
            timestamp: None,
            signature: None,
            nonce: None,
            data: None,
            state: None,
            scope: None,
        }
    }

    /// By id and secret.
    #[must_use]
    pub const fn credentials(client_id: &'a str, client_secret: &'a str) -> Auth<'a> {
        Auth {
            client_id: Some(Text::new(client_id)),
            client_secret: Some(Secret::new(client_secret)),
            ..Auth::of(GrantType::ClientCredentials)
        }
    }

    /// By id and a signature of [`sign::client_signature`](crate::sign::client_signature) over empty data.
    #[must_use]
    pub const fn signature(
        client_id: &'a str,
        timestamp: u64,
        nonce: &'a str,
        signature: &'a str,
    ) -> Auth<'a> {
        Auth {
            client_id: Some(Text::new(client_id)),
            timestamp: Some(timestamp),
            nonce: Some(Text::new(nonce)),
            data: Some(Text::new("")),
            signature: Some(Secret::new(signature)),
            ..Auth::of(GrantType::ClientSignature)
        }
    }

    /// By the refresh token of an earlier reply, which is then used up.
    #[must_use]
    pub const fn refresh(refresh_token: &'a str) -> Auth<'a> {
        Auth { refresh_token: Some(Secret::new(refresh_token)), ..Auth::of(GrantType::RefreshToken) }
    }
}

message! {
    /// Result of `public/auth`.
    pub struct AuthResult<'a> {
        /// Shown with later requests on other connections.
        pub access_token: Secret<'a>,
        /// Always `bearer`.
        pub token_type: Option<Text<'a>>,
        /// Seconds until the token ends.
        pub expires_in: u64,
        /// For the next authentication.
        pub refresh_token: Secret<'a>,
        /// What the token allows; it may be less than was asked for.
        pub scope: Text<'a>,
        /// Features of the account.
        pub enabled_features: Option<List<'a, Text<'a>>>,
        /// Session id.
        pub sid: Option<Text<'a>>,
        /// The request's.
        pub state: Option<Text<'a>>,
    }
}

message! {
    /// Params of `private/logout`, which has no response.
    pub struct Logout {
        /// Ends the tokens too (the default).
        pub invalidate_token: Option<bool>,
    }
}

message! {
    /// Params of `public/hello`.
    pub struct Hello<'a> {
        /// The program.
        pub client_name: Text<'a>,
        /// Its version.
        pub client_version: Text<'a>,
    }
}

message! {
    /// Params of `public/test`, the answer to a test request.
    pub struct Test<'a> {
        /// `exception` asks for an error.
        pub expected_result: Option<Text<'a>>,
    }
}

message! {
    /// Result of `public/hello` and `public/test`.
    pub struct Version<'a> {
        /// The API's version.
        pub version: Text<'a>,
    }
}

message! {
    /// Params of `public/set_heartbeat`.
    pub struct SetHeartbeat {
        /// Seconds between heartbeats, 10 or more.
        pub interval: u32,
    }
}

impl SetHeartbeat {
    /// The least interval that the server takes, in seconds.
    pub const INTERVAL_MIN: u32 = 10;
}

message! {
    /// Params of `public/subscribe` and of every unsubscribe; the result is the list of channels that it was done for.
    pub struct Subscribe<'a> {
        /// The channels, see [`Channel`](crate::channel::Channel).
        pub channels: List<'a, Text<'a>>,
    }
}

message! {
    /// Params of `private/subscribe`.
    pub struct PrivateSubscribe<'a> {
        /// The channels.
        pub channels: List<'a, Text<'a>>,
        /// Given with every notification; at most 16 characters.
        pub label: Option<Text<'a>>,
    }
}

message! {
    /// Params of `private/enable_cancel_on_disconnect`, `disable_...` and `get_...`.
    pub struct SetCancelOnDisconnect {
        /// Whose disconnect; this connection's by default.
        pub scope: Option<CancelOnDisconnectScope>,
    }
}

message! {
    /// Result of `private/get_cancel_on_disconnect`.
    pub struct CancelOnDisconnect {
        /// Whose disconnect.
        pub scope: CancelOnDisconnectScope,
        /// True when it cancels orders.
        pub enabled: bool,
    }
}
