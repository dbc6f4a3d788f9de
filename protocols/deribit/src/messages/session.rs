//! Session messages: authentication, heartbeats, subscriptions, cancel on disconnect.

use crate::codes::{CancelOnDisconnectScope, GrantType};
use crate::field::{Field, List, message};
use crate::scan::{ScanError, Scanner};
use crate::text::{Secret, Text};

/// Params of a method without params; any that a client sends are ignored.
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
    /// Params of `public/auth`. The grant type determines which are needed.
    pub struct Auth<'a> {
        /// Authentication method.
        pub grant_type: GrantType,
        /// Id of the key.
        pub client_id: Option<Text<'a>>,
        /// Secret of the key; for `client_credentials`.
        pub client_secret: Option<Secret<'a>>,
        /// Token of an earlier reply; for `refresh_token`.
        pub refresh_token: Option<Secret<'a>>,
        /// Milliseconds since 1970, valid for 60 s; for `client_signature`.
        pub timestamp: Option<u64>,
        /// Lowercase hexadecimal, see [`sign`](crate::sign); for `client_signature`.
        pub signature: Option<Secret<'a>>,
        /// Text that is used only once; for `client_signature`.
        pub nonce: Option<Text<'a>>,
        /// Additional signed data, may be empty; for `client_signature`.
        pub data: Option<Text<'a>>,
        /// Echoed state.
        pub state: Option<Text<'a>>,
        /// Requested scope of the token, separated by spaces.
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

    /// Authenticates with id and secret.
    #[must_use]
    pub const fn credentials(client_id: &'a str, client_secret: &'a str) -> Auth<'a> {
        Auth {
            client_id: Some(Text::new(client_id)),
            client_secret: Some(Secret::new(client_secret)),
            ..Auth::of(GrantType::ClientCredentials)
        }
    }

    /// Authenticates with a signature of [`client_signature`](crate::sign::client_signature) over empty data.
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

    /// Authenticates with the refresh token of an earlier reply, which is then invalid.
    #[must_use]
    pub const fn refresh(refresh_token: &'a str) -> Auth<'a> {
        Auth { refresh_token: Some(Secret::new(refresh_token)), ..Auth::of(GrantType::RefreshToken) }
    }
}

message! {
    /// Result of `public/auth`.
    pub struct AuthResult<'a> {
        /// Token for requests on other connections.
        pub access_token: Secret<'a>,
        /// Always `bearer`.
        pub token_type: Option<Text<'a>>,
        /// Seconds until the token expires.
        pub expires_in: u64,
        /// Token for the next authentication.
        pub refresh_token: Secret<'a>,
        /// Granted scope; it may be narrower than the requested one.
        pub scope: Text<'a>,
        /// Features of the account.
        pub enabled_features: Option<List<'a, Text<'a>>>,
        /// Session id.
        pub sid: Option<Text<'a>>,
        /// State of the request.
        pub state: Option<Text<'a>>,
    }
}

message! {
    /// Params of `private/logout`, which has no response.
    pub struct Logout {
        /// Invalidate the tokens as well (the default).
        pub invalidate_token: Option<bool>,
    }
}

message! {
    /// Params of `public/hello`.
    pub struct Hello<'a> {
        /// Name of the program.
        pub client_name: Text<'a>,
        /// Version of the program.
        pub client_version: Text<'a>,
    }
}

message! {
    /// Params of `public/test`, the reply to a test request.
    pub struct Test<'a> {
        /// `exception` requests an error.
        pub expected_result: Option<Text<'a>>,
    }
}

message! {
    /// Result of `public/hello` and `public/test`.
    pub struct Version<'a> {
        /// Version of the API.
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
    /// Minimum interval that the server accepts, in seconds.
    pub const INTERVAL_MIN: u32 = 10;
}

message! {
    /// Params of `public/subscribe` and of every unsubscribe method; the result lists the channels concerned.
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
        /// Label of every notification; at most 16 characters.
        pub label: Option<Text<'a>>,
    }
}

message! {
    /// Params of `private/enable_cancel_on_disconnect`, `disable_...` and `get_...`.
    pub struct SetCancelOnDisconnect {
        /// Scope; this connection by default.
        pub scope: Option<CancelOnDisconnectScope>,
    }
}

message! {
    /// Result of `private/get_cancel_on_disconnect`.
    pub struct CancelOnDisconnect {
        /// Scope.
        pub scope: CancelOnDisconnectScope,
        /// True if a disconnect cancels orders.
        pub enabled: bool,
    }
}
