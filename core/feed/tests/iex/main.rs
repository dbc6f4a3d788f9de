//! Tests of IEX books: scenarios of levels, orders and quotes, and comparison with a reference model.

#![allow(clippy::unwrap_used)] // a failed step of a test is a failed test

mod lines;
mod reference;
mod scenarios;

use tickpath_book::{BookLimits, BooksById, Indexed};
use tickpath_feed::iex::BookBuilder;
use tickpath_feed::{MessageBooks, UpdateListener};
use tickpath_iex::wire::Ticker;
use tickpath_iex::{Feed, OperationalHalt, OperationalHaltStatus, TradingCode, TradingStatus, wire::Alpha};
use tickpath_reference::ReferenceBooks;
use tickpath_types::{BookHealth, InstrumentId, MarketUpdate, Nanos, Sequence, Symbol};
use zerocopy::{Immutable, IntoBytes};

/// All updates of the latest message or packet.
#[derive(Default)]
pub(crate) struct Updates(pub(crate) Vec<MarketUpdate>);

impl UpdateListener for Updates {
    fn on_update(&mut self, update: &MarketUpdate) {
        self.0.push(*update);
    }
}

/// A channel with books of the reference model.
pub(crate) struct Channel {
    pub(crate) builder: BookBuilder<Indexed<ReferenceBooks>>,
    pub(crate) updates: Updates,
    next: u64,
}

impl Channel {
    pub(crate) fn new(feed: Feed) -> Channel {
        let books = Indexed::new(BookLimits::new(InstrumentId(3), 16));
        Channel { builder: BookBuilder::new(feed, books), updates: Updates::default(), next: 1 }
    }

    /// Creates a channel on which ALPHA trades.
    pub(crate) fn trading(feed: Feed) -> Channel {
        let mut channel = Channel::new(feed);
        channel.status("ALPHA", TradingCode::TRADING);
        channel
    }

    pub(crate) fn send(&mut self, message: &(impl IntoBytes + Immutable)) -> Vec<MarketUpdate> {
        self.send_bytes(message.as_bytes())
    }

    pub(crate) fn send_bytes(&mut self, message: &[u8]) -> Vec<MarketUpdate> {
        self.updates.0.clear();
        self.builder.handle_message(Sequence(self.next), message, &mut self.updates);
        self.next += 1;
        self.updates.0.clone()
    }

    /// Applies messages as if they arrived in one packet.
    pub(crate) fn send_together(&mut self, messages: &[&[u8]]) -> Vec<MarketUpdate> {
        self.updates.0.clear();
        self.builder.handle_messages(Sequence(self.next), messages.iter().copied(), &mut self.updates);
        self.next += messages.len() as u64;
        self.updates.0.clone()
    }

    pub(crate) fn status(&mut self, symbol: &str, status: TradingCode) -> Vec<MarketUpdate> {
        self.send(&TradingStatus::new(status, Nanos(1), ticker(symbol), Alpha(*b"    ")))
    }

    pub(crate) fn halt(&mut self, symbol: &str, halt: OperationalHalt) -> Vec<MarketUpdate> {
        self.send(&OperationalHaltStatus::new(halt, Nanos(1), ticker(symbol)))
    }

    pub(crate) fn id(&self, symbol: &str) -> InstrumentId {
        self.builder.find(Symbol::new(symbol).unwrap()).unwrap()
    }

    pub(crate) fn health(&self, symbol: &str) -> BookHealth {
        self.builder.instrument(self.id(symbol)).unwrap().health
    }
}

pub(crate) fn ticker(symbol: &str) -> Ticker {
    Ticker::new(symbol).unwrap()
}
