//! Clients' requests to cancel all orders. Their orders are cancelled one by one; when the venue has answered
//! for each, the client receives one ack for all of them.

use tickpath_deribit::envelope::ErrorBody;
use tickpath_gateway_protocol::{
    AckStatus, AckType, ErrorCode, Event, EventKind, Origin, QuoteAck, RateLimitReason, Text,
};
use tickpath_types::Nanos;

use super::Core;
use super::account::Asker;
use super::convert::{is_about_state, is_uncertain, venue_error, words};
use super::orders::State;
use super::out::{About, Cause, EventSink};
use super::requests::Asked;

/// Maximum number of requests awaiting the venue's answers, one bit each. A further one is executed too, but
/// only order updates report its results.
const WAITING_MAX: usize = u64::BITS as usize;

/// Result of the cancellation of one order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    /// The order was cancelled.
    Canceled,
    /// The order was not cancelled, or had ended otherwise before.
    Refused(ErrorCode, Text<64>),
    /// The result is unknown.
    Uncertain(ErrorCode, Text<64>),
}

/// One request, and the results of its orders so far.
#[derive(Clone, Copy, Debug)]
struct Waiting {
    asker: Asker,
    account: u16,
    symbol: u32,
    /// Number of orders without a result.
    left: u32,
    done: u32,
    refused: u32,
    /// The first error, and its text.
    error: ErrorCode,
    text: Text<64>,
    is_uncertain: bool,
}

/// All pending requests.
#[derive(Debug)]
pub(super) struct MassCancels {
    waiting: [Option<Waiting>; WAITING_MAX],
    /// For each order slot, the requests that wait for the order, one bit each.
    marks: Box<[u64]>,
}

impl MassCancels {
    /// Creates an empty set for a number of order slots.
    pub(super) fn new(places: u32) -> MassCancels {
        MassCancels { waiting: [None; WAITING_MAX], marks: vec![0; places as usize].into() }
    }

    /// Starts a request; returns its bit, 0 if the maximum number is reached.
    pub(super) fn begin(&mut self, asked: &Asked) -> u64 {
        let Some(place) = self.waiting.iter().position(Option::is_none) else { return 0 };
        self.waiting[place] = Some(Waiting {
            asker: asked.asker,
            account: asked.account,
            symbol: asked.symbol,
            left: 0,
            done: 0,
            refused: 0,
            error: ErrorCode::default(),
            text: Text::EMPTY,
            is_uncertain: false,
        });
        1 << place
    }

    /// Adds the order in a slot to a request.
    pub(super) fn wait_for(&mut self, bit: u64, slot: u32) {
        if bit != 0
            && let Some(waiting) = &mut self.waiting[bit.trailing_zeros() as usize]
        {
            self.marks[slot as usize] |= bit;
            waiting.left += 1;
        }
    }

    /// Removes a request without orders.
    pub(super) fn drop_empty(&mut self, bit: u64) {
        if bit != 0 {
            self.waiting[bit.trailing_zeros() as usize] = None;
        }
    }

    fn is_waited_for(&self, slot: u32) -> bool {
        self.marks[slot as usize] != 0
    }

    /// Records the result of an order in all requests that wait for it.
    fn settle(&mut self, slot: u32, fate: Fate) {
        let mut bits = std::mem::take(&mut self.marks[slot as usize]);
        while bits != 0 {
            if let Some(waiting) = &mut self.waiting[bits.trailing_zeros() as usize] {
                waiting.settle(fate);
            }
            bits &= bits - 1;
        }
    }

    /// Removes and returns a request whose orders all have results.
    fn take_complete(&mut self) -> Option<Waiting> {
        self.waiting.iter_mut().find_map(|waiting| waiting.take_if(|waiting| waiting.left == 0))
    }

    /// Removes and returns a pending request of an account.
    fn take_of(&mut self, account: u16) -> Option<Waiting> {
        let is_of = |waiting: &Option<Waiting>| waiting.is_some_and(|waiting| waiting.account == account);
        let place = self.waiting.iter().position(is_of)?;
        self.marks.iter_mut().for_each(|mark| *mark &= !(1 << place));
        self.waiting[place].take()
    }
}

impl Waiting {
    fn settle(&mut self, fate: Fate) {
        self.left -= 1;
        let (error, text) = match fate {
            Fate::Canceled => {
                self.done += 1;
                return;
            }
            Fate::Refused(error, text) => {
                self.refused += 1;
                (error, text)
            }
            Fate::Uncertain(error, text) => {
                self.is_uncertain = true;
                (error, text)
            }
        };
        if self.error == ErrorCode::default() {
            (self.error, self.text) = (error, text);
        }
    }

    /// Returns the ack: [`AckStatus::TIMEOUT`] if some results are unknown, and [`AckStatus::REJECTED`] if no
    /// order was cancelled.
    fn ack(&self) -> QuoteAck {
        let status = match () {
            () if self.is_uncertain => AckStatus::TIMEOUT,
            () if self.done == 0 => AckStatus::REJECTED,
            () => AckStatus::ACCEPTED,
        };
        QuoteAck {
            request_id: self.asker.request_id,
            done: self.done,
            refused: self.refused,
            origin: if self.is_uncertain { Origin::GATEWAY } else { Origin::EXCHANGE },
            status,
            request: AckType::CANCEL_ALL,
            error: self.error,
            text: self.text,
            ..QuoteAck::default()
        }
    }
}

impl Core {
    /// Handles the end of an order.
    #[inline]
    pub(super) fn mass_cancel_ended(&mut self, slot: u32, cause: Cause, door: &mut impl EventSink) {
        if self.mass_cancels.is_waited_for(slot) {
            self.settle_ended(slot, cause, door);
        }
    }

    fn settle_ended(&mut self, slot: u32, cause: Cause, door: &mut impl EventSink) {
        let why = |text| Fate::Refused(ErrorCode::UNKNOWN_ORDER, Text::cut(text));
        let fate = match self.orders.get(slot).map(|order| order.state) {
            Some(State::Completed) => why("it was filled before"),
            Some(State::Rejected) => why("it never was in the book"),
            _ => Fate::Canceled,
        };
        self.mass_cancels.settle(slot, fate);
        self.tell_mass_cancels(cause, door);
    }

    /// Handles a rejected cancellation, or one with an unknown result. If the order's state is not as
    /// assumed, an order status query finds out how it ended.
    pub(super) fn mass_cancel_refused(
        &mut self,
        slot: u32,
        error: &ErrorBody<'_>,
        received: Nanos,
        door: &mut impl EventSink,
    ) {
        if !self.mass_cancels.is_waited_for(slot) || is_about_state(error) {
            return;
        }
        let fate = if is_uncertain(error) {
            Fate::Uncertain(ErrorCode::TIMEOUT, words(error))
        } else {
            Fate::Refused(venue_error(error), words(error))
        };
        self.mass_cancels.settle(slot, fate);
        let cause = Cause { received, origin_utc_ns: self.said_utc_ns, ..Cause::default() };
        self.tell_mass_cancels(cause, door);
    }

    /// Handles a cancellation that remains without an answer.
    pub(super) fn mass_cancel_unanswered(
        &mut self,
        slot: u32,
        error: ErrorCode,
        text: Text<48>,
        now: Nanos,
        door: &mut impl EventSink,
    ) {
        if self.mass_cancels.is_waited_for(slot) {
            self.mass_cancels.settle(slot, Fate::Uncertain(error, Text::cut(text.as_str())));
            self.tell_mass_cancels(Cause { received: now, ..Cause::default() }, door);
        }
    }

    /// Completes the requests of an account whose connection is lost. Their orders are cancelled after the
    /// reconnection.
    pub(super) fn lose_mass_cancels(&mut self, account: u16, now: Nanos, door: &mut impl EventSink) {
        while let Some(mut waiting) = self.mass_cancels.take_of(account) {
            waiting.is_uncertain = true;
            if waiting.error == ErrorCode::default() {
                (waiting.error, waiting.text) =
                    (ErrorCode::CONNECTION_LOST, Text::cut("the connection was lost"));
            }
            self.tell_mass_cancel(&waiting, Cause { received: now, ..Cause::default() }, door);
        }
    }

    fn tell_mass_cancels(&mut self, cause: Cause, door: &mut impl EventSink) {
        while let Some(complete) = self.mass_cancels.take_complete() {
            self.tell_mass_cancel(&complete, cause, door);
        }
    }

    fn tell_mass_cancel(&self, waiting: &Waiting, cause: Cause, door: &mut impl EventSink) {
        let Waiting { asker, account, symbol, .. } = *waiting;
        let Some(client) = asker.client.filter(|client| self.clients.get(*client).is_some()) else { return };
        let ack = waiting.ack();
        self.tell_venue_limit(cause.received, account, ack.error, RateLimitReason::VENUE_REFUSED, door);
        let ack = QuoteAck { round_trip_ns: self.round_trip(cause.received, asker.create_ns), ..ack };
        let stream = self.accounts[usize::from(account)].order_stream() as u8 + 1;
        let about = About { stream, symbol, ..self.about_account(account) };
        let is_told = ack.origin == Origin::EXCHANGE;
        let origin_utc_ns = if is_told { cause.origin_utc_ns } else { 0 };
        let cause = Cause { origin_ns: asker.create_ns, origin_utc_ns, ..cause };
        let event = Event::of_quote_ack(EventKind::CANCEL_ALL_ACK, &ack);
        door.send(client, self.stamp.stamp(event, about, cause));
    }
}
