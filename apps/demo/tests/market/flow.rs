//! Tests of demonstrations that play a recorded flow.

use std::path::{Path, PathBuf};

use tickpath_demo::{DemoSettings, Outcome, Speed};
use tickpath_flowgen::{ItchDay, ItchDayConfig};
use tickpath_test_support::recorded;
use tickpath_types::Nanos;

use crate::support::{assert_holds, assert_no_check_fails, check, run, settings};

fn in_repository(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../io/capture/tests/data").join(name)
}

/// Returns the settings for playing a recording to its end.
fn settings_for(flow: &Path) -> DemoSettings {
    DemoSettings { flow: Some(flow.to_owned()), duration: None, ..settings() }
}

fn play(flow: &Path) -> anyhow::Result<Outcome> {
    run(&settings_for(flow))
}

/// Asserts that the market repeated every eligible execution of the recording, and that no check failed.
fn assert_repeats(outcome: &Outcome) {
    assert_no_check_fails(outcome);
    for name in ["flow_executions", "books_equal", "positions_zero", "hops_sum"] {
        assert_holds(outcome, name);
    }
    let flow = outcome.flow.as_ref().unwrap();
    assert_eq!((flow.confirmed, flow.contradicted, &flow.damage), (flow.expected, 0, &None));
    assert!(flow.is_complete && !outcome.to_string().contains("not played to its end"));
    let json = outcome.to_json();
    assert_eq!(json["flow"]["confirmed"], flow.confirmed);
    assert!(outcome.to_string().contains("The recorded flow"));
}

#[test]
fn an_itch_recording_is_replayed() {
    let outcome = play(&in_repository("ritch_excerpt.itch50.gz")).unwrap();
    assert_repeats(&outcome);
    assert_eq!(outcome.flow.as_ref().unwrap().confirmed, 2);
    let names: Vec<&str> = outcome.participants.iter().map(|participant| participant.name.as_str()).collect();
    assert_eq!(names, ["probe", "flow"]);
}

#[test]
fn the_placement_of_the_sample_configuration_serves_a_recording() {
    let sample = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../configs/demo.toml");
    let loaded = DemoSettings::load(Some(&sample)).unwrap();
    let flow = Some(in_repository("ritch_excerpt.itch50.gz"));
    let outcome = run(&DemoSettings { flow, duration: None, view: settings().view, ..loaded }).unwrap();
    assert_repeats(&outcome);
    let threads: Vec<_> = outcome.threads.iter().map(|thread| thread.counters.name.as_str()).collect();
    assert_eq!(threads, ["venue", "trader"]);
}

#[test]
fn a_recording_without_executions_passes() {
    let outcome = play(&in_repository("test_data.mbo.v3.dbn.zst")).unwrap();
    assert_no_check_fails(&outcome);
    assert_eq!(check(&outcome, "flow_executions").ok, None, "not exercised, and says so");
}

#[test]
fn a_recording_may_be_played_at_a_multiple_of_its_own_time() {
    let settings = settings_for(&in_repository("ritch_excerpt.itch50.gz"));
    let outcome = run(&DemoSettings { speed: Speed::Hundredths(u64::MAX), ..settings }).unwrap();
    assert_repeats(&outcome);
}

#[test]
fn a_recording_may_be_sparse() {
    let settings = settings_for(&in_repository("ritch_excerpt.itch50.gz"));
    // Play 17,000 recorded seconds in two seconds, with pauses longer than the answer timeout.
    let outcome = run(&DemoSettings { speed: Speed::Hundredths(900_000), ..settings }).unwrap();
    assert!(outcome.elapsed >= Nanos::from_millis(1_500), "{}", outcome.elapsed);
    assert_repeats(&outcome);
}

/// Writes a synthetic ITCH recording, small enough for a busy host; returns its path.
fn day(folder: &Path) -> PathBuf {
    let path = folder.join("day.itch");
    let config = ItchDayConfig { messages: 20_000, symbols: 10, live: 200, seed: 1 };
    let mut bytes = Vec::new();
    ItchDay::new(config).unwrap().append_frames(usize::MAX, &mut bytes);
    std::fs::write(&path, bytes).unwrap();
    path
}

#[test]
fn reading_ahead_leaves_no_allocation_to_the_duty_cycles() {
    let folder = tempfile::tempdir().unwrap();
    let settings = settings_for(&day(folder.path()));
    // Play sixteen hours in about two seconds. After one second of warm-up, duty cycles must not allocate.
    let outcome = run(&DemoSettings { speed: Speed::Hundredths(2_500_000), ..settings }).unwrap();
    assert_repeats(&outcome);
    assert!(outcome.elapsed >= Nanos::from_millis(1_500), "{}", outcome.elapsed);
    let hot = outcome.allocations.as_ref().unwrap();
    assert!(hot.iter().all(|(_, count)| *count == 0), "duty cycles allocate: {hot:?}");
}

#[test]
fn an_incomplete_replay_is_reported() {
    let folder = tempfile::tempdir().unwrap();
    let (speed, duration) = (Speed::Hundredths(100_000), Some(Nanos::from_millis(500)));
    let outcome = run(&DemoSettings { speed, duration, ..settings_for(&day(folder.path())) }).unwrap();
    assert_no_check_fails(&outcome);
    assert_holds(&outcome, "books_equal");
    let flow = outcome.flow.as_ref().unwrap();
    assert_eq!((flow.is_complete, flow.confirmed), (false, flow.expected));
    assert!(outcome.elapsed < Nanos::from_secs(5), "{}", outcome.elapsed);
    assert!(outcome.to_string().contains("not played to its end: the market was stopped after 0."));
    assert_eq!(outcome.to_json()["flow"]["complete"], false);
}

#[test]
fn a_databento_recording_is_replayed() {
    let Some(path) = recorded("databento/esh4-glbx-mdp3-20231225.mbo.dbn.zst") else { return };
    let outcome = play(&path).unwrap();
    assert_repeats(&outcome);
    assert!(outcome.flow.as_ref().unwrap().confirmed > 6_000);
}

#[test]
fn a_lobster_recording_is_replayed() {
    let Some(path) = recorded("lobster/AMZN_2012-06-21_message_level1_part1.csv.gz") else { return };
    assert_repeats(&play(&path).unwrap());
}

/// Copies the first three quarters of a file into `folder`; returns the path of the copy.
fn cut(path: &Path, folder: &Path) -> PathBuf {
    let whole = std::fs::read(path).unwrap();
    let cut = folder.join(path.file_name().unwrap());
    std::fs::write(&cut, &whole[..whole.len() * 3 / 4]).unwrap();
    cut
}

#[test]
fn a_truncated_recording_is_played_to_its_end() {
    let folder = tempfile::tempdir().unwrap();
    let shared = recorded("databento/esh4-glbx-mdp3-20231225.mbo.dbn.zst");
    for whole in [in_repository("ritch_excerpt.itch50.gz")].into_iter().chain(shared) {
        let outcome = play(&cut(&whole, folder.path())).unwrap();
        assert_no_check_fails(&outcome);
        assert_holds(&outcome, "books_equal");
        let damage = outcome.flow.as_ref().unwrap().damage.as_ref().unwrap();
        assert!(damage.contains("cut short"), "{damage}");
        assert!(outcome.to_string().contains("the recording is damaged"));
        assert_eq!(outcome.to_json()["flow"]["damage"], **damage);
    }
}

#[test]
fn a_recording_truncated_before_its_first_event_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    // The file is one compressed block: nothing of it can be read without its end.
    let error = play(&cut(&in_repository("test_data.mbo.v3.dbn.zst"), folder.path())).err().unwrap();
    assert!(error.to_string().contains("cut short at byte 0"), "{error}");
}

#[test]
fn an_invalid_recording_is_refused_in_one_line() {
    let folder = tempfile::tempdir().unwrap();
    let noise = folder.path().join("noise.csv");
    std::fs::write(&noise, "this is, no recording\n").unwrap();
    let empty = folder.path().join("empty.itch50");
    std::fs::write(&empty, "").unwrap();
    let trades = in_repository("test_data.trades.v3.dbn.zst");
    for path in [noise, empty, trades, folder.path().to_owned(), folder.path().join("missing.dbn.zst")] {
        let error = format!("{:#}", play(&path).err().unwrap_or_else(|| panic!("{path:?} was played")));
        assert_eq!(error.lines().count(), 1, "{error}");
        println!("{error}");
    }
}
