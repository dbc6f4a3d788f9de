//! Parallel xoshiro256++ generators.

use tickpath_types::Rng;

/// Number of generators. It exceeds the lanes of any vector, so the loop over them is always vectorised.
pub(super) const STREAMS: usize = 64;

/// States of the generators: the first words of all, then the second ones, and so on.
#[derive(Clone, Debug)]
pub(super) struct Streams {
    words: [[u64; STREAMS]; 4],
}

impl Streams {
    /// Derives the states from a seed. Two of the streams overlap within 2^64 draws with probability 2^-180.
    pub(super) fn new(seed: u64) -> Streams {
        let mut rng = Rng::new(seed);
        Streams { words: std::array::from_fn(|_| std::array::from_fn(|_| rng.next())) }
    }

    /// Computes the next 64 bits of each stream.
    #[inline(always)]
    pub(super) fn fill(&mut self, out: &mut [u64; STREAMS]) {
        let [a, b, c, d] = &mut self.words;
        for stream in 0..STREAMS {
            let (s0, s1, s2, s3) = (a[stream], b[stream], c[stream], d[stream]);
            out[stream] = s0.wrapping_add(s3).rotate_left(23).wrapping_add(s0);
            let (s2, s3) = (s2 ^ s0, s3 ^ s1);
            (a[stream], b[stream]) = (s0 ^ s3, s1 ^ s2);
            (c[stream], d[stream]) = (s2 ^ s1 << 17, s3.rotate_left(45));
        }
    }
}

#[cfg(test)]
mod tests {
    use rand_core::{Rng, SeedableRng};
    use rand_xoshiro::Xoshiro256PlusPlus;

    use super::*;

    #[test]
    fn each_stream_is_xoshiro256_plus_plus() {
        let mut streams = Streams::new(5);
        let mut plain: Vec<_> = (0..STREAMS)
            .map(|stream| {
                let mut seed = [0; 32];
                for (bytes, words) in seed.chunks_exact_mut(8).zip(&streams.words) {
                    bytes.copy_from_slice(&words[stream].to_le_bytes());
                }
                Xoshiro256PlusPlus::from_seed(seed)
            })
            .collect();
        let mut bits = [0; STREAMS];
        for _ in 0..1_000 {
            streams.fill(&mut bits);
            for (bits, plain) in bits.iter().zip(&mut plain) {
                assert_eq!(*bits, plain.next_u64());
            }
        }
    }
}
