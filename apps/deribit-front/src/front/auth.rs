//! Who clients are: keys, signatures, tokens.

use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};

use tickpath_deribit::codes::GrantType;
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
use super::{Answer, Front};
use crate::connection::Transport;
use crate::fault::Fault;
use crate::json::{json, text_of};
use crate::record::{Record, RecordError, Stamped, Token};
use crate::scope::Scope;

/// Tokens of one key that are good at a time; then its oldest goes, first of those that outlive their connections: nobody ends
/// the logins of others, or keeps them out.
const TOKENS_PER_KEY_MAX: usize = 1_024;
/// Nonces of one key that are remembered while their signatures are good; signatures of the key beyond are refused.
const NONCES_MAX: usize = 16_384;

/// Tokens of one connection are looked through from so many on for those that are good no more.
const DYING_MAX: usize = 64;

/// Lines of tokens that are good no more, beside as many as those that are: with more the file is written anew.
const TOKEN_LINES_SPARE: usize = 1_024;

/// Lines about tokens that are to be kept.
#[derive(Default)]
pub(super) struct TokenLines {
    added: Vec<u8>,
    /// They take the place of all that are kept.
    is_anew: bool,
    /// Lines that are kept, these included.
    count: usize,
}

/// A token that was given out.
#[derive(Clone)]
pub(super) struct Grant {
    pub(super) account: usize,
    pub(super) key: usize,
    pub(super) scope: Scope,
    expires_us: u64,
    /// The connection that it dies with; none for tokens of sessions.
    connection: Option<u64>,
    /// Digest of the token that it was given with.
    other: String,
    is_refresh: bool,
}

/// Tokens and nonces.
pub(super) struct Tokens {
    key: [u8; 32],
    given: u64,
    /// By the tokens' digests: what is kept shows no token.
    grants: HashMap<String, Grant>,
    /// By key, oldest first; those that are good no more may be among them.
    order: BTreeMap<usize, VecDeque<String>>,
    /// Those that die with connections, by these.
    dying: HashMap<u64, Vec<String>>,
    /// By key.
    nonces: HashMap<usize, Nonces>,
}

/// Nonces of a key.
#[derive(Default)]
struct Nonces {
    used: HashSet<String>,
    /// With when they may be forgotten, in milliseconds.
    order: VecDeque<(u64, String)>,
}

fn digest_of(token: &str) -> String {
    client_signature(b"token", 0, token, "").as_str().to_owned()
}

impl Tokens {
    pub(super) fn new(key: [u8; 32]) -> Tokens {
        Tokens {
            key,
            given: 0,
            grants: HashMap::new(),
            order: BTreeMap::new(),
            dying: HashMap::new(),
            nonces: HashMap::new(),
        }
    }

    fn make(&mut self, kind: &str) -> String {
        self.given += 1;
        client_signature(&self.key, self.given, kind, "").as_str().to_owned()
    }

    /// Keeps a token, in the place of the key's oldest where it has as many as it may.
    fn keep(&mut self, digest: String, grant: Grant, now_us: u64) {
        let Tokens { grants, order, dying, .. } = self;
        let own = order.entry(grant.key).or_default();
        if own.len() >= TOKENS_PER_KEY_MAX {
            own.retain(|digest| match grants.get(digest) {
                Some(known) if known.expires_us > now_us => true,
                _ => {
                    grants.remove(digest);
                    false
                }
            });
        }
        if own.len() >= TOKENS_PER_KEY_MAX {
            let outlives =
                |digest: &String| grants.get(digest).is_some_and(|grant| grant.connection.is_none());
            let oldest = own.iter().position(outlives).unwrap_or(0);
            if let Some(oldest) = own.remove(oldest) {
                grants.remove(&oldest);
            }
        }
        own.push_back(digest.clone());
        if let Some(connection) = grant.connection {
            let dying = dying.entry(connection).or_default();
            if dying.len() >= DYING_MAX {
                dying.retain(|digest| grants.contains_key(digest));
            }
            dying.push(digest.clone());
        }
        grants.insert(digest, grant);
    }

    /// Tokens that die with a connection, which is over.
    pub(super) fn forget(&mut self, connection: u64) {
        for digest in self.dying.remove(&connection).unwrap_or_default() {
            self.grants.remove(&digest);
        }
    }

    /// Whether the token of a digest is good.
    fn is_good(&self, digest: &str, now_us: u64) -> bool {
        self.grants.get(digest).is_some_and(|grant| !grant.is_refresh && grant.expires_us > now_us)
    }

    /// What a token grants at this time to a connection.
    pub(super) fn find(&self, token: &str, is_refresh: bool, connection: u64, now_us: u64) -> Option<&Grant> {
        let grant = self.grants.get(&digest_of(token))?;
        let is_here = grant.connection.is_none_or(|own| own == connection);
        (grant.is_refresh == is_refresh && grant.expires_us > now_us && is_here).then_some(grant)
    }

    /// The token of a digest is good no more, nor the one that it was given with.
    pub(super) fn end(&mut self, digest: &str) {
        if let Some(grant) = self.grants.remove(digest) {
            self.grants.remove(&grant.other);
        }
    }

    /// Takes note of a nonce; false when it was used, or when there are too many.
    fn use_nonce(&mut self, key: usize, nonce: &str, timestamp: u64, now_ms: u64) -> bool {
        let Nonces { used, order } = self.nonces.entry(key).or_default();
        while let Some((_, nonce)) = order.pop_front_if(|(until, _)| *until < now_ms) {
            used.remove(&nonce);
        }
        if used.len() >= NONCES_MAX || !used.insert(nonce.to_owned()) {
            return false;
        }
        order.push_back((timestamp.max(now_ms) + 2 * SIGNATURE_VALID_MS, nonce.to_owned()));
        true
    }
}

impl Front {
    pub(super) fn authenticate(&mut self, number: u64, request: &Request<'_>) -> Answer {
        let auth: Auth<'_> = request.params()?;
        let asked = auth.scope.map(|scope| Scope::parse(&scope.to_cow())).unwrap_or_default();
        // A token that renews is nothing that can be guessed.
        let is_renewal = auth.grant_type == GrantType::RefreshToken;
        let named = auth.client_id.filter(|_| !is_renewal).and_then(|id| self.find_key(Some(id)).ok());
        if !is_renewal && !self.may_log_on(number, named) {
            self.counters.logins_refused.add(1);
            return Err(self.send_away(number));
        }
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
        let allowed = &self.settings.keys[key].scope;
        let scope = match before {
            Some(before) => before,
            None => allowed.narrowed(&asked),
        };
        self.grant(number, key, scope, auth.state)
    }

    /// Whether the address has not tried a key too often in vain: then its secret is not looked at, and nothing is told of it.
    pub(super) fn may_log_on(&mut self, number: u64, key: Option<usize>) -> bool {
        let now = self.now();
        let peer = self.connections.get(&number).map(|connection| connection.peer);
        peer.is_none_or(|peer| self.peers.has_any(peer, PublicPool::RefusedLogin(key), now))
    }

    /// Gives out tokens, and lets the connection act for the account.
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
            // A connection over HTTP is over before its token is used.
            connection: Some(number).filter(|_| scope.session.is_none() && !is_http),
            other: other.to_owned(),
            is_refresh,
        };
        let digests = [digest_of(&access), digest_of(&refresh)];
        let login = digests[0].clone();
        let grants = [grant(&digests[1], false), grant(&digests[0], true)];
        for (digest, grant) in digests.into_iter().zip(grants) {
            let lasts = grant.connection.is_none();
            self.auth.keep(digest.clone(), grant.clone(), now_us);
            if lasts {
                self.write_token(&Record::Token(self.token_record(&digest, &grant)));
            }
        }
        self.counters.logins.add(1);
        // What another account was told is not told to this one.
        self.leave_private(number, |own| own == account);
        let cancels = self.accounts[account].cancels_on_disconnect;
        let text = scope.to_string();
        if let Some(connection) = self.connections.get_mut(&number) {
            // Who renews his login has said meanwhile what becomes of his orders.
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

    /// The connection acts for nobody any more; with `and_renewal` its tokens cannot be renewed either.
    pub(super) fn end_login(&mut self, number: u64, and_renewal: bool) {
        let is_ended = |grant: &Grant| grant.connection == Some(number) && (and_renewal || !grant.is_refresh);
        self.auth.grants.retain(|_, grant| !is_ended(grant));
        if let Some(connection) = self.connections.get_mut(&number) {
            connection.account = None;
        }
        self.leave_private(number, |_| false);
    }

    /// Logins that are over, and tokens that channels were joined by: their accounts are not told of any more.
    pub(super) fn end_expired_logins(&mut self) {
        let now_us = self.now_us;
        let mut over = Vec::new();
        for (number, connection) in &self.connections {
            let is_over = connection.account.is_some() && now_us >= connection.login_until_us;
            let shown = connection.account.and_then(|account| connection.shown.get(&account));
            let is_shown = shown.is_some_and(|digest| self.auth.is_good(digest, now_us));
            if is_over && !is_shown && !connection.topics.is_empty() {
                over.push((*number, connection.account));
            }
            let ended = connection.shown.iter().filter(|(_, digest)| !self.auth.is_good(digest, now_us));
            // What its own login lets it hear it goes on to hear.
            let ended = ended.filter(|(account, _)| is_over || connection.account != Some(**account));
            over.extend(ended.map(|(account, _)| (*number, Some(*account))));
        }
        for (number, account) in over {
            self.leave_private(number, |own| Some(own) != account);
        }
    }

    /// A connection has joined channels of an account by a token, which may end before it does.
    pub(super) fn note_shown(&mut self, number: u64, account: usize, request: &Request<'_>) {
        let params: Option<Value<'_>> = request.params().ok();
        let Some(token) = params.and_then(|params| text_of(&params, "access_token")) else { return };
        let digest = digest_of(&token);
        let end = |digest: &str| self.auth.grants.get(digest).map_or(0, |grant| grant.expires_us);
        if let Some(connection) = self.connections.get_mut(&number)
            // The one that lasts longer is the one that counts.
            && connection.shown.get(&account).is_none_or(|known| end(known) <= end(&digest))
        {
            connection.shown.insert(account, digest);
        }
    }

    fn find_key(&self, client_id: Option<Text<'_>>) -> Result<usize, Fault> {
        let id = client_id.ok_or(Fault::param("client_id", "value required"))?;
        let key = self.settings.keys.iter().position(|key| id == key.client_id.as_str());
        key.ok_or(Fault::new(ErrorCode::InvalidCredentials))
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

    /// In the same time for any wrong one: signatures of both are compared.
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
        self.check_signature(key, is_good, timestamp, &nonce)?;
        Ok((key, None))
    }

    fn check_signature(
        &mut self,
        key: usize,
        is_good: bool,
        timestamp: u64,
        nonce: &str,
    ) -> Result<(), Fault> {
        let now_ms = self.now_ms();
        if !is_good {
            return Err(Fault::because(ErrorCode::Unauthorized, "wrong signature"));
        }
        if now_ms.abs_diff(timestamp) > SIGNATURE_VALID_MS {
            return Err(Fault::because(ErrorCode::Unauthorized, "timestamp too old or too new"));
        }
        if nonce.is_empty() || !self.auth.use_nonce(key, nonce, timestamp, now_ms) {
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

    /// Writes down what became of a token that outlives its connection. Where most lines are of tokens that are good no more,
    /// the file is written anew.
    fn write_token(&mut self, record: &Record) {
        self.stamped_token(record.clone()).write(&mut self.token_lines.added);
        self.token_lines.count += 1;
        let is_kept = |grant: &&Grant| grant.connection.is_none();
        let kept = || self.auth.grants.values().filter(is_kept).count();
        if self.token_lines.count > TOKEN_LINES_SPARE
            && self.token_lines.count > TOKEN_LINES_SPARE + 2 * kept()
        {
            self.rewrite_tokens();
        }
    }

    /// All tokens that are good are written anew, behind a line that says so.
    pub(super) fn rewrite_tokens(&mut self) {
        let mut lines = Vec::new();
        self.stamped_token(Record::TokenEnds { digest: String::new() }).write(&mut lines);
        let mut count = 1;
        for digest in self.auth.order.values().flatten() {
            let Some(grant) = self.auth.grants.get(digest) else { continue };
            if grant.connection.is_none() && grant.expires_us > self.now_us {
                self.stamped_token(Record::Token(self.token_record(digest, grant))).write(&mut lines);
                count += 1;
            }
        }
        self.token_lines = TokenLines { added: lines, is_anew: true, count };
    }

    /// Takes the tokens that were written down, the lines of [`poll_tokens`](Front::poll_tokens); after
    /// [`recall`](Front::recall). Where there are none those of the records hold.
    ///
    /// # Errors
    /// [`RecordError`] naming the line that is none.
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
        // Expired ones are gone with it.
        self.rewrite_tokens();
        Ok(())
    }

    /// Lines of tokens to be kept before anybody has them; with true in place of all that were kept before.
    pub fn poll_tokens(&mut self) -> Option<(Vec<u8>, bool)> {
        let TokenLines { added, is_anew, .. } = &mut self.token_lines;
        if added.is_empty() {
            return None;
        }
        Some((std::mem::take(added), std::mem::take(is_anew)))
    }

    /// A token of before a restart.
    pub(super) fn take_token(&mut self, token: &Token) {
        let key = self.settings.keys.iter().position(|key| key.client_id == token.key);
        let Some(key) = key.filter(|_| token.expires_us > self.now_us) else { return };
        // The key may allow less by now.
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
        self.auth.keep(token.digest.clone(), grant, self.now_us);
    }

    /// `public/fork_token`: tokens for another session of the same name's owner.
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

    /// `public/exchange_token`: tokens for another account of the same owner, of which there is only its own.
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

    /// What a refresh token stands for; it stays good.
    fn refreshable(&self, number: u64, token: Secret<'_>) -> Result<Grant, Fault> {
        let grant = self.auth.find(&token.expose().to_cow(), true, number, self.now_us);
        grant.cloned().ok_or(Fault::because(ErrorCode::Unauthorized, "invalid or expired token"))
    }

    /// Ends what the connection's token granted, where the client wants it.
    pub(super) fn log_out(&mut self, number: u64, request: &Request<'_>) -> Answer {
        let logout: tickpath_deribit::messages::Logout = request.params()?;
        if logout.invalidate_token != Some(false) {
            let own = |grant: &Grant| grant.connection == Some(number);
            self.auth.grants.retain(|_, grant| !own(grant));
            // A token of a session is no connection's: it ends where it is shown, and the one that renews it too.
            let params: Value<'_> = request.params()?;
            let shown = text_of(&params, "access_token").map(|token| digest_of(&token));
            let login = self.connections.get(&number).map(|connection| connection.login.clone());
            if let Some(digest) = shown.or(login).filter(|digest| self.auth.grants.contains_key(digest)) {
                self.auth.end(&digest);
                // Who is logged in by it elsewhere is not any more.
                let others = self.connections.iter().filter(|(other, _)| **other != number);
                let ended = others.filter(|(_, connection)| connection.login == digest);
                let ended: Vec<u64> = ended.map(|(other, _)| *other).collect();
                ended.into_iter().for_each(|other| self.end_login(other, true));
                self.write_token(&Record::TokenEnds { digest });
                self.end_expired_logins();
            }
        }
        if let Some(connection) = self.connections.get_mut(&number) {
            // A logout cancels nothing.
            connection.cancels_on_disconnect = false;
            connection.end = Some("logout");
            if connection.transport == Transport::Http {
                return Ok(Some(json(&Text::new("ok"))));
            }
        }
        Ok(None)
    }

    /// The key that an `Authorization` header of HTTP names; none where it names none, or none that is known.
    pub(super) fn key_of_header(&self, header: &str) -> Option<usize> {
        let (kind, rest) = header.split_once(' ')?;
        let id = match kind.to_ascii_lowercase().as_str() {
            "basic" => decoded(rest)?.split_once(':')?.0.to_owned(),
            "deri-hmac-sha256" => part_of(rest, "id")?.to_owned(),
            _ => return None,
        };
        self.find_key(Some(Text::new(&id))).ok()
    }

    /// Whom an `Authorization` header of HTTP stands for.
    pub(super) fn authorize_http(
        &mut self,
        number: u64,
        header: &str,
        signed: HttpRequest<'_>,
    ) -> Result<(), Fault> {
        let unauthorized = || Fault::new(ErrorCode::Unauthorized);
        let (kind, rest) = header.split_once(' ').ok_or_else(unauthorized)?;
        let mut login = String::new();
        if !kind.eq_ignore_ascii_case("bearer") && !self.may_log_on(number, self.key_of_header(header)) {
            return Err(ErrorCode::TooManyRequests.into());
        }
        let (account, scope) = match kind.to_ascii_lowercase().as_str() {
            "bearer" => {
                let grant = self.auth.find(rest.trim(), false, number, self.now_us);
                let grant = grant.ok_or_else(unauthorized)?;
                login = digest_of(rest.trim());
                (grant.account, grant.scope.clone())
            }
            "basic" => {
                let text = decoded(rest).ok_or_else(unauthorized)?;
                let (id, secret) = text.split_once(':').ok_or_else(unauthorized)?;
                let key = self.find_key(Some(Text::new(id)))?;
                if !self.is_secret(key, secret) {
                    return Err(ErrorCode::InvalidCredentials.into());
                }
                (self.settings.keys[key].account, self.settings.keys[key].scope.clone())
            }
            "deri-hmac-sha256" => {
                let part = |name: &str| part_of(rest, name);
                let key = self.find_key(part("id").map(Text::new))?;
                let timestamp = part("ts").and_then(|ts| ts.parse().ok()).ok_or_else(unauthorized)?;
                let nonce = part("nonce").unwrap_or_default();
                let known = &self.settings.keys[key];
                let expected = http_signature(known.secret.as_bytes(), timestamp, nonce, signed);
                // Compared by signatures of both, in the same time for any wrong one.
                let is_good = {
                    let shown = part("sig").unwrap_or_default();
                    let again = client_signature(&self.auth.key, 0, shown, "");
                    verify_client_signature(&self.auth.key, 0, expected.as_str(), "", again.as_str())
                };
                // A client may count nonces by the second: the same request is known by its signature.
                self.check_signature(key, is_good, timestamp, expected.as_str())?;
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

/// The text that base64 stands for.
fn decoded(text: &str) -> Option<String> {
    use base64::Engine as _;
    let bytes = base64::engine::general_purpose::STANDARD.decode(text.trim()).ok()?;
    String::from_utf8(bytes).ok()
}

/// One of the parts of a signature's header.
fn part_of<'a>(header: &'a str, name: &str) -> Option<&'a str> {
    header.split(',').find_map(|part| part.trim().strip_prefix(name)?.strip_prefix('='))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_with_many_nonces_stands_in_no_others_way() {
        let mut tokens = Tokens::new([0; 32]);
        for number in 0..NONCES_MAX {
            assert!(tokens.use_nonce(0, &number.to_string(), 0, 0));
        }
        assert!(!tokens.use_nonce(0, "more", 0, 0) && tokens.use_nonce(1, "more", 0, 0));
        assert!(!tokens.use_nonce(1, "more", 0, 0), "used");
        assert!(tokens.use_nonce(0, "more", 0, 2 * SIGNATURE_VALID_MS + 1), "the old ones are forgotten");
    }

    #[test]
    fn a_key_with_many_tokens_loses_its_own() {
        let grant = |key: usize| Grant {
            account: key,
            key,
            scope: Scope::default(),
            expires_us: u64::MAX,
            connection: None,
            other: String::new(),
            is_refresh: false,
        };
        let mut tokens = Tokens::new([0; 32]);
        tokens.keep(digest_of("first"), grant(0), 0);
        // One of a connection that lives is the last to go.
        tokens.keep("here".to_owned(), Grant { connection: Some(3), ..grant(1) }, 0);
        for number in 0..2 * TOKENS_PER_KEY_MAX {
            tokens.keep(number.to_string(), grant(1), 0);
        }
        assert!(tokens.find("first", false, 1, 0).is_some());
        assert_eq!(
            (tokens.order[&1].len(), tokens.grants.len()),
            (TOKENS_PER_KEY_MAX, TOKENS_PER_KEY_MAX + 1)
        );
        let oldest = TOKENS_PER_KEY_MAX + 1;
        assert!(tokens.grants.contains_key("here") && tokens.grants.contains_key(&oldest.to_string()));
        assert!(!tokens.grants.contains_key(&(oldest - 1).to_string()), "its own oldest went");
        // Those that are good no more make room first: ended, expired, and whose connections are gone.
        tokens.end(&(oldest + 5).to_string());
        tokens.keep("a".to_owned(), grant(1), 0);
        if let Some(grant) = tokens.grants.get_mut(&(oldest + 6).to_string()) {
            grant.expires_us = 5;
        }
        tokens.keep("b".to_owned(), grant(1), 5);
        tokens.forget(3);
        tokens.keep("c".to_owned(), grant(1), 5);
        assert!(tokens.grants.contains_key(&oldest.to_string()) && !tokens.grants.contains_key("here"));
        assert_eq!(tokens.order[&1].len(), TOKENS_PER_KEY_MAX);
        // A key that has none has room, whatever others do.
        tokens.keep("third".to_owned(), grant(2), 5);
        assert!(tokens.grants.contains_key("third"));
    }
}
