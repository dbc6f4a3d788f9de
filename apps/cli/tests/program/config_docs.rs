//! Tests that the documents list every configuration key with its default, and no other keys.

use std::collections::{BTreeMap, BTreeSet};

use crate::support::{Site, repository, run};

/// A key that exists in no table.
const UNKNOWN: &str = "no_such_key";

/// A kind of configuration file, and the page that documents its keys.
struct Page {
    file: &'static str,
    heading: &'static str,
    /// Text of a minimal valid file. The check appends the headers in `tables` that the text lacks.
    text: String,
    /// Header of each table in the file, and the prefix of its keys on the page.
    tables: &'static [(&'static str, &'static str)],
    /// Keys and whole tables that are documented elsewhere, on this page or on another.
    other_keys: &'static [&'static str],
}

impl Page {
    /// Returns the keys of a table, according to the program's error for an unknown key.
    fn known(&self, site: &Site, header: &str) -> Vec<String> {
        let line = format!("{header}\n");
        let wrong = match self.text.split_once(&line).filter(|_| !header.is_empty()) {
            Some((before, after)) => format!("{before}{line}{UNKNOWN} = 1\n{after}"),
            None if header.is_empty() => format!("{UNKNOWN} = 1\n{}", self.text),
            None => format!("{}{line}{UNKNOWN} = 1\n", self.text),
        };
        let refused = run(&["config", "check", &site.write("wrong.toml", &wrong)]).err;
        let (refusal, expected) =
            refused.split_once("expected").unwrap_or_else(|| panic!("{header}: {refused}"));
        assert!(refusal.contains(&format!("unknown field `{UNKNOWN}`")), "{header}: {refused}");
        expected.split('`').skip(1).step_by(2).map(str::to_owned).collect()
    }

    /// Returns the keys that the program accepts, with their prefixes on the page, without `other_keys`.
    fn all(&self, site: &Site) -> BTreeSet<String> {
        let tables: BTreeSet<&str> =
            self.tables.iter().map(|(_, name)| name.trim_end_matches(".NAME")).collect();
        let mut all = BTreeSet::new();
        for (header, table) in self.tables {
            let prefix = if table.is_empty() { String::new() } else { format!("{table}.") };
            let keys = self.known(site, header).into_iter().map(|key| prefix.clone() + &key);
            all.extend(
                keys.filter(|key| !tables.contains(key.as_str()) && !self.other_keys.contains(&key.as_str())),
            );
        }
        all
    }

    /// Returns the keys of the page's table with their defaults, as documented.
    fn documented(&self) -> BTreeMap<String, String> {
        let page = std::fs::read_to_string(repository().join("docs").join(self.file)).unwrap();
        let (_, section) = page.split_once(&format!("{}\n", self.heading)).unwrap();
        let rows = section.lines().skip_while(|line| !line.starts_with("|---")).skip(1);
        let mut found = BTreeMap::new();
        for row in rows.take_while(|line| line.starts_with('|')) {
            let cells: Vec<&str> = row.split('|').map(str::trim).collect();
            let names: Vec<&str> = cells[1].split('`').skip(1).step_by(2).collect();
            let defaults: Vec<&str> = cells[2].split(", ").collect();
            let mut prefix = "";
            for (place, name) in names.iter().enumerate() {
                let whole = match name.strip_prefix('.') {
                    Some(last) => format!("{prefix}.{last}"),
                    None => (*name).to_owned(),
                };
                if !name.starts_with('.') {
                    prefix = name.rsplit_once('.').map_or("", |(prefix, _)| prefix);
                }
                let default = if defaults.len() == names.len() { defaults[place] } else { defaults[0] };
                let previous = found.insert(whole, default.replace('`', ""));
                assert_eq!(previous, None, "{}: {name} is there twice", self.file);
            }
        }
        found
    }

    fn check(&self) {
        let site = Site::new();
        let (known, documented) = (self.all(&site), self.documented());
        let named: BTreeSet<String> = documented.keys().cloned().collect();
        assert_eq!(known, named, "{}: the program's keys, and the page's", self.file);
        let shown = run(&["config", "show", &site.write("least.toml", &self.text)]);
        let shown: toml::Table = toml::from_str(&shown.out).unwrap_or_else(|_| panic!("{}", shown.err));
        for (key, default) in documented {
            let (Some(value), false) = (value_of(&shown, self, &key), default.is_empty()) else { continue };
            assert_eq!(value, default, "{}: the default of {key}", self.file);
        }
    }
}

/// Returns the value of a key in the output of `config show`; `none` for an empty list.
fn value_of(shown: &toml::Table, page: &Page, key: &str) -> Option<String> {
    let (table, last) = key.rsplit_once('.').unwrap_or(("", key));
    let (header, _) = page.tables.iter().find(|(_, name)| *name == table)?;
    let mut place = toml::Value::Table(shown.clone());
    for part in header.trim_matches(['[', ']']).split('.').filter(|part| !part.is_empty()) {
        place = match place.get(part)? {
            toml::Value::Array(tables) => tables.first()?.clone(),
            table => table.clone(),
        };
    }
    Some(match place.get(last)? {
        toml::Value::String(text) => text.clone(),
        toml::Value::Array(items) => match items.as_slice() {
            [] => "none".to_owned(),
            [toml::Value::String(only)] => only.clone(),
            _ => return None,
        },
        // The page describes the default of a table in prose.
        toml::Value::Table(_) => return None,
        other => other.to_string(),
    })
}

#[test]
fn the_gateways_keys_are_documented_with_their_defaults() {
    let text =
        "[accounts.A1]\nlogin = 'x'\nsecret = 'test'\n[accounts.A1.limits]\n[users.u]\npassword = 'test'\n";
    Page {
        file: "gateway-config.md",
        heading: "## Keys",
        text: text.to_owned(),
        tables: &[
            ("", ""),
            ("[loop]", "loop"),
            ("[clients]", "clients"),
            ("[venue]", "venue"),
            ("[venue.feeds]", "venue.feeds"),
            ("[symbols]", "symbols"),
            ("[limits]", "limits"),
            ("[event_log]", "event_log"),
            ("[test]", "test"),
            ("[accounts.A1]", "accounts.NAME"),
            ("[users.u]", "users.NAME"),
        ],
        // Aliases of two keys, documented next to them.
        other_keys: &["users.NAME.monitor_period_secs", "users.NAME.ban_period_secs"],
    }
    .check();
}

#[test]
fn the_shells_keys_are_documented_with_their_defaults() {
    let text = "url = 'wss://test.deribit.com/ws/api/v2'\n";
    Page {
        file: "shell.md",
        heading: "## The configuration",
        text: text.to_owned(),
        tables: &[("", ""), ("[limits]", "limits"), ("[native]", "native")],
        other_keys: &[],
    }
    .check();
}

#[test]
fn the_deribit_fronts_keys_are_documented_with_their_defaults() {
    let text = "instruments = 'instruments.toml'\n\
                [order_entry]\n[[order_entry.user]]\nname = 'ANNA'\nports = ['deribit']\n\
                [journal]\npolicy = 'group'\n\
                [deribit]\n[[deribit.index]]\nname = 'btc_usd'\nprice = '100'\n\
                [[deribit.instrument]]\nname = 'BTC-PERPETUAL'\nsymbol = 'ONLY'\nkind = 'future'\nbase = 'BTC'\n\
                quote = 'USD'\nsettlement = 'BTC'\nperiod = 'perpetual'\nindex = 'btc_usd'\nmin_trade_amount = '10'\n\
                [[deribit.key]]\nclient_id = 'anna'\nclient_secret = 'test'\nuser = 'ANNA'\n\
                [[deribit.account]]\nuser = 'ANNA'\n";
    Page {
        file: "deribit.md",
        heading: "## Configuration",
        text: text.to_owned(),
        tables: &[
            ("[deribit]", ""),
            ("[deribit.tls]", "tls"),
            ("[[deribit.index]]", "index"),
            ("[[deribit.instrument]]", "instrument"),
            ("[[deribit.key]]", "key"),
            ("[[deribit.account]]", "account"),
        ],
        other_keys: &["faults"],
    }
    .check();
}
