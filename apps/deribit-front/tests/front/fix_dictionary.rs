//! The data dictionary for clients' FIX engines must cover every message that the venue sends.

use std::collections::{HashMap, HashSet};
use std::sync::LazyLock;

use tickpath_fix::{Message, tag};

use crate::front::fix_client::shown;

const XML: &str = include_str!("../../../../tests/interop/java/src/main/resources/deribit.xml");

/// Tags by message type; those of the header have an empty type.
static TAGS: LazyLock<HashMap<&str, HashSet<u32>>> = LazyLock::new(|| {
    let value = |line: &'static str, name: &str| -> Option<&'static str> {
        let (_, rest) = line.split_once(&format!(" {name}=\""))?;
        rest.split_once('"').map(|(value, _)| value)
    };
    let numbers: HashMap<&str, u32> = XML
        .lines()
        .filter_map(|line| Some((value(line, "name")?, value(line, "number")?.parse().ok()?)))
        .collect();
    let mut tags: HashMap<&str, HashSet<u32>> = HashMap::new();
    let mut msg_type = "";
    for line in XML.lines() {
        if line.contains("<fields>") {
            break;
        }
        if line.contains("<message ") {
            msg_type = value(line, "msgtype").unwrap();
        } else if line.contains("<field ") || line.contains("<group ") {
            let name = value(line, "name").unwrap();
            tags.entry(msg_type).or_default().insert(numbers[name]);
        }
    }
    tags
});

/// Checks that a message of the venue has only fields that the dictionary lists for its type.
#[track_caller]
pub fn check(message: &Message<'_>) {
    let msg_type = message.msg_type();
    let own = TAGS.get(msg_type.as_str()).unwrap_or_else(|| panic!("{msg_type:?} is in no dictionary"));
    for field in message.fields().map(Result::unwrap) {
        let is_known = own.contains(&field.tag) || TAGS[""].contains(&field.tag);
        assert!(is_known || field.tag == tag::CHECK_SUM, "{}: {}", field.tag, shown(message.as_bytes()));
    }
}

#[test]
fn the_dictionary_is_read() {
    assert!(TAGS["8"].contains(&tag::FILL_EXEC_ID) && !TAGS["9"].contains(&tag::FILL_EXEC_ID));
    assert!(TAGS[""].contains(&tag::SENDING_TIME) && TAGS.len() > 30);
}
