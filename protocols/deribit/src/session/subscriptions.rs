//! Requested channels, and the state of their subscriptions.

use std::collections::BTreeMap;

use crate::channel::{Channel, ChannelError};
use crate::envelope::{Id, write_request};
use crate::field::List;
use crate::messages::Subscribe;
use crate::method::Method;
use crate::request::REQUEST_LEN_MAX;
use crate::text::Text;

/// Maximum number of channels per request.
pub const BATCH_CHANNELS_MAX: usize = 500;
/// Maximum length of a channel name.
const NAME_LEN_MAX: usize = 256;
/// Maximum length of a request without its channels, in bytes.
const FRAME_LEN: usize = 128;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Wanted,
    Subscribing(i64),
    Active,
    Refused,
    Unwanted { again: bool },
    Unsubscribing { id: i64, again: bool },
}

/// The channels of a session.
#[derive(Debug, Default)]
pub(super) struct Subscriptions {
    channels: BTreeMap<String, State>,
    /// True if a channel may have become due since the last check.
    may_be_due: bool,
}

impl Subscriptions {
    pub fn add(&mut self, name: &str) -> Result<(), ChannelError> {
        let is_plain = |byte: u8| byte.is_ascii_graphic() && !matches!(byte, b'"' | b'\\');
        if name.len() > NAME_LEN_MAX || !name.bytes().all(is_plain) {
            return Err(ChannelError);
        }
        Channel::parse(name)?;
        self.may_be_due = true;
        match self.channels.get_mut(name) {
            None => {
                self.channels.insert(name.to_owned(), State::Wanted);
            }
            Some(State::Unwanted { again } | State::Unsubscribing { again, .. }) => *again = true,
            Some(state @ State::Refused) => *state = State::Wanted,
            Some(State::Wanted | State::Subscribing(_) | State::Active) => {}
        }
        Ok(())
    }

    pub fn remove(&mut self, name: &str) {
        self.may_be_due = true;
        match self.channels.get_mut(name) {
            Some(State::Wanted | State::Refused) => drop(self.channels.remove(name)),
            Some(state @ (State::Subscribing(_) | State::Active)) => {
                *state = State::Unwanted { again: false }
            }
            Some(State::Unwanted { again } | State::Unsubscribing { again, .. }) => *again = false,
            None => {}
        }
    }

    pub fn renew(&mut self, name: &str) -> bool {
        self.may_be_due = true;
        match self.channels.get_mut(name) {
            Some(state @ (State::Subscribing(_) | State::Active)) => *state = State::Unwanted { again: true },
            Some(State::Unwanted { again } | State::Unsubscribing { again, .. }) => *again = true,
            Some(state @ State::Refused) => *state = State::Wanted,
            Some(State::Wanted) => {}
            None => return false,
        }
        true
    }

    /// Channels that the server refused to subscribe.
    pub fn refused(&self) -> impl Iterator<Item = &str> {
        self.channels.iter().filter(|(_, state)| **state == State::Refused).map(|(name, _)| name.as_str())
    }

    pub fn active_count(&self) -> usize {
        self.channels.values().filter(|state| **state == State::Active).count()
    }

    /// Number of channels whose subscription is ending without confirmation so far.
    pub fn ending_count(&self) -> usize {
        let is_ending = |state: &&State| {
            matches!(state, State::Unwanted { again: false } | State::Unsubscribing { again: false, .. })
        };
        self.channels.values().filter(is_ending).count()
    }

    pub fn may_be_due(&self) -> bool {
        self.may_be_due
    }

    /// True if a channel request is due.
    pub fn is_due(&mut self) -> bool {
        let is_due = |state: &State| matches!(state, State::Wanted | State::Unwanted { .. });
        self.may_be_due = self.may_be_due && self.channels.values().any(is_due);
        self.may_be_due
    }

    /// Appends the next channel request, unsubscribe requests first.
    pub fn write_request(
        &mut self,
        id: i64,
        is_authenticated: bool,
        batch: usize,
        out: &mut Vec<u8>,
    ) -> Option<Method> {
        let is_end = self.channels.values().any(|state| matches!(state, State::Unwanted { .. }));
        let is_due = |state: &State| match state {
            State::Unwanted { .. } => is_end,
            State::Wanted => !is_end,
            _ => false,
        };
        let mut len = FRAME_LEN;
        let names: Vec<Text<'_>> = self
            .channels
            .iter()
            .filter(|(_, state)| is_due(state))
            .take(batch.clamp(1, BATCH_CHANNELS_MAX))
            .map(|(name, _)| Text::new(name))
            .take_while(|name| {
                len += name.plain().map_or(0, str::len) + 3;
                len <= REQUEST_LEN_MAX
            })
            .collect();
        if names.is_empty() {
            return None;
        }
        let method = match (is_end, is_authenticated) {
            (false, false) => Method::PublicSubscribe,
            (false, true) => Method::PrivateSubscribe,
            (true, false) => Method::PublicUnsubscribe,
            (true, true) => Method::PrivateUnsubscribe,
        };
        write_request(Id::Number(id), method, &Subscribe { channels: List::new(&names) }, out);
        let count = names.len();
        for state in self.channels.values_mut().filter(|state| is_due(state)).take(count) {
            *state = match *state {
                State::Unwanted { again } => State::Unsubscribing { id, again },
                _ => State::Subscribing(id),
            };
        }
        Some(method)
    }

    /// Processes a subscribe reply. Returns the numbers of accepted and refused channels.
    pub fn on_subscribed(&mut self, id: i64, names: &List<'_, Text<'_>>) -> (usize, usize) {
        let (mut accepted, mut refused) = (0, 0);
        for name in names.iter().map_while(Result::ok) {
            let state = name.plain().and_then(|name| self.channels.get_mut(name));
            if let Some(state) = state.filter(|state| **state == State::Subscribing(id)) {
                *state = State::Active;
                accepted += 1;
            }
        }
        for state in self.channels.values_mut().filter(|state| **state == State::Subscribing(id)) {
            *state = State::Refused;
            refused += 1;
        }
        (accepted, refused)
    }

    /// Processes an unsubscribe reply; channels to subscribe again become due.
    pub fn on_unsubscribed(&mut self, id: i64) {
        self.may_be_due = true;
        self.channels.retain(|_, state| match *state {
            State::Unsubscribing { id: of, again } if of == id => {
                *state = State::Wanted;
                again
            }
            _ => true,
        });
    }

    /// Processes a rejected request. Returns the number of channels that are not subscribed.
    pub fn on_error(&mut self, id: i64, is_retryable: bool) -> usize {
        self.on_unsubscribed(id);
        let state_then = if is_retryable { State::Wanted } else { State::Refused };
        let asked = self.channels.values_mut().filter(|state| **state == State::Subscribing(id));
        asked.map(|state| *state = state_then).count()
    }

    /// Handles an unknown outcome: unsubscribes first, as a duplicate subscription yields no snapshot.
    pub fn on_timeout(&mut self, id: i64) {
        self.may_be_due = true;
        for state in self.channels.values_mut() {
            match *state {
                State::Subscribing(of) if of == id => *state = State::Unwanted { again: true },
                State::Unsubscribing { id: of, again } if of == id => *state = State::Unwanted { again },
                _ => {}
            }
        }
    }

    /// Resets all states for a new connection, which has no subscriptions.
    pub fn reset(&mut self) {
        self.channels.retain(|_, state| {
            let is_wanted = !matches!(
                state,
                State::Unwanted { again: false } | State::Unsubscribing { again: false, .. }
            );
            *state = State::Wanted;
            is_wanted
        });
        self.may_be_due = !self.channels.is_empty();
    }
}
