//! The live view with generated data, to show its appearance without a market.
//!
//! `cargo run -p tickpath-monitor --example sample_view -- [tui|plain] [instruments]`

use std::time::{Duration, Instant};

use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use tickpath_monitor::{
    Action, AgentView, FeedLine, FeedView, InstrumentView, LatencyView, MarketView, Mode, ParticipantView,
    Rates, Sample, ThreadView, View,
};
use tickpath_types::{BookHealth, Price, Qty, Symbol};

const PLANNED: Duration = Duration::from_secs(60);
const FRAME: Duration = Duration::from_millis(250);

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut args = std::env::args().skip(1);
    let mode = match args.next().as_deref() {
        Some("tui") => Mode::Tui,
        Some("plain") => Mode::Plain,
        _ => Mode::Auto,
    };
    let instruments = args.next().map_or(Ok(5), |text| text.parse())?;
    let mut market = SampleMarket::new(instruments)?;
    let mut view = View::open(mode)?;
    let start = Instant::now();
    while start.elapsed() < PLANNED {
        market.advance(start.elapsed());
        view.draw(&market.view)?;
        let next = Instant::now() + FRAME;
        loop {
            match view.poll_key(next.saturating_duration_since(Instant::now()))? {
                Some(Action::Quit) => return Ok(()),
                Some(_) => view.draw(&market.view)?,
                None => break,
            }
        }
    }
    Ok(())
}

/// Generates snapshots whose figures vary like those of a real market.
struct SampleMarket {
    view: MarketView,
    random: Xoshiro256PlusPlus,
}

impl SampleMarket {
    fn new(instruments: usize) -> Result<SampleMarket, Box<dyn std::error::Error>> {
        let names = ["ALPHA", "BRAVO", "CHARLIE", "DELTA", "ECHO", "FOXTROT", "GOLF", "HOTEL"];
        let instrument = |index: usize| {
            let name = names.get(index).map_or(format!("SYM{index}"), |name| (*name).to_owned());
            Ok(InstrumentView {
                symbol: Symbol::new(&name)?,
                bid: Some((Price(1_000_000 + 420_000 * index as i64), Qty(300))),
                ask: None,
                last: None,
                trades: 0,
                volume: 0,
                health: BookHealth::Live,
            })
        };
        let participant = |name: &str| ParticipantView { name: name.into(), ..ParticipantView::default() };
        let span = |name: &str, p50_ns| LatencyView { name: name.into(), p50_ns, ..LatencyView::default() };
        let thread = |name: &str, core, roles: &[&str]| ThreadView {
            name: name.into(),
            core: Some(core),
            utilisation: 0.0,
            agents: roles.iter().map(|&role| AgentView { role: role.into(), utilisation: 0.0 }).collect(),
        };
        let line = |name: &str| FeedLine { name: name.into(), ..FeedLine::default() };
        let view = MarketView {
            planned: Some(PLANNED),
            instruments: (0..instruments)
                .map(instrument)
                .collect::<Result<_, tickpath_types::SymbolError>>()?,
            participants: ["market_maker", "momentum", "mean_revert", "noise"].map(participant).to_vec(),
            latency: vec![
                span("tick_to_trade", 12_400),
                span("tick_to_trade_software", 640),
                span("venue_response", 6_900),
                span("order_round_trip", 24_800),
            ],
            threads: vec![
                thread("venue", 0, &["order server", "matcher", "publisher"]),
                thread("trader", 1, &["feed handler", "engine", "order gateway"]),
            ],
            feed: FeedView { lines: vec![line("A"), line("B")], ..FeedView::default() },
            host: "AMD EPYC (Zen 5), 2 CPUs, TSC 2.600 GHz, kernel 6.18".into(),
            ..MarketView::default()
        };
        Ok(SampleMarket { view, random: Xoshiro256PlusPlus::seed_from_u64(7) })
    }

    fn random_below(&mut self, bound: u64) -> u64 {
        self.random.next_u64() % (bound + 1)
    }

    fn advance(&mut self, elapsed: Duration) {
        self.view.elapsed = elapsed;
        for index in 0..self.view.instruments.len() {
            let (step, qty, trades) =
                (self.random_below(4) as i64 - 2, self.random_below(900) + 100, self.random_below(40));
            let instrument = &mut self.view.instruments[index];
            let bid = instrument.bid.map_or(1_000_000, |(price, _)| price.0) + 100 * step;
            instrument.bid = Some((Price(bid), Qty(qty)));
            instrument.ask = Some((Price(bid + 100 + 100 * (qty as i64 % 2)), Qty(1_100 - qty)));
            instrument.last = Some((Price(bid + 100), Qty(qty / 4)));
            instrument.trades += trades;
            instrument.volume += trades * 117;
            instrument.health =
                if step == 2 && qty > 950 { BookHealth::Recovering } else { BookHealth::Live };
        }
        let mut position = 0;
        for index in 0..self.view.participants.len() {
            let (orders, fills, drift) =
                (self.random_below(400), self.random_below(60), self.random_below(2_000) as i64 - 1_000);
            let participant = &mut self.view.participants[index];
            participant.orders += orders;
            participant.fills += fills;
            participant.volume += fills * 110;
            participant.open_orders = Some(orders / 10);
            participant.position += drift;
            participant.pnl += i128::from(drift) * 9_300;
            participant.refused += u64::from(orders > 395);
            position += participant.position;
        }
        if let Some(last) = self.view.participants.last_mut() {
            last.position -= position;
        }
        let jitter = self.random_below(4_000) as f64;
        self.view.rates = Rates {
            orders: 38_000.0 + jitter,
            commands: 38_000.0 + jitter,
            messages: 61_000.0 + 2.0 * jitter,
            packets: 22_000.0 + jitter,
            fills: 4_100.0 + jitter / 9.0,
        };
        self.advance_feed();
        self.advance_latency();
        for thread in &mut self.view.threads {
            for agent in &mut thread.agents {
                agent.utilisation = 0.1 + (self.random.next_u64() % 20) as f64 / 100.0;
            }
            thread.utilisation = thread.agents.iter().map(|agent| agent.utilisation).sum();
        }
        if elapsed.as_secs() >= 3 && self.view.notes.is_empty() {
            self.view.notes.push(
                "receive buffer is 208 KiB, 4 MiB wanted: raise net.core.rmem_max to 4194304 for fewer gaps"
                    .into(),
            );
        }
    }

    fn advance_feed(&mut self) {
        let lost = u64::from(self.random_below(9) == 0);
        let packets = self.random_below(400) + 5_500;
        let feed = &mut self.view.feed;
        for (index, line) in feed.lines.iter_mut().enumerate() {
            line.packets += packets;
            line.first_arrivals += if index == 0 { packets * 97 / 100 } else { packets * 3 / 100 };
        }
        feed.lines[0].lost_messages += 3 * lost;
        feed.gaps += lost;
        feed.recovered_by_line += lost;
    }

    fn advance_latency(&mut self) {
        let jitter = self.random_below(1_000);
        for span in &mut self.view.latency {
            let base = span.p50_ns;
            span.p50_ns = (base * 99 + base * (500 + jitter) / 1_000 + 50) / 100;
            span.p99_ns = base * 3 + base * jitter / 500;
            span.max_ns = span.max_ns.max(base * (20 + jitter / 4));
            span.count += 9_000 + jitter;
        }
        let p50_ns = self.view.latency.first().map(|span| span.p50_ns + 8 * jitter);
        self.view.history.push(Sample {
            p50_ns,
            messages_per_s: self.view.rates.messages * (0.6 + jitter as f64 / 2_500.0),
        });
    }
}
