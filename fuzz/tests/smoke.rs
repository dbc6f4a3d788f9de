//! Runs every fuzz target's function on its seeds and on mutations of them, with any compiler.

use tickpath_fuzz::mutation::{Random, mutate};
use tickpath_fuzz::seeds;

/// Number of mutations for each decoder; all tests of this file take seconds.
const ROUNDS: usize = 20_000;
/// Number of mutations for a target that reads every input several times, or through a file and books.
const LONG_ROUNDS: usize = 1_000;

/// Number of mutations for a target that starts a new server for each input.
const SERVER_ROUNDS: usize = 300;
/// Number of mutations for a target with a whole venue, which is restarted.
const VENUE_ROUNDS: usize = 30;

/// Number of mutations for a target that reads each input into new books.
const SNAPSHOT_ROUNDS: usize = 5_000;

fn smoke(body: fn(&[u8]), seeds: &[Vec<u8>], rounds: usize) {
    assert!(!seeds.is_empty());
    body(&[]);
    seeds.iter().for_each(|seed| body(seed));
    let mut random = Random::new();
    for _ in 0..rounds {
        body(&mutate(&mut random, seeds));
    }
}

macro_rules! smoke_tests {
    ($rounds:ident: $($target:ident)*) => { $(
        #[test]
        fn $target() {
            smoke(tickpath_fuzz::$target, &seeds::$target(), $rounds);
        }
    )* };
}

smoke_tests! { ROUNDS: itch mold binaryfile soup_server soup_client ouch_inbound ouch_outbound command drop_copy }
smoke_tests! { SNAPSHOT_ROUNDS: gateway_frame glimpse xdp ticks ticks_requests iex_segment iex_recovery iex_books itch_books }
smoke_tests! { SNAPSHOT_ROUNDS: deribit_inbound deribit_request fix fix_session }
smoke_tests! { SERVER_ROUNDS: web }
smoke_tests! { VENUE_ROUNDS: deribit_front fix_door }
smoke_tests! { LONG_ROUNDS: dbn lobster lobster_book itch_blocks compressed packets replay_file journal segment gateway_log }

#[test]
fn seeds_cover_every_message() {
    let count = |seeds: Vec<Vec<u8>>| {
        let mut types: Vec<u8> = seeds.iter().map(|seed| seed[0]).collect();
        types.sort_unstable();
        types.dedup();
        types.len()
    };
    assert_eq!(count(seeds::itch()), 23);
    assert_eq!(count(seeds::ouch_inbound()), 8);
    assert_eq!(count(seeds::ouch_outbound()), 18);
    assert_eq!(count(seeds::command()), 32);
}

#[test]
fn seeds_of_recordings_are_read_to_their_end() {
    use tickpath_agent::StopSignal;
    use tickpath_replay::{ReplayOptions, replay};

    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("FUZZ_message_2.csv");
    let seeds = [seeds::itch_blocks(), seeds::dbn(), seeds::lobster(), seeds::compressed()].concat();
    for (index, seed) in seeds.iter().enumerate() {
        std::fs::write(&path, seed).unwrap();
        let report = replay(&path, &ReplayOptions::default(), &StopSignal::new(), &mut |_| {}).unwrap();
        let report = &report.files[0];
        assert!(report.messages >= 2 && report.integrity.read_error.is_none(), "seed {index}: {report}");
    }
}
