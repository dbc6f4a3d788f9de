//! Checks that the structures and constants in the C header and in the Python module match those generated
//! from the protocol's own structures.
//!
//! `TICKPATH_WRITE=1 cargo test -p tickpath-gateway-c --test generated` writes them.
#![allow(clippy::unwrap_used)]

use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};

use tickpath_gateway_protocol::{
    AckStatus, AckType, BookUpdate, ConnectionStatus, ErrorCode, EventHeader, EventKind, ExecutionFlags,
    Field, FieldKind, Fields, GatewayState, InstrumentKind, Level, Liquidity, MarketState, OptionType,
    OrderStatus, OrderType, Origin, RateLimitKind, RateLimitReason, ReadyScope, RequestHeader, RequestKind,
    Side, Statistic, StatisticKind, TickDirection, TimeInForce, Transport, Trigger, UpdateKind, body_fields,
    flags, frame, request_fields,
};

const BEGIN: &str = "generated from here on";
const END: &str = "enerated up to here";

/// Names of constants and their values.
fn codes() -> Vec<(&'static str, Vec<(String, u64)>)> {
    macro_rules! all {
        ($($name:ident $prefix:literal),* $(,)?) => {
            vec![$((
                $prefix,
                $name::ALL.iter().map(|code| (upper(code.name().unwrap()), u64::from(code.0))).collect(),
            )),*]
        };
    }
    let mut codes = all! {
        EventKind "EVENT", RequestKind "REQUEST", Side "SIDE", OrderType "ORDER_TYPE", TimeInForce "TIME_IN_FORCE",
        Trigger "TRIGGER", ExecutionFlags "EXECUTION", OrderStatus "ORDER_STATUS", Origin "ORIGIN",
        AckStatus "ACK_STATUS", AckType "ACK_TYPE", ErrorCode "ERROR", Liquidity "LIQUIDITY", UpdateKind "UPDATE",
        BookUpdate "BOOK_UPDATE", InstrumentKind "INSTRUMENT_KIND", OptionType "OPTION_TYPE",
        MarketState "MARKET_STATE", TickDirection "TICK_DIRECTION", StatisticKind "STATISTIC",
        ConnectionStatus "CONNECTION_STATUS", GatewayState "GATEWAY_STATE", Transport "TRANSPORT",
        ReadyScope "READY_SCOPE", RateLimitKind "RATE_LIMIT", RateLimitReason "RATE_LIMIT_REASON",
    };
    let bits = [
        ("LAST_IN_BATCH", flags::LAST_IN_BATCH),
        ("BROADCAST", flags::BROADCAST),
        ("DOWNLOAD", flags::DOWNLOAD),
    ];
    codes.push(("FLAG", bits.iter().map(|(name, bit)| ((*name).to_owned(), u64::from(*bit))).collect()));
    let bits = [
        ("TRADING", frame::capability::TRADING),
        ("CANCEL_ON_DISCONNECT", frame::capability::CANCEL_ON_DISCONNECT),
        ("PRODUCTION", frame::capability::PRODUCTION),
        ("DRY_RUN", frame::capability::DRY_RUN),
    ];
    codes
        .push(("CAPABILITY", bits.iter().map(|(name, bit)| ((*name).to_owned(), u64::from(*bit))).collect()));
    codes
}

fn upper(name: &str) -> String {
    name.to_ascii_uppercase()
}

/// Names of structures and their fields.
fn structures() -> Vec<(String, &'static [Field])> {
    let mut all: Vec<(String, &'static [Field])> = vec![
        ("event_header".to_owned(), EventHeader::FIELDS),
        ("request_header".to_owned(), RequestHeader::FIELDS),
        ("level".to_owned(), Level::FIELDS),
        ("statistic".to_owned(), Statistic::FIELDS),
    ];
    for kind in EventKind::ALL {
        let name = match *kind {
            EventKind::MASS_QUOTE_ACK => "quote_ack".to_owned(),
            EventKind::CANCEL_QUOTES_ACK | EventKind::CANCEL_ALL_ACK => continue,
            kind => kind.to_string(),
        };
        all.push((name, body_fields(*kind).unwrap()));
    }
    all.extend(
        RequestKind::ALL.iter().map(|kind| (format!("{kind}_request"), request_fields(*kind).unwrap())),
    );
    all
}

fn c_field(field: &Field) -> String {
    let name = field.name;
    match (field.kind, field.len) {
        (FieldKind::Unsigned, 16) => format!("uint64_t {name}[2]"),
        (FieldKind::Unsigned | FieldKind::Code, len) => format!("uint{}_t {name}", len * 8),
        (FieldKind::Fixed, _) => format!("int64_t {name}"),
        (FieldKind::Money, _) => format!("tp_money {name}"),
        (FieldKind::Text, len) => format!("char {name}[{len}]"),
        (FieldKind::Array, 96) if name == "figures" => format!("tp_statistic {name}[6]"),
        (FieldKind::Array, 96) => format!("tp_level {name}[6]"),
        (_, len) => format!("uint8_t {name}[{len}]"),
    }
}

fn python_field(field: &Field) -> String {
    match (field.kind, field.len) {
        (FieldKind::Unsigned, 16) => "c_uint64 * 2".to_owned(),
        (FieldKind::Unsigned | FieldKind::Code, len) => format!("c_uint{}", len * 8),
        (FieldKind::Fixed, _) => "c_int64".to_owned(),
        (FieldKind::Money, _) => "Money".to_owned(),
        (FieldKind::Text, len) => format!("c_char * {len}"),
        (FieldKind::Array, 96) if field.name == "figures" => "Statistic * 6".to_owned(),
        (FieldKind::Array, 96) => "Level * 6".to_owned(),
        (_, len) => format!("c_uint8 * {len}"),
    }
}

fn len_of(fields: &[Field]) -> usize {
    fields.last().map_or(0, |last| last.offset + last.len)
}

fn c_part() -> String {
    let mut out = String::new();
    for (prefix, codes) in codes() {
        out.push_str("\nenum {\n");
        for (name, number) in codes {
            writeln!(out, "    TP_{prefix}_{name} = {number},").unwrap();
        }
        out.push_str("};\n");
    }
    for (name, fields) in structures() {
        write!(out, "\ntypedef struct tp_{name} {{\n").unwrap();
        for field in fields {
            writeln!(out, "    {};", c_field(field)).unwrap();
        }
        writeln!(out, "}} tp_{name};").unwrap();
        writeln!(out, "TP_LAYOUT(sizeof(tp_{name}) == {});", len_of(fields)).unwrap();
        for field in fields.iter().skip(1) {
            writeln!(out, "TP_LAYOUT(offsetof(tp_{name}, {}) == {});", field.name, field.offset).unwrap();
        }
    }
    out
}

fn camel(name: &str) -> String {
    name.split('_').map(|word| word[..1].to_ascii_uppercase() + &word[1..]).collect()
}

fn python_codes() -> String {
    let mut out = String::new();
    for (prefix, codes) in codes() {
        write!(out, "\n\nclass {}:\n    \"\"\"Codes.\"\"\"\n\n", camel(&prefix.to_ascii_lowercase()))
            .unwrap();
        for (name, number) in codes {
            writeln!(out, "    {name} = {number}").unwrap();
        }
    }
    out
}

fn python_structures() -> String {
    let mut out = String::new();
    let mut bodies = String::new();
    for (name, fields) in structures() {
        let class = if EventKind::from_name(&name).is_some() || name == "quote_ack" {
            format!("{}Event", camel(&name))
        } else {
            camel(&name)
        };
        write!(
            out,
            "\n\nclass {class}(Record):\n    \"\"\"{} bytes.\"\"\"\n\n    _fields_ = [\n",
            len_of(fields)
        )
        .unwrap();
        for field in fields {
            writeln!(out, "        (\"{}\", {}),", field.name, python_field(field)).unwrap();
        }
        out.push_str("    ]\n");
        let fixed = |kind: FieldKind| {
            let names = fields.iter().filter(|field| field.kind == kind);
            names.map(|field| format!("\"{}\", ", field.name)).collect::<String>()
        };
        writeln!(out, "    fixed = ({})", fixed(FieldKind::Fixed).trim_end().to_owned()).unwrap();
        for kind in EventKind::ALL {
            let is_quote = matches!(
                *kind,
                EventKind::MASS_QUOTE_ACK | EventKind::CANCEL_QUOTES_ACK | EventKind::CANCEL_ALL_ACK
            );
            if (name == kind.to_string() && !is_quote) || (name == "quote_ack" && is_quote) {
                writeln!(bodies, "    {}: {class},", kind.0).unwrap();
            }
        }
    }
    write!(out, "\n\nBODIES = {{\n{bodies}}}\n").unwrap();
    let requests: String = RequestKind::ALL
        .iter()
        .map(|kind| format!("    {}Request: {},\n", camel(&kind.to_string()), kind.0))
        .collect();
    write!(out, "\nREQUESTS = {{\n{requests}}}\n").unwrap();
    out
}

fn path(relative: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(relative)
}

/// Checks that the part between the marks matches the generated text.
fn check(relative: &str, generated: &str) {
    let path = path(relative);
    let text = fs::read_to_string(&path).unwrap();
    let begin = text.find(BEGIN).unwrap();
    let begin = begin + text[begin..].find('\n').unwrap() + 1;
    let end = text.find(END).unwrap();
    let end = text[..end].rfind('\n').unwrap() + 1;
    let expected = format!("{}{generated}\n{}", &text[..begin], &text[end..]);
    if std::env::var_os("TICKPATH_WRITE").is_some() {
        fs::write(&path, &expected).unwrap();
    } else {
        let what = "differs from the protocol: run this test with TICKPATH_WRITE=1";
        assert!(text == expected, "{} {what}", path.display());
    }
}

#[test]
fn the_header_has_the_protocols_structures() {
    check("include/tickpath_gateway.h", &c_part());
}

#[test]
fn the_python_module_has_the_protocols_structures() {
    check("../python/tickpath_gateway/_codes.py", &python_codes());
    check("../python/tickpath_gateway/_layout.py", &python_structures());
}
