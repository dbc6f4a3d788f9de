//! Why the gateway stands as it does, for people.

use std::fmt::{self, Write};

use tickpath_gateway_protocol::{GatewayState, Text};

use super::Core;
use super::account::Step;

/// A line of bounded length: what is longer is cut, and nothing is allocated.
struct Line {
    bytes: [u8; 64],
    len: usize,
}

impl Write for Line {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        // Names in a configuration may hold any character: each byte of one that is no ASCII becomes a question mark.
        for (to, from) in self.bytes[self.len..].iter_mut().zip(text.bytes()) {
            *to = if from.is_ascii() { from } else { b'?' };
            self.len += 1;
        }
        Ok(())
    }
}

fn line(words: fmt::Arguments<'_>) -> Text<64> {
    let mut line = Line { bytes: [0; 64], len: 0 };
    // Writing into memory does not fail.
    let _ = line.write_fmt(words);
    Text::cut(std::str::from_utf8(&line.bytes[..line.len]).unwrap_or_default())
}

impl Core {
    /// Why orders are refused, or of which account; empty where all is well.
    #[must_use]
    pub fn why(&self) -> Text<64> {
        let (ready, count) = (self.ready_accounts(), self.accounts.len());
        match self.state {
            GatewayState::STOPPING => Text::cut("the gateway is stopping"),
            GatewayState::KILLED => Text::cut("the kill switch is on: no order leaves"),
            _ if count == 0 => Text::cut("no account is configured: market data alone"),
            _ if ready == 0 => match self.accounts.iter().find(|account| account.step != Step::Down) {
                Some(account) if !account.refusal.is_empty() => {
                    line(format_args!("{} {}: {}", account.name, account.step.words(), account.refusal))
                }
                Some(account) => line(format_args!("not ready: {} {}", account.name, account.step.words())),
                None => Text::cut("no account is connected: orders are refused"),
            },
            _ if ready < count => match self.accounts.iter().find(|account| account.step != Step::Ready) {
                Some(account) => line(format_args!("{} {}", account.name, account.step.words())),
                None => Text::EMPTY,
            },
            _ if let Some(account) = self.accounts.iter().find(|account| !account.may_trade) => {
                line(format_args!("{} {}", account.name, account.words()))
            }
            _ if self.policy.is_dry_run() => Text::cut("a dry run: no order leaves"),
            _ => Text::EMPTY,
        }
    }
}
