//! Mutated requests and frames, byte by byte over an in-memory network: a connection never panics, stays
//! within its bounds, and ends.

#![allow(clippy::unwrap_used)]

mod memory;
#[path = "../../../fuzz/src/mutation.rs"]
mod mutation;

use memory::{acceptor, carry, seeds};
use mutation::{Random, mutate};

/// Number of connections.
const ROUNDS: usize = 20_000;

#[test]
fn damaged_bytes_end_a_connection_and_nothing_else() {
    let mut acceptor = acceptor();
    let seeds = seeds();
    carry(&mut acceptor, Vec::new());
    for seed in &seeds {
        let is_request = seed.starts_with(b"GET");
        assert!(carry(&mut acceptor, seed.clone()) > 0 || !is_request);
    }
    let mut random = Random::new();
    for _ in 0..ROUNDS {
        carry(&mut acceptor, mutate(&mut random, &seeds));
    }
}
