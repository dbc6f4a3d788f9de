//! Tests of `tickpath backtest`, run as a process.

use serde_json::Value;

use crate::support::{assert_refused, repository, run};

#[test]
fn a_back_test_reports_its_fills_as_text_and_json() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let (day, json) = (path("day.itch"), path("day.json"));
    let small = ["--messages", "60000", "--symbols", "10", "--live", "1000", "--seed", "1", "-o", &day];
    assert_eq!(run(&[&["generate", "itch"][..], &small].concat()).code, Some(0));
    let contents = run(&["replay", &day, "--json", "-"]);
    let contents: Value = serde_json::from_str(&contents.out).unwrap();
    let symbol = contents["symbols"][0]["symbol"].as_str().unwrap();

    let args = ["backtest", &day, "--symbols", symbol, "--jitter", "20us", "--fee-removed", "0.003"];
    let printed = run(&[&args[..], &["--strategy", "taker", "--json", &json]].concat());
    assert_eq!((printed.code, printed.err.as_str()), (Some(0), ""));
    for words in
        ["Back-test of taker on", "P&L less fees", "queue position", "50 us and more, 70 us in the mean"]
    {
        assert!(printed.out.contains(words), "no '{words}' in\n{}", printed.out);
    }
    let report: Value = serde_json::from_slice(&std::fs::read(&json).unwrap()).unwrap();
    let fills = report["fills"].as_array().unwrap();
    let signed = fills.iter().map(|fill| {
        let qty = fill["qty"].as_i64().unwrap();
        if fill["side"] == "buy" { qty } else { -qty }
    });
    assert!(!fills.is_empty());
    assert_eq!(signed.sum::<i64>(), report["positions"][0].as_i64().unwrap());
    let again = run(&[&args[..], &["--strategy", "taker", "--json", "-"]].concat());
    let mut again: Value = serde_json::from_str(&again.out).unwrap();
    again["elapsed_s"] = report["elapsed_s"].clone();
    assert_eq!(again, report, "the same inputs");

    assert_refused(&["backtest", &day, "--symbols", "NONE"], &["no order of NONE", "tickpath replay"]);
    assert_refused(&["backtest", &day, "--symbols", symbol, "--tick", "one"], &["--tick one", "decimal"]);
    assert_refused(&["backtest", &day, "--symbols", symbol, "--json", &day], &["--json"]);
    let levels = repository().join("apps/replay/tests/data/test_data.trades.v3.dbn.zst");
    assert_refused(&["backtest", levels.to_str().unwrap(), "--symbols", "ESH1"], &["takes orders"]);
}
