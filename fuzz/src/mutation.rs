//! Small mutations, the same ones in every run.

/// xorshift64*: the same sequence in every run.
pub struct Random(u64);

impl Random {
    /// Creates the generator at the start of its sequence.
    #[must_use]
    #[allow(clippy::new_without_default)]
    pub fn new() -> Random {
        Random(0x9e37_79b9_7f4a_7c15)
    }

    /// Returns the next number, below `bound`.
    pub fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33) as usize % bound
    }
}

/// Applies one to four small mutations to a seed, like errors of a line, a peer or a program.
pub fn mutate(random: &mut Random, seeds: &[Vec<u8>]) -> Vec<u8> {
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
            4 => bytes[at] = [0, 1, 0x7f, 0x80, 0xff, b' ', b'0', b'\r', b'\n'][random.below(9)],
            _ => drop(bytes.remove(at)),
        }
    }
    bytes
}
