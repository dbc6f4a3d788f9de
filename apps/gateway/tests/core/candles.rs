//! Candles.

use tickpath_agent::thread_allocations;
use tickpath_deribit::envelope::Inbound;
use tickpath_deribit::method::Method;
use tickpath_deribit::session::SessionEvent;
use tickpath_gateway_protocol::{Event, EventKind, ReferenceData, TimeSeries, UpdateKind};
use tickpath_types::Nanos;

use crate::machine::rig::{Asked, Rig};

const CHART: Method = Method::GetTradingviewChartData;
const CHANNEL: &str = "chart.trades.BTC-PERPETUAL.1";
const MINUTE_MS: u64 = 60_000;
const NO_CANDLES: &str =
    r#"{"status":"no_data","ticks":[],"open":[],"high":[],"low":[],"close":[],"volume":[],"cost":[]}"#;

/// Returns the candles of the events: update kind, period in seconds, start in ms, volume.
fn candles<'a>(events: impl Iterator<Item = &'a Event>) -> Vec<(UpdateKind, u32, u64, String)> {
    let of = |it: TimeSeries| (it.update, it.period_secs, it.begin_utc_ns / 1_000_000, it.volume.to_string());
    events.filter_map(|event| event.body().map(of)).collect()
}

#[test]
fn the_last_candles_are_asked_for_and_each_change_is_told() {
    let mut rig = Rig::with_venue("[venue.feeds]\ntime_series = ['1', '1D']\ntime_series_length = 3\n");
    rig.bring_up("[]");
    for channel in ["chart.trades.BTC-PERPETUAL.1", "chart.trades.ETH_USDC-PERPETUAL.1D"] {
        assert!(rig.venue.subscribed.iter().any(|known| known == channel), "{channel}");
    }
    let now_ms = rig.now.0 / 1_000_000;
    let (minute, earlier) = (now_ms / 60_000 * 60_000, now_ms / 60_000 * 60_000 - 60_000);
    let asked = rig.last(Method::GetTradingviewChartData);
    let from = minute - 120_000;
    for part in [
        r#""instrument_name":"BTC-PERPETUAL""#,
        &format!(r#""start_timestamp":{from}"#),
        r#""resolution":"1""#,
    ] {
        assert!(asked.text.contains(part), "{part} in {}", asked.text);
    }
    // A candle that arrived meanwhile is not lost when the answer arrives.
    let channel = "chart.trades.BTC-PERPETUAL.1";
    let candle = |tick: u64, volume: &str| {
        format!(
            r#"{{"tick":{tick},"open":1,"high":3,"low":0.5,"close":2,"volume":{volume},"cost":21,"status":"ok"}}"#
        )
    };
    rig.news(0, channel, &candle(minute, "1.1403e-4"));
    let begin = rig.door.broadcast.len();
    rig.reply(
        Method::GetTradingviewChartData,
        &format!(
            r#"{{"status":"ok","ticks":[{earlier},{minute}],"open":[1,1],"high":[3,3],"low":[0.5,0.5],"close":[2,2],"volume":[10.5,0],"cost":[21,0]}}"#
        ),
    );
    let events = &rig.door.broadcast[begin..];
    let (snapshot, small) = (UpdateKind::SNAPSHOT, "0.00011403".to_owned());
    let expected = vec![(snapshot, 60, earlier, "10.5".to_owned()), (snapshot, 60, minute, small.clone())];
    assert_eq!(candles(events.iter()), expected);
    assert_eq!(events.iter().map(|event| event.is_last_in_batch()).collect::<Vec<_>>(), [false, true]);
    assert_eq!((events[0].header.symbol, rig.count(Method::GetTradingviewChartData)), (1, 1));
    // The next series waits a moment; after a refusal and after a lost answer it is requested again.
    rig.pass(Nanos::from_millis(100));
    assert!(rig.last(Method::GetTradingviewChartData).text.contains(r#""resolution":"1D""#));
    rig.refuse(Method::GetTradingviewChartData, 10028, "too_many_requests");
    rig.pass(Nanos::from_secs(2));
    let asked = rig.last(Method::GetTradingviewChartData);
    assert!(asked.text.contains("ETH_USDC"), "{}", asked.text);
    rig.core.handle_unanswered(0, asked.id, false, rig.now, &mut rig.door);
    for _ in 0..3 {
        rig.pass(Nanos::from_secs(2));
        rig.reply(
            Method::GetTradingviewChartData,
            r#"{"status":"no_data","ticks":[],"open":[],"high":[],"low":[],"close":[],"volume":[],"cost":[]}"#,
        );
    }
    rig.pass(Nanos::from_secs(2));
    assert_eq!((rig.count(Method::GetTradingviewChartData), rig.core.counters().faults), (6, 0));

    // A change is published as incremental; a new client receives the current candles.
    let begin = rig.door.broadcast.len();
    rig.news(0, channel, &candle(minute + 60_000, "7"));
    let told = candles(rig.door.broadcast[begin..].iter());
    assert_eq!(told, [(UpdateKind::INCREMENTAL, 60, minute + 60_000, "7".to_owned())]);
    rig.join(2, "trader", true);
    let told = candles(rig.door.sent.iter().filter(|(client, _)| *client == 2).map(|(_, event)| event));
    let last = (snapshot, 60, minute + 60_000, "7".to_owned());
    assert_eq!(told, [expected[0].clone(), expected[1].clone(), last]);
    rig.news(0, "chart.trades.BTC-PERPETUAL.3", &candle(minute, "1"));
    rig.news(0, channel, r#"{"tick":1}"#);
    assert_eq!(rig.core.counters().faults, 1);

    // Stale when the connection is lost, and requested again afterwards.
    let begin = rig.door.broadcast.len();
    rig.core.handle_lost(0, rig.now, &mut rig.door);
    let told = candles(rig.door.broadcast[begin..].iter());
    assert_eq!(told, [(UpdateKind::STALE, 60, minute + 60_000, "7".to_owned())]);
    rig.event(0, tickpath_deribit::session::SessionEvent::Ready);
    rig.poll();
    assert_eq!(rig.count(Method::GetTradingviewChartData), 7);
}

#[test]
fn candles_without_an_end_or_out_of_step_are_not_told() {
    let mut rig = Rig::with_venue("[venue.feeds]\ntime_series = ['1']\n");
    rig.bring_up("[]");
    let begin = rig.door.broadcast.len();
    rig.reply(
        Method::GetTradingviewChartData,
        r#"{"status":"ok","ticks":[1,2],"open":[1],"high":[3],"low":[1],"close":[2],"volume":[1],"cost":[2]}"#,
    );
    rig.pass(Nanos::from_secs(2));
    rig.reply(Method::GetTradingviewChartData, "7");
    assert_eq!((candles(rig.door.broadcast[begin..].iter()).len(), rig.core.counters().faults), (0, 2));
}

/// A rig with one-minute candles, and all instruments' channels on one connection.
fn with_minutes(length: usize) -> Rig {
    rig_of(&format!("[venue.feeds]\ntime_series = ['1']\ntime_series_length = {length}\n"))
}

fn rig_of(venue: &str) -> Rig {
    let mut rig = Rig::with_venue(venue);
    rig.bring_up("[]");
    rig
}

fn minute_of(rig: &Rig) -> u64 {
    rig.now.0 / 1_000_000 / MINUTE_MS * MINUTE_MS
}

/// A candle in the format of the channel.
fn change(tick: u64, volume: &str) -> String {
    format!(r#"{{"tick":{tick},"open":1,"high":3,"low":0.5,"close":2,"volume":{volume},"cost":21}}"#)
}

/// The venue's answer to a request for candles.
fn chart(candles: &[(u64, &str)]) -> String {
    let list = |of: &dyn Fn(&(u64, &str)) -> String| {
        format!("[{}]", candles.iter().map(of).collect::<Vec<_>>().join(","))
    };
    let (ticks, volumes) = (list(&|(tick, _)| tick.to_string()), list(&|(_, volume)| (*volume).to_owned()));
    let one = list(&|_| "1".to_owned());
    format!(
        r#"{{"status":"ok","ticks":{ticks},"open":{one},"high":{one},"low":{one},"close":{one},"volume":{volumes},"cost":{one}}}"#
    )
}

/// Returns the candles of an instrument in the events: start and volume of each.
fn volumes<'a>(symbol: u32, events: impl Iterator<Item = &'a Event>) -> Vec<(u64, String)> {
    let of_symbol = events.filter(|event| event.header.symbol == symbol);
    candles(of_symbol).into_iter().map(|(_, _, begin, volume)| (begin, volume)).collect()
}

/// Returns an instrument's candles that a new client receives.
fn told_to_another(rig: &mut Rig, client: u32, symbol: u32) -> Vec<(u64, String)> {
    rig.join(client, "trader", true);
    volumes(symbol, rig.door.sent.iter().filter(|(to, _)| *to == client).map(|(_, event)| event))
}

fn asked_of(rig: &Rig, name: &str) -> usize {
    let is_of = |asked: &&Asked| asked.method == CHART && asked.text.contains(name);
    rig.venue.asked.iter().filter(is_of).count()
}

#[test]
fn a_candle_is_told_without_a_byte_of_memory() {
    let mut rig = rig_of("[venue.feeds]\ntime_series = ['720', '1D', '1']\ntime_series_length = 3\n");
    let minute = minute_of(&rig);
    let texts: Vec<String> = (0..10)
        .map(|at| {
            let data = change(minute + at / 2 * MINUTE_MS, &format!("{at}.5"));
            format!(
                r#"{{"jsonrpc":"2.0","method":"subscription","params":{{"channel":"{CHANNEL}","data":{data}}}}}"#
            )
        })
        .collect();
    rig.door.broadcast.reserve(100);
    let begin = rig.door.broadcast.len();
    let mut take = |text: &str| {
        let Inbound::Notification(news) = rig.core.read(0, text).unwrap() else { panic!("{text}") };
        rig.core.handle_event(0, rig.now, SessionEvent::Notification(news), &mut rig.door);
    };
    take(&texts[0]);
    let before = thread_allocations();
    texts[1..].iter().for_each(|text| take(text));
    assert_eq!(thread_allocations() - before, 0);
    assert_eq!(candles(rig.door.broadcast[begin..].iter()).len(), 10);
}

#[test]
fn an_answer_that_a_lost_channel_has_overtaken_is_not_used() {
    // One instrument per connection; the first connection requests the past candles.
    let mut rig = rig_of("subscriptions_max = 5\nsubscribe_batch = 5\n[venue.feeds]\ntime_series = ['1']\n");
    let minute = minute_of(&rig);
    rig.event(1, SessionEvent::Ready);
    rig.reply(CHART, NO_CANDLES);
    rig.pass(Nanos::from_millis(100));
    let asked = rig.last(CHART);
    assert!(asked.text.contains("ETH_USDC-PERPETUAL"), "{}", asked.text);
    let begin = rig.door.broadcast.len();
    rig.core.handle_lost(1, rig.now, &mut rig.door);
    rig.venue.is_settling = true;
    rig.answer(&asked, &format!("\"result\":{}", chart(&[(minute, "7")])));
    assert_eq!(volumes(2, rig.door.broadcast[begin..].iter()), []);
    assert_eq!(told_to_another(&mut rig, 2, 2), []);
    // They are requested again when the channel is subscribed, and not before.
    rig.pass(Nanos::from_secs(3600));
    rig.event(1, SessionEvent::Ready);
    rig.pass(Nanos::from_secs(1));
    assert_eq!(rig.count(CHART), 2);
    rig.venue.is_settling = false;
    rig.pass(Nanos::from_secs(1));
    assert_eq!((rig.count(CHART), asked_of(&rig, "ETH_USDC-PERPETUAL")), (3, 2));
    rig.reply(CHART, &chart(&[(minute, "7"), (minute + MINUTE_MS, "8")]));
    let expected = [(minute, "7".to_owned()), (minute + MINUTE_MS, "8".to_owned())];
    assert_eq!(volumes(2, rig.door.broadcast[begin..].iter()), expected);
    assert_eq!(told_to_another(&mut rig, 3, 2), expected);
    // A connection loss while no request is pending leads to a new request as well.
    rig.core.handle_lost(1, rig.now, &mut rig.door);
    assert_eq!(told_to_another(&mut rig, 4, 2), []);
    rig.event(1, SessionEvent::Ready);
    rig.pass(Nanos::from_secs(1));
    assert_eq!(asked_of(&rig, "ETH_USDC-PERPETUAL"), 3);
}

#[test]
fn an_older_answer_takes_back_no_candle() {
    let mut rig = with_minutes(5);
    let minute = minute_of(&rig);
    let [first, second, third] = [0, 1, 2].map(|at| minute + at * MINUTE_MS);
    rig.news(0, CHANNEL, &change(second, "9"));
    rig.news(0, CHANNEL, &change(third, "1"));
    let begin = rig.door.broadcast.len();
    rig.reply(CHART, &chart(&[(first, "5"), (second, "8")]));
    let expected = [(first, "5"), (second, "9"), (third, "1")].map(|(at, volume)| (at, volume.to_owned()));
    assert_eq!(volumes(1, rig.door.broadcast[begin..].iter()), expected);
    assert_eq!(told_to_another(&mut rig, 2, 1), expected);
}

#[test]
fn what_does_not_fit_is_left_out_by_itself() {
    let mut rig = with_minutes(5);
    let minute = minute_of(&rig);
    let [first, second, third] = [0, 1, 2].map(|at| minute + at * MINUTE_MS);
    rig.reply(CHART, &chart(&[(first, "5"), (second, "1e11"), (third, "6")]));
    let expected = [(first, "5".to_owned()), (third, "6".to_owned())];
    assert_eq!((told_to_another(&mut rig, 2, 1), rig.core.counters().faults), (expected.to_vec(), 1));
    // A change that is out of range invalidates the published candle.
    let begin = rig.door.broadcast.len();
    rig.news(0, CHANNEL, &change(third, "1e11"));
    assert_eq!(volumes(1, rig.door.broadcast[begin..].iter()), []);
    assert_eq!((told_to_another(&mut rig, 3, 1), rig.core.counters().faults), (expected[..1].to_vec(), 2));
}

#[test]
fn what_never_traded_is_asked_for_once() {
    let mut rig = with_minutes(5);
    for _ in 0..2 {
        rig.reply(CHART, NO_CANDLES);
        rig.pass(Nanos::from_millis(100));
    }
    assert_eq!(rig.count(CHART), 2);
    for _ in 0..3 {
        let news = r#"{"timestamp":9,"state":"created","instrument_name":"BTC-NEW"}"#;
        rig.news(0, "instrument.state.any.any", news);
        rig.reply(Method::GetInstruments, crate::machine::rig::INSTRUMENTS);
        rig.pass(Nanos::from_secs(5));
    }
    assert_eq!((rig.count(Method::GetInstruments), rig.count(CHART)), (4, 2));
    rig.core.handle_lost(0, rig.now, &mut rig.door);
    rig.event(0, SessionEvent::Ready);
    rig.reply(Method::GetInstruments, crate::machine::rig::INSTRUMENTS);
    assert_eq!(rig.count(CHART), 3);
}

#[test]
fn a_channel_that_the_venue_refuses_has_no_past() {
    let mut rig = Rig::with_venue("[venue.feeds]\ntime_series = ['1']\n");
    rig.venue.is_settling = true;
    rig.venue.refused_channels.push(CHANNEL.to_owned());
    // The account's channels must be settled as well.
    rig.join(1, "trader", true);
    rig.event(0, SessionEvent::Ready);
    rig.poll();
    rig.reply(Method::GetInstruments, crate::machine::rig::INSTRUMENTS);
    rig.pass(Nanos::from_secs(10));
    assert_eq!(rig.count(CHART), 0, "no channel is known to stand");
    rig.venue.is_settling = false;
    rig.pass(Nanos::from_millis(100));
    rig.pass(Nanos::from_millis(100));
    assert_eq!((rig.count(CHART), asked_of(&rig, "ETH_USDC-PERPETUAL")), (1, 1));
    rig.reply(CHART, NO_CANDLES);
    rig.pass(Nanos::from_secs(10));
    assert_eq!(rig.count(CHART), 1);
}

#[test]
fn candles_of_what_has_closed_are_given_up() {
    let mut rig = with_minutes(5);
    let minute = minute_of(&rig);
    rig.reply(CHART, &chart(&[(minute, "5")]));
    assert_eq!(told_to_another(&mut rig, 2, 1).len(), 1);
    rig.pass(Nanos::from_millis(100));
    let asked = rig.last(CHART);
    assert!(asked.text.contains("ETH_USDC-PERPETUAL"), "{}", asked.text);
    let listed = |rig: &mut Rig, text: &str| {
        let news = r#"{"timestamp":9,"state":"created","instrument_name":"BTC-NEW"}"#;
        rig.news(0, "instrument.state.any.any", news);
        rig.reply(Method::GetInstruments, text);
        rig.poll();
    };
    // Both instruments are removed, one while its candles are requested; later channel data is ignored.
    listed(&mut rig, "[]");
    let begin = rig.door.broadcast.len();
    rig.answer(&asked, &format!("\"result\":{}", chart(&[(minute, "7")])));
    rig.news(0, CHANNEL, &change(minute, "6"));
    assert_eq!(candles(rig.door.broadcast[begin..].iter()), []);
    assert_eq!((told_to_another(&mut rig, 3, 1), told_to_another(&mut rig, 4, 2)), (vec![], vec![]));
    rig.pass(Nanos::from_secs(10));
    assert_eq!(rig.count(CHART), 2);
    // They are listed again, and all candles are requested again.
    listed(&mut rig, crate::machine::rig::INSTRUMENTS);
    rig.reply(CHART, &chart(&[(minute, "8")]));
    rig.pass(Nanos::from_millis(100));
    assert_eq!((rig.count(CHART), told_to_another(&mut rig, 5, 1)), (4, vec![(minute, "8".to_owned())]));
}

/// Number of candles in the download test.
const MANY: u64 = 400;
/// Maximum number of events sent to one client at once: a download step, and one part of an instrument.
const AT_ONCE: usize = 64 + 64;

#[test]
fn many_candles_are_told_bit_by_bit_and_none_is_missed() {
    let mut rig = with_minutes(MANY as usize);
    let minute = minute_of(&rig);
    let at = |place: u64| minute + place * MINUTE_MS;
    let many: Vec<(u64, &str)> = (0..MANY).map(|place| (at(place), "5")).collect();
    rig.reply(CHART, &chart(&many));
    let (user, client) = (rig.core.user("trader").unwrap(), 2);
    rig.core.handle_join(client, user, true);
    let mut most = 0;
    for cycle in 0..100 {
        let (sent, begin) = (rig.door.sent.len(), rig.door.broadcast.len());
        rig.core.poll(rig.now, &mut rig.door, &mut rig.venue);
        most = most.max(rig.door.sent.len() - sent);
        // The market continues: the last candle changes, and a new one starts halfway through the download.
        let last = MANY - 1 + u64::from(cycle >= 3);
        let data = change(at(last), &format!("{}", 10 + cycle));
        let text = format!(
            r#"{{"jsonrpc":"2.0","method":"subscription","params":{{"channel":"{CHANNEL}","data":{data}}}}}"#
        );
        let Inbound::Notification(news) = rig.core.read(0, &text).unwrap() else { panic!("{text}") };
        rig.core.handle_event(0, rig.now, SessionEvent::Notification(news), &mut rig.door);
        assert_eq!(rig.door.broadcast.len(), begin + 1);
        if rig.door.followed.contains(&(client, 1)) {
            break;
        }
        assert!(cycle < 99, "the instrument is never told");
    }
    assert!((65..=AT_ONCE).contains(&most), "{most} events at once");
    let own = || rig.door.sent.iter().filter(|(to, _)| *to == client).map(|(_, event)| event);
    let told = volumes(1, own());
    assert!(told.len() > MANY as usize, "all candles are sent again when another begins");
    // The client's candles match the market: the last version received of each, and the broadcast one.
    let mut view: std::collections::BTreeMap<u64, String> = told.into_iter().collect();
    let followed = rig.door.broadcast.last().unwrap();
    view.extend(volumes(1, std::iter::once(followed)));
    let mut expected: std::collections::BTreeMap<u64, String> =
        (0..MANY - 1).map(|place| (at(place), "5".to_owned())).collect();
    expected.insert(at(MANY - 1), "12".to_owned());
    let last = candles(std::iter::once(followed));
    expected.insert(last[0].2, last[0].3.clone());
    assert_eq!(view, expected);
    // Reference data precedes the candles.
    let first = own().find(|event| event.header.symbol == 1).unwrap();
    assert!(first.body::<ReferenceData>().is_some(), "{first}");
    assert!(own().any(|event| event.header.kind == EventKind::MARKET_STATUS));
}
