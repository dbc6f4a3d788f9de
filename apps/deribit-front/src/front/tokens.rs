//! Issued tokens and used nonces.

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};

use tickpath_deribit::sign::{SIGNATURE_VALID_MS, client_signature};

use crate::scope::Scope;

/// Maximum number of valid tokens per key; more end the key's oldest. Other keys are not affected.
pub(super) const KEY_TOKENS_MAX: usize = 1_024;
/// Ended tokens removed per issued token; more than are added, so that few of them remain.
const ENDED_PER_TOKEN: usize = 4;
/// Maximum number of nonces remembered per key while their signatures are valid; further ones are rejected.
const NONCES_MAX: usize = 16_384;

/// An issued token.
#[derive(Clone)]
pub(super) struct Grant {
    pub(super) account: usize,
    pub(super) key: usize,
    pub(super) scope: Scope,
    pub(super) expires_us: u64,
    /// Connection with which it ends; none for tokens of sessions and tokens issued over HTTP.
    pub(super) connection: Option<u64>,
    /// Digest of the token issued together with it.
    pub(super) other: String,
    pub(super) is_refresh: bool,
}

impl Grant {
    /// Returns true for tokens with a defined lifetime: that of a connection or of a named session. The
    /// others were issued over HTTP, where some clients request new ones each time.
    const fn is_held(&self) -> bool {
        self.connection.is_some() || self.scope.session.is_some()
    }
}

/// A grant and its position in the indices of [`Tokens`].
struct Kept {
    grant: Grant,
    given: u64,
}

impl Kept {
    /// Sort key: by API key, then in the order of removal when the key has too many.
    const fn place(&self) -> (usize, bool, u64) {
        (self.grant.key, self.grant.is_held(), self.given)
    }
}

/// Tokens and nonces.
pub(super) struct Tokens {
    pub(super) key: [u8; 32],
    /// Number of tokens created.
    made: u64,
    /// Number of tokens stored.
    given: u64,
    /// Grants by digest, so that no stored data reveals a token.
    grants: HashMap<String, Kept>,
    /// Digests by key, in the order of removal.
    by_key: BTreeMap<(usize, bool, u64), String>,
    /// Number of tokens per key.
    counts: HashMap<usize, usize>,
    /// Tokens that end with a connection.
    by_connection: BTreeSet<(u64, String)>,
    /// Tokens by expiry, in microseconds since 1970.
    by_end: BTreeSet<(u64, String)>,
    /// Nonces by key.
    nonces: HashMap<usize, Nonces>,
}

/// Nonces of a key.
#[derive(Default)]
struct Nonces {
    /// Used nonces, with the connection that may repeat one, if any.
    used: HashMap<String, Option<u64>>,
    /// Nonces with the time at which they may be forgotten, in milliseconds.
    order: VecDeque<(u64, String)>,
}

pub(super) fn digest_of(token: &str) -> String {
    client_signature(b"token", 0, token, "").as_str().to_owned()
}

impl Tokens {
    pub(super) fn new(key: [u8; 32]) -> Tokens {
        Tokens {
            key,
            made: 0,
            given: 0,
            grants: HashMap::new(),
            by_key: BTreeMap::new(),
            counts: HashMap::new(),
            by_connection: BTreeSet::new(),
            by_end: BTreeSet::new(),
            nonces: HashMap::new(),
        }
    }

    pub(super) fn make(&mut self, kind: &str) -> String {
        self.made += 1;
        client_signature(&self.key, self.made, kind, "").as_str().to_owned()
    }

    /// Stores tokens of one key that are issued together, by digest. If the key has too many, its oldest end,
    /// starting with those without a session and connection.
    pub(super) fn keep(&mut self, grants: impl IntoIterator<Item = (String, Grant)>, now_us: u64) {
        let grants: Vec<_> = grants.into_iter().collect();
        let Some(key) = grants.first().map(|(_, grant)| grant.key) else { return };
        self.take_ended_away(grants.len() * ENDED_PER_TOKEN, now_us);
        // Makes space for all of them first, so that one does not end another.
        while self.counts.get(&key).is_some_and(|count| count + grants.len() > KEY_TOKENS_MAX) {
            let of_key = (key, false, 0)..=(key, true, u64::MAX);
            let Some(oldest) = self.by_key.range(of_key).next().map(|(_, digest)| digest.clone()) else {
                break;
            };
            self.remove(&oldest);
        }
        for (digest, grant) in grants {
            self.insert(digest, grant);
        }
    }

    fn take_ended_away(&mut self, count_max: usize, now_us: u64) {
        for _ in 0..count_max {
            let Some((_, digest)) = self.by_end.first().filter(|(end_us, _)| *end_us <= now_us) else {
                return;
            };
            let digest = digest.clone();
            self.remove(&digest);
        }
    }

    fn insert(&mut self, digest: String, grant: Grant) {
        self.remove(&digest);
        self.given += 1;
        *self.counts.entry(grant.key).or_default() += 1;
        if let Some(connection) = grant.connection {
            self.by_connection.insert((connection, digest.clone()));
        }
        self.by_end.insert((grant.expires_us, digest.clone()));
        let kept = Kept { grant, given: self.given };
        self.by_key.insert(kept.place(), digest.clone());
        self.grants.insert(digest, kept);
    }

    fn remove(&mut self, digest: &str) -> Option<Grant> {
        let kept = self.grants.remove(digest)?;
        let digest = self.by_key.remove(&kept.place()).unwrap_or_default();
        if let Some(count) = self.counts.get_mut(&kept.grant.key) {
            *count -= 1;
        }
        let end = (kept.grant.expires_us, digest);
        self.by_end.remove(&end);
        if let Some(connection) = kept.grant.connection {
            self.by_connection.remove(&(connection, end.1));
        }
        Some(kept.grant)
    }

    /// Ends the tokens of an ended connection.
    pub(super) fn forget(&mut self, connection: u64) {
        self.end_where(connection, |_| true);
    }

    /// Ends the matching tokens of a connection.
    pub(super) fn end_where(&mut self, connection: u64, is_meant: impl Fn(&Grant) -> bool) {
        let of_connection = (connection, String::new())..(connection + 1, String::new());
        let own = self.by_connection.range(of_connection).map(|(_, digest)| digest.clone());
        let is_ended = |digest: &String| self.grants.get(digest).is_some_and(|kept| is_meant(&kept.grant));
        for digest in own.filter(is_ended).collect::<Vec<_>>() {
            self.remove(&digest);
        }
    }

    /// Number of tokens that outlive their connections.
    pub(super) fn lasting_count(&self) -> usize {
        self.grants.len() - self.by_connection.len()
    }

    /// Returns the valid tokens that outlive their connections, with digests, in the order of storage.
    pub(super) fn lasting(&self, now_us: u64) -> impl Iterator<Item = (&String, &Grant)> {
        let all = self.by_key.values().filter_map(|digest| Some((digest, &self.grants.get(digest)?.grant)));
        all.filter(move |(_, grant)| grant.connection.is_none() && grant.expires_us > now_us)
    }

    pub(super) fn is_known(&self, digest: &str) -> bool {
        self.grants.contains_key(digest)
    }

    /// Returns the expiry of a valid access token, in microseconds since 1970; none for other tokens.
    pub(super) fn good_until(&self, digest: &str, now_us: u64) -> Option<u64> {
        let grant = &self.grants.get(digest)?.grant;
        (!grant.is_refresh && grant.expires_us > now_us).then_some(grant.expires_us)
    }

    /// Returns the current grant of a token on a connection.
    pub(super) fn find(&self, token: &str, is_refresh: bool, connection: u64, now_us: u64) -> Option<&Grant> {
        let grant = &self.grants.get(&digest_of(token))?.grant;
        let is_here = grant.connection.is_none_or(|own| own == connection);
        (grant.is_refresh == is_refresh && grant.expires_us > now_us && is_here).then_some(grant)
    }

    /// Ends the token with this digest and the token issued together with it.
    pub(super) fn end(&mut self, digest: &str) {
        if let Some(grant) = self.remove(digest) {
            self.remove(&grant.other);
        }
    }

    /// Records a nonce, which `connection` may repeat; returns false if it was used or there are too many.
    pub(super) fn use_nonce(
        &mut self,
        key: usize,
        nonce: &str,
        connection: Option<u64>,
        timestamp: u64,
        now_ms: u64,
    ) -> bool {
        let Nonces { used, order } = self.nonces.entry(key).or_default();
        while let Some((_, nonce)) = order.pop_front_if(|(until, _)| *until < now_ms) {
            used.remove(&nonce);
        }
        if let Some(first) = used.get(nonce) {
            return connection.is_some() && *first == connection;
        }
        if used.len() >= NONCES_MAX {
            return false;
        }
        used.insert(nonce.to_owned(), connection);
        order.push_back((timestamp.max(now_ms) + 2 * SIGNATURE_VALID_MS, nonce.to_owned()));
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn grant(key: usize, other: &str) -> Grant {
        Grant {
            account: key,
            key,
            scope: Scope::default(),
            expires_us: u64::MAX,
            connection: None,
            other: other.to_owned(),
            is_refresh: false,
        }
    }

    #[test]
    fn a_key_with_many_nonces_stands_in_no_others_way() {
        let mut tokens = Tokens::new([0; 32]);
        for number in 0..NONCES_MAX {
            assert!(tokens.use_nonce(0, &number.to_string(), None, 0, 0));
        }
        assert!(!tokens.use_nonce(0, "more", None, 0, 0) && tokens.use_nonce(1, "more", None, 0, 0));
        assert!(!tokens.use_nonce(1, "more", None, 0, 0), "used");
        assert!(
            tokens.use_nonce(0, "more", None, 0, 2 * SIGNATURE_VALID_MS + 1),
            "the old ones are forgotten"
        );
    }

    #[test]
    fn a_signature_is_good_again_only_on_its_connection() {
        let mut tokens = Tokens::new([0; 32]);
        assert!(tokens.use_nonce(0, "signature", Some(1), 0, 0));
        assert!(tokens.use_nonce(0, "signature", Some(1), 0, 0));
        assert!(
            !tokens.use_nonce(0, "signature", Some(2), 0, 0) && !tokens.use_nonce(0, "signature", None, 0, 0)
        );
        assert!(tokens.use_nonce(0, "nonce", None, 0, 0) && !tokens.use_nonce(0, "nonce", None, 0, 0));
    }

    #[test]
    fn a_key_with_many_tokens_loses_its_own_alone() {
        let mut tokens = Tokens::new([0; 32]);
        let session = Scope { session: Some("desk".to_owned()), ..Scope::default() };
        tokens.keep([("of anna".to_owned(), grant(0, ""))], 0);
        tokens.keep([("of a session".to_owned(), Grant { scope: session, ..grant(1, "") })], 0);
        tokens.keep([("of a connection".to_owned(), Grant { connection: Some(3), ..grant(1, "") })], 0);
        for number in 0..20_000 {
            let [access, refresh] = ["access", "refresh"].map(|kind| format!("{kind} {number}"));
            let pair = [(access.clone(), grant(1, &refresh)), (refresh.clone(), grant(1, &access))];
            tokens.keep(pair, 0);
            assert!(tokens.is_known(&access) && tokens.is_known(&refresh), "what is given is good");
        }
        assert_eq!(tokens.grants.len(), KEY_TOKENS_MAX + 1);
        assert!(!tokens.is_known("access 0") && !tokens.is_known("refresh 19000"), "the oldest went");
        assert!(["of anna", "of a session", "of a connection"].iter().all(|known| tokens.is_known(known)));
        // A key without tokens is accepted, regardless of other keys.
        tokens.keep([("of bert".to_owned(), grant(2, ""))], 0);
        assert!(tokens.is_known("of bert"));
        // A key with session tokens only loses the oldest ones, not the new ones.
        for number in 0..3_000 {
            let held = |name: &str| Grant { connection: Some(7), ..grant(4, name) };
            let [access, refresh] = ["c", "d"].map(|kind| format!("{kind}{number}"));
            tokens.keep([(access.clone(), held(&refresh)), (refresh.clone(), held(&access))], 0);
            assert!(tokens.is_known(&access) && tokens.is_known(&refresh));
        }
        assert_eq!((tokens.counts[&4], tokens.counts[&1]), (KEY_TOKENS_MAX, KEY_TOKENS_MAX));
    }

    #[test]
    fn what_is_over_is_nowhere_kept() {
        let mut tokens = Tokens::new([0; 32]);
        for number in 0..100_u64 {
            let connection = (number % 2 == 0).then_some(number);
            let grant = Grant { expires_us: 10 + number, connection, ..grant(0, "") };
            tokens.keep([(number.to_string(), grant)], 0);
        }
        assert_eq!((tokens.lasting_count(), tokens.lasting(60).count()), (50, 25));
        tokens.forget(98);
        tokens.end_where(96, |grant| grant.is_refresh);
        tokens.end_where(96, |grant| !grant.is_refresh);
        tokens.end("99");
        assert_eq!(
            ["95", "96", "98", "99"].map(|digest| tokens.is_known(digest)),
            [true, false, false, false]
        );
        for number in 100..125 {
            tokens.keep([(number.to_string(), grant(0, ""))], 1_000);
        }
        let sizes = [tokens.grants.len(), tokens.by_key.len(), tokens.by_end.len(), tokens.counts[&0]];
        assert_eq!((sizes, tokens.by_connection.len()), ([25; 4], 0));
    }
}
