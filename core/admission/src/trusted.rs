//! The peers from which users have sent the right password.

use std::fmt::{Display, Write as _};
use std::str::FromStr;

/// Maximum number of peers remembered for each user; a further one replaces the oldest.
const PEERS_PER_USER: usize = 16;
/// Maximum number of pairs in [`TrustedPeers::text`], which lists the latest peer of every user first.
const PAIRS_MAX: usize = 4_096;
/// Maximum length of a user name in [`TrustedPeers::text`], in bytes; longer names are omitted.
const NAME_LEN_MAX: usize = 64;
/// Maximum length of [`TrustedPeers::text`] in bytes, for peers of up to 45 characters.
pub const TRUSTED_TEXT_LEN_MAX: usize = PAIRS_MAX * (NAME_LEN_MAX + 48) + 128;
/// First line of [`TrustedPeers::text`].
const HEADING: &str = "tickpath trusted logins 1";
/// Prefix of the last line of [`TrustedPeers::text`]; the CRC-32C of the lines before it follows.
const CHECKSUM: &str = "checksum ";

/// The latest 16 peers from which each user sent the right password; each user's latest is last.
#[derive(Clone, Debug)]
pub struct TrustedPeers<P> {
    users: Box<[[Option<P>; PEERS_PER_USER]]>,
    is_changed: bool,
}

/// The saved text of trusted peers is damaged. Only the trust is lost: logins may be delayed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("damaged")]
pub struct TrustedPeersDamaged;

impl<P: Copy + Eq> TrustedPeers<P> {
    /// Creates an empty list for at most `users` users.
    #[must_use]
    pub fn new(users: usize) -> TrustedPeers<P> {
        TrustedPeers { users: vec![[None; PEERS_PER_USER]; users].into_boxed_slice(), is_changed: false }
    }

    /// Records a right password of a user from a peer; true if the pair is new. Ignores unknown users.
    pub fn record(&mut self, user: usize, peer: P) -> bool {
        let Some(peers) = self.users.get_mut(user) else { return false };
        let known = peers.iter().position(|known| *known == Some(peer));
        let place = known.unwrap_or(0);
        peers[place] = Some(peer);
        peers[place..].rotate_left(1);
        self.is_changed |= known.is_none();
        known.is_none()
    }

    /// True if this peer is one of the latest 16 from which the user sent the right password.
    #[must_use]
    pub fn contains(&self, user: usize, peer: P) -> bool {
        self.users.get(user).is_some_and(|peers| peers.contains(&Some(peer)))
    }

    /// True if pairs were added since the last call or since the pairs were loaded.
    pub fn take_changed(&mut self) -> bool {
        std::mem::take(&mut self.is_changed)
    }

    /// Returns up to 4096 pairs as text: a heading, one line for each pair, and a checksum.
    #[must_use]
    pub fn text<'a>(&self, name: impl Fn(usize) -> Option<&'a str>) -> String
    where
        P: Display,
    {
        let mut text = format!("{HEADING}\n");
        let is_kept = |name: &&str| name.len() <= NAME_LEN_MAX && !name.contains(char::is_control);
        let latest_first = (0..PEERS_PER_USER).rev();
        let pairs = latest_first.flat_map(|rank| {
            let of_user =
                move |(user, peers): (usize, &[Option<P>; PEERS_PER_USER])| Some((user, peers[rank]?));
            self.users.iter().enumerate().filter_map(of_user)
        });
        let named = pairs.filter_map(|(user, peer)| Some((name(user).filter(is_kept)?, peer)));
        for (name, peer) in named.take(PAIRS_MAX) {
            let _ = writeln!(text, "{peer} {name}");
        }
        let checksum = crc32c::crc32c(text.as_bytes());
        let _ = writeln!(text, "{CHECKSUM}{checksum:08x}");
        text
    }

    /// Loads the pairs of a [text](TrustedPeers::text) whose users still exist.
    ///
    /// # Errors
    /// [`TrustedPeersDamaged`] if the text is damaged; no pairs are loaded.
    pub fn load_text(
        &mut self,
        text: &[u8],
        user: impl Fn(&str) -> Option<usize>,
    ) -> Result<(), TrustedPeersDamaged>
    where
        P: FromStr,
    {
        let pairs = read_pairs(text).ok_or(TrustedPeersDamaged)?;
        // The text lists the latest pairs first; recording in reverse makes them the last ones here.
        for (peer, name) in pairs.into_iter().rev() {
            if let Some(user) = user(name) {
                self.record(user, peer);
            }
        }
        self.is_changed = false;
        Ok(())
    }
}

/// Parses a [text](TrustedPeers::text) into pairs of peer and user name; `None` if it is damaged.
fn read_pairs<P: FromStr>(text: &[u8]) -> Option<Vec<(P, &str)>> {
    let text = std::str::from_utf8(text).ok().filter(|text| text.len() <= TRUSTED_TEXT_LEN_MAX)?;
    let (lines, end) = text.strip_suffix('\n')?.rsplit_once('\n')?;
    let lines_len = lines.len() + 1;
    let checksum = crc32c::crc32c(&text.as_bytes()[..lines_len]);
    if end != format!("{CHECKSUM}{checksum:08x}") {
        return None;
    }
    let mut lines = lines.split('\n');
    if lines.next() != Some(HEADING) {
        return None;
    }
    let pair = |line| str::split_once(line, ' ').and_then(|(peer, name)| Some((peer.parse().ok()?, name)));
    lines.map(pair).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const NAMES: [&str; 3] = ["ANNA", "BERT", "NEW\nLINE"];

    fn place(name: &str) -> Option<usize> {
        NAMES.iter().position(|known| *known == name)
    }

    fn text(trusted: &TrustedPeers<u32>) -> String {
        trusted.text(|user| NAMES.get(user).copied())
    }

    /// ANNA at peers 1 to 20, of which 5 to 20 are kept; BERT at peer 7; two users that the text omits.
    fn trusted() -> TrustedPeers<u32> {
        let mut trusted = TrustedPeers::new(4);
        (1..=20).for_each(|peer| assert!(trusted.record(0, peer)));
        assert!(trusted.record(1, 7) && trusted.record(2, 7) && trusted.record(3, 7));
        assert!(!trusted.record(0, 5), "known, and the latest now");
        trusted
    }

    #[test]
    fn pairs_are_loaded_from_text_in_order() {
        let before = trusted();
        let mut after = TrustedPeers::new(2);
        after.load_text(text(&before).as_bytes(), place).unwrap();
        assert_eq!(text(&after), text(&before));
        assert!(!after.take_changed(), "nothing to be written");
        assert!(after.record(0, 21) && after.take_changed() && !after.take_changed());
        assert_eq!([5, 6, 7].map(|peer| after.contains(0, peer)), [true, false, true], "the oldest gave way");
        let mut other = TrustedPeers::<u32>::new(2);
        other.load_text(text(&before).as_bytes(), |name| place(name).filter(|user| *user == 1)).unwrap();
        assert!(other.contains(1, 7) && !other.contains(0, 5), "a user that has gone");
    }

    #[test]
    fn any_change_of_the_text_is_detected() {
        let valid = text(&trusted()).into_bytes();
        let is_damaged = |text: &[u8]| {
            let mut trusted = TrustedPeers::<u32>::new(2);
            let is_damaged = trusted.load_text(text, place) == Err(TrustedPeersDamaged);
            assert!(!is_damaged || !trusted.contains(1, 7));
            is_damaged
        };
        assert!(!is_damaged(&valid));
        assert!((0..valid.len()).all(|len| is_damaged(&valid[..len])));
        assert!((0..8 * valid.len()).all(|bit| {
            let mut bad = valid.clone();
            bad[bit / 8] ^= 1 << (bit % 8);
            is_damaged(&bad)
        }));
        assert!(is_damaged(&[&valid[..], b"x\n"].concat()));
    }

    #[test]
    fn the_text_is_bounded_and_lists_each_user_first() {
        let mut trusted = TrustedPeers::new(PAIRS_MAX - 1);
        (0..PAIRS_MAX - 1).for_each(|user| {
            trusted.record(user, u128::MAX);
            trusted.record(user, user as u128);
        });
        let name = "N".repeat(NAME_LEN_MAX);
        let text = trusted.text(|_| Some(name.as_str()));
        assert_eq!(text.lines().count(), PAIRS_MAX + 2);
        assert_eq!(text.lines().filter(|line| line.starts_with(&u128::MAX.to_string())).count(), 1);
        assert!(text.len() <= TRUSTED_TEXT_LEN_MAX);
        assert_eq!(trusted.text(|_| Some(&*"N".repeat(65).leak())).lines().count(), 2);
    }
}
