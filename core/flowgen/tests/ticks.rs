//! Ticks have the configured statistics, and are the same on every machine.
#![allow(clippy::unwrap_used)]

use tickpath_flowgen::{
    MarketRegime, Tick, TickGenerator, TickGeneratorConfig, TickKind, TickStamps, TickSymbol,
    tick_symbol_name,
};
use tickpath_lockfree::vectors::Width;
use tickpath_types::{Nanos, Price};

const SYMBOLS: usize = 25;
const TICKS_EACH: usize = 20_000;
/// Seconds of trading time in a year.
const YEAR: f64 = 252.0 * 6.5 * 3_600.0;

/// Settings of identical symbols: ten minutes per tick, and a price that makes the tick size negligible.
fn alike(symbol: TickSymbol) -> TickGeneratorConfig {
    let symbols = (0..SYMBOLS).map(|at| TickSymbol { name: tick_symbol_name(at), ..symbol }).collect();
    TickGeneratorConfig {
        seed: 11,
        first_symbol: 0,
        symbols,
        step: Nanos::from_secs(600),
        trade_ppm: 300_000,
    }
}

fn symbol() -> TickSymbol {
    TickSymbol {
        name: tick_symbol_name(0),
        price: Price(6_000_000),
        tick_size: Price(100),
        drift_bp: 0,
        volatility_bp: 3_000,
        spread_cbp: 1_000,
        qty_mean: 1_000,
        jump_ppm: 0,
        jump_bp: 0,
    }
}

/// Returns at least `each` ticks of each symbol.
fn ticks(config: &TickGeneratorConfig, each: usize) -> Vec<Vec<Tick>> {
    let mut generator = TickGenerator::new(config).unwrap();
    let mut ticks = vec![Vec::new(); config.symbols.len()];
    while ticks.iter().any(|ticks| ticks.len() < each) {
        for tick in generator.next_batch(TickStamps::default()).iter() {
            ticks[usize::from(tick.symbol())].push(tick);
        }
    }
    ticks
}

fn returns(ticks: &[Tick]) -> Vec<f64> {
    let mid = |tick: &Tick| ((tick.bid().0 + tick.ask().0) as f64 / 2.0).ln();
    ticks.windows(2).map(|pair| mid(&pair[1]) - mid(&pair[0])).collect()
}

fn mean(values: impl ExactSizeIterator<Item = f64>) -> f64 {
    let count = values.len() as f64;
    values.sum::<f64>() / count
}

#[track_caller]
fn check(what: &str, value: f64, expected: f64, within: f64) {
    assert!((value - expected).abs() <= within, "{what}: {value} is not {expected} within {within}");
}

#[test]
fn returns_have_the_drift_and_volatility_of_each_regime() {
    for (drift_bp, volatility_bp) in [(0, 3_000), (5_000, 3_000), (-5_000, 4_500)] {
        let all = ticks(&alike(TickSymbol { drift_bp, volatility_bp, ..symbol() }), TICKS_EACH);
        let returns: Vec<_> = all.iter().flat_map(|ticks| returns(ticks)).collect();
        let count = returns.len() as f64;
        let years = 600.0 / YEAR;
        let (drift, volatility) = (f64::from(drift_bp) / 1e4, f64::from(volatility_bp) / 1e4);
        let variance = volatility * volatility * years;
        let found = mean(returns.iter().copied());
        // Tolerances of five standard errors; tick size and spread increase the variance a little.
        let error = 5.0 * (variance / count).sqrt();
        check("drift", found, (drift - volatility * volatility / 2.0) * years, error);
        let second = mean(returns.iter().map(|it| (it - found).powi(2)));
        check("variance", second / variance, 1.0, 5.0 * (2.0 / count).sqrt() + 0.005);
        let third = mean(returns.iter().map(|it| (it - found).powi(3)));
        check("skewness", third / second.powf(1.5), 0.0, 5.0 * (15.0 / count).sqrt());
        let fourth = mean(returns.iter().map(|it| (it - found).powi(4)));
        check("kurtosis", fourth / (second * second), 3.0, 5.0 * (96.0 / count).sqrt());
    }
}

#[test]
fn a_market_follows_its_regime() {
    let end = |regime| {
        let mut market = TickGeneratorConfig::market(regime, 200, 5);
        market.step = Nanos::from_secs(3_600);
        let all = ticks(&market, 1_638);
        // Mean logarithmic growth of 200 symbols over one year.
        mean(all.iter().map(|ticks| {
            let (first, last) = (ticks.first().unwrap(), ticks.last().unwrap());
            (last.bid().0 as f64 / first.bid().0 as f64).ln()
        }))
    };
    let [bull, bear, neutral] = [MarketRegime::Bull, MarketRegime::Bear, MarketRegime::Neutral].map(end);
    assert!(bull > 0.2 && bear < -0.4 && neutral.abs() < 0.25, "{bull} {bear} {neutral}");
}

#[test]
fn returns_do_not_depend_on_each_other() {
    let all: Vec<_> = ticks(&alike(symbol()), TICKS_EACH).iter().map(|ticks| returns(ticks)).collect();
    let variance = mean(all.iter().flatten().map(|it| it * it).collect::<Vec<_>>().into_iter());
    let correlation = |pairs: Vec<(f64, f64)>| {
        let count = pairs.len() as f64;
        (mean(pairs.into_iter().map(|(left, right)| left * right)) / variance, 5.0 / count.sqrt())
    };
    for lag in [1, 2, 4, 5] {
        let pairs = all.iter().flat_map(|it| it.iter().copied().zip(it[lag..].iter().copied())).collect();
        let (found, within) = correlation(pairs);
        // Rounding to ticks adds to one return what it takes from the next, hence the extra tolerance.
        check(&format!("lag {lag}"), found, 0.0, within + 0.005);
        let sizes = all.iter().flat_map(|it| it.iter().zip(&it[lag..]));
        let sizes: Vec<_> =
            sizes.map(|(left, right)| (left * left - variance) * (right * right - variance)).collect();
        let count = sizes.len() as f64;
        check(
            "sizes",
            mean(sizes.into_iter()) / (2.0 * variance * variance),
            0.0,
            5.0 / count.sqrt() + 0.005,
        );
    }
    for (left, right) in [(0, 1), (0, 3), (3, 16), (5, 24)] {
        let (found, within) =
            correlation(all[left].iter().copied().zip(all[right].iter().copied()).collect());
        check("neighbours", found, 0.0, within);
    }
}

#[test]
fn jumps_match_the_settings() {
    let (jump_ppm, jump_bp) = (5_000, 200);
    let all = ticks(&alike(TickSymbol { jump_ppm, jump_bp, ..symbol() }), TICKS_EACH);
    let returns: Vec<_> = all.iter().flat_map(|ticks| returns(ticks)).collect();
    let count = returns.len() as f64;
    let (share, jump) = (f64::from(jump_ppm) / 1e6, (f64::from(jump_bp) / 1e4).powi(2));
    let calm = 0.09 * 600.0 / YEAR;
    let second = mean(returns.iter().map(|it| it * it));
    let expected = calm + share * jump;
    let fourth_expected = 3.0 * ((1.0 - share) * calm * calm + share * (calm + jump).powi(2));
    check("variance", second / expected, 1.0, 5.0 * (fourth_expected / count).sqrt() / expected + 0.005);
    let fourth = mean(returns.iter().map(|it| it.powi(4)));
    check("kurtosis", fourth / (second * second), fourth_expected / (expected * expected), 1.0);
    let wide = returns.iter().filter(|it| it.abs() > 5.0 * calm.sqrt()).count() as f64;
    // `wide` counts returns larger than three quarters of a jump's standard deviation. About half of the
    // jumps are larger than that.
    assert!((0.3..0.6).contains(&(wide / (count * share))), "{}", wide / (count * share));
}

#[test]
fn spreads_quantities_and_trades_match_the_settings() {
    let config = alike(symbol());
    let all: Vec<_> = ticks(&config, TICKS_EACH).into_iter().flatten().collect();
    let count = all.len() as f64;
    let spread = |tick: &Tick| (tick.ask().0 - tick.bid().0) as f64;
    let mid = |tick: &Tick| (tick.ask().0 + tick.bid().0) as f64 / 2.0;
    // The spread is ten basis points, plus on average one tick because both prices are rounded outwards.
    let share = mean(all.iter().map(|tick| (spread(tick) - 100.0) / mid(tick)));
    check("spread", share / 1e-3, 1.0, 0.01);
    // Spreads uniform from 0.5 to 1.5 times the mean have variance mean^2 / 12. Rounding adds almost nothing.
    let second =
        mean(all.iter().map(|tick| ((spread(tick) - 100.0) / mid(tick) / 1e-3 - share / 1e-3).powi(2)));
    check("variance of the spread", second * 12.0, 1.0, 0.02);
    for tick in &all {
        let (bid, ask) = (tick.bid().0, tick.ask().0);
        assert!(bid > 0 && ask > bid && bid % 100 == 0 && ask % 100 == 0, "{tick:?}");
        let wide = spread(tick) / mid(tick);
        assert!(wide > 0.5e-3 - 1e-9 && wide < 1.5e-3 + 200.0 / mid(tick), "{tick:?}");
        for qty in [tick.bid_qty(), tick.ask_qty()] {
            assert!((500..1_500).contains(&qty), "{tick:?}");
        }
    }
    for qty in [Tick::bid_qty, Tick::ask_qty] {
        check("quantity", mean(all.iter().map(|tick| f64::from(qty(tick)))), 1_000.0, 5.0);
    }
    let traded: Vec<_> = all.iter().filter(|tick| tick.kind().is_trade()).map(Tick::last_qty).collect();
    assert!(traded.iter().all(|qty| (500..1_500).contains(qty)));
    check("quantity of a trade", mean(traded.iter().copied().map(f64::from)), 1_000.0, 5.0);
    let share = |kind: TickKind| all.iter().filter(|tick| tick.kind() == kind).count() as f64 / count;
    check("quotes", share(TickKind::QUOTE), 0.7, 0.004);
    check("trades at the ask", share(TickKind::TRADE_AT_ASK), 0.15, 0.003);
    check("trades at the bid", share(TickKind::TRADE_AT_BID), 0.15, 0.003);
}

/// Checks the statistics of each symbol, with 7 and 130 symbols, so that symbols lie in various lanes.
#[test]
fn each_symbol_follows_its_own_settings() {
    for count in [7, 130] {
        let mut config = alike(symbol());
        config.symbols = (0..count)
            .map(|at| TickSymbol {
                name: tick_symbol_name(at as usize),
                drift_bp: (at as i32 % 3 - 1) * 300_000,
                volatility_bp: 1_000 + at * 97 % 11 * 500,
                spread_cbp: 500 + at * 5 % 13 * 100,
                qty_mean: 100 + at * 3 % 17 * 100,
                jump_ppm: at % 2 * 20_000,
                jump_bp: 300,
                ..symbol()
            })
            .collect();
        config.step = Nanos::from_secs(60);
        let years = 60.0 / YEAR;
        // No symbol reaches the bounds of its price within this number of ticks.
        let each = 3_000;
        for (ticks, asked) in ticks(&config, each).iter().zip(&config.symbols) {
            let returns = returns(ticks);
            let count = returns.len() as f64;
            let (share, jump) = (f64::from(asked.jump_ppm) / 1e6, (f64::from(asked.jump_bp) / 1e4).powi(2));
            let calm = (f64::from(asked.volatility_bp) / 1e4).powi(2) * years;
            let variance = calm + share * jump;
            let fourth = 3.0 * ((1.0 - share) * calm * calm + share * (calm + jump).powi(2));
            let found = mean(returns.iter().copied());
            // A symmetric jump raises the mean price, which the drift compensates.
            let expected = f64::from(asked.drift_bp) / 1e4 * years
                - calm / 2.0
                - share * (jump / 2.0 + jump * jump / 8.0);
            check(&format!("{asked:?} drift"), found, expected, 6.0 * (variance / count).sqrt());
            let second = mean(returns.iter().map(|it| (it - found).powi(2)));
            let within = 6.0 * ((fourth - variance * variance) / count).sqrt() / variance;
            check(&format!("{asked:?} variance"), second / variance, 1.0, within + 0.02);
            let count = ticks.len() as f64;
            let spread = mean(ticks.iter().map(|tick| {
                (tick.ask().0 - tick.bid().0 - 100) as f64 / ((tick.ask().0 + tick.bid().0) as f64 / 2.0)
            }));
            let expected = f64::from(asked.spread_cbp) / 1e6;
            check(
                &format!("{asked:?} spread"),
                spread / expected,
                1.0,
                6.0 * (1.0 / 12.0 / count).sqrt() + 0.02,
            );
            let qty = mean(ticks.iter().map(|tick| f64::from(tick.bid_qty()))) / f64::from(asked.qty_mean);
            check(&format!("{asked:?} quantity"), qty, 1.0, 6.0 * (1.0 / 12.0 / count).sqrt() + 0.01);
        }
    }
}

#[test]
fn trades_are_at_a_side_and_their_quantities_add_up() {
    let market = TickGeneratorConfig::market(MarketRegime::Neutral, 37, 3);
    for (ticks, symbol) in ticks(&market, 2_000).iter().zip(&market.symbols) {
        let (mut last, mut volume) = ((symbol.price, 0), 0);
        for tick in ticks {
            if tick.kind().is_trade() {
                let price = if tick.kind() == TickKind::TRADE_AT_ASK { tick.ask() } else { tick.bid() };
                last = (price, tick.last_qty());
                volume += u64::from(tick.last_qty());
                assert!(tick.last_qty() >= symbol.qty_mean / 2);
            }
            assert_eq!((tick.last(), tick.last_qty(), tick.volume()), (last.0, last.1, volume));
        }
    }
}

#[test]
fn a_cheap_symbol_keeps_a_tick_between_bid_and_ask_down_to_its_bound() {
    let cheap = TickSymbol { price: Price(25_600), drift_bp: -900_000, spread_cbp: 0, ..symbol() };
    let config = TickGeneratorConfig { step: Nanos::from_secs(6_000), ..alike(cheap) };
    let all: Vec<_> = ticks(&config, 2_000).into_iter().flatten().collect();
    assert!(all.iter().all(|tick| tick.bid().0 >= 700 && tick.ask() > tick.bid()));
    assert_eq!(
        all.last().unwrap().bid(),
        Price(800).min(all.last().unwrap().bid()),
        "a 32nd of where it began"
    );
}

#[test]
fn vectors_of_every_width_make_the_same_ticks() {
    for symbols in [1, 3, 100, 300, 1_500] {
        let market = TickGeneratorConfig::market(MarketRegime::Bull, symbols, 9).with_jumps(100, 300);
        let digest = |width| {
            let mut generator = TickGenerator::with_width(&market, width).unwrap();
            let mut made: Vec<Tick> = Vec::new();
            while made.len() < 20_000 {
                let stamps = TickStamps { sequence: made.len() as u64, ts: Nanos(5), interval: Nanos(3) };
                let expected = generator.next_len();
                let batch = generator.next_batch(stamps);
                assert_eq!(batch.len(), expected);
                made.extend(batch.iter());
            }
            made
        };
        let expected = digest(Width::BASELINE);
        for (at, tick) in expected.iter().enumerate() {
            assert_eq!(usize::from(tick.symbol()), at % symbols, "symbols take turns");
            assert_eq!(tick.sequence(), at as u64);
        }
        assert!(Width::available().all(|width| digest(width) == expected), "{symbols} symbols");
    }
}

/// The ticks of a seed are the same on every machine and in every version of this program.
#[test]
fn a_seed_gives_these_ticks() {
    let market = TickGeneratorConfig::market(MarketRegime::Neutral, 100, 7);
    let mut generator = TickGenerator::new(&market).unwrap();
    let mut bytes = Vec::new();
    for _ in 0..100 {
        for tick in generator.next_batch(TickStamps::default()).iter() {
            bytes.extend(tick.bid().0.to_le_bytes());
            bytes.extend(tick.ask().0.to_le_bytes());
            bytes.extend(tick.volume().to_le_bytes());
            bytes.extend(tick.bid_qty().to_le_bytes());
        }
    }
    assert_eq!(xxhash_rust::xxh3::xxh3_64(&bytes), 5_954_336_900_064_537_456);
}
