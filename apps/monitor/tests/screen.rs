//! The user's view: the whole screen drawn into a test terminal, and the plain line.

use std::time::Duration;

use ratatui::Terminal;
use ratatui::backend::TestBackend;
use tickpath_monitor::{
    AgentView, FeedLine, FeedView, History, InstrumentView, LatencyView, MarketView, ParticipantView, Rates,
    Sample, Screen, ThreadView, plain_line, render,
};
use tickpath_types::{BookHealth, Price, Qty, Symbol};

fn instrument(symbol: &str, health: BookHealth) -> InstrumentView {
    InstrumentView {
        symbol: Symbol::new(symbol).expect("at most eight characters"),
        bid: Some((Price(12_340_100), Qty(1_500))),
        ask: Some((Price(12_340_300), Qty(700))),
        last: Some((Price(12_340_200), Qty(40))),
        trades: 45_678,
        volume: 9_876_543,
        health,
    }
}

fn span(name: &str, p50_ns: u64, p99_ns: u64, max_ns: u64) -> LatencyView {
    LatencyView { name: name.into(), p50_ns, p99_ns, max_ns, count: 123_456 }
}

fn sample() -> MarketView {
    let mut history = History::default();
    for step in 0..100 {
        history.push(Sample { p50_ns: Some(12_000 + step), messages_per_s: 60_000.0 + step as f64 });
    }
    let agent = |role: &str| AgentView { role: role.into(), utilisation: 0.125 };
    MarketView {
        elapsed: Duration::from_millis(12_900),
        planned: Some(Duration::from_secs(60)),
        instruments: vec![
            instrument("ALPHA", BookHealth::Live),
            instrument("BRAVO", BookHealth::Recovering),
            InstrumentView { bid: None, ask: None, last: None, ..instrument("CHARLIE", BookHealth::Live) },
        ],
        participants: vec![
            ParticipantView {
                name: "market_maker".into(),
                orders: 24_110,
                fills: 2_244,
                volume: 246_840,
                open_orders: Some(12),
                position: -1_250,
                pnl: 12_345_678_900,
                refused: 3,
            },
            ParticipantView {
                name: "momentum".into(),
                position: 1_250,
                pnl: -12_345_678_900,
                ..Default::default()
            },
        ],
        rates: Rates {
            orders: 38_123.4,
            commands: 38_120.0,
            messages: 61_000.0,
            packets: 22_000.0,
            fills: 4_100.0,
        },
        feed: FeedView {
            lines: vec![
                FeedLine { name: "A".into(), packets: 1_113_841, lost_messages: 9, first_arrivals: 970 },
                FeedLine { name: "B".into(), packets: 1_113_840, lost_messages: 0, first_arrivals: 30 },
            ],
            gaps: 7,
            recovered_by_line: 5,
            recovered_by_retransmit: 1,
            gap_open: true,
            lost_messages: 0,
        },
        latency: vec![
            span("tick_to_trade", 12_345, 45_600, 1_204_000),
            span("tick_to_trade_software", 640, 2_140, 161_000),
            span("venue_response", 6_750, 23_100, 1_730_000),
            LatencyView { name: "order_round_trip".into(), ..LatencyView::default() },
        ],
        threads: vec![
            ThreadView {
                name: "venue".into(),
                core: Some(0),
                utilisation: 0.52,
                agents: vec![agent("order server"), agent("matcher"), agent("publisher")],
            },
            ThreadView {
                name: "trader".into(),
                core: None,
                utilisation: 0.95,
                agents: vec![agent("engine")],
            },
        ],
        host: "AMD EPYC, 2 CPUs, TSC 2.600 GHz".into(),
        notes: vec!["receive buffer is small".into()],
        history,
    }
}

fn screen_of(view: &MarketView, width: u16, height: u16, screen: Screen) -> Vec<String> {
    let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
    terminal.draw(|frame| render(frame.area(), frame.buffer_mut(), view, screen)).unwrap();
    let buf = terminal.backend().buffer();
    (0..height).map(|y| (0..width).map(|x| buf[(x, y)].symbol()).collect()).collect()
}

/// Asserts that some row contains the words of `words` consecutively, whatever the blanks between them.
#[track_caller]
fn check(rows: &[String], words: &str) {
    let wanted: Vec<&str> = words.split_whitespace().collect();
    let has = |row: &String| {
        let words: Vec<&str> = row.split_whitespace().collect();
        words.windows(wanted.len()).any(|window| window == wanted)
    };
    assert!(rows.iter().any(has), "'{words}' is not on the screen:\n{}", rows.join("\n"));
}

#[test]
fn the_classic_terminal_shows_every_section() {
    let rows = screen_of(&sample(), 80, 24, Screen::default());
    check(&rows, "tickpath 00:12 of 01:00");
    check(&rows, "● gap open, recovering");
    check(&rows, "38,123 orders/s 38,120 cmds/s 61,000 msgs/s 22,000 pkts/s 4,100 fills/s");
    check(&rows, "ALPHA 1,500 1,234.01 1,234.03 700 1,234.02 45,678 live");
    check(&rows, "BRAVO 1,500 1,234.01 1,234.03 700 1,234.02 45,678 recovering");
    check(&rows, "CHARLIE - - - - - 45,678 live");
    check(&rows, "market_maker 24,110 2,244 12 -1,250 +1,234,567.89 3");
    check(&rows, "momentum 0 0 - +1,250 -1,234,567.89 0");
    check(&rows, "tick_to_trade 12.3 45.6 1,204 123,456");
    check(&rows, "tick_to_trade_software 0.640 2.14 161 123,456");
    check(&rows, "order_round_trip - - - 0");
    check(&rows, "A 1,113,841 9 97% venue 0 52%");
    check(&rows, "B 1,113,840 0 3% trader - 95%");
    check(&rows, "gap OPEN, 7 seen: 5 by line, 1 resent");
    check(&rows, "tick_to_trade p50");
    check(&rows, "q quit space freeze ↑↓ scroll ! receive buffer is small");
}

#[test]
fn a_large_terminal_adds_columns_totals_agents_and_notes() {
    let rows = screen_of(&sample(), 120, 40, Screen::default());
    check(&rows, "ALPHA 1,500 1,234.01 1,234.03 700 1,234.02 40 45,678 9,876,543 live");
    check(&rows, "market_maker 24,110 2,244 246,840 12 -1,250 +1,234,567.89 3");
    check(&rows, "total 24,110 2,244 246,840 - - - 3");
    check(&rows, "61,000 market messages/s");
    check(&rows, "A 1,113,841 9 970 97%");
    check(&rows, "order server 12%");
    check(&rows, "receive buffer is small");
    check(&rows, "AMD EPYC, 2 CPUs, TSC 2.600 GHz");
    for title in
        ["╭ Instruments ─", "╭ Participants ─", "╭ Latency ─", "╭ History ─", "╭ Feed ─", "╭ Threads ─"]
    {
        assert!(rows.iter().any(|row| row.contains(title)), "{title}");
    }
}

/// Returns a view like that of `tickpath demo` on a small host: 8 instruments, 3 participants, 10 agents.
fn demonstration() -> MarketView {
    let mut view = sample();
    let symbols = ["ALPHA", "BRAVO", "CEDAR", "DELTA", "EMBER", "FJORD", "GRANIT", "HELIX"];
    view.instruments = symbols.map(|symbol| instrument(symbol, BookHealth::Live)).to_vec();
    view.participants.push(ParticipantView { name: "crowd".into(), ..Default::default() });
    for (thread, roles) in view.threads.iter_mut().zip([5, 5]) {
        let agents = (1..=roles).map(|n| AgentView { role: format!("agent {n}"), utilisation: 0.1 });
        thread.agents = agents.collect();
    }
    view
}

#[test]
fn every_instrument_of_the_demonstration_has_a_row_on_120_by_40_and_the_rest_is_counted_on_80_by_24() {
    let view = demonstration();
    let rows = screen_of(&view, 120, 40, Screen::default());
    for instrument in &view.instruments {
        check(&rows, &format!("{} 1,500 1,234.01", instrument.symbol.as_str()));
    }
    for words in ["total 24,110", "crowd 0 0", "order_round_trip - -", "trader - 95%", "gap OPEN,", "receive"]
    {
        check(&rows, words);
    }

    let rows = screen_of(&view, 80, 24, Screen::default());
    for words in
        ["FJORD 1,500", "book 1-6/8", "crowd 0 0", "order_round_trip - -", "trader - 95%", "gap OPEN,"]
    {
        check(&rows, words);
    }
}

#[test]
fn agents_are_shown_when_all_of_them_fit() {
    let view = demonstration();
    let shown = |height| {
        let rows = screen_of(&view, 120, height, Screen::default());
        rows.iter().filter(|row| row.contains("  agent ")).count()
    };
    assert_eq!([34, 40, 44].map(shown), [0, 0, 0]);
    assert_eq!([50, 60, 90].map(shown), [10, 10, 10]);
}

#[test]
fn bars_and_sparklines_follow_the_values() {
    let rows = screen_of(&sample(), 120, 40, Screen::default());
    let bar = |name: &str| {
        let row = rows
            .iter()
            .find(|row| row.starts_with(&format!("│ {name}")) || row.contains(&format!("││ {name} ")))
            .unwrap();
        row.chars().filter(|c| *c == '━').count()
    };
    assert!(bar("tick_to_trade ") > bar("venue_response "), "{}", rows.join("\n"));
    assert!(bar("venue_response ") > bar("tick_to_trade_software "), "{}", rows.join("\n"));
    assert_eq!(bar("order_round_trip "), 0, "nothing was measured");
    assert!(bar("trader    ") > bar("venue    "), "{}", rows.join("\n"));
    assert!(rows.iter().any(|row| row.contains("▇▇▇▇") || row.contains("████")), "{}", rows.join("\n"));
}

#[test]
fn losses_are_shown_first() {
    let mut view = sample();
    view.feed.lost_messages = 1_234;
    let rows = screen_of(&view, 80, 24, Screen::default());
    check(&rows, "● 1,234 messages lost");
    check(&rows, "1,234 messages LOST, gap OPEN,");
    view.feed = FeedView::default();
    view.instruments[0].health = BookHealth::Suspect;
    check(&screen_of(&view, 80, 24, Screen::default()), "● 1 book suspect");
    view.instruments[0].health = BookHealth::Stale;
    view.instruments[1].health = BookHealth::Stale;
    check(&screen_of(&view, 80, 24, Screen::default()), "● 2 books stale");
    view.instruments.clear();
    check(&screen_of(&view, 80, 24, Screen::default()), "● no instruments yet");
}

#[test]
fn more_instruments_and_participants_than_rows_can_be_scrolled_or_are_counted() {
    let mut view = sample();
    view.instruments = (1..=30).map(|n| instrument(&format!("SYM{n}"), BookHealth::Live)).collect();
    view.participants =
        (1..=20).map(|n| ParticipantView { name: format!("trader{n}"), ..Default::default() }).collect();
    let top = screen_of(&view, 80, 24, Screen::default());
    check(&top, "SYM1");
    assert!(top.iter().any(|row| row.contains(" more ")), "{}", top.join("\n"));
    assert!(!top.iter().any(|row| row.contains("SYM30")), "{}", top.join("\n"));
    // If the scroll position is too large, the table shows the last instruments and has no empty row.
    let bottom = screen_of(&view, 120, 40, Screen { scroll: 1_000, is_frozen: true });
    check(&bottom, "SYM30");
    check(&bottom, "FROZEN");
    let shown = bottom.iter().filter(|row| row.contains("SYM")).count();
    assert!(bottom.iter().any(|row| row.contains(&format!("Instruments {}-30 of 30", 31 - shown))));
}

#[test]
fn every_size_can_be_drawn() {
    let mut full = sample();
    full.notes.extend((0..9).map(|n| format!("note {n} {}", "x".repeat(200))));
    for view in [MarketView::default(), full] {
        for width in [1, 2, 3, 7, 11, 20, 41, 79, 99, 100, 101, 250] {
            for height in [1, 2, 3, 5, 9, 16, 23, 33, 34, 35, 90] {
                screen_of(&view, width, height, Screen { scroll: 2, is_frozen: true });
            }
        }
    }
    check(&screen_of(&sample(), 40, 6, Screen::default()), "tick_to_trade 12.3 45.6");
}

#[test]
fn extreme_values_do_not_break_the_screen() {
    let mut view = sample();
    view.elapsed = Duration::MAX;
    view.planned = Some(Duration::ZERO);
    view.rates =
        Rates { orders: f64::NAN, commands: f64::INFINITY, messages: -1.0, packets: 1e300, fills: 0.5 };
    view.participants[0] = ParticipantView {
        orders: u64::MAX,
        fills: u64::MAX,
        volume: u64::MAX,
        open_orders: Some(u64::MAX),
        position: i64::MIN,
        pnl: i128::MIN,
        refused: u64::MAX,
        name: "\x1b[2J\n".into(),
    };
    view.participants[1].position = i64::MIN;
    view.participants[1].pnl = i128::MIN;
    view.feed.lines[0].first_arrivals = u64::MAX;
    view.latency[0] = span("tick_to_trade", u64::MAX, 0, u64::MAX);
    view.threads[0].utilisation = f64::NAN;
    view.threads[1].utilisation = f64::INFINITY;
    for (width, height) in [(80, 24), (120, 40)] {
        let rows = screen_of(&view, width, height, Screen::default());
        assert!(!rows.concat().contains('\x1b'), "a name reached the terminal unfiltered");
    }
}

#[test]
fn the_plain_line_names_its_values() {
    assert_eq!(
        plain_line(&sample()),
        "00:12 of 01:00 | orders 38,123/s | market messages 61,000/s | fills 4,100/s \
         | p50/p99 tick_to_trade 12.3us/45.6us, tick_to_trade_software 640ns/2.14us, venue_response 6.75us/23.1us \
         | gap open, recovering"
    );
    assert_eq!(
        plain_line(&MarketView::default()),
        "00:00 | orders 0/s | market messages 0/s | fills 0/s | no instruments yet"
    );
}
