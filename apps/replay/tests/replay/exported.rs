//! Tests that read exported tables back.

use std::fs;
use std::path::PathBuf;

use tickpath_agent::StopSignal;
use tickpath_replay::{Exports, ReplayOptions, replay, replay_all};

use crate::support::{Day, OPEN_NS, checked, file, run, try_run};

fn options(bbo: PathBuf, trades: PathBuf, depth: PathBuf) -> ReplayOptions {
    let exports = Exports { bbo: Some(bbo), trades: Some(trades), depth: Some(depth), ..Exports::default() };
    ReplayOptions { exports, depth: 2, ..checked() }
}

#[test]
fn comma_separated_exports_are_exact() {
    let (folder, path) = file("day", &Day::small().bytes);
    let at = |name: &str| folder.path().join(name);
    let report = run(&path, &options(at("b.csv"), at("t.csv"), at("d.csv")));
    assert_eq!((report.exported.bbo, report.exported.trades), (Some(7), Some(2)));
    let ts = |number: u64| OPEN_NS + number * 1_000_000;
    let line = |number: u64, rest: &str| format!("{},{number},{rest}\n", ts(number));
    let bbo = [
        line(4, "AAA,100.0000,100,,"),
        line(5, "AAA,100.0000,100,100.0300,200"),
        line(7, "BBB,,,5.0000,10"),
        line(8, "AAA,100.0000,60,100.0300,200"),
        line(10, "AAA,100.0000,60,100.0200,150"),
        line(11, "AAA,100.0000,60,100.0200,100"),
        line(13, "BBB,,,,"),
    ];
    let header = "ts_ns,message,symbol,bid_price,bid_qty,ask_price,ask_qty\n";
    assert_eq!(fs::read_to_string(at("b.csv")).unwrap(), header.to_owned() + &bbo.concat());
    let trades = [line(8, "AAA,100.0000,40,sell,executed,1"), line(9, "AAA,100.0200,7,,hidden,")];
    let header = "ts_ns,message,symbol,price,qty,aggressor,kind,order_id\n";
    assert_eq!(fs::read_to_string(at("t.csv")).unwrap(), header.to_owned() + &trades.concat());
    let depth = [
        line(4, "AAA,bid,1,100.0000,100,1"),
        line(5, "AAA,ask,1,100.0300,200,1"),
        line(6, "AAA,bid,2,99.9900,50,1"),
        line(7, "BBB,ask,1,5.0000,10,1"),
        line(8, "AAA,bid,1,100.0000,60,1"),
        line(10, "AAA,ask,1,100.0200,150,1"),
        line(11, "AAA,ask,1,100.0200,100,1"),
        line(12, "AAA,bid,2,,0,0"),
        line(13, "BBB,ask,1,,0,0"),
    ];
    let header = "ts_ns,message,symbol,side,level,price,qty,orders\n";
    assert_eq!(fs::read_to_string(at("d.csv")).unwrap(), header.to_owned() + &depth.concat());
}

#[cfg(feature = "parquet")]
#[test]
fn parquet_has_the_same_rows() {
    use parquet::file::reader::{FileReader, SerializedFileReader};

    let (folder, path) = file("day", &Day::small().bytes);
    let at = |name: &str| folder.path().join(name);
    run(&path, &options(at("b.parquet"), at("t.parquet"), at("d.parquet")));
    for (name, rows, first) in [
        ("b.parquet", 7, "symbol: \"AAA\", bid_price: 100.000000000, bid_qty: 100, ask_price: null"),
        (
            "t.parquet",
            2,
            "price: 100.000000000, qty: 40, aggressor: \"sell\", kind: \"executed\", order_id: 1",
        ),
        ("d.parquet", 9, "side: \"bid\", level: 1, price: 100.000000000, qty: 100, orders: 1"),
    ] {
        let reader = SerializedFileReader::new(fs::File::open(at(name)).unwrap()).unwrap();
        let read: Vec<String> =
            reader.get_row_iter(None).unwrap().map(|row| row.unwrap().to_string()).collect();
        assert_eq!(read.len(), rows, "{name}");
        assert!(read[0].contains(first), "{name}: {}", read[0]);
    }
}

#[cfg(feature = "parquet")]
#[test]
fn times_are_timestamps_in_utc_where_the_day_is_known() {
    use parquet::basic::{LogicalType, TimeUnit};
    use parquet::file::reader::{FileReader, SerializedFileReader};
    use parquet::record::RowAccessor;

    let (folder, path) = file("day", &Day::small().bytes);
    let bbo = folder.path().join("b.parquet");
    // 09:30 in New York is 14:30 UTC in winter.
    let opened = 1_704_205_800_000_000_000;
    for (date, is_utc, first) in
        [(None, false, OPEN_NS as i64), (Some("2024-01-02".parse().unwrap()), true, opened)]
    {
        let exports = Exports { bbo: Some(bbo.clone()), ..Exports::default() };
        run(&path, &ReplayOptions { exports, date, ..checked() });
        let reader = SerializedFileReader::new(fs::File::open(&bbo).unwrap()).unwrap();
        let schema = reader.metadata().file_metadata().schema_descr_ptr();
        let expected = LogicalType::timestamp(is_utc, TimeUnit::NANOS);
        assert_eq!(schema.column(0).logical_type_ref(), Some(&expected), "{date:?}");
        let row = reader.get_row_iter(None).unwrap().next().unwrap().unwrap();
        assert_eq!(row.get_long(0).unwrap(), first + 4_000_000);
    }
}

#[test]
fn only_chosen_symbols_in_the_window_are_exported() {
    let (folder, path) = file("day", &Day::small().bytes);
    let bbo = folder.path().join("b.csv");
    let options = ReplayOptions {
        symbols: vec!["AAA".to_owned()],
        from: Some("09:30:00.008".parse().unwrap()),
        exports: Exports { bbo: Some(bbo.clone()), ..Exports::default() },
        ..ReplayOptions::default()
    };
    assert_eq!(run(&path, &options).exported.bbo, Some(3));
    assert!(!fs::read_to_string(bbo).unwrap().contains("BBB"));
}

#[test]
fn an_export_that_cannot_be_written_is_one_line() {
    let (folder, path) = file("day", &Day::small().bytes);
    for (name, expected) in [("b.txt", ".csv or .parquet"), ("no/b.csv", "cannot write")] {
        let exports = Exports { bbo: Some(folder.path().join(name)), ..Exports::default() };
        let error = try_run(&path, &ReplayOptions { exports, ..ReplayOptions::default() }).unwrap_err();
        assert!(error.to_string().contains(expected) && !error.to_string().contains('\n'), "{error}");
    }
}

#[test]
fn several_files_are_one_table_that_names_them() {
    let (folder, first) = file("one", &Day::small().bytes);
    let second = folder.path().join("two");
    let mut day = Day::small();
    day.hidden(2, 3, 49_000);
    fs::write(&second, &day.bytes).unwrap();
    let at = |name: &str| folder.path().join(name);
    let files = [first.clone(), folder.path().join("none"), second.clone()];
    let options = options(at("b.csv"), at("t.csv"), at("d.csv"));
    let report = replay_all(&files, &options, &StopSignal::new(), &mut |_| {}).unwrap();
    assert_eq!(report.failures.len(), 1);
    let rows: Vec<_> = report.files.iter().map(|file| (file.exported.trades, file.exported.depth)).collect();
    assert_eq!(rows, [(Some(2), Some(9)), (Some(3), Some(9))]);
    assert_eq!(report.exported().trades, Some(5));
    let trades = fs::read_to_string(at("t.csv")).unwrap();
    let lines: Vec<&str> = trades.lines().collect();
    assert_eq!(lines[0], "file,ts_ns,message,symbol,price,qty,aggressor,kind,order_id");
    let starts = [&first, &first, &second, &second, &second].map(|path| format!("{},", path.display()));
    for (line, start) in lines[1..].iter().zip(&starts) {
        assert!(line.starts_with(start.as_str()), "{line}");
    }
    assert!(lines[1..].len() == 5 && lines[5].contains(",14,BBB,4.9000,3,,hidden,"), "{trades}");
    // The rows of each file are the same as without the other file.
    let alone = at("alone.csv");
    let exports = Exports { depth: Some(alone.clone()), ..Exports::default() };
    run(&second, &ReplayOptions { exports, depth: 2, ..checked() });
    let prefix = starts[2].as_str();
    let both = fs::read_to_string(at("d.csv")).unwrap();
    let of_second: Vec<&str> = both.lines().filter_map(|line| line.strip_prefix(prefix)).collect();
    assert_eq!(of_second, fs::read_to_string(alone).unwrap().lines().skip(1).collect::<Vec<_>>());
}

#[test]
fn a_stop_leaves_no_table() {
    let (folder, path) = file("day", &Day::small().bytes);
    let bbo = folder.path().join("b.csv");
    let exports = Exports { bbo: Some(bbo.clone()), ..Exports::default() };
    let options = ReplayOptions { exports, ..ReplayOptions::default() };
    let stop = StopSignal::new();
    stop.stop();
    let report = replay(&path, &options, &stop, &mut |_| {}).unwrap().files.remove(0);
    assert_eq!(report.exported.bbo, None);
    let report = replay_all(&[path.clone(), path], &options, &stop, &mut |_| {}).unwrap();
    assert!(report.is_stopped() && report.left_out.len() == 2);
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "only the recording is left");
}

#[test]
fn waiting_for_a_pipe_ends_at_a_stop_request() {
    let folder = tempfile::tempdir().unwrap();
    let pipe = folder.path().join("pipe");
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let bbo = folder.path().join("b.csv");
    let exports = Exports { bbo: Some(bbo), ..Exports::default() };
    // A pipe without a writer, and a pipe whose writer does not finish.
    for is_written in [false, true] {
        let mut writer = is_written.then(|| fs::File::options().read(true).write(true).open(&pipe).unwrap());
        if let Some(writer) = &mut writer {
            std::io::Write::write_all(writer, &Day::small().bytes).unwrap();
        }
        let options = ReplayOptions { exports: exports.clone(), ..ReplayOptions::default() };
        let stop = StopSignal::new();
        let replaying = {
            let (pipe, stop) = (pipe.clone(), stop.clone());
            std::thread::spawn(move || replay(&pipe, &options, &stop, &mut |_| {}))
        };
        stop.stop();
        let report = replaying.join().unwrap().unwrap();
        assert!(report.is_stopped(), "{report}");
        assert!(report.failures.is_empty() && report.files.iter().all(|file| file.contradictions.is_empty()));
    }
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "only the pipe is left");
}

#[test]
fn orders_are_exported_with_what_they_replace() {
    let folder = tempfile::tempdir().unwrap();
    let orders = folder.path().join("orders.csv");
    let exports = Exports { orders: Some(orders.clone()), ..Exports::default() };
    let (_folder, path) = file("day", &Day::small().bytes);
    let report = run(&path, &ReplayOptions { exports, ..ReplayOptions::default() });
    assert_eq!(report.exported.orders, Some(9));
    let text = std::fs::read_to_string(&orders).unwrap();
    let rows: Vec<&str> =
        text.lines().map(|line| line.split_once(',').map_or("", |(_, rest)| rest)).collect();
    assert_eq!(rows[0], "message,symbol,event,order_id,replaced_id,side,price,qty,kind");
    assert_eq!(rows[1], "4,AAA,add,1,,buy,100.0000,100,");
    assert_eq!(rows[5], "8,AAA,execute,1,,buy,100.0000,40,executed");
    assert_eq!(rows[6], "10,AAA,replace,5,2,sell,100.0200,150,");
    assert_eq!(
        &rows[7..],
        [
            "11,AAA,reduce,5,,sell,100.0200,50,",
            "12,AAA,delete,3,,buy,99.9900,50,",
            "13,BBB,delete,4,,sell,5.0000,10,"
        ]
    );
}
