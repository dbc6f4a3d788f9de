//! The event log: lines `[elapsed ms] module: text` for people, of selected modules.
//!
//! Lines are formatted from the history when they are read, outside the message path.

use std::collections::VecDeque;
use std::str::FromStr;

use tickpath_deribit::envelope::{Id, Inbound};
use tickpath_deribit::method::Method;
use tickpath_deribit::scan::check;
use tickpath_types::Nanos;

use crate::history::{Entry, History, Way};
use crate::json_text::one_line;
use crate::link::push_bounded;

/// Upper bound of tracked requests; the answers of forgotten ones belong to `other`.
const ASKED_MAX: usize = 256;
/// Upper bound of unread lines about the connection; new ones displace the oldest.
const LINES_MAX: usize = 64;

/// The origin of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Module {
    /// Connects and disconnects.
    Net,
    /// Hellos, heartbeats, subscriptions.
    Session,
    /// Logins and logouts.
    Auth,
    /// The user's orders and trades.
    Orders,
    /// Market data channels.
    Market,
    /// Other requests and their answers.
    Other,
}

impl Module {
    /// All modules.
    pub const ALL: [Module; 6] =
        [Module::Net, Module::Session, Module::Auth, Module::Orders, Module::Market, Module::Other];

    /// The module's name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Module::Net => "net",
            Module::Session => "session",
            Module::Auth => "auth",
            Module::Orders => "orders",
            Module::Market => "market",
            Module::Other => "other",
        }
    }

    fn of_method(name: &str) -> Module {
        match Method::from_name(name) {
            Some(Method::Auth | Method::Logout) => Module::Auth,
            Some(
                Method::Hello
                | Method::Test
                | Method::SetHeartbeat
                | Method::EnableCancelOnDisconnect
                | Method::PublicSubscribe
                | Method::PrivateSubscribe
                | Method::PublicUnsubscribe
                | Method::PrivateUnsubscribe,
            ) => Module::Session,
            Some(method) if method.is_matching() => Module::Orders,
            _ => Module::Other,
        }
    }
}

impl FromStr for Module {
    type Err = String;

    fn from_str(text: &str) -> Result<Module, String> {
        Module::ALL.into_iter().find(|module| module.name() == text).ok_or_else(|| {
            format!("no module {text}: off, all, or some of {}", Module::ALL.map(Module::name).join(", "))
        })
    }
}

/// The selected modules, and the read position in the history.
#[derive(Debug)]
pub(crate) struct Log {
    modules: Vec<Module>,
    next: u64,
    /// Requests in flight, with their modules.
    asked: VecDeque<(i64, Module)>,
    /// Lines about the connection.
    lines: VecDeque<(Nanos, String)>,
}

impl Log {
    /// Starts at the current end of the history.
    pub(crate) fn new(modules: Vec<Module>, history: &History) -> Log {
        Log { modules, next: history.end(), asked: VecDeque::new(), lines: VecDeque::new() }
    }

    /// Adds a line about the connection.
    pub(crate) fn tell(&mut self, at: Nanos, text: String) {
        push_bounded(&mut self.lines, (at, text), LINES_MAX);
    }

    /// Returns the next line. Messages that were overwritten before being read are counted in one line.
    pub(crate) fn next(&mut self, history: &History) -> Option<String> {
        loop {
            if history.is_gone(self.next) {
                self.next = history.oldest();
                let at = history.entry(self.next).map_or(Nanos::ZERO, |entry| entry.at);
                return Some(line(
                    at,
                    Module::Net,
                    "messages came faster than they were read: some are missing",
                ));
            }
            let message = history.entry(self.next);
            let message_at = message.as_ref().map_or(Nanos::MAX, |entry| entry.at);
            if self.lines.front().is_some_and(|(at, _)| *at <= message_at) {
                let (at, text) = self.lines.pop_front()?;
                if self.modules.contains(&Module::Net) {
                    return Some(line(at, Module::Net, &text));
                }
                continue;
            }
            let entry = message?;
            self.next = history.behind(self.next);
            let module = self.module_of(&entry);
            if self.modules.contains(&module) {
                let sign = if entry.way == Way::Sent { '>' } else { '<' };
                return Some(line(entry.at, module, &format!("{sign} {}", one_line(&entry.text))));
            }
        }
    }

    fn module_of(&mut self, entry: &Entry) -> Module {
        if entry.text.starts_with("{\"ouch\"") {
            let is_query =
                entry.text.contains("\"Account Query\"") || entry.text.contains("\"Query Response\"");
            return if is_query { Module::Session } else { Module::Orders };
        }
        match entry.way {
            Way::Sent => {
                let Ok(value) = check(entry.text.as_bytes()) else { return Module::Other };
                let text = value.text();
                let method = member(text, "method").map(|text| text.trim_matches('"'));
                let module = method.map_or(Module::Other, Module::of_method);
                if let Some(id) = member(text, "id").and_then(|id| id.parse().ok()) {
                    push_bounded(&mut self.asked, (id, module), ASKED_MAX);
                }
                module
            }
            Way::Received => match Inbound::parse(entry.text.as_bytes()) {
                Ok(Inbound::Notification(notification)) => match notification.channel.plain() {
                    Some(channel) if channel.starts_with("user.") => Module::Orders,
                    _ => Module::Market,
                },
                Ok(Inbound::Response(response)) => {
                    let Some(Id::Number(id)) = response.id else { return Module::Session };
                    let place = self.asked.iter().position(|(of, _)| *of == id);
                    place
                        .and_then(|place| self.asked.remove(place))
                        .map_or(Module::Other, |(_, module)| module)
                }
                _ => Module::Session,
            },
        }
    }
}

/// A member of an object that this program encoded: its members precede params.
fn member<'t>(text: &'t str, name: &str) -> Option<&'t str> {
    let head = text.split("\"params\"").next()?;
    let behind = head.split_once(&format!("\"{name}\":"))?.1;
    behind.split([',', '}']).next()
}

fn line(at: Nanos, module: Module, text: &str) -> String {
    format!("[{}] {}: {text}", at.0 / 1_000_000, module.name())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_of_the_modules_that_were_asked_for() {
        let mut history = History::new(1 << 16);
        history.push(Nanos(1), Way::Sent, "before");
        let mut log = Log::new(vec![Module::Auth, Module::Orders, Module::Net], &history);
        let ms = Nanos::from_millis;
        log.tell(ms(2), "connected".to_owned());
        for (at, way, text) in [
            (
                3,
                Way::Sent,
                r#"{"jsonrpc":"2.0","id":1,"method":"public/auth","params":{"signature":"s3cret"}}"#,
            ),
            (4, Way::Received, r#"{"jsonrpc":"2.0","id":1,"result":{"access_token":"s3cret"}}"#),
            (
                5,
                Way::Sent,
                r#"{"jsonrpc":"2.0","id":2,"method":"public/ticker","params":{"instrument_name":"X"}}"#,
            ),
            (6, Way::Received, r#"{"jsonrpc":"2.0","id":2,"result":{}}"#),
            (
                7,
                Way::Sent,
                r#"{"jsonrpc":"2.0","id":3,"method":"private/buy","params":{"instrument_name":"X"}}"#,
            ),
            (8, Way::Received, r#"{"jsonrpc":"2.0","id":3,"error":{"code":10009,"message":"no"}}"#),
            (
                9,
                Way::Received,
                r#"{"jsonrpc":"2.0","method":"subscription","params":{"channel":"quote.X","data":1}}"#,
            ),
            (
                10,
                Way::Received,
                r#"{"jsonrpc":"2.0","method":"subscription","params":{"channel":"user.orders.X.raw","data":2}}"#,
            ),
            (11, Way::Sent, r#"{"ouch":"Enter Order","user_ref_num":1}"#),
        ] {
            history.push(ms(at), way, text);
        }
        let lines: Vec<String> = std::iter::from_fn(|| log.next(&history)).collect();
        let heads: Vec<String> =
            lines.iter().map(|line| line.split(['>', '<']).next().unwrap().trim().to_owned()).collect();
        assert_eq!(
            heads,
            [
                "[2] net: connected",
                "[3] auth:",
                "[4] auth:",
                "[7] orders:",
                "[8] orders:",
                "[10] orders:",
                "[11] orders:"
            ]
        );
        assert!(!lines.concat().contains("s3cret"));
        assert_eq!(log.next(&history), None);
        assert!("bogus".parse::<Module>().unwrap_err().contains("session"));
    }

    #[test]
    fn what_was_missed_is_said() {
        let mut history = History::new(1 << 10);
        let mut log = Log::new(vec![Module::Market], &history);
        for at in 0..100 {
            history.push(Nanos::from_millis(at), Way::Received, &"x".repeat(100));
        }
        assert!(log.next(&history).unwrap().contains("missing"));
        assert_eq!(log.next(&history), None);
    }
}
