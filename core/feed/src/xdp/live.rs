//! One channel's books, as a live channel needs them.

use tickpath_book::BooksById;
use tickpath_nyse::{DeliveryFlag, Header, SendTime};
use tickpath_types::{InstrumentId, Nanos, Sequence};
use zerocopy::FromBytes;

use super::{BookBuilder, Channel, Message};
use crate::instruments::{Instruments, UpdateListener};
use crate::message_books::MessageBooks;

/// Books of the messages of one channel.
pub struct LiveBooks<B> {
    pub(super) builder: BookBuilder<B>,
    channel: Channel,
}

impl<B: BooksById> LiveBooks<B> {
    /// Starts with empty books. `midnight` is that of the exchange's day, since the Unix epoch: updates count from it.
    #[must_use]
    pub fn new(books: B, channel: Channel, midnight: Nanos) -> LiveBooks<B> {
        LiveBooks { builder: BookBuilder::new(books, midnight), channel }
    }

    /// The instrument whose symbol a message names, whatever the message; 0 for one that names none or one that is not
    /// mapped.
    #[must_use]
    pub fn named_by(&self, message: &[u8]) -> InstrumentId {
        match message.get(2..8) {
            Some(&[3, 0, a, b, c, d]) => self.builder.state.symbols.find(u32::from_le_bytes([a, b, c, d])),
            _ => self.builder.state.named_by(message),
        }
    }
}

impl<B: BooksById> MessageBooks for LiveBooks<B> {
    type Books = B;

    fn instruments(&self) -> &Instruments<B> {
        self.builder.instruments()
    }

    fn instruments_mut(&mut self) -> &mut Instruments<B> {
        self.builder.instruments_mut()
    }

    /// Every packet says when it was sent: until there is a time reference its messages have that time.
    #[inline]
    fn admits(&mut self, datagram: &[u8]) -> bool {
        if let Ok((header, _)) = Header::ref_from_prefix(datagram)
            && header.delivery_flag == DeliveryFlag::ORIGINAL
        {
            let sent = SendTime { secs: header.send_time.get(), nanos: header.send_time_ns.get() };
            self.builder.begin_packet(self.channel, sent);
        }
        true
    }

    #[inline]
    fn handle_message(&mut self, sequence: Sequence, message: &[u8], out: &mut impl UpdateListener) {
        self.builder.handle_message(self.channel, sequence, message, out);
    }

    #[inline]
    fn handle_messages<'a>(
        &mut self,
        first: Sequence,
        messages: impl Iterator<Item = &'a [u8]>,
        out: &mut impl UpdateListener,
    ) {
        let channel = self.channel;
        let mut sequence = first.0 as u32;
        let numbered = messages.map(|message| {
            let numbered = Message::new(channel, sequence, message);
            sequence = sequence.wrapping_add(1);
            numbered
        });
        self.builder.handle_batch(numbered, out);
    }

    /// The symbols' own numbers begin again as well.
    fn handle_restart(&mut self, out: &mut impl UpdateListener) {
        self.builder.instruments_mut().restart(out);
        for id in self.builder.state.symbols.ids() {
            self.builder.state.row_mut(id).next_seq = 0;
        }
    }

    /// A mapping is applied whatever the book waits for: without it nothing about the symbol can be understood. A clear
    /// says all of its book, but it is not the whole of what a refresh says, so it waits with the others.
    #[inline]
    fn instrument_of(&mut self, message: &[u8]) -> InstrumentId {
        match message.get(2..4) {
            Some([3, 0]) => InstrumentId(0),
            _ => self.named_by(message),
        }
    }
}
