//! Market data: the list of instruments, their channels, and the data of the channels.

use tickpath_deribit::envelope::{Notification, Response};
use tickpath_deribit::field::List;
use tickpath_deribit::messages::{
    GetInstruments, Instrument as VenueInstrument, InstrumentStateChange, PublicTrade, Ticker,
};
use tickpath_deribit::method::Method;
use tickpath_deribit::number::Number;
use tickpath_deribit::scan::Value;
use tickpath_deribit::text::Text as VenueText;
use tickpath_gateway_protocol::{
    BookUpdate, Event, Fixed, MarketByPrice, MarketState, MarketStatus, Ready, ReadyScope, Text,
    TickDirection, TradeSummary, UpdateKind,
};
use tickpath_types::Nanos;

use super::instruments::market_state;
use super::market::BookChange;
use super::news::{NewsFault, cut, units};
use super::out::{About, Cause, EventSink, Venue};
use super::{Core, Listing, MARKET_STREAMS_MAX, candles, convert};

/// Maximum number of instruments subscribed per call.
const SUBSCRIBED_PER_CYCLE: usize = 64;
/// Maximum number of books resubscribed per call.
const RENEWED_PER_CYCLE: usize = 16;
/// Pause before a rejected query is repeated.
pub(super) const RETRY: Nanos = Nanos::from_secs(2);
impl Core {
    /// Queries the list of instruments, subscribes channels, and resubscribes lost books.
    pub(super) fn poll_market(
        &mut self,
        now: Nanos,
        door: &mut impl EventSink,
        venue: &mut impl Venue,
    ) -> usize {
        let mut work = 0;
        if self.listing == Listing::Wanted && now >= self.listing_at && self.is_market_ready() {
            let params = GetInstruments { currency: VenueText::new("any"), kind: None, expired: false };
            match venue.request(now, 0, Method::GetInstruments, &params) {
                Ok(id) => self.listing = Listing::Asked(id),
                Err(_) => self.listing_at = now + RETRY,
            }
            work += 1;
        }
        // Two passes over all instruments: closed ones release their places first.
        let count = self.instruments.len();
        if self.listing == Listing::Known && self.subscribe_next < 2 * count {
            let end = (2 * count).min(self.subscribe_next + SUBSCRIBED_PER_CYCLE);
            for place in self.subscribe_next..end {
                let symbol = (place % count) as u32 + 1;
                if place < count {
                    self.give_up_channels(symbol, venue);
                } else {
                    self.want_channels(symbol, now, venue);
                }
            }
            self.subscribe_next = end;
            work += 1;
        }
        work += self.poll_lost(now, venue);
        work + self.poll_awaited(now, door) + self.poll_candles(now, venue)
    }

    /// Resubscribes lost books that are due. Does not search the queue before the first is due.
    fn poll_lost(&mut self, now: Nanos, venue: &mut impl Venue) -> usize {
        if self.lost_books.is_empty() || now < self.lost_books_at {
            return 0;
        }
        let mut work = 0;
        for _ in 0..RENEWED_PER_CYCLE {
            let due = self.lost_books.iter().position(|(at, _)| *at <= now);
            let Some((_, symbol)) = due.and_then(|place| self.lost_books.remove(place)) else { break };
            self.renew_book(symbol, now, venue);
            work += 1;
        }
        self.lost_books_at = self.lost_books.iter().map(|(at, _)| *at).min().unwrap_or(Nanos::ZERO);
        work
    }

    /// Requests subscribed books again that did not arrive in time.
    fn poll_awaited(&mut self, now: Nanos, door: &mut impl EventSink) -> usize {
        let mut work = 0;
        while work < RENEWED_PER_CYCLE
            && let Some((_, symbol)) = self.awaited_books.pop_front_if(|(until, _)| *until <= now)
        {
            work += 1;
            let stream = self.market_stream(symbol);
            let is_up = stream.is_some_and(|stream| {
                self.streams[stream].status == tickpath_gateway_protocol::ConnectionStatus::READY
            });
            let Some(instrument) = self.instruments.get_mut(symbol) else { continue };
            if now < instrument.renewal.deadline || instrument.market.is_whole() || !instrument.is_listed {
                continue;
            }
            if is_up {
                self.lose_book(symbol, Cause { received: now, ..Cause::default() }, door);
            } else {
                self.await_book(symbol, now);
            }
        }
        work
    }

    /// Starts waiting for a book snapshot.
    fn await_book(&mut self, symbol: u32, now: Nanos) {
        let until = now + self.settings.book_timeout;
        if let Some(instrument) = self.instruments.get_mut(symbol) {
            instrument.renewal.deadline = until;
            self.awaited_books.push_back((until, symbol));
        }
    }

    /// Marks a book as stale if it has a gap, is crossed or did not arrive; schedules its resubscription.
    fn lose_book(&mut self, symbol: u32, cause: Cause, door: &mut impl EventSink) {
        self.counters.books_lost += 1;
        if self.lost_books.iter().any(|(_, known)| *known == symbol) {
            return;
        }
        let Some(instrument) = self.instruments.get_mut(symbol) else { return };
        let at = cause.received + instrument.renewal.pause(cause.received);
        instrument.market.await_book();
        self.lost_books_at = if self.lost_books.is_empty() { at } else { self.lost_books_at.min(at) };
        self.lost_books.push_back((at, symbol));
        self.tell_stale(symbol, cause, door);
    }

    pub(super) fn is_market_ready(&self) -> bool {
        self.streams[0].status == tickpath_gateway_protocol::ConnectionStatus::READY
    }

    /// Returns the connection of an instrument's channels.
    pub(super) fn market_stream(&self, symbol: u32) -> Option<usize> {
        self.instruments.get(symbol)?.stream.map(usize::from)
    }

    /// Assigns an instrument's channels to a connection with capacity.
    fn take_place(&mut self, symbol: u32) -> Option<usize> {
        if let Some(stream) = self.market_stream(symbol) {
            return Some(stream);
        }
        let stream = self.members.iter().position(|members| *members < self.settings.instruments_of_one())?;
        self.members[stream] += 1;
        self.instruments.get_mut(symbol)?.stream = Some(stream as u8);
        self.make_series(symbol);
        Some(stream)
    }

    /// Names of an instrument's channels.
    fn channels_of(&self, symbol: u32) -> Vec<String> {
        let Some(instrument) = self.instruments.get(symbol) else { return Vec::new() };
        let (name, feeds, interval) = (&instrument.name, &self.settings.feeds, self.settings.interval);
        let candles = feeds.time_series.iter().map(|one| candles::channel_of(name, *one));
        let wanted = [
            feeds.book.then(|| format!("book.{name}.{interval}")),
            feeds.ticker.then(|| format!("ticker.{name}.{}", self.settings.ticker_interval)),
            feeds.trades.then(|| format!("trades.{name}.{interval}")),
        ];
        wanted.into_iter().flatten().chain(candles).collect()
    }

    /// Releases the place of an instrument that is no longer listed.
    fn give_up_channels(&mut self, symbol: u32, venue: &mut impl Venue) {
        let Some(instrument) = self.instruments.get_mut(symbol).filter(|it| !it.is_listed) else { return };
        let Some(stream) = instrument.stream.take() else { return };
        let stream = usize::from(stream);
        // If the instrument is listed again later, the earlier market data is outdated.
        instrument.market.await_book();
        instrument.market.forget_prices();
        self.members[stream] -= 1;
        self.give_up_candles(symbol);
        self.channels_of(symbol).iter().for_each(|channel| venue.unsubscribe(stream, channel));
    }

    fn want_channels(&mut self, symbol: u32, now: Nanos, venue: &mut impl Venue) {
        if !self.instruments.get(symbol).is_some_and(|instrument| instrument.is_listed) {
            return;
        }
        let Some(stream) = self.take_place(symbol) else {
            self.counters.instruments_left_out += 1;
            return;
        };
        if self.channels[stream] == 0 {
            if stream > 0 {
                venue.connect(stream, now);
            } else if self.settings.feeds.instrument_state {
                venue.subscribe(0, "instrument.state.any.any");
            }
        }
        for channel in self.channels_of(symbol) {
            venue.subscribe(stream, &channel);
            self.channels[stream] += 1;
        }
        let Some(instrument) = self.instruments.get(symbol) else { return };
        if self.settings.feeds.book && !instrument.market.is_whole() {
            self.await_book(symbol, now);
        }
        self.want_candles(symbol);
    }

    /// Resubscribes a book.
    fn renew_book(&mut self, symbol: u32, now: Nanos, venue: &mut impl Venue) {
        let (Some(stream), interval) = (self.market_stream(symbol), self.settings.interval) else { return };
        let Some(instrument) = self.instruments.get_mut(symbol) else { return };
        // A snapshot that arrived in the meantime may miss later changes.
        instrument.market.await_book();
        venue.resubscribe(stream, &format!("book.{}.{interval}", instrument.name));
        self.await_book(symbol, now);
    }

    /// Reports a book as stale until the next snapshot.
    fn tell_stale(&self, symbol: u32, cause: Cause, door: &mut impl EventSink) {
        let Some(instrument) = self.instruments.get(symbol) else { return };
        let about = self.about_symbol(symbol);
        let book = MarketByPrice { update: BookUpdate::STALE, ..MarketByPrice::default() };
        door.broadcast(self.stamp.event(&book, about, cause));
        door.broadcast(self.stamp.event(&instrument.market.top_event(UpdateKind::STALE), about, cause));
    }

    pub(super) fn about_symbol(&self, symbol: u32) -> About {
        let stream = self.market_stream(symbol).map_or(0, |stream| stream as u8 + 1);
        About { stream, account: 0, symbol }
    }

    /// Marks all books of a lost connection as stale.
    pub(super) fn lose_market(&mut self, stream: usize, now: Nanos, door: &mut impl EventSink) {
        if stream == 0 {
            (self.listing, self.listing_at) = (Listing::Wanted, now);
        }
        for symbol in 1..=self.instruments.len() as u32 {
            if self.market_stream(symbol) != Some(stream) {
                continue;
            }
            let Some(instrument) = self.instruments.get_mut(symbol) else { continue };
            let was_whole = instrument.market.has_top();
            instrument.market.await_book();
            instrument.market.forget_prices();
            if was_whole {
                self.tell_stale(symbol, Cause { received: now, ..Cause::default() }, door);
            }
            if self.settings.feeds.book {
                self.await_book(symbol, now);
            }
            self.lose_candles(symbol, now, door);
        }
    }

    /// Handles a reply on a market data connection.
    pub(super) fn handle_market_reply(
        &mut self,
        stream: usize,
        id: i64,
        response: &Response<'_>,
        received: Nanos,
        door: &mut impl EventSink,
    ) {
        if stream != 0 || self.take_chart_reply(id, response, received, door) {
            return;
        }
        if self.listing != Listing::Asked(id) {
            return;
        }
        match response.outcome.map(|value| value.parse::<List<'_, VenueInstrument<'_>>>()) {
            Ok(Ok(list)) => self.take_listing(&list, received, door),
            _ => {
                self.counters.faults += 1;
                (self.listing, self.listing_at) = (Listing::Wanted, received + RETRY);
            }
        }
    }

    /// Handles a request on a market data connection that remains without a reply.
    pub(super) fn handle_market_unanswered(&mut self, stream: usize, id: i64, now: Nanos) {
        if stream == 0 && self.listing == Listing::Asked(id) {
            (self.listing, self.listing_at) = (Listing::Wanted, now);
        } else if stream == 0 {
            self.handle_chart_unanswered(id, now);
        }
    }

    fn take_listing(
        &mut self,
        list: &List<'_, VenueInstrument<'_>>,
        received: Nanos,
        door: &mut impl EventSink,
    ) {
        self.instruments.all_mut().iter_mut().for_each(|instrument| instrument.is_listed = false);
        self.listed = 0;
        for instrument in list.iter() {
            self.listed += 1;
            let Ok(instrument) = instrument else {
                // The rest of the list is unknown, so no instrument is treated as removed.
                self.counters.faults += 1;
                for instrument in self.instruments.all_mut() {
                    instrument.is_listed = instrument.state != MarketState::CLOSED;
                }
                break;
            };
            if instrument.instrument_name.plain().is_some_and(|name| self.settings.filter.has(name)) {
                self.enter_instrument(&instrument, received, door);
            }
        }
        for symbol in 1..=self.instruments.len() as u32 {
            let Some(instrument) = self.instruments.get_mut(symbol) else { continue };
            if !instrument.is_listed && instrument.state != MarketState::CLOSED {
                instrument.state = MarketState::CLOSED;
                self.tell_state(symbol, Cause { received, ..Cause::default() }, door);
            }
        }
        (self.listing, self.is_listed) = (Listing::Known, true);
        if std::mem::take(&mut self.is_listing_old) {
            (self.listing, self.listing_at) = (Listing::Wanted, received);
        }
        let ready = Ready { scope: ReadyScope::MARKET_DATA, ..Ready::default() };
        door.broadcast(self.stamp.event(&ready, About::default(), Cause { received, ..Cause::default() }));
        self.subscribe_next = 0;
        self.channels = [0; MARKET_STREAMS_MAX];
    }

    fn enter_instrument(&mut self, venue: &VenueInstrument<'_>, received: Nanos, door: &mut impl EventSink) {
        let (symbol, is_changed) = match self.instruments.enter(venue) {
            Ok(Some(entered)) => entered,
            Ok(None) | Err(_) => {
                self.counters.instruments_left_out += 1;
                return;
            }
        };
        self.permit(symbol);
        // If all connections are full, a closed instrument may release a place at the subscription.
        let _ = self.take_place(symbol);
        if is_changed && self.is_listed {
            let about = self.about_symbol(symbol);
            let cause = Cause { received, ..Cause::default() };
            let Some(instrument) = self.instruments.get(symbol) else { return };
            let reference = self.stamp.event(&instrument.reference, about, cause);
            match &instrument.steps {
                Some(steps) => {
                    door.broadcast(reference.with_more());
                    door.broadcast(self.stamp.event(steps, about, cause));
                }
                None => door.broadcast(reference),
            }
            self.tell_state(symbol, cause, door);
        }
    }

    /// Determines which users and accounts may trade a new instrument.
    fn permit(&mut self, symbol: u32) {
        let Some(instrument) = self.instruments.get(symbol) else { return };
        let place = symbol as usize - 1;
        let users = self.settings.users.iter().map(|user| &user.symbols);
        let accounts = self.settings.accounts.iter().map(|account| &account.symbols);
        let lists = self.user_symbols.iter_mut().zip(users);
        let accounts = self.account_symbols.iter_mut().zip(accounts);
        for (flags, patterns) in lists.chain(accounts) {
            if flags.len() <= place {
                flags.resize(place + 1, false);
                flags[place] = patterns.matches(&instrument.name);
            }
        }
    }

    fn tell_state(&self, symbol: u32, cause: Cause, door: &mut impl EventSink) {
        let Some(instrument) = self.instruments.get(symbol) else { return };
        let body = MarketStatus { state: instrument.state, ..MarketStatus::default() };
        door.broadcast(self.stamp.event(&body, self.about_symbol(symbol), cause));
    }

    /// Handles data of a market data channel.
    pub(super) fn handle_market_news(
        &mut self,
        news: &Notification<'_>,
        received: Nanos,
        door: &mut impl EventSink,
    ) {
        if let Some(head) = self.scratch.book.take() {
            return self.take_book(&head, received, door);
        }
        let Some(channel) = news.channel.plain() else { return };
        let taken = match channel.split_once('.').map(|(first, _)| first) {
            Some("ticker") => self.take_ticker(&news.data, received, door),
            Some("trades") => self.take_trades(&news.data, received, door),
            Some("chart") => self.take_candle(channel, &news.data, received, door),
            Some("instrument") => self.take_state(&news.data, received, door),
            _ => Ok(()),
        };
        if taken.is_err() {
            self.counters.faults += 1;
        }
    }

    fn take_book(&mut self, head: &super::reading::BookHead, received: Nanos, door: &mut impl EventSink) {
        let (symbol, depth) = (head.symbol, self.settings.depth);
        let about = self.about_symbol(symbol);
        let update = head.update();
        let cause = Cause::venue(received, update.timestamp);
        let stamp = self.stamp;
        let Some(instrument) = self.instruments.get_mut(symbol) else { return };
        let market = &mut instrument.market;
        let change = market.handle_book(&update, &self.scratch.levels);
        match change {
            BookChange::None => return,
            BookChange::Lost => return self.lose_book(symbol, cause, door),
            BookChange::Changed | BookChange::Replaced => {}
        }
        market.tell_book(change, depth, |body, is_last| {
            let event = stamp.event(&body, about, cause);
            door.broadcast(if is_last { event } else { event.with_more() });
        });
        if let Some(top) = market.tell_top() {
            door.broadcast(stamp.event(&top, about, cause));
        }
        if !market.is_told_ready {
            market.is_told_ready = true;
            let ready = Ready { scope: ReadyScope::INSTRUMENT, ..Ready::default() };
            door.broadcast(stamp.event(&ready, about, cause));
        }
    }

    fn take_ticker(
        &mut self,
        data: &Value<'_>,
        received: Nanos,
        door: &mut impl EventSink,
    ) -> Result<(), NewsFault> {
        let ticker: Ticker<'_> = data.parse().map_err(|_| NewsFault::Code)?;
        let name = ticker.instrument_name.plain().ok_or(NewsFault::Text)?;
        let Some(symbol) = self.instruments.number(name) else { return Ok(()) };
        let (about, stamp) = (self.about_symbol(symbol), self.stamp);
        let cause = Cause::venue(received, ticker.timestamp);
        let Some(instrument) = self.instruments.get_mut(symbol) else { return Ok(()) };
        instrument.market.handle_ticker(&ticker, |body| door.broadcast(stamp.event(&body, about, cause)));
        if !self.settings.feeds.book
            && let Some(top) = instrument.market.take_best(&ticker)
        {
            door.broadcast(stamp.event(&top, about, cause));
        }
        if let Some(state) = ticker.state.map(market_state).filter(|state| *state != instrument.state) {
            instrument.state = state;
            self.tell_state(symbol, cause, door);
        }
        Ok(())
    }

    fn take_trades(
        &mut self,
        data: &Value<'_>,
        received: Nanos,
        door: &mut impl EventSink,
    ) -> Result<(), NewsFault> {
        let list: List<'_, PublicTrade<'_>> = data.parse().map_err(|_| NewsFault::Code)?;
        let mut last: Option<Event> = None;
        for trade in list.iter() {
            let trade = trade.map_err(|_| NewsFault::Code)?;
            let name = trade.instrument_name.plain().ok_or(NewsFault::Text)?;
            let Some(symbol) = self.instruments.number(name) else { continue };
            let body = trade_summary(&trade)?;
            let cause = Cause::venue(received, trade.timestamp);
            let event = self.stamp.event(&body, self.about_symbol(symbol), cause);
            if let Some(earlier) = last.replace(event) {
                door.broadcast(earlier.with_more());
            }
        }
        if let Some(event) = last {
            door.broadcast(event);
        }
        Ok(())
    }

    fn take_state(
        &mut self,
        data: &Value<'_>,
        received: Nanos,
        door: &mut impl EventSink,
    ) -> Result<(), NewsFault> {
        let change: InstrumentStateChange<'_> = data.parse().map_err(|_| NewsFault::Code)?;
        let name = change.instrument_name.plain().ok_or(NewsFault::Text)?;
        let Some(symbol) = self.instruments.number(name) else {
            // A new instrument: query the list again if the filter selects it.
            match self.listing {
                _ if !self.settings.filter.has(name) => {}
                Listing::Known => (self.listing, self.listing_at) = (Listing::Wanted, received),
                // The list in flight may be older.
                Listing::Asked(_) => self.is_listing_old = true,
                Listing::Wanted => {}
            }
            return Ok(());
        };
        let state = state_of_change(change.state);
        let cause = Cause::venue(received, change.timestamp);
        let Some(instrument) = self.instruments.get_mut(symbol) else { return Ok(()) };
        if instrument.state != state {
            instrument.state = state;
            self.tell_state(symbol, cause, door);
        }
        Ok(())
    }
}

/// Converts the state in a state change.
fn state_of_change(state: tickpath_deribit::codes::InstrumentState) -> MarketState {
    use tickpath_deribit::codes::InstrumentState;
    match state {
        InstrumentState::Started => MarketState::OPEN,
        other => market_state(other),
    }
}

fn trade_summary(trade: &PublicTrade<'_>) -> Result<TradeSummary, NewsFault> {
    let shown = |number: Option<Number<'_>>| {
        number.and_then(|number| cut(number, 8).ok()).and_then(|units| i64::try_from(units).ok()).unwrap_or(0)
    };
    Ok(TradeSummary {
        price: Fixed(units(trade.price)?),
        quantity: Fixed(units(trade.amount)?),
        mark_price: Fixed(shown(trade.mark_price)),
        index_price: Fixed(shown(trade.index_price)),
        trade_sequence: trade.trade_seq,
        trade_id: trade.trade_id.plain().and_then(Text::new).ok_or(NewsFault::Text)?,
        side: convert::direction_side(trade.direction),
        direction: trade
            .tick_direction
            .filter(|direction| *direction < 4)
            .map_or(TickDirection(0), |it| TickDirection(it + 1)),
        is_liquidation: u8::from(trade.liquidation.is_some()),
        is_block: u8::from(trade.block_trade_id.is_some()),
        ..TradeSummary::default()
    })
}
