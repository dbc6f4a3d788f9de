//! Authentication of clients: keys, signatures and tokens.

use tickpath_deribit::codes::GrantType;
use tickpath_deribit::credits::CreditPool;
use tickpath_deribit::error_code::ErrorCode;
use tickpath_deribit::field::List;
use tickpath_deribit::messages::{Auth, AuthResult, ExchangeToken, ForkToken};
use tickpath_deribit::request::Request;
use tickpath_deribit::scan::Value;
use tickpath_deribit::sign::{
    HttpRequest, SIGNATURE_VALID_MS, client_signature, http_signature, verify_client_signature,
};
use tickpath_deribit::text::{Secret, Text};

use super::peers::PublicPool;
use super::tokens::{Grant, Tokens, digest_of};
use super::{Answer, Front};
use crate::connection::Transport;
use crate::fault::Fault;
use crate::json::{json, text_of};
use crate::record::{Record, RecordError, Stamped, Token};
use crate::scope::Scope;

/// Number of token lines beyond twice the live tokens at which the file is rewritten.
const TOKEN_LINES_SPARE: usize = 1_024;

/// Token lines to be written.
#[derive(Default)]
pub(super) struct TokenLines {
    added: Vec<u8>,
    /// True when these lines replace all stored lines.
    is_anew: bool,
    /// Number of stored lines, including these.
    count: usize,
}

impl Front {
    /// Returns true if the connection is authenticated.
    #[must_use]
    pub fn is_logged_in(&self, number: u64) -> bool {
        self.connections.get(&number).is_some_and(|connection| connection.account.is_some())
    }

    pub(super) fn authenticate(&mut self, number: u64, request: &Request<'_>) -> Answer {
        let auth: Auth<'_> = match request.params() {
            Ok(auth) => auth,
            Err(fault) => {
                self.charge_refused(number, PublicPool::Any)?;
                return Err(fault.into());
            }
        };
        let asked = auth.scope.map(|scope| Scope::parse(&scope.to_cow())).unwrap_or_default();
        let is_renewal = auth.grant_type == GrantType::RefreshToken;
        let named = auth.client_id.filter(|_| !is_renewal).and_then(|id| self.key_named(&id.to_cow()));
        let found = match auth.grant_type {
            GrantType::ClientCredentials => self.by_credentials(&auth),
            GrantType::ClientSignature => self.by_signature(&auth),
            _ => self.by_refresh_token(number, &auth),
        };
        let (key, before) = match found {
            Ok(found) => found,
            Err(fault) => {
                self.counters.logins_refused.add(1);
                self.charge_refused(number, PublicPool::RefusedLogin(named))?;
                return Err(fault);
            }
        };
        if !is_renewal {
            self.trust(number, key);
        }
        // A valid login is charged to the account only, so other clients cannot exhaust its credits.
        let account = self.settings.keys[key].account;
        self.charge(number, Some(account), CreditPool::NonMatching)?;
        let allowed = &self.settings.keys[key].scope;
        let scope = match before {
            Some(before) => before,
            None => allowed.narrowed(&asked),
        };
        self.grant(number, key, scope, auth.state)
    }

    /// Issues tokens and authenticates the connection for the account.
    fn grant(&mut self, number: u64, key: usize, scope: Scope, state: Option<Text<'_>>) -> Answer {
        let account = self.settings.keys[key].account;
        let expires_s = scope.expires_s.unwrap_or(u64::MAX).min(self.settings.token_expires_s);
        let is_http =
            self.connections.get(&number).is_none_or(|connection| connection.transport == Transport::Http);
        let (access, refresh) = (self.auth.make("access"), self.auth.make("refresh"));
        let now_us = self.now_us;
        let grant = |other: &str, is_refresh: bool| Grant {
            account,
            key,
            scope: scope.clone(),
            expires_us: now_us
                .saturating_add(expires_s.saturating_mul(1_000_000 * if is_refresh { 2 } else { 1 })),
            // An HTTP connection ends before its token is used.
            connection: Some(number).filter(|_| scope.session.is_none() && !is_http),
            other: other.to_owned(),
            is_refresh,
        };
        let [login, renewal] = [digest_of(&access), digest_of(&refresh)];
        let grants = [(login.clone(), grant(&renewal, false)), (renewal, grant(&login, true))];
        self.auth.keep(grants.clone(), now_us);
        for (digest, grant) in grants.iter().filter(|(_, grant)| grant.connection.is_none()) {
            self.write_token(&Record::Token(self.token_record(digest, grant)));
        }
        self.counters.logins.add(1);
        // Channels of another account must not continue.
        self.leave_private(number, |own| own == account);
        let cancels = self.accounts[account].cancels_on_disconnect;
        let text = scope.to_string();
        if let Some(connection) = self.connections.get_mut(&number) {
            // A client that renews its login has already chosen its cancel on disconnect setting.
            connection.cancels_on_disconnect |= cancels && connection.account != Some(account);
            connection.account = Some(account);
            connection.login = login;
            connection.login_until_us = now_us.saturating_add(expires_s.saturating_mul(1_000_000));
            connection.scope = scope;
        }
        Ok(Some(json(&AuthResult {
            access_token: Secret::new(&access),
            token_type: Some(Text::new("bearer")),
            expires_in: expires_s,
            refresh_token: Secret::new(&refresh),
            scope: Text::new(&text),
            enabled_features: Some(List::new(&[])),
            sid: None,
            state,
        })))
    }

    /// Ends the connection's login; with `and_renewal` also its refresh tokens.
    pub(super) fn end_login(&mut self, number: u64, and_renewal: bool) {
        self.auth.end_where(number, |grant| and_renewal || !grant.is_refresh);
        if let Some(connection) = self.connections.get_mut(&number) {
            connection.account = None;
        }
        self.leave_private(number, |_| false);
    }

    /// Ends the private subscriptions of expired logins and tokens.
    pub(super) fn end_expired_logins(&mut self) {
        let now_us = self.now_us;
        let mut over = Vec::new();
        for (number, connection) in &self.connections {
            let is_over = connection.account.is_some() && now_us >= connection.login_until_us;
            let is_good = |digest: &String| self.auth.good_until(digest, now_us).is_some();
            // A subscription by a valid token outlives the connection's own login.
            let has_token = |account: &usize| connection.shown.get(account).is_some_and(is_good);
            if is_over && !connection.topics.is_empty() {
                over.extend(
                    connection.account.filter(|account| !has_token(account)).map(|own| (*number, own)),
                );
            }
            let ended = connection.shown.iter().filter(|(_, digest)| !is_good(digest));
            // A subscription to the login's own account lasts as long as the login.
            let ended = ended.filter(|(account, _)| is_over || connection.account != Some(**account));
            over.extend(ended.map(|(account, _)| (*number, *account)));
        }
        for (number, account) in over {
            self.leave_private(number, |own| own != account);
        }
    }

    /// Records the token that authorised an account subscription; it may expire before the connection ends.
    pub(super) fn note_shown(&mut self, number: u64, account: usize, request: &Request<'_>) {
        let params: Option<Value<'_>> = request.params().ok();
        let Some(token) = params.and_then(|params| text_of(&params, "access_token")) else { return };
        let (now_us, digest) = (self.now_us, digest_of(&token));
        if let Some(connection) = self.connections.get_mut(&number) {
            let known = connection.shown.get(&account);
            // The token with the latest expiry applies to all subscriptions of the account.
            if known.and_then(|known| self.auth.good_until(known, now_us))
                < self.auth.good_until(&digest, now_us)
            {
                connection.shown.insert(account, digest);
            }
        }
    }

    /// Returns the place of a key.
    pub(super) fn key_named(&self, client_id: &str) -> Option<usize> {
        self.settings.keys.iter().position(|key| key.client_id == client_id)
    }

    fn find_key(&self, client_id: Option<Text<'_>>) -> Result<usize, Fault> {
        let id = client_id.ok_or(Fault::param("client_id", "value required"))?;
        self.key_named(&id.to_cow()).ok_or(Fault::new(ErrorCode::InvalidCredentials))
    }

    fn by_credentials(&self, auth: &Auth<'_>) -> Result<(usize, Option<Scope>), Fault> {
        let key = self.find_key(auth.client_id)?;
        let secret = auth.client_secret.ok_or(Fault::param("client_secret", "value required"))?;
        if self.is_secret(key, &secret.expose().to_cow()) {
            Ok((key, None))
        } else {
            Err(ErrorCode::InvalidCredentials.into())
        }
    }

    /// Checks a secret in constant time, by comparing signatures made with both.
    pub(super) fn is_secret(&self, key: usize, shown: &str) -> bool {
        let known = &self.settings.keys[key].secret;
        let signature = client_signature(shown.as_bytes(), 0, "", "");
        verify_client_signature(known.as_bytes(), 0, "", "", signature.as_str())
    }

    fn by_signature(&mut self, auth: &Auth<'_>) -> Result<(usize, Option<Scope>), Fault> {
        let key = self.find_key(auth.client_id)?;
        let timestamp = auth.timestamp.ok_or(Fault::param("timestamp", "value required"))?;
        let signature = auth.signature.ok_or(Fault::param("signature", "value required"))?;
        let text = |text: Option<Text<'_>>| text.map(|text| text.to_cow().into_owned()).unwrap_or_default();
        let (nonce, data) = (text(auth.nonce), text(auth.data));
        let secret = self.settings.keys[key].secret.as_bytes();
        let is_good = verify_client_signature(secret, timestamp, &nonce, &data, &signature.expose().to_cow());
        self.check_signature(key, is_good, timestamp, (&nonce, None))?;
        Ok((key, None))
    }

    fn check_signature(
        &mut self,
        key: usize,
        is_good: bool,
        timestamp: u64,
        (nonce, connection): (&str, Option<u64>),
    ) -> Result<(), Fault> {
        let now_ms = self.now_ms();
        if !is_good {
            return Err(Fault::because(ErrorCode::Unauthorized, "wrong signature"));
        }
        if now_ms.abs_diff(timestamp) > SIGNATURE_VALID_MS {
            return Err(Fault::because(ErrorCode::Unauthorized, "timestamp too old or too new"));
        }
        if nonce.is_empty() || !self.auth.use_nonce(key, nonce, connection, timestamp, now_ms) {
            return Err(Fault::because(ErrorCode::Unauthorized, "nonce was used before"));
        }
        Ok(())
    }

    fn by_refresh_token(&mut self, number: u64, auth: &Auth<'_>) -> Result<(usize, Option<Scope>), Fault> {
        let token = auth.refresh_token.ok_or(Fault::param("refresh_token", "value required"))?;
        let token = token.expose().to_cow();
        let grant = self.auth.find(&token, true, number, self.now_us);
        let grant = grant.cloned().ok_or(Fault::new(ErrorCode::Unauthorized))?;
        let digest = digest_of(&token);
        self.auth.end(&digest);
        if grant.connection.is_none() {
            self.write_token(&Record::TokenEnds { digest });
        }
        Ok((grant.key, Some(grant.scope)))
    }

    fn token_record(&self, digest: &str, grant: &Grant) -> Token {
        Token {
            digest: digest.to_owned(),
            other: grant.other.clone(),
            key: self.settings.keys[grant.key].client_id.clone(),
            scope: grant.scope.to_string(),
            expires_us: grant.expires_us,
            is_refresh: grant.is_refresh,
        }
    }

    fn stamped_token(&self, record: Record) -> Stamped {
        Stamped { after: 0, at_ms: self.now_ms(), record }
    }

    /// Records a change of a token that outlives its connection. Rewrites the file when most of its lines are
    /// about ended tokens.
    fn write_token(&mut self, record: &Record) {
        self.stamped_token(record.clone()).write(&mut self.token_lines.added);
        self.token_lines.count += 1;
        if self.token_lines.count > TOKEN_LINES_SPARE + 2 * self.auth.lasting_count() {
            self.rewrite_tokens();
        }
    }

    /// Rewrites all live tokens, after a line that clears the earlier ones.
    pub(super) fn rewrite_tokens(&mut self) {
        let mut lines = Vec::new();
        self.stamped_token(Record::TokenEnds { digest: String::new() }).write(&mut lines);
        let mut count = 1;
        for (digest, grant) in self.auth.lasting(self.now_us) {
            self.stamped_token(Record::Token(self.token_record(digest, grant))).write(&mut lines);
            count += 1;
        }
        self.token_lines = TokenLines { added: lines, is_anew: true, count };
    }

    /// Restores the stored tokens, which are the lines of [`poll_tokens`](Front::poll_tokens). Must follow
    /// [`recall`](Front::recall). Without lines, the tokens of the records apply.
    ///
    /// # Errors
    /// [`RecordError`] naming the invalid line.
    pub fn recall_tokens(&mut self, lines: &[u8]) -> Result<(), RecordError> {
        let records = Stamped::read_all(lines)?;
        if !records.is_empty() {
            self.auth = Tokens::new(self.auth.key);
        }
        for stamped in &records {
            match &stamped.record {
                Record::Token(token) => self.take_token(token),
                Record::TokenEnds { digest } => self.auth.end(digest),
                _ => {}
            }
        }
        // This also drops expired tokens.
        self.rewrite_tokens();
        Ok(())
    }

    /// Returns token lines to store before clients get the tokens; true when they replace all stored lines.
    pub fn poll_tokens(&mut self) -> Option<(Vec<u8>, bool)> {
        let TokenLines { added, is_anew, .. } = &mut self.token_lines;
        if added.is_empty() {
            return None;
        }
        Some((std::mem::take(added), std::mem::take(is_anew)))
    }

    /// Restores a token issued before a restart.
    pub(super) fn take_token(&mut self, token: &Token) {
        let key = self.settings.keys.iter().position(|key| key.client_id == token.key);
        let Some(key) = key.filter(|_| token.expires_us > self.now_us) else { return };
        // The scope of the key may have been reduced since.
        let (allowed, had) = (&self.settings.keys[key].scope, Scope::parse(&token.scope));
        let scope = Scope {
            account: had.account.min(allowed.account),
            trade: had.trade.min(allowed.trade),
            wallet: had.wallet.min(allowed.wallet),
            ..had
        };
        let grant = Grant {
            account: self.settings.keys[key].account,
            key,
            scope,
            expires_us: token.expires_us,
            connection: None,
            other: token.other.clone(),
            is_refresh: token.is_refresh,
        };
        self.auth.keep([(token.digest.clone(), grant)], self.now_us);
    }

    /// `public/fork_token`: issues tokens for another named session of the same owner.
    pub(super) fn fork_token(&mut self, number: u64, request: &Request<'_>) -> Answer {
        let ForkToken { refresh_token, session_name } = request.params()?;
        let session = session_name.to_cow().into_owned();
        let grant = self.refreshable(number, refresh_token)?;
        if grant.scope.session.is_none() || session.is_empty() || session.contains(char::is_whitespace) {
            return Err(Fault::because(ErrorCode::Unauthorized, "only tokens of sessions can be forked"));
        }
        let scope = Scope { session: Some(session), ..grant.scope };
        self.grant(number, grant.key, scope, None)
    }

    /// `public/exchange_token`: issues tokens for another account of the owner; only its own account exists.
    pub(super) fn exchange_token(&mut self, number: u64, request: &Request<'_>) -> Answer {
        let ExchangeToken { refresh_token, subject_id, scope } = request.params()?;
        let grant = self.refreshable(number, refresh_token)?;
        if subject_id != u64::from(self.accounts[grant.account].session.0) {
            return Err(Fault::because(ErrorCode::Forbidden, "the account has no subaccount of this id"));
        }
        let asked = scope.map(|scope| Scope::parse(&scope.to_cow()));
        let scope = asked.map_or(grant.scope.clone(), |asked| grant.scope.narrowed(&asked));
        self.grant(number, grant.key, scope, None)
    }

    /// Finds the grant of a refresh token, which stays valid.
    fn refreshable(&self, number: u64, token: Secret<'_>) -> Result<Grant, Fault> {
        let grant = self.auth.find(&token.expose().to_cow(), true, number, self.now_us);
        grant.cloned().ok_or(Fault::because(ErrorCode::Unauthorized, "invalid or expired token"))
    }

    /// Logs out and invalidates the connection's tokens unless the client declines.
    pub(super) fn log_out(&mut self, number: u64, request: &Request<'_>) -> Answer {
        let logout: tickpath_deribit::messages::Logout = request.params()?;
        if logout.invalidate_token != Some(false) {
            self.auth.forget(number);
            // A session token belongs to no connection: it ends here, together with its refresh token.
            let params: Value<'_> = request.params()?;
            let shown = text_of(&params, "access_token").map(|token| digest_of(&token));
            let login = self.connections.get(&number).map(|connection| connection.login.clone());
            if let Some(digest) = shown.or(login).filter(|digest| self.auth.is_known(digest)) {
                self.auth.end(&digest);
                // Other connections that logged in with the token are logged out.
                let others = self.connections.iter().filter(|(other, _)| **other != number);
                let ended = others.filter(|(_, connection)| connection.login == digest);
                let ended: Vec<u64> = ended.map(|(other, _)| *other).collect();
                ended.into_iter().for_each(|other| self.end_login(other, true));
                self.write_token(&Record::TokenEnds { digest });
                self.end_expired_logins();
            }
        }
        if let Some(connection) = self.connections.get_mut(&number) {
            // A logout cancels no orders.
            connection.cancels_on_disconnect = false;
            connection.end = Some("logout");
            if connection.transport == Transport::Http {
                return Ok(Some(json(&Text::new("ok"))));
            }
        }
        Ok(None)
    }

    /// Returns the key named by an HTTP `Authorization` header, if any; `None` for a bearer token, which
    /// cannot be guessed.
    pub(super) fn key_of_header(&self, header: &str) -> Option<Option<usize>> {
        let (kind, rest) = parts_of(header);
        match kind.as_str() {
            "bearer" => None,
            "basic" => Some(basic_of(rest).and_then(|(id, _)| self.key_named(&id))),
            "deri-hmac-sha256" => Some(part_of(rest, "id").and_then(|id| self.key_named(id))),
            _ => Some(None),
        }
    }

    /// Authenticates an HTTP `Authorization` header. A rejected header consumes credits.
    pub(super) fn authorize_http(
        &mut self,
        number: u64,
        header: &str,
        connection: u64,
        signed: HttpRequest<'_>,
    ) -> Result<(), Fault> {
        let (kind, rest) = parts_of(header);
        let named = self.key_of_header(header).flatten();
        self.act_for(number, (&kind, rest), named, (signed, connection)).map_err(|fault| {
            let charged = self.charge_refused(number, PublicPool::RefusedLogin(named));
            charged.err().unwrap_or(fault)
        })
    }

    /// Authenticates the connection by an HTTP `Authorization` header.
    fn act_for(
        &mut self,
        number: u64,
        (kind, rest): (&str, &str),
        named: Option<usize>,
        (signed, connection): (HttpRequest<'_>, u64),
    ) -> Result<(), Fault> {
        let unauthorized = || Fault::new(ErrorCode::Unauthorized);
        let unknown = || Fault::new(ErrorCode::InvalidCredentials);
        let mut login = String::new();
        let (account, scope) = match kind {
            "bearer" => {
                let grant = self.auth.find(rest, false, number, self.now_us).ok_or_else(unauthorized)?;
                login = digest_of(rest);
                (grant.account, grant.scope.clone())
            }
            "basic" => {
                let (_, secret) = basic_of(rest).ok_or_else(unauthorized)?;
                let key = named.filter(|key| self.is_secret(*key, &secret)).ok_or_else(unknown)?;
                self.trust(number, key);
                (self.settings.keys[key].account, self.settings.keys[key].scope.clone())
            }
            "deri-hmac-sha256" => {
                let key = match part_of(rest, "id") {
                    Some(_) => named.ok_or_else(unknown)?,
                    None => return Err(Fault::param("client_id", "value required")),
                };
                let timestamp =
                    part_of(rest, "ts").and_then(|ts| ts.parse().ok()).ok_or_else(unauthorized)?;
                let nonce = part_of(rest, "nonce").unwrap_or_default();
                let known = &self.settings.keys[key];
                let expected = http_signature(known.secret.as_bytes(), timestamp, nonce, signed);
                // Compares signatures of both values, which takes constant time.
                let is_good = {
                    let shown = part_of(rest, "sig").unwrap_or_default();
                    let again = client_signature(&self.auth.key, 0, shown, "");
                    verify_client_signature(&self.auth.key, 0, expected.as_str(), "", again.as_str())
                };
                // A client's nonce may be the clock: a repeated request is recognised by its signature. Two
                // equal requests within a millisecond come over one connection, a replayed one over another.
                self.check_signature(key, is_good, timestamp, (expected.as_str(), Some(connection)))?;
                self.trust(number, key);
                (self.settings.keys[key].account, self.settings.keys[key].scope.clone())
            }
            _ => return Err(unauthorized()),
        };
        if let Some(connection) = self.connections.get_mut(&number) {
            (connection.account, connection.scope, connection.login) = (Some(account), scope, login);
            connection.login_until_us = u64::MAX;
        }
        Ok(())
    }
}

/// Splits an `Authorization` header into its kind, in lower case, and the rest.
fn parts_of(header: &str) -> (String, &str) {
    let (kind, rest) = header.split_once(' ').unwrap_or((header, ""));
    (kind.to_ascii_lowercase(), rest.trim())
}

/// Decodes the id and the secret of a `Basic` header.
fn basic_of(text: &str) -> Option<(String, String)> {
    use base64::Engine as _;
    let decoded = base64::engine::general_purpose::STANDARD.decode(text).ok()?;
    let text = String::from_utf8(decoded).ok()?;
    text.split_once(':').map(|(id, secret)| (id.to_owned(), secret.to_owned()))
}

/// Finds a part of an HTTP signature such as `id=x,ts=y`.
fn part_of<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    text.split(',').find_map(|part| part.trim().strip_prefix(name)?.strip_prefix('='))
}
