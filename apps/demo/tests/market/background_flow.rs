//! Tests of demonstrations with background flow.

use tickpath_agent::StopSignal;
use tickpath_demo::{DemoSettings, Outcome};
use tickpath_timing::Group;
use tickpath_types::Nanos;

use crate::support::{assert_holds, assert_no_check_fails, check, run, settings};

/// The members of the JSON outcome, as `docs/json.md` lists them.
const SECTIONS: [&str; 12] = [
    "checks",
    "spans",
    "hops",
    "functions",
    "rates",
    "participants",
    "feed",
    "threads",
    "flow",
    "journal",
    "measurement",
    "host",
];

#[test]
fn a_market_with_losses_passes_all_checks() {
    // After the first second, the warm-up, duty cycles must not allocate. On a busy host some participants
    // may not have traded after 2 s; then try a longer run.
    let have_all_traded =
        |outcome: &Outcome| outcome.participants.iter().all(|participant| participant.orders > 0);
    let mut outcomes = [2, 8, 32].into_iter().map(|seconds| {
        let duration = Some(Nanos::from_secs(seconds));
        run(&DemoSettings { loss_ppm: 10_000, duration, ..settings() }).unwrap()
    });
    let outcome = outcomes.find(have_all_traded).expect("everybody trades in half a minute");
    for name in ["books_equal", "positions_zero", "gaps_healed", "hops_sum"] {
        assert_holds(&outcome, name);
    }
    assert_eq!(outcome.checks.len(), 4);
    assert!(outcome.holds() && outcome.flow.is_none());

    for name in ["tick_to_trade", "tick_to_trade_software", "venue_response", "order_round_trip"] {
        let row = outcome.report.rows.iter().find(|row| row.name == name);
        assert!(row.is_some_and(|row| row.group == Group::Span && row.summary.count > 0), "{name}: {row:?}");
    }
    assert_eq!(outcome.report.counters.dropped, 0);
    assert!(outcome.injected.iter().all(|lost| *lost > 0), "{:?}", outcome.injected);
    let names: Vec<&str> = outcome.participants.iter().map(|participant| participant.name.as_str()).collect();
    assert_eq!(names, ["maker", "taker", "crowd"]);
    let hot = outcome.allocations.as_ref().unwrap();
    assert!(hot.iter().all(|(_, count)| *count == 0), "duty cycles allocate: {hot:?}");

    assert_json(&outcome.to_json());
    let text = outcome.to_string();
    for section in ["End to end", "Traffic in", "Use of the threads", "Participants", "Checks"] {
        assert!(text.contains(section), "{section} is missing in\n{text}");
    }
    assert_eq!(text.matches("holds ").count(), 4, "{text}");
}

fn assert_json(json: &serde_json::Value) {
    let mut sections: Vec<&str> = json.as_object().unwrap().keys().map(String::as_str).collect();
    let mut expected = SECTIONS;
    sections.sort_unstable();
    expected.sort_unstable();
    assert_eq!(sections, expected);
    for path in [
        "/checks/books_equal/ok",
        "/checks/gaps_healed/exercised",
        "/checks/hops_sum/text",
        "/spans/tick_to_trade/p50_ns",
        "/spans/tick_to_trade_software/p99_ns",
        "/spans/venue_response/max_ns",
        "/spans/order_round_trip/count",
        "/hops/T7_T8/p50_ns",
        "/hops/T3_T4/words",
        "/functions/match/mean_ns",
        "/rates/requests_per_second",
        "/rates/messages",
        "/participants/0/pnl",
        "/participants/2/positions/7",
        "/feed/line_a/injected_losses",
        "/feed/line_b/missed_messages",
        "/feed/gaps_healed_by_retransmission",
        "/feed/messages_lost",
        "/threads/0/agents/0/utilisation",
        "/measurement/hot_allocations",
        "/measurement/records_dropped",
        "/host/jitter/gap_max_ns",
        "/host/clock_drift_ppm",
    ] {
        assert!(json.pointer(path).is_some_and(|value| !value.is_null()), "{path} is missing in {json:#}");
    }
    assert_eq!(json["checks"]["books_equal"]["ok"], true);
    assert_eq!(json["feed"]["messages_lost"], 0);
    assert!(json["flow"].is_null());
}

#[test]
fn a_market_without_losses_has_no_open_gap() {
    let outcome = run(&DemoSettings { loss_ppm: 0, ..settings() }).unwrap();
    for name in ["books_equal", "positions_zero", "hops_sum"] {
        assert_holds(&outcome, name);
    }
    assert_ne!(check(&outcome, "gaps_healed").ok, Some(false));
    assert_eq!(outcome.injected, [0, 0]);
}

#[test]
fn losses_on_both_lines_are_retransmitted() {
    let outcome = run(&DemoSettings { loss_ppm: 50_000, common_loss_ppm: 1_000_000, ..settings() }).unwrap();
    assert_holds(&outcome, "gaps_healed");
    assert_holds(&outcome, "books_equal");
    assert_eq!(outcome.injected[0], outcome.injected[1]);
    let counters = &outcome.arbiter;
    assert!(counters.gaps_healed_by_retransmission > 0, "{counters:?}");
    assert!(outcome.totals.retransmitted > 0);
}

#[test]
fn all_agents_may_share_one_thread() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("demo.toml");
    let text = r#"
        rate = 1000
        loss = "1%"
        [[instrument]]
        symbol = "ONLY"
        reference_price = "10.00"
        [placement]
        idle = "yield"
        [[placement.thread]]
        name = "everything"
        agents = ["order-server", "matcher", "publisher", "feed-handler", "taker", "maker", "order-gateway",
                  "crowd"]
    "#;
    std::fs::write(&file, text).unwrap();
    let loaded = DemoSettings::load(Some(&file)).unwrap();
    let outcome =
        run(&DemoSettings { duration: settings().duration, view: settings().view, ..loaded }).unwrap();
    for name in ["books_equal", "positions_zero", "gaps_healed", "hops_sum"] {
        assert_holds(&outcome, name);
    }
    let threads: Vec<_> = outcome.threads.iter().map(|thread| thread.counters.name.as_str()).collect();
    assert_eq!(threads, ["everything"]);
    assert_eq!(outcome.participants[0].positions.len(), 1);
}

#[test]
fn a_placement_without_an_agent_is_refused_by_its_name() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("demo.toml");
    std::fs::write(&file, "[[placement.thread]]\nname = 'venue'\nagents = ['order-server', 'matcher']\n")
        .unwrap();
    let error = DemoSettings::load(Some(&file)).unwrap_err().to_string();
    assert!(error.contains("no thread runs the agent 'publisher'"), "{error}");
    assert_eq!(error.lines().count(), 1, "{error}");
}

#[test]
fn a_market_stopped_at_once_makes_its_report() {
    let stop = StopSignal::new();
    stop.stop();
    let outcome = tickpath_demo::run(&DemoSettings { duration: None, ..settings() }, &stop).unwrap();
    assert_no_check_fails(&outcome);
    assert!(outcome.to_string().contains("Checks"));
}
