//! Names of the venue's session: the configured or generated name, and the name that clients see.

use tickpath_nasdaq::moldudp64::Session;

/// Maximum length of a session name in SoupBinTCP and MoldUDP64.
const LEN_MAX: usize = 10;
const DIGITS: &[u8; 36] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ";
/// Separator between name and generation.
const MARK: u8 = b'~';

/// The name of a session as clients see it: in generation 0 the name itself; in later generations with the
/// suffix `~1`, `~2` ... in base 36. If the result is too long, the name loses its first characters. `None`
/// when the name without a suffix is too long.
///
/// A changed name tells clients that sequence numbers may now denote other messages than under the previous
/// name. The log determines the generation.
#[must_use]
pub fn wire_name(name: &str, generation: u32) -> Option<Session> {
    if generation == 0 || name.len() > LEN_MAX {
        return Session::new(name);
    }
    let mut suffix = Vec::with_capacity(LEN_MAX);
    let mut rest = generation;
    while rest > 0 {
        suffix.push(DIGITS[(rest % 36) as usize]);
        rest /= 36;
    }
    suffix.push(MARK);
    suffix.reverse();
    let kept = name.len().min(LEN_MAX - suffix.len());
    let bytes = [&name.as_bytes()[name.len() - kept..], &suffix].concat();
    Session::new(std::str::from_utf8(&bytes).ok()?)
}

/// Checks a session name from the configuration: 1 to 10 letters, digits, `-` or `_`. The name also becomes a
/// folder name when the session is archived; `~` is excluded because it precedes the generation on the wire.
#[must_use]
pub fn parse_session_name(name: &str) -> Option<Session> {
    let is_word = |byte: u8| byte.is_ascii_alphanumeric() || b"-_".contains(&byte);
    Session::new(name).filter(|_| !name.is_empty() && name.bytes().all(is_word))
}

/// A generated session name: `TP`, then the start time in ms since 1970 in 8 base-36 digits (until 2059).
#[must_use]
pub fn session_name_at(mut millis: u128) -> String {
    let mut name = *b"TP00000000";
    for place in name[2..].iter_mut().rev() {
        *place = DIGITS[(millis % 36) as usize];
        millis /= 36;
    }
    name.map(char::from).iter().collect()
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn every_generation_has_a_unique_name() {
        for (name, generation, expected) in [
            ("MONDAY", 0, "MONDAY"),
            ("MONDAY", 1, "MONDAY~1"),
            ("MONDAY", 36, "MONDAY~10"),
            ("TP0MHX3ABC", 1, "0MHX3ABC~1"),
            ("TENLETTERS", 35 * 36, "LETTERS~Z0"),
            ("A", u32::MAX, "A~1Z141Z3"),
            ("TENLETTERS", u32::MAX, "RS~1Z141Z3"),
        ] {
            assert_eq!(wire_name(name, generation), Session::new(expected), "{name} {generation}");
        }
        assert_eq!(wire_name("ELEVENCHARS", 0), None);
        assert_eq!(wire_name("ELEVENCHARS", 1), None);
        let names: HashSet<_> = (0..2_000).map(|it| wire_name("TENLETTERS", it).unwrap()).collect();
        assert_eq!(names.len(), 2_000);
    }

    #[test]
    fn session_names_encode_the_start_time() {
        assert_eq!(session_name_at(0), "TP00000000");
        assert_eq!(session_name_at(36 * 36 + 35), "TP0000010Z");
        assert_ne!(session_name_at(1_795_000_000_000), session_name_at(1_795_000_000_001), "1 ms later");
    }
}
