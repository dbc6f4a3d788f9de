//! Text of the gateway's status for users.

use tickpath_gateway_protocol::{GatewayState, Text};

use super::Core;
use super::account::Step;

/// Concatenates the parts of a line and cuts it to fit, without formatting or allocation.
fn line(parts: &[&str]) -> Text<64> {
    let (mut bytes, mut len) = ([0_u8; 64], 0);
    for (to, from) in bytes.iter_mut().zip(parts.iter().flat_map(|part| part.bytes())) {
        // Names in a configuration may hold any character; each non-ASCII byte becomes a question mark.
        *to = if from.is_ascii() { from } else { b'?' };
        len += 1;
    }
    Text::cut(std::str::from_utf8(&bytes[..len]).unwrap_or_default())
}

/// Text for a filter that leaves nothing to trade.
const NO_INSTRUMENT: &str = "no instrument of the venue matches symbols.include";

impl Core {
    /// Whether the venue has instruments, but the filter selects none.
    fn has_no_instrument(&self) -> bool {
        self.listed > 0 && self.instruments.is_empty()
    }

    /// Reason why orders are rejected, with the account if it concerns one; empty if all is well.
    #[must_use]
    pub fn why(&self) -> Text<64> {
        let (ready, count) = (self.ready_accounts(), self.accounts.len());
        match self.state {
            GatewayState::STOPPING => Text::cut("the gateway is stopping"),
            GatewayState::KILLED => Text::cut("the kill switch is on: no order leaves"),
            _ if count == 0 => Text::cut("no account is configured: market data alone"),
            _ if ready == 0 => match self.accounts.iter().find(|account| account.step != Step::Down) {
                Some(account) if !account.refusal.is_empty() => {
                    line(&[account.name.as_str(), " ", account.step.words(), ": ", account.refusal.as_str()])
                }
                Some(account) => line(&["not ready: ", account.name.as_str(), " ", account.step.words()]),
                None => Text::cut("no account is connected: orders are refused"),
            },
            _ if self.has_no_instrument() => Text::cut(NO_INSTRUMENT),
            _ if ready < count => match self.accounts.iter().find(|account| account.step != Step::Ready) {
                Some(account) => line(&[account.name.as_str(), " ", account.step.words()]),
                None => Text::EMPTY,
            },
            _ if let Some(account) = self.accounts.iter().find(|account| !account.may_trade) => {
                line(&[account.name.as_str(), " ", account.words()])
            }
            _ if self.policy.is_dry_run() => Text::cut("a dry run: no order leaves"),
            _ => Text::EMPTY,
        }
    }
}
