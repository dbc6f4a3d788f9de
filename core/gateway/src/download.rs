//! Download: sends a new client the complete state, in portions that fit its ring.

use tickpath_gateway_protocol::{
    DownloadBegin, DownloadEnd, Event, FundsUpdate, MarketStatus, PositionUpdate, Ready, ReadyScope,
    TimeSeries, UpdateKind, flags,
};
use tickpath_types::Nanos;

use super::Core;
use super::account::Step;
use super::instruments::Instrument;
use super::out::{About, Cause, EventSink};

/// Maximum number of events sent to one client per call, not counting those that belong together.
const EVENTS_PER_CYCLE: usize = 64;
/// Minimum time between two market data downloads of one client. A client that reads too slowly requests them
/// again and again; the pause keeps it from slowing down the others.
const AGAIN_PAUSE: Nanos = Nanos::from_secs(1);
/// Capacity reserved in a client's ring for current events.
const ROOM_LEFT: usize = 16;
/// Events of an instrument apart from its book and its candles.
const FIXED_EVENTS: usize = 12;
/// Maximum number of candles sent at once.
const CANDLES_PER_STEP: usize = 16;

/// Progress of a client's download.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Download {
    stage: Stage,
    /// Accounts whose download has started: their updates are sent.
    accounts: u64,
    /// Accounts that were reported to the client as ready.
    ready: u64,
    /// Accounts whose download ended before their open orders were known.
    early: u64,
    /// Highest instrument number sent completely.
    told: u32,
    /// Progress of the next instrument.
    part: Part,
}

/// Progress of an instrument's download.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Part {
    /// Revision of the instrument when this part was sent.
    revision: u32,
    next: Next,
}

/// The next part of an instrument.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Next {
    /// Its reference data.
    #[default]
    Reference,
    /// Its candles of one length, from an index on, except the last one, which may still change.
    Candles { series: usize, from: usize },
    /// All that changes, at once, so that later broadcasts continue from it.
    Rest,
}

/// The next part of a download.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// The state of the gateway and its connections.
    Status,
    /// The start of the market data, once the instruments are known.
    Begin,
    /// The market data, one instrument at a time.
    Instruments,
    /// An account's reference data.
    Account(u16),
    /// The positions of an account, from an index on.
    Positions(u16, usize),
    /// The funds of an account, from an index on.
    Funds(u16, usize),
    /// The orders of an account, from a slot on.
    Orders(u16, u32),
    /// Nothing more.
    Done,
}

impl Stage {
    /// The account in progress.
    const fn account(self) -> Option<u16> {
        match self {
            Stage::Positions(account, _) | Stage::Funds(account, _) | Stage::Orders(account, _) => {
                Some(account)
            }
            _ => None,
        }
    }
}

impl Part {
    /// Nothing of the instrument is sent yet.
    const BEGIN: Part = Part { revision: 0, next: Next::Reference };
}

impl Download {
    /// A new download of everything.
    #[must_use]
    pub const fn begin() -> Download {
        Download { stage: Stage::Status, accounts: 0, ready: 0, early: 0, told: 0, part: Part::BEGIN }
    }

    /// Restarts the market data.
    pub const fn again(&mut self) {
        // Restarts an account's download in progress too, so that none of its orders is omitted.
        if let Stage::Positions(account, _) | Stage::Funds(account, _) | Stage::Orders(account, _) =
            self.stage
        {
            self.accounts &= !(1 << account);
        }
        (self.told, self.part) = (0, Part::BEGIN);
        // The gateway's state comes first if it has not been sent yet.
        if !matches!(self.stage, Stage::Status) {
            self.stage = Stage::Begin;
        }
    }

    /// Whether the client receives the account's updates.
    #[must_use]
    pub const fn has_account(&self, account: u16) -> bool {
        account < 64 && self.accounts >> account & 1 == 1
    }
}

impl Core {
    /// Continues the downloads of all clients.
    pub(super) fn poll_downloads(&mut self, now: Nanos, door: &mut impl EventSink) -> usize {
        let mut work = 0;
        for place in 0..self.clients.all().len() {
            work += self.begin_again(place, now);
            let client = self.clients.all()[place];
            let (mut download, number, user) = (client.download, client.number, client.user);
            let mut sent = 0;
            while sent < EVENTS_PER_CYCLE && door.room(number) > ROOM_LEFT {
                let count = self.download_step(number, user, &mut download, door);
                if count == 0 {
                    break;
                }
                sent += count;
            }
            work += sent + self.tell_ready_accounts(number, user, &mut download, door);
            if let Some(client) = self.clients.get_mut(number) {
                client.download = download;
            }
        }
        work
    }

    /// Restarts a client's market data if requested and the pause is over; returns the amount of work.
    fn begin_again(&mut self, place: usize, now: Nanos) -> usize {
        let client = &mut self.clients.all_mut()[place];
        if !client.wants_again || now < client.again_at {
            return 0;
        }
        (client.wants_again, client.again_at) = (false, now + AGAIN_PAUSE);
        client.download.again();
        1
    }

    /// Executes one step; returns the number of events, 0 if there is nothing to send or no capacity.
    fn download_step(
        &self,
        number: u32,
        user: u16,
        download: &mut Download,
        door: &mut impl EventSink,
    ) -> usize {
        let mut out = Sender { core: self, number, door, count: 0 };
        download.stage = match download.stage {
            Stage::Status => {
                if out.door.room(number) < 1 + self.streams.len() + ROOM_LEFT {
                    return 0;
                }
                out.status();
                Stage::Begin
            }
            Stage::Begin if !self.is_listed => return 0,
            Stage::Begin => {
                let begin = DownloadBegin { scope: ReadyScope::MARKET_DATA, ..DownloadBegin::default() };
                out.send(out.event(&begin, About::default()));
                Stage::Instruments
            }
            Stage::Instruments if (download.told as usize) < self.instruments.len() => {
                if !out.instrument(download) {
                    return 0;
                }
                Stage::Instruments
            }
            Stage::Instruments => {
                out.end_of_market();
                self.next_account(user, download)
            }
            Stage::Account(account) => {
                out.account(user, account);
                download.accounts |= 1 << account;
                Stage::Positions(account, 0)
            }
            Stage::Positions(account, place) => {
                if out.position(account, place) {
                    Stage::Positions(account, place + 1)
                } else {
                    Stage::Funds(account, 0)
                }
            }
            Stage::Funds(account, place) => {
                if out.funds(account, place) {
                    Stage::Funds(account, place + 1)
                } else {
                    Stage::Orders(account, 0)
                }
            }
            Stage::Orders(account, from) => match out.order(user, account, from) {
                Some(next) => Stage::Orders(account, next),
                None => {
                    out.end_of_account(user, account);
                    let is_early = self.accounts[usize::from(account)].step <= Step::Orders;
                    download.early |= u64::from(is_early) << account;
                    self.next_account(user, download)
                }
            },
            // An instrument that was listed later.
            Stage::Done if (download.told as usize) < self.instruments.len() => {
                if !out.instrument(download) {
                    return 0;
                }
                Stage::Done
            }
            Stage::Done => return 0,
        };
        // A step without events counts too: the next one may have some.
        out.count.max(1)
    }

    /// Returns the user's next account whose download has not started.
    fn next_account(&self, user: u16, download: &Download) -> Stage {
        let user = &self.users[usize::from(user)];
        let next = (0..self.accounts.len() as u16)
            .find(|account| user.has(*account) && !download.has_account(*account));
        next.map_or(Stage::Done, Stage::Account)
    }

    /// Reports accounts that have become ready: once, and once more after each loss of the connection.
    fn tell_ready_accounts(
        &self,
        number: u32,
        user: u16,
        download: &mut Download,
        door: &mut impl EventSink,
    ) -> usize {
        let mut count = 0;
        for (place, account) in self.accounts.iter().enumerate() {
            let (bit, place) = (1_u64 << place, place as u16);
            let is_done = download.has_account(place) && download.stage.account() != Some(place);
            if !is_done || !self.users[usize::from(user)].has(place) {
                continue;
            }
            if account.step == Step::Ready && download.ready & bit == 0 {
                download.ready |= bit;
                let mut out = Sender { core: self, number, door, count: 0 };
                if download.early & bit != 0 {
                    // The order ids in use are known only now.
                    download.early &= !bit;
                    out.end_of_account(user, place);
                }
                let ready = Ready { scope: ReadyScope::ACCOUNT, ..Ready::default() };
                out.send(out.event(&ready, self.about_account(place)));
                count += out.count;
            }
            if account.step < Step::Doubts {
                download.ready &= !bit;
            }
        }
        count
    }
}

/// Update kind in a download: stale stays stale, everything else is a snapshot.
fn snapshot_or_stale(known: UpdateKind) -> UpdateKind {
    if known == UpdateKind::STALE { known } else { UpdateKind::SNAPSHOT }
}

/// Minimum size of a client's ring, in events, so that each step of a download fits. The largest steps are:
/// the state of the gateway and its connections; an instrument with `depth` levels per side and the last
/// candle of each of `lengths` lengths; and all accounts becoming ready at once.
#[must_use]
pub const fn ring_needed(depth: usize, lengths: usize, accounts: usize) -> usize {
    let book = 1 + (2 * depth).div_ceil(tickpath_gateway_protocol::LEVELS_MAX) + lengths + FIXED_EVENTS;
    let status = 1 + super::MARKET_STREAMS_MAX + accounts;
    let step = if book > status { book } else { status };
    const { assert!(CANDLES_PER_STEP <= 1 + super::MARKET_STREAMS_MAX) };
    // A step may start when capacity exceeds the reserve by a single event.
    (step + 2 * accounts + ROOM_LEFT + 1).next_power_of_two()
}

/// Sends parts of a download.
struct Sender<'a, D> {
    core: &'a Core,
    number: u32,
    door: &'a mut D,
    count: usize,
}

impl<D: EventSink> Sender<'_, D> {
    fn event<B: tickpath_gateway_protocol::Body>(&self, body: &B, about: About) -> Event {
        let mut event = self.core.stamp.event(body, about, Cause::default());
        event.header.flags |= flags::DOWNLOAD;
        event
    }

    fn send(&mut self, event: Event) {
        self.count += 1;
        self.door.send(self.number, event);
    }

    fn status(&mut self) {
        let core = self.core;
        self.send(self.event(&core.gateway_status(), About::default()));
        for place in 0..core.streams.len() {
            if core.is_used(place) {
                let about = About { stream: place as u8 + 1, ..About::default() };
                self.send(self.event(&core.stream_status(place), about));
            }
        }
    }

    /// Sends the next part of the next instrument; false if the ring has no capacity for it. An instrument
    /// that has changed since is sent again.
    fn instrument(&mut self, download: &mut Download) -> bool {
        let symbol = download.told + 1;
        let Some(instrument) = self.core.instruments.get(symbol) else { return false };
        let (revision, part) = (instrument.revision, download.part);
        let next = match if part.revision == revision { part.next } else { Next::Reference } {
            Next::Reference => self.reference(symbol, instrument),
            Next::Candles { series, from } => self.candles(symbol, instrument, series, from),
            Next::Rest => {
                let is_told = self.rest(symbol, instrument);
                if is_told {
                    (download.told, download.part) = (symbol, Part::BEGIN);
                }
                return is_told;
            }
        };
        let Some(next) = next else { return false };
        download.part = Part { revision, next };
        true
    }

    fn has_room(&self, count: usize) -> bool {
        self.door.room(self.number) >= count + ROOM_LEFT
    }

    /// Sends an instrument's reference data.
    fn reference(&mut self, symbol: u32, instrument: &Instrument) -> Option<Next> {
        if !self.has_room(2) {
            return None;
        }
        let about = self.core.about_symbol(symbol);
        let reference = self.event(&instrument.reference, about);
        match &instrument.steps {
            Some(steps) => {
                self.send(reference.with_more());
                self.send(self.event(steps, about));
            }
            None => self.send(reference),
        }
        Some(Next::Candles { series: 0, from: 0 })
    }

    /// Sends some of its candles, oldest first.
    fn candles(&mut self, symbol: u32, instrument: &Instrument, series: usize, from: usize) -> Option<Next> {
        let Some(candles) = instrument.series.get(series) else { return Some(Next::Rest) };
        let finished = candles.all().len().saturating_sub(1);
        let end = finished.min(from + CANDLES_PER_STEP);
        if !self.has_room(end.saturating_sub(from)) {
            return None;
        }
        let about = self.core.about_symbol(symbol);
        for (place, candle) in candles.all().enumerate().take(end).skip(from) {
            let event = self.event(&TimeSeries { update: UpdateKind::SNAPSHOT, ..*candle }, about);
            self.send(if place + 1 < end { event.with_more() } else { event });
        }
        Some(if end < finished {
            Next::Candles { series, from: end }
        } else {
            Next::Candles { series: series + 1, from: 0 }
        })
    }

    /// Sends the changing data of an instrument, or nothing if the ring has no capacity for all of it.
    fn rest(&mut self, symbol: u32, instrument: &Instrument) -> bool {
        let core = self.core;
        let market = &instrument.market;
        if !self.has_room(market.book_events() + instrument.series.len() + FIXED_EVENTS) {
            return false;
        }
        let about = core.about_symbol(symbol);
        let state = MarketStatus { state: instrument.state, ..MarketStatus::default() };
        self.send(self.event(&state, about));
        let cause = Cause::venue(Nanos::ZERO, market.book_ms);
        if market.is_whole() {
            market.show_book(|body, is_last| {
                let mut event = core.stamp.event(&body, about, cause);
                event.header.flags |= flags::DOWNLOAD;
                self.send(if is_last { event } else { event.with_more() });
            });
        }
        if market.has_top() {
            self.send(self.event(&market.top_event(UpdateKind::SNAPSHOT), about));
        }
        market.show_figures(|body| self.send(self.event(&body, about)));
        for last in instrument.series.iter().filter_map(|series| series.all().next_back()) {
            self.send(self.event(&TimeSeries { update: UpdateKind::SNAPSHOT, ..*last }, about));
        }
        self.count += 1;
        self.door.follow(self.number, symbol);
        true
    }

    fn end_of_market(&mut self) {
        let end = DownloadEnd { scope: ReadyScope::MARKET_DATA, ..DownloadEnd::default() };
        self.send(self.event(&end, About::default()));
        let ready = Ready { scope: ReadyScope::MARKET_DATA, ..Ready::default() };
        self.send(self.event(&ready, About::default()));
    }

    fn account(&mut self, user: u16, account: u16) {
        let core = self.core;
        let about = core.about_account(account);
        self.send(self.event(&core.account_reference(user, account), about));
        let begin = DownloadBegin { scope: ReadyScope::ACCOUNT, ..DownloadBegin::default() };
        self.send(self.event(&begin, about));
        self.send(self.event(&core.limits_of(account), about));
        for left in [core.accounts[usize::from(account)].told_left, core.users[usize::from(user)].told_left] {
            if left.maximum > 0 {
                self.send(self.event(&left, about));
            }
        }
    }

    /// Sends the position at an index; returns whether there is one.
    fn position(&mut self, account: u16, place: usize) -> bool {
        let core = self.core;
        let Some(position) = core.accounts[usize::from(account)].positions.get(place) else { return false };
        let body = PositionUpdate { update: snapshot_or_stale(position.body.update), ..position.body };
        self.send(self.event(&body, About { symbol: position.symbol, ..core.about_account(account) }));
        true
    }

    /// Sends the funds of the currency at an index; returns whether there is one.
    fn funds(&mut self, account: u16, place: usize) -> bool {
        let core = self.core;
        let Some(funds) = core.accounts[usize::from(account)].funds.get(place) else { return false };
        let body = FundsUpdate { update: snapshot_or_stale(funds.update), ..*funds };
        self.send(self.event(&body, core.about_account(account)));
        true
    }

    /// Sends the user's next order in the account, from a slot on; returns the slot after it.
    fn order(&mut self, user: u16, account: u16, from: u32) -> Option<u32> {
        let core = self.core;
        let of_user = |slot: &u32| {
            core.orders.get(*slot).is_some_and(|order| order.user == user && order.account == account)
        };
        let slot = core.orders.live_from(from).find(of_user)?;
        let order = core.orders.get(slot)?;
        let about = About { symbol: order.symbol, ..core.about_account(account) };
        self.send(self.event(&super::own_orders::update_of(order, UpdateKind::SNAPSHOT), about));
        Some(slot + 1)
    }

    fn end_of_account(&mut self, user: u16, account: u16) {
        let max_order_id = self.core.users[usize::from(user)].order_id_max;
        let end = DownloadEnd { scope: ReadyScope::ACCOUNT, max_order_id, ..DownloadEnd::default() };
        self.send(self.event(&end, self.core.about_account(account)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_account_half_told_is_told_anew() {
        let half = Download {
            stage: Stage::Orders(1, 5),
            accounts: 0b11,
            ready: 0b1,
            early: 0,
            told: 9,
            part: Part { revision: 3, next: Next::Rest },
        };
        let mut download = half;
        download.again();
        assert_eq!((download.stage, download.told, download.part), (Stage::Begin, 0, Part::BEGIN));
        assert!(download.has_account(0) && !download.has_account(1));
        let mut download = Download::begin();
        download.again();
        assert_eq!(download, Download::begin(), "the gateway's status is sent all the same");
        let mut download = Download { stage: Stage::Done, ..half };
        download.again();
        assert!(download.has_account(0) && download.has_account(1));
    }
}
