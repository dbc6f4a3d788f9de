//! docs/protocols/layouts.md: the tables of every message, made from the declarations of `protocols/nasdaq`.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result, ensure};

use crate::print_stdout::print_stdout;
use crate::tidy::{Problem, Tree};

const PAGE: &str = "docs/protocols/layouts.md";
/// Sections of the page, each with the source file that declares its messages.
const SECTIONS: [(&str, &str); 5] = [
    ("MoldUDP64", "protocols/nasdaq/src/moldudp64/header.rs"),
    ("OUCH, client to venue", "protocols/nasdaq/src/ouch50/inbound.rs"),
    ("OUCH, venue to client", "protocols/nasdaq/src/ouch50/outbound.rs"),
    ("ITCH", "protocols/nasdaq/src/itch50/messages.rs"),
    ("GLIMPSE", "protocols/nasdaq/src/glimpse.rs"),
];
/// Source files that declare the one-byte codes.
const CODES: [&str; 2] = ["protocols/nasdaq/src/ouch50/codes.rs", "protocols/nasdaq/src/itch50/codes.rs"];
/// The fields that every ITCH message has after its type.
const ITCH_HEAD: [(usize, &str, &str, &str); 3] = [
    (
        1,
        "stock_locate",
        "Locate",
        "Day-unique index of the symbol; 0 when the message is about the whole system.",
    ),
    (3, "tracking_number", "U16", "Internal tracking number."),
    (5, "timestamp", "Timestamp", "Time of the event."),
];

/// Writes the tables into the page.
pub fn run(root: &Path) -> Result<bool> {
    let tree = Tree::open(root)?;
    let old = page(&tree)?;
    let new = filled(&tree, &old)?;
    if new != old {
        fs::write(root.join(PAGE), &new).with_context(|| format!("cannot write {PAGE}"))?;
    }
    print_stdout(format_args!("{PAGE}: {}", if new == old { "up to date" } else { "written" }));
    Ok(true)
}

/// Reports the page if its tables differ from the declarations. Reports nothing in a tree without the page.
pub fn check(tree: &Tree) -> Result<Vec<Problem>> {
    if !tree.files().iter().any(|path| path == PAGE) {
        return Ok(Vec::new());
    }
    let old = page(tree)?;
    let is_right = filled(tree, &old)? == old;
    let problem =
        || Problem::in_file(PAGE, "its tables differ from protocols/nasdaq: run cargo xtask layouts");
    Ok((!is_right).then(problem).into_iter().collect())
}

fn page(tree: &Tree) -> Result<String> {
    read(tree, PAGE)
}

fn read(tree: &Tree, path: &str) -> Result<String> {
    tree.read_text(path)?.with_context(|| format!("{path} is not text"))
}

/// Returns the page with the generated tables between the marks of each section.
fn filled(tree: &Tree, page: &str) -> Result<String> {
    let mut page = page.to_owned();
    for (section, path) in SECTIONS {
        let (begin, end) = (format!("<!-- layouts: {section} -->\n"), "<!-- layouts: end -->");
        let start = page.find(&begin).with_context(|| format!("{PAGE} has no line {begin}"))? + begin.len();
        let len =
            page[start..].find(end).with_context(|| format!("{PAGE} has no line {end} after {begin}"))?;
        let file = CODES.iter().find(|codes| Path::new(codes).parent() == Path::new(path).parent());
        let codes = match file {
            Some(file) => codes(&read(tree, file)?),
            None => BTreeMap::new(),
        };
        let messages = messages(&read(tree, path)?);
        ensure!(!messages.is_empty(), "{path} declares no message");
        page.replace_range(start..start + len, &tables(&messages, &codes));
    }
    Ok(page)
}

/// A field of a message: offset, name, type and meaning.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Field {
    offset: usize,
    name: String,
    wire: String,
    doc: String,
}

/// A message, or a structure that messages contain, which has no code.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Message {
    name: String,
    code: Option<char>,
    len: usize,
    doc: String,
    fields: Vec<Field>,
}

/// Parses the messages of a source: `NAME = b'X', LEN, ... {` or `NAME, LEN => {`, then `OFFSET name: Type,`.
fn messages(source: &str) -> Vec<Message> {
    let (mut doc, mut common, mut open, mut all) = (String::new(), Vec::new(), None::<Message>, Vec::new());
    let is_itch = source.contains("itch_messages! {");
    for line in source.lines().map(str::trim) {
        if let Some(text) = line.strip_prefix("/// ") {
            doc = if doc.is_empty() { text.to_owned() } else { format!("{doc} {text}") };
            continue;
        }
        let text = std::mem::take(&mut doc);
        if let Some(message) = &mut open {
            if line == "}" {
                all.extend(open.take());
            } else if let Some(field) = field(line, &text) {
                message.fields.push(field);
            }
        } else if let Some(rest) = line.strip_prefix("common ") {
            common.extend(field(rest, &text));
        } else if let Some((name, code, len)) = opening(line) {
            let head = ITCH_HEAD.map(|(offset, name, wire, doc)| Field {
                offset,
                name: name.to_owned(),
                wire: wire.to_owned(),
                doc: doc.to_owned(),
            });
            let fields = match code {
                Some(_) if is_itch => head.to_vec(),
                Some(_) => common.clone(),
                None => Vec::new(),
            };
            let message = Message { name, code, len, doc: text, fields };
            if line.ends_with("{}") { all.push(message) } else { open = Some(message) }
        }
    }
    expanded(all)
}

fn field(line: &str, doc: &str) -> Option<Field> {
    let (offset, rest) = line.split_once(' ')?;
    let (name, wire) = rest.strip_suffix(',')?.split_once(": ")?;
    let [name, wire, doc] = [name, wire, doc].map(str::to_owned);
    Some(Field { offset: offset.parse().ok()?, name, wire, doc })
}

fn opening(line: &str) -> Option<(String, Option<char>, usize)> {
    let line = line.strip_suffix('{').or_else(|| line.strip_suffix("{}"))?;
    if let Some((name, rest)) = line.split_once(" = b'") {
        let len = rest.get(3..)?.trim_start().split([',', ' ']).next()?.parse().ok()?;
        return Some((name.to_owned(), rest.chars().next(), len));
    }
    let (name, len) = line.trim_end().strip_suffix("=>")?.split_once(", ")?;
    Some((name.to_owned(), None, len.trim().parse().ok()?))
}

/// Replaces each structure within a message by the structure's fields.
fn expanded(all: Vec<Message>) -> Vec<Message> {
    let parts: Vec<Message> = all.iter().filter(|message| message.code.is_none()).cloned().collect();
    let is_part =
        |name: &str| all.iter().any(|message| message.fields.iter().any(|field| field.wire == name));
    let kept: Vec<Message> = all.iter().filter(|message| !is_part(&message.name)).cloned().collect();
    let inlined = |field: Field| match parts.iter().find(|part| part.name == field.wire) {
        Some(part) => {
            let moved = |inner: &Field| Field { offset: field.offset + inner.offset, ..inner.clone() };
            part.fields.iter().map(moved).collect()
        }
        None => vec![field],
    };
    let message = |message: Message| Message {
        fields: message.fields.into_iter().flat_map(inlined).collect(),
        ..message
    };
    kept.into_iter().map(message).collect()
}

/// Returns, for each type of one-byte codes, its values with their meanings.
fn codes(source: &str) -> BTreeMap<String, String> {
    let (mut all, mut open) = (BTreeMap::new(), None::<String>);
    for line in source.lines() {
        if let Some(name) = line.strip_prefix("    ").and_then(|line| line.strip_suffix(" {")) {
            open = name.chars().all(char::is_alphanumeric).then(|| name.to_owned());
        } else if line.starts_with("    }") {
            open = None;
        } else if let (Some(name), Some((_, value))) = (&open, line.split_once(" = b'")) {
            let mut parts = value.splitn(3, ['\'', '"']);
            let (Some(code), Some(_), Some(meaning)) = (parts.next(), parts.next(), parts.next()) else {
                continue;
            };
            let values: &mut String = all.entry(name.clone()).or_default();
            let separator = if values.is_empty() { "" } else { ", " };
            let code = if code == " " { "space" } else { code };
            let _ = write!(values, "{separator}`{code}` {}", meaning.trim_end_matches(['"', ',']));
        }
    }
    all
}

fn tables(messages: &[Message], codes: &BTreeMap<String, String>) -> String {
    let mut text = String::new();
    for Message { name, code, len, doc, fields } in messages {
        let title = title(name);
        let code = code.map_or_else(String::new, |code| format!("`{code}` "));
        let _ = write!(text, "\n### {code}{title}, {len} bytes\n\n{}\n\n", plain(doc));
        text.push_str("| offset | length | field | type | meaning |\n|---|---|---|---|---|\n");
        if !code.is_empty() {
            let _ = writeln!(text, "| 0 | 1 | type | code | {code}|");
        }
        let ends = fields.iter().skip(1).map(|field| field.offset).chain([*len]);
        for (Field { offset, name, wire, doc }, end) in fields.iter().zip(ends) {
            let (doc, kind) = (plain(doc), kind(wire, codes));
            let values = codes.get(wire).map_or_else(String::new, |values| format!(" {values}"));
            let _ = writeln!(text, "| {offset} | {} | {name} | {kind} | {doc}{values} |", end - offset);
        }
    }
    text.push('\n');
    text
}

/// Splits a name into words: `EnterOrder` becomes `Enter Order`.
fn title(name: &str) -> String {
    let mut title = String::new();
    for c in name.chars() {
        if c.is_uppercase() && !title.is_empty() {
            title.push(' ');
        }
        title.push(c);
    }
    title
}

fn kind(wire: &str, codes: &BTreeMap<String, String>) -> &'static str {
    match wire {
        _ if codes.contains_key(wire) => "code",
        "ShortPrice" | "LongPrice" => "price",
        "Timestamp" | "LongTimestamp" => "time",
        "Stock" | "Session" => "text",
        _ if wire.starts_with("Alpha<") => "text",
        _ => "integer",
    }
}

/// Converts a doc comment to plain text: a link to an item becomes the link's text.
fn plain(doc: &str) -> String {
    let mut text = String::new();
    let mut rest = doc;
    while let Some(start) = rest.find('[') {
        let link =
            rest[start..].find(']').map(|end| (&rest[start + 1..start + end], &rest[start + end + 1..]));
        let Some((words, after)) = link else { break };
        text.push_str(&rest[..start]);
        text.push_str(words);
        rest = after
            .strip_prefix('(')
            .and_then(|target| target.split_once(')'))
            .map_or(after, |(_, after)| after);
    }
    text + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOURCE: &str = "\
layout! {
    /// The rest.
    Part, 3 => {
        /// Which way.
        0 side: Side,
        /// How it ends.
        1 text: Alpha<2>,
    }
}
ouch_messages! {
    Outbound {
        /// When.
        common 1 timestamp: LongTimestamp,
    }
    /// Order Accepted (`A`), see [`Part`](super::Part).
    OrderAccepted = b'A', 16, options Always, \"Order Accepted\" {
        /// The number.
        9 user_ref: UserRef,
        /// The rest.
        13 part: Part,
    }
    /// Nothing.
    Query = b'Q', 1, options Maybe, \"Query\" {}
}
";

    #[test]
    fn messages_are_read_with_what_they_share_and_contain() {
        let all = messages(SOURCE);
        let names: Vec<_> =
            all.iter().map(|message| (message.name.as_str(), message.code, message.len)).collect();
        assert_eq!(names, [("OrderAccepted", Some('A'), 16), ("Query", Some('Q'), 1)]);
        let fields: Vec<_> = all[0].fields.iter().map(|field| (field.offset, field.name.as_str())).collect();
        assert_eq!(fields, [(1, "timestamp"), (9, "user_ref"), (13, "side"), (14, "text")]);
    }

    #[test]
    fn tables_have_lengths_types_and_codes() {
        let codes = codes(
            "codes! {\n    /// Side.\n    Side {\n        BUY = b'B' \"buy\",\n        NONE = b' ' \"none\",\n    }\n}\n",
        );
        let text = tables(&messages(SOURCE), &codes);
        for line in [
            "### `A` Order Accepted, 16 bytes",
            "Order Accepted (`A`), see `Part`.",
            "| 0 | 1 | type | code | `A` |",
            "| 1 | 8 | timestamp | time | When. |",
            "| 9 | 4 | user_ref | integer | The number. |",
            "| 13 | 1 | side | code | Which way. `B` buy, `space` none |",
            "| 14 | 2 | text | text | How it ends. |",
        ] {
            assert!(text.contains(line), "{line}\n{text}");
        }
    }
}
