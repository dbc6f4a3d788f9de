//! Every fuzz body on its seeds and on generated mutations of them, with any compiler.

use tickpath_fuzz::seeds;

/// Mutations tried of each decoder; the whole file takes seconds.
const ROUNDS: usize = 20_000;
/// Mutations tried of a target that reads every input several times, or through a file and books.
const LONG_ROUNDS: usize = 1_000;

/// Mutations tried of what is read into new books each time.
const SNAPSHOT_ROUNDS: usize = 5_000;

/// xorshift64*: the same run every time.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33) as usize % bound
    }
}

/// One to four small damages: what a line, a peer or a program in error does to a message.
fn mutate(random: &mut Random, seeds: &[Vec<u8>]) -> Vec<u8> {
    let mut bytes = seeds[random.below(seeds.len())].clone();
    for _ in 0..=random.below(4) {
        let at = random.below(bytes.len() + 1);
        match random.below(6) {
            0 => bytes.truncate(at),
            1 => bytes.insert(at, random.below(256) as u8),
            2 => {
                let other = &seeds[random.below(seeds.len())];
                bytes.truncate(at);
                bytes.extend(&other[random.below(other.len())..]);
            }
            _ if at == bytes.len() => {}
            3 => bytes[at] ^= 1 << random.below(8),
            4 => bytes[at] = [0, 1, 0x7f, 0x80, 0xff, b' ', b'0'][random.below(7)],
            _ => {
                bytes.remove(at);
            }
        }
    }
    bytes
}

fn smoke(body: fn(&[u8]), seeds: &[Vec<u8>], rounds: usize) {
    assert!(!seeds.is_empty());
    body(&[]);
    seeds.iter().for_each(|seed| body(seed));
    let mut random = Random(0x9e37_79b9_7f4a_7c15);
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
smoke_tests! { SNAPSHOT_ROUNDS: glimpse xdp ticks ticks_requests iex_segment iex_recovery iex_books }
smoke_tests! { SNAPSHOT_ROUNDS: deribit_inbound deribit_request fix fix_session }
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
    assert_eq!(count(seeds::command()), 31);
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
