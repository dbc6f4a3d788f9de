//! Rows measured with the smallest effort, and the format of a report.

#![allow(clippy::unwrap_used)] // a failed step of a test is a failed test

use tickpath_lab::{BenchOptions, BenchReport, Effort, Goal, Row, bench, row};

fn smoke(filter: &[&str], rounds: usize) -> BenchReport {
    let options = BenchOptions {
        filter: filter.iter().map(|name| (*name).to_owned()).collect(),
        external_rows: &["hot_allocations"],
        rounds,
        effort: Effort::Smoke,
        ..BenchOptions::default()
    };
    bench(&options).unwrap()
}

/// Runs two rounds of the rows in `filter`. Checks that the report has the rows `expected`, and that each row
/// has values and limits, unless it needs two cores and the host has one.
fn check(filter: &[&str], expected: &[&str]) {
    let report = smoke(filter, 2);
    let names: Vec<&str> = report.rows.iter().map(|row| row.spec.name).collect();
    assert_eq!(names, expected);
    for row in &report.rows {
        if row.values.is_empty() {
            assert!(report.host.far_core.is_none() && row.note.contains("needs two cores"), "{row:?}");
            assert_ne!(row.reached(), Some(true));
            continue;
        }
        assert_eq!(row.values.len(), 2, "{row:?}");
        assert!(row.values.iter().all(|value| value.is_finite() && *value >= 0.0), "{row:?}");
        let limits = if row.spec.limit.is_some() { 2 } else { 0 };
        assert_eq!(row.limits.len(), limits, "{row:?}");
        assert!(row.limits.iter().all(|limit| *limit > 0.0), "{row:?}");
    }
}

#[test]
fn stamps_are_measured_beside_the_counter() {
    check(&["stamp", "host_jitter"], &["host_jitter", "tsc_read", "stamp"]);
}

#[test]
fn messages_between_cores_are_measured_beside_a_bare_cache_line() {
    check(&["spsc_rtt"], &["cacheline_rtt", "spsc_rtt"]);
}

#[test]
fn decisions_are_measured_warm_and_cold() {
    check(&["decision"], &["decision_demo", "decision_trader", "decision_cold"]);
}

#[test]
fn matching_is_measured() {
    check(&["matching", "matching_p99"], &["matching", "matching_p50", "matching_p99"]);
}

#[test]
fn matching_is_measured_with_few_and_many_orders_and_instruments() {
    let by_orders =
        ["matching_orders_1k", "matching_orders_10k", "matching_orders_100k", "matching_orders_1m"];
    check(&["matching_orders"], &by_orders);
    let by_instruments = [
        "matching_instruments_1",
        "matching_instruments_64",
        "matching_instruments_1000",
        "matching_instruments_8000",
    ];
    check(&["matching_instruments_"], &by_instruments);
    check(&["matching_exchange_core_shape"], &["matching_exchange_core_shape"]);
}

#[test]
fn bursts_are_measured() {
    check(&["matching_burst"], &["matching_burst_warm", "matching_burst"]);
    check(&["matching_sweep"], &["matching_single_fills", "matching_sweep"]);
    check(&["matching_mass_cancel"], &["matching_single_cancels", "matching_mass_cancel"]);
}

#[cfg(feature = "peers")]
#[test]
fn matching_is_measured_beside_peers() {
    for orders in ["100k", "1k"] {
        let rows = [
            format!("lobster_{orders}"),
            format!("orderbook_rs_{orders}"),
            format!("matching_{orders}"),
            format!("matching_{orders}_orderbook_rs"),
        ];
        let rows = rows.each_ref().map(String::as_str);
        check(&rows, &rows);
    }
}

#[test]
fn standard_days_are_measured_and_described() {
    check(
        &["itch_decode", "textbook_books", "textbook_books_500"],
        &[
            "itch_walk",
            "itch_decode",
            "itch_decode_and_touch",
            "itch_books",
            "textbook_books",
            "itch_decode_and_touch_500",
            "itch_books_500",
            "textbook_books_500",
        ],
    );
    let report = smoke(&["itch_books"], 1);
    let [day] = &report.days[..] else { panic!("{:?}", report.days) };
    assert_eq!((day.name.as_str(), day.messages, day.symbols), ("itch-8000-smoke", 80_000, 12));
    assert_eq!((day.live_orders_max, day.unique_references), (2_433, 41_888));
    let why = day.not_simulated.as_ref().unwrap();
    assert!(why.contains("counted by the program"), "{why}");
    let text = report.to_string();
    assert!(text.contains("\nstandard days\nitch-8000-smoke") && text.contains("80,000 messages"), "{text}");
}

/// Measures the rows that need recordings. A row whose recordings are absent reports them as missing.
#[test]
fn real_recordings_are_measured() {
    for row in &smoke(&["dbn_recorded", "lobster_recorded"], 2).rows {
        if row.values.is_empty() {
            assert!(row.note.contains("not measured: there is no /"), "{row:?}");
        } else {
            assert!(row.values.len() == 2 && row.note.contains("live orders"), "{row:?}");
        }
    }
}

#[test]
fn missing_instruction_counts_have_a_reason() {
    let report = smoke(&["book_instructions"], 1);
    for row in &report.rows {
        assert!(row.values.is_empty() && row.note.starts_with("not measured: "), "{row:?}");
    }
    assert_eq!(report.rows[1].reached(), None);
}

#[test]
fn a_stopped_bench_ends_with_an_error() {
    let options = BenchOptions { filter: vec!["stamp".to_owned()], ..BenchOptions::default() };
    options.stop.stop();
    assert_eq!(bench(&options).unwrap_err().to_string(), "interrupted");
}

#[test]
fn orders_are_measured_beside_a_bare_echo() {
    check(
        &["order_rtt", "venue_response", "udp_echo"],
        &["udp_echo", "tcp_echo", "order_rtt", "venue_response"],
    );
}

#[test]
fn matching_at_a_fixed_rate_is_measured_beside_an_empty_loop() {
    let rows = ["matching_open_loop", "matching_open_loop_p99", "matching_open_loop_p999"];
    let limits = ["empty_loop", "empty_loop_p99", "empty_loop_p999"];
    check(&rows, &[limits, rows].concat());
}

#[test]
fn the_journal_is_measured_alone_and_in_an_order() {
    let rows = ["replay_matching", "journal_replay", "fdatasync", "journal_group_ack"];
    check(&["journal_replay", "journal_group_ack"], &rows);
    check(
        &["journal_group_rate", "journal_restart"],
        &["journal_async_rate", "journal_group_rate", "journal_restart"],
    );
    check(&["journal_async_cost"], &["tcp_echo", "order_rtt", "journal_async_cost"]);
}

#[test]
fn the_whole_venue_is_measured_beside_matching() {
    check(&["pipeline"], &["pipeline_matching", "pipeline_async", "pipeline_group"]);
    check(&["matcher_agent"], &["matcher_engine", "matcher_agent"]);
}

#[test]
fn responses_are_measured_under_load() {
    check(
        &["venue_response_loaded", "venue_part", "venue_capacity"],
        &[
            "venue_capacity",
            "venue_response_and_write",
            "venue_response_loaded_20",
            "venue_response_loaded_50",
            "venue_response_loaded_80",
            "venue_part_loaded_50",
        ],
    );
}

#[test]
fn a_thousand_users_are_measured_beside_one() {
    check(&["users"], &["users_1", "users_100", "users_1000"]);
}

#[test]
fn restarts_are_measured_with_and_without_a_snapshot() {
    let replayed = ["restart_500k", "restart_5m", "restart_20m"];
    let restored = ["restart_500k_snapshot", "restart_5m_snapshot", "restart_20m_snapshot"];
    check(&["restart"], &[replayed, restored].concat());
}

#[test]
fn the_warm_up_is_measured_on_and_off() {
    let off = ["warm_up_off_t7_t10", "warm_up_off_t7k_t7", "warm_up_off_t7k_t10"];
    let on = ["warm_up_on_t7_t10", "warm_up_on_t7k_t7", "warm_up_on_t7k_t10"];
    check(&["warm_up"], &[off, on].concat());
}

#[test]
fn a_stuck_client_is_measured_beside_equal_runs() {
    let report = smoke(&["stuck_client", "stuck_client_p99"], 1);
    let names: Vec<&str> = report.rows.iter().map(|row| row.spec.name).collect();
    assert_eq!(names, ["hundred_clients", "hundred_clients_p99", "stuck_client", "stuck_client_p99"]);
    for row in report.rows.iter().filter(|row| !row.values.is_empty()) {
        let is_judged = row.spec.limit.is_some();
        assert_eq!((row.limits.len(), row.control.len()), (is_judged.into(), is_judged.into()), "{row:?}");
        assert_eq!(row.reached().is_some(), is_judged, "{row:?}");
    }
}

#[test]
fn messages_of_deribit_are_read_and_sent() {
    let (book, order) = match cfg!(feature = "peers") {
        true => ("sonic_rs_book", "sonic_rs_order"),
        false => ("serde_json_book", "serde_json_order"),
    };
    check(
        &["deribit_parse_book", "deribit_parse_order"],
        &[book, "deribit_parse_book", order, "deribit_parse_order"],
    );
    check(&["deribit_send_buy"], &["tls_write", "deribit_send_buy"]);
    let report = smoke(&["deribit_command_to_socket"], 1);
    let row = &report.rows[0];
    assert!(row.values.is_empty() || row.note.contains("login end to end"), "{row:?}");
}

#[test]
fn orders_go_through_a_whole_gateway() {
    check(
        &["gateway_rtt", "gateway_to_wire"],
        &["gateway_ring_rtt", "gateway_rtt", "gateway_tls_write", "gateway_to_wire"],
    );
    check(&["gateway_heartbeat"], &["cacheline_rtt", "gateway_heartbeat"]);
    check(&["gateway_stuck_client"], &["gateway_sixteen_clients", "gateway_stuck_client"]);
}

#[test]
fn tick_to_trade_is_measured_beside_bare_calls_and_its_functions() {
    let rows = ["tick_to_trade", "tick_to_trade_software", "tick_to_trade_software_p90"];
    let [whole, software, p90] = rows;
    check(&rows, &["bare_tick_to_trade", whole, "tick_functions", software, p90]);
}

#[test]
fn market_data_is_measured_beside_bare_datagrams() {
    check(&["market_data_out"], &["market_data_bare", "market_data_out"]);
}

#[test]
fn a_feed_that_loses_on_both_lines_ends_with_the_venues_books() {
    let report = smoke(&["feed_heal"], 1);
    assert!(report.rows[0].note.contains("books equal 100%"), "{:?}", report.rows[0]);
}

#[test]
fn rows_of_the_caller_are_known_and_not_run() {
    assert!(smoke(&["hot_allocations"], 1).rows.is_empty());
    let options = BenchOptions { filter: vec!["nothing".to_owned()], ..BenchOptions::default() };
    let error = bench(&options).unwrap_err().to_string();
    assert!(error.contains("'nothing'") && error.contains("--list"), "{error}");
}

#[test]
fn json_has_the_documented_fields() {
    let mut report = smoke(&["stamp"], 1);
    report.push(Row::of(row("hot_allocations", "allocations").goal(Goal::ValueAtMost(0.0))));
    let json: serde_json::Value = serde_json::from_str(&report.to_json()).unwrap();
    let fields = |value: &serde_json::Value| -> Vec<String> {
        let mut fields: Vec<_> = value.as_object().unwrap().keys().cloned().collect();
        fields.sort_unstable();
        fields
    };
    assert_eq!(fields(&json), ["commit", "date", "effort", "host", "rows", "standard_days", "steal_percent"]);
    assert!(json["commit"].is_null() && json["steal_percent"].as_f64().unwrap() >= 0.0);
    let date = json["date"].as_str().unwrap();
    assert!(date.starts_with("20") && date.ends_with('Z') && date.len() == 20, "{date}");
    assert_eq!((&json["effort"], &json["standard_days"]), (&"smoke".into(), &serde_json::json!([])));
    let rows = json["rows"].as_array().unwrap();
    assert_eq!(rows.len(), 3);
    let row_fields = [
        "failure",
        "goal",
        "limit",
        "limit_excludes",
        "limit_name",
        "name",
        "note",
        "ratio",
        "reached",
        "reference",
        "rounds",
        "spread",
        "unit",
        "value",
    ];
    for row in rows {
        assert_eq!(fields(row), row_fields);
    }
    let stamp = &rows[1];
    assert_eq!((&stamp["name"], &stamp["limit_name"]), (&"stamp".into(), &"tsc_read".into()));
    assert_eq!((&stamp["goal"], &stamp["rounds"]), (&"ratio <= 1.6".into(), &1.into()));
    assert!(stamp["value"].is_f64() && stamp["ratio"].is_f64() && stamp["reached"].is_boolean());
    assert_eq!(stamp["spread"].as_array().unwrap().len(), 2);
    let missing = &rows[2];
    assert!(missing["value"].is_null() && missing["limit"].is_null() && missing["spread"].is_null());
    assert_eq!((&missing["reached"], &rows[0]["reached"]), (&false.into(), &serde_json::Value::Null));
    let host_fields = [
        "clock",
        "cores_allowed",
        "cores_used",
        "cpu_model",
        "is_virtual",
        "jitter",
        "kernel",
        "memory_bytes",
    ];
    assert_eq!(fields(&json["host"]), host_fields);
    assert!(json["host"]["jitter"]["elapsed_ns"].as_u64().unwrap() > 0);
}

#[test]
fn the_table_has_a_line_for_each_row_and_its_conditions() {
    let mut report = smoke(&["stamp"], 1);
    report.push(Row {
        values: vec![3.0],
        ..Row::of(
            row("hot_allocations", "allocations")
                .note("allocations after start-up")
                .goal(Goal::ValueAtMost(0.0)),
        )
    });
    let text = report.to_string();
    let lines: Vec<&str> = text.lines().collect();
    let words = |line: &str| line.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
    // The verdict, which may take several lines, ends with an empty line.
    let heading = 1 + lines.iter().position(|line| line.is_empty()).unwrap();
    assert!(lines[0].starts_with("PASS: every answer is right; "), "{text}");
    assert!(lines[..heading].join(" ").contains("rows with a goal reach it, not "), "{text}");
    let headings = ["row", "value", "limit", "unit", "ratio", "goal", "reached", "spread"];
    assert_eq!(words(lines[heading]), headings);
    let rows = &lines[heading + 1..];
    let starts: Vec<_> = rows[..3].iter().map(|line| words(line)[0].clone()).collect();
    assert_eq!(starts, ["tsc_read", "stamp", "hot_allocations"]);
    assert!(rows[1].contains("<= x1.6"));
    assert!(words(rows[2])[1..4] == ["3.00", "-", "allocations"] && rows[2].contains("NO"));
    assert!(text.contains("\nhot_allocations  allocations after start-up\n"));
    let (notes, conditions) = text.split_at(text.find("Commit ").unwrap());
    assert!(notes.contains("\ntsc_read") && words(conditions).join(" ").contains("1 interleaved rounds"));
    assert!(lines.iter().all(|line| line.chars().count() <= 100), "{text}");
    assert!(conditions.contains("spun while they waited") && conditions.contains("cpu     "));
}
