//! The label of an order at the venue, which identifies the order later.
//!
//! `tp` and seven characters of a hash of the gateway's name, then, separated by dots, the session, the
//! gateway's order id, the client's order id - numbers to the base 36 - and the user:
//! `tp0k3v9q1.t6h2c0.5yc1t.rt.trader`. The longest has 64 characters, the venue's maximum.

use tickpath_deribit::prepared::PlainLabel;

/// Maximum length of a user's name in a label; a longer one is replaced by its hash.
const USER_LEN_MAX: usize = 18;
const DIGITS: &[u8; 36] = b"0123456789abcdefghijklmnopqrstuvwxyz";
/// Length of a hash: the largest 32-bit number to the base 36.
const HASH_LEN: usize = 7;
/// Length of the prefix before the session: `tp` and the hash of the gateway's name.
const PREFIX_LEN: usize = 2 + HASH_LEN;

/// Largest session number: seven digits to the base 36.
pub const SESSION_MAX: u64 = 36_u64.pow(7) - 1;
/// 2020-01-01 in milliseconds since 1970.
const EPOCH_MS: u64 = 1_577_836_800_000;

/// Session number of a start time since the Unix epoch: hundredths of a second since 2020; enough until 2044.
#[must_use]
pub const fn session_at(now: tickpath_types::Nanos) -> u64 {
    ((now.0 / 1_000_000).saturating_sub(EPOCH_MS) / 10) % (SESSION_MAX + 1)
}

/// Start time of a session, in ms since 1970.
#[must_use]
pub const fn begun_ms(session: u64) -> u64 {
    EPOCH_MS.saturating_add(session.saturating_mul(10))
}

/// Label codec of one gateway instance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LabelMark {
    prefix: [u8; PREFIX_LEN],
    session: u64,
    /// Common prefix of this instance's labels, up to the dot after the session.
    beginning: PlainLabel,
}

/// Parts of a label of this gateway.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LabelParts<'a> {
    /// Session of the gateway instance that entered the order.
    pub session: u64,
    /// The gateway's order id in that instance.
    pub gateway_order_id: u64,
    /// The client's order id.
    pub client_order_id: u64,
    /// The user's name as in labels, see [`user_tag`].
    pub user: &'a str,
}

impl LabelMark {
    /// Creates the codec for a gateway's name and an instance's session, which differs between instances, see
    /// [`session_at`], and is at most [`SESSION_MAX`].
    #[must_use]
    pub fn new(name: &str, session: u64) -> LabelMark {
        let mut prefix = *b"tp0000000";
        write_hash(fnv(name), &mut prefix[2..]);
        LabelMark::of(prefix, session)
    }

    fn of(prefix: [u8; PREFIX_LEN], session: u64) -> LabelMark {
        let mut beginning = PlainLabel::EMPTY;
        beginning.push(std::str::from_utf8(&prefix).expect("digits and letters are ASCII"));
        beginning.push(".");
        beginning.push_base36(session);
        LabelMark { prefix, session, beginning }
    }

    /// Session of this instance.
    #[must_use]
    pub const fn session(&self) -> u64 {
        self.session
    }

    /// Returns the codec for another instance of the same gateway.
    #[must_use]
    pub fn of_session(&self, session: u64) -> LabelMark {
        LabelMark::of(self.prefix, session)
    }

    /// Returns the label of an order. `user` is a [`user_tag`].
    #[inline]
    #[must_use]
    pub fn label(&self, gateway_order_id: u64, client_order_id: u64, user: &str) -> PlainLabel {
        let mut label = self.beginning;
        label.push_base36(gateway_order_id);
        label.push_base36(client_order_id);
        label.push(user);
        label
    }

    /// Decodes a label; none if no instance of this gateway wrote it.
    #[must_use]
    pub fn read<'a>(&self, label: &'a str) -> Option<LabelParts<'a>> {
        let rest = label.strip_prefix(std::str::from_utf8(&self.prefix).ok()?)?.strip_prefix('.')?;
        let (session, rest) = rest.split_once('.')?;
        let (gateway_order_id, rest) = rest.split_once('.')?;
        let (client_order_id, user) = rest.split_once('.')?;
        Some(LabelParts {
            session: number(session).filter(|session| *session <= SESSION_MAX)?,
            gateway_order_id: number(gateway_order_id)?,
            client_order_id: number(client_order_id)?,
            user,
        })
    }
}

/// A user's name as in labels: unchanged if it is short and plain, otherwise a hash.
#[must_use]
pub fn user_tag(name: &str) -> String {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
    if !name.is_empty() && name.len() <= USER_LEN_MAX && name.bytes().all(is_plain) {
        return name.to_owned();
    }
    let mut hash = [0; HASH_LEN];
    write_hash(fnv(name), &mut hash);
    format!("~{}", std::str::from_utf8(&hash).expect("digits are ASCII"))
}

/// FNV-1a, 32 bits.
fn fnv(text: &str) -> u32 {
    text.bytes().fold(0x811c_9dc5, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193))
}

fn write_hash(mut hash: u32, out: &mut [u8]) {
    for digit in out.iter_mut().rev() {
        *digit = DIGITS[(hash % 36) as usize];
        hash /= 36;
    }
}

/// Parses a number as in labels: no sign, no capital letters, no leading zeros.
fn number(text: &str) -> Option<u64> {
    let is_plain = !text.is_empty()
        && (text == "0" || !text.starts_with('0'))
        && text.bytes().all(|byte| DIGITS.contains(&byte));
    if is_plain { u64::from_str_radix(text, 36).ok() } else { None }
}

#[cfg(test)]
mod tests {
    use tickpath_deribit::prepared::LABEL_LEN_MAX;

    use super::*;

    #[test]
    fn a_label_says_what_it_was_made_of_and_fits() {
        let mark = LabelMark::new("deribit", 1_795_000_000);
        let label = mark.label(10_000_001, 1001, "trader");
        let parts = mark.read(label.as_str()).unwrap();
        assert_eq!((parts.gateway_order_id, parts.client_order_id), (10_000_001, 1001));
        assert_eq!((parts.session, parts.user), (1_795_000_000, "trader"));
        let longest = LabelMark::new("x", SESSION_MAX).label(u64::MAX, u64::MAX, &"u".repeat(USER_LEN_MAX));
        assert_eq!(longest.as_str().len(), LABEL_LEN_MAX);
        let parts = mark.read(mark.label(u64::MAX, 0, "u").as_str()).map(|parts| parts.gateway_order_id);
        assert_eq!(parts, Some(u64::MAX));
    }

    #[test]
    fn a_session_says_when_it_began() {
        let now = tickpath_types::Nanos::from_secs(1_795_000_000);
        assert_eq!(begun_ms(session_at(now)), 1_795_000_000_000);
    }

    #[test]
    fn labels_of_others_are_not_ours() {
        let (mark, other) = (LabelMark::new("a", 7), LabelMark::new("b", 7));
        let label = mark.label(1, 2, "u");
        assert_eq!(other.read(label.as_str()), None);
        assert!(LabelMark::new("a", 8).read(label.as_str()).is_some());
        let text = label.as_str();
        for cut in 0..text.len() - 1 {
            assert_eq!(mark.read(&text[..cut]), None, "{cut}");
        }
        for bad in ["", "O-1", "tp", "tp0000000.1.2.3.u"] {
            assert_eq!(mark.read(bad), None);
        }
        let prefix = &text[..PREFIX_LEN];
        for bad in [".01.2.3.u", ".+1.2.3.u", ".1.A.3.u", "..2.3.u", ".zzzzzzzz.1.1.u"] {
            assert_eq!(mark.read(&format!("{prefix}{bad}")), None, "{bad}");
        }
    }

    #[test]
    fn a_long_or_strange_name_becomes_a_hash() {
        assert_eq!(user_tag("trader-1_x"), "trader-1_x");
        for name in ["", "a.b", "a name of more than eighteen characters", "\u{e9}"] {
            let tag = user_tag(name);
            assert!(tag.starts_with('~') && tag.len() == 8, "{tag}");
        }
        assert_ne!(user_tag("a.b"), user_tag("a.c"));
    }
}
