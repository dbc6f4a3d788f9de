//! JSON formatted for people, with secrets removed.

/// Members whose values are hidden.
pub(crate) const SECRETS: [&str; 5] =
    ["access_token", "refresh_token", "client_secret", "signature", "password"];
/// The replacement for a hidden value.
const HIDDEN: &str = "\"(not shown)\"";

/// Formats JSON on several lines without secrets; digits and the order of members are kept. Invalid JSON,
/// such as the start of a long message, is formatted as far as possible.
#[must_use]
pub fn pretty(json: &str) -> String {
    walk(json, true)
}

/// Formats JSON on one line in the same way.
#[must_use]
pub fn one_line(json: &str) -> String {
    walk(json, false)
}

fn walk(json: &str, is_pretty: bool) -> String {
    let mut out = String::with_capacity(json.len() * 2);
    let mut depth = 0_usize;
    let mut rest = json.trim_start();
    let mut last_text = "";
    let mut is_hidden = false;
    let new_line = |out: &mut String, depth: usize| {
        if is_pretty {
            out.push('\n');
            out.extend(std::iter::repeat_n("  ", depth));
        }
    };
    while let Some(first) = rest.chars().next() {
        let len = match first {
            '"' => string_len(rest),
            '{' | '}' | '[' | ']' | ',' | ':' => 1,
            _ => rest.find(['{', '}', '[', ']', ',', ':', '"']).unwrap_or(rest.len()),
        };
        let (token, behind) = rest.split_at(len);
        let (token, behind) = (token.trim_end(), behind.trim_start());
        match first {
            '{' | '[' => {
                depth += 1;
                out.push_str(token);
                if !behind.starts_with(['}', ']']) {
                    new_line(&mut out, depth);
                }
            }
            '}' | ']' => {
                depth = depth.saturating_sub(1);
                if !out.ends_with(['{', '[']) {
                    new_line(&mut out, depth);
                }
                out.push_str(token);
            }
            ',' => {
                out.push(',');
                new_line(&mut out, depth);
            }
            ':' => {
                out.push(':');
                if is_pretty {
                    out.push(' ');
                }
                is_hidden = SECRETS.contains(&last_text.trim_matches('"'));
            }
            _ => out.push_str(if std::mem::take(&mut is_hidden) { HIDDEN } else { token }),
        }
        last_text = token;
        rest = behind;
    }
    out
}

/// Length of the string at the start of `text`, in bytes, including both quotes.
fn string_len(text: &str) -> usize {
    let mut is_escaped = false;
    for (at, byte) in text.bytes().enumerate().skip(1) {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' => is_escaped = true,
            b'"' => return at + 1,
            _ => {}
        }
    }
    text.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_is_laid_out_and_digits_stay() {
        let json = r#"{"a":[1.0,{"b":"x\"}"}],"c":{},"d":[]}"#;
        let text = "{\n  \"a\": [\n    1.0,\n    {\n      \"b\": \"x\\\"}\"\n    }\n  ],\n  \"c\": {},\n  \"d\": []\n}";
        assert_eq!(pretty(json), text);
        assert_eq!(one_line(&pretty(json)), json);
    }

    #[test]
    fn secrets_are_not_shown() {
        let json = r#"{"params":{"client_id":"me","client_secret":"s3cr\"et","signature":"abc"},"refresh_token" : "t"}"#;
        let text = one_line(json);
        assert!(
            text.contains("me") && !text.contains("s3cr") && !text.contains("abc") && !text.contains("\"t\"")
        );
        assert_eq!(text.matches("not shown").count(), 3);
    }

    #[test]
    fn what_is_no_json_is_shown_as_far_as_it_goes() {
        for text in ["", "}", "{\"a", "\"\\", "nonsense", "{\"a\":\"\u{fffd}", "]]]"] {
            let _ = (pretty(text), one_line(text));
        }
        assert_eq!(one_line("{\"access_token\":\"cut of"), "{\"access_token\":\"(not shown)\"");
    }
}
