//! What a client is told when it comes: everything that there is, bit by bit, as its ring has room.

use tickpath_gateway_protocol::{
    DownloadBegin, DownloadEnd, Event, FundsUpdate, MarketStatus, PositionUpdate, Ready, ReadyScope,
    TimeSeries, UpdateKind, flags,
};
use tickpath_types::Nanos;

use super::Core;
use super::account::Step;
use super::candles::Series;
use super::out::{About, Cause, Door};

/// Events sent to one client by one call, besides those that belong together.
const EVENTS_PER_CYCLE: usize = 64;
/// How long after one wish of a client for market data anew the next one is followed. A client that reads too slowly wishes it
/// again and again, and is to slow nobody else down.
const AGAIN_PAUSE: Nanos = Nanos::from_secs(1);
/// Room that is left in a client's ring for what happens meanwhile.
const ROOM_LEFT: usize = 16;
/// Events of an instrument besides its book and its figures.
const FIXED_EVENTS: usize = 12;

/// How far a client has been told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Download {
    stage: Stage,
    /// Accounts whose download has begun: what happens there is told.
    accounts: u64,
    /// Accounts that the client was told to be ready.
    ready: u64,
    /// Accounts whose end was told before it was known which orders they have.
    early: u64,
    /// Instruments that were told: those up to this number.
    told: u32,
}

/// What comes next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// How the gateway and its connections stand.
    Status,
    /// The market data, once it is known which instruments there are.
    Begin,
    /// The market data of an instrument.
    Instrument(u32),
    /// An account: its reference.
    Account(u16),
    /// The positions of an account, from a place on.
    Positions(u16, usize),
    /// What an account holds of currencies, from a place on.
    Funds(u16, usize),
    /// The orders of an account, from a place on.
    Orders(u16, u32),
    /// Nothing.
    Done,
}

impl Stage {
    /// The account that is being told.
    const fn account(self) -> Option<u16> {
        match self {
            Stage::Positions(account, _) | Stage::Funds(account, _) | Stage::Orders(account, _) => {
                Some(account)
            }
            _ => None,
        }
    }
}

impl Download {
    /// Everything is to be told.
    #[must_use]
    pub const fn begin() -> Download {
        Download { stage: Stage::Status, accounts: 0, ready: 0, early: 0, told: 0 }
    }

    /// Market data is to be told anew.
    pub const fn again(&mut self) {
        // One that is on its way begins anew, and so does an account's: none of its orders is left out.
        if let Stage::Positions(account, _) | Stage::Funds(account, _) | Stage::Orders(account, _) =
            self.stage
        {
            self.accounts &= !(1 << account);
        }
        self.told = 0;
        // How the gateway stands comes first, where that was not told yet.
        if !matches!(self.stage, Stage::Status) {
            self.stage = Stage::Begin;
        }
    }

    /// Whether what happens at an account is told.
    #[must_use]
    pub const fn has_account(&self, account: u16) -> bool {
        account < 64 && self.accounts >> account & 1 == 1
    }
}

impl Core {
    /// Goes on with the downloads of all clients.
    pub(super) fn poll_downloads(&mut self, now: Nanos, door: &mut impl Door) -> usize {
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

    /// Follows a client's wish for market data anew, however many there were, once its time has come; how much was done.
    fn begin_again(&mut self, place: usize, now: Nanos) -> usize {
        let client = &mut self.clients.all_mut()[place];
        if !client.wants_again || now < client.again_at {
            return 0;
        }
        (client.wants_again, client.again_at) = (false, now + AGAIN_PAUSE);
        client.download.again();
        1
    }

    /// One step; how many events it took, 0 when there is nothing or no room.
    fn download_step(&self, number: u32, user: u16, download: &mut Download, door: &mut impl Door) -> usize {
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
                Stage::Instrument(1)
            }
            Stage::Instrument(symbol) if symbol as usize <= self.instruments.len() => {
                if !out.instrument(symbol) {
                    return 0;
                }
                download.told = symbol;
                Stage::Instrument(symbol + 1)
            }
            Stage::Instrument(_) => {
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
            // An instrument that came later.
            Stage::Done if (download.told as usize) < self.instruments.len() => {
                if !out.instrument(download.told + 1) {
                    return 0;
                }
                download.told += 1;
                Stage::Done
            }
            Stage::Done => return 0,
        };
        // A step that told nothing leads to one that may.
        out.count.max(1)
    }

    /// The next account of the user that was not begun.
    fn next_account(&self, user: u16, download: &Download) -> Stage {
        let user = &self.users[usize::from(user)];
        let next = (0..self.accounts.len() as u16)
            .find(|account| user.has(*account) && !download.has_account(*account));
        next.map_or(Stage::Done, Stage::Account)
    }

    /// An account that becomes ready is told as such, once, and once more after each loss.
    fn tell_ready_accounts(
        &self,
        number: u32,
        user: u16,
        download: &mut Download,
        door: &mut impl Door,
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
                    // Which order ids were used is known now.
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

/// What a download says of something that is known, or was known before a connection was lost.
fn snapshot_or_stale(known: UpdateKind) -> UpdateKind {
    if known == UpdateKind::STALE { known } else { UpdateKind::SNAPSHOT }
}

/// Events that one client's ring must have room for, so that each step of a download fits: how the gateway and its connections
/// stand, an instrument with `depth` levels a side and so many candles, and accounts that become ready all at once.
#[must_use]
pub const fn ring_needed(depth: usize, candles: usize, accounts: usize) -> usize {
    let book = 1 + (2 * depth).div_ceil(tickpath_gateway_protocol::LEVELS_MAX) + candles + FIXED_EVENTS;
    let status = 1 + super::MARKET_STREAMS_MAX + accounts;
    let step = if book > status { book } else { status };
    // A step may begin when there is one place more than what is left.
    (step + 2 * accounts + ROOM_LEFT + 1).next_power_of_two()
}

/// Sends parts of a download.
struct Sender<'a, D> {
    core: &'a Core,
    number: u32,
    door: &'a mut D,
    count: usize,
}

impl<D: Door> Sender<'_, D> {
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

    /// Tells everything of one instrument, or nothing of it where the ring has no room for all.
    fn instrument(&mut self, symbol: u32) -> bool {
        let core = self.core;
        let Some(instrument) = core.instruments.get(symbol) else { return true };
        let candles: usize = instrument.series.iter().map(|series| series.all().len()).sum();
        let needed = instrument.market.book_events() + candles + FIXED_EVENTS + ROOM_LEFT;
        if self.door.room(self.number) < needed {
            return false;
        }
        let about = core.about_symbol(symbol);
        let reference = self.event(&instrument.reference, about);
        match &instrument.steps {
            Some(steps) => {
                self.send(reference.with_more());
                self.send(self.event(steps, about));
            }
            None => self.send(reference),
        }
        let state = MarketStatus { state: instrument.state, ..MarketStatus::default() };
        self.send(self.event(&state, about));
        let market = &instrument.market;
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
        for series in &instrument.series {
            self.candles(series, about);
        }
        self.count += 1;
        self.door.follow(self.number, symbol);
        true
    }

    /// The candles of one length.
    fn candles(&mut self, series: &Series, about: About) {
        let count = series.all().len();
        for (place, candle) in series.all().enumerate() {
            let event = self.event(&TimeSeries { update: UpdateKind::SNAPSHOT, ..*candle }, about);
            self.send(if place + 1 < count { event.with_more() } else { event });
        }
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

    /// The position at a place; whether there is one.
    fn position(&mut self, account: u16, place: usize) -> bool {
        let core = self.core;
        let Some(position) = core.accounts[usize::from(account)].positions.get(place) else { return false };
        let body = PositionUpdate { update: snapshot_or_stale(position.body.update), ..position.body };
        self.send(self.event(&body, About { symbol: position.symbol, ..core.about_account(account) }));
        true
    }

    /// What is held of the currency at a place; whether there is one.
    fn funds(&mut self, account: u16, place: usize) -> bool {
        let core = self.core;
        let Some(funds) = core.accounts[usize::from(account)].funds.get(place) else { return false };
        let body = FundsUpdate { update: snapshot_or_stale(funds.update), ..*funds };
        self.send(self.event(&body, core.about_account(account)));
        true
    }

    /// The next order of the user at the account, from a place on; the place after it.
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
        let half = Download { stage: Stage::Orders(1, 5), accounts: 0b11, ready: 0b1, early: 0, told: 9 };
        let mut download = half;
        download.again();
        assert_eq!((download.stage, download.told), (Stage::Begin, 0));
        assert!(download.has_account(0) && !download.has_account(1));
        let mut download = Download::begin();
        download.again();
        assert_eq!(download, Download::begin(), "how the gateway stands is told all the same");
        let mut download = Download { stage: Stage::Done, ..half };
        download.again();
        assert!(download.has_account(0) && download.has_account(1));
    }
}
