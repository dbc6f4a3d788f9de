//! Simulated packet loss on the lines of a multicast channel.

/// One, in parts per million.
const PPM: u128 = 1_000_000;

/// Seed and probabilities of a [`LossModel`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LossConfig {
    /// Seed that selects the lost packets.
    pub seed: u64,
    /// Probability that a packet is lost on a line, in parts per million; the same for every line. Above a
    /// million counts as a million.
    pub loss_ppm: u32,
    /// Share of a line's losses, in parts per million, that have a common cause and hit every line: only
    /// retransmission recovers such a packet. Above a million counts as a million.
    pub common_ppm: u32,
}

/// Decides by a seed which packets each line loses.
///
/// With `p` the probability of loss and `c` the common share, a packet is lost on all lines with
/// probability `p * c`, and otherwise on each line independently with `q = p (1 - c) / (1 - p c)`, so that
/// each line loses `p` in total and two lines lose the same packet with `p c + (1 - p c) q^2`.
///
/// The result is a pure function of seed, line and sequence number. Receivers therefore agree without shared
/// state, runs repeat exactly, and a packet offered twice gets the same result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LossModel {
    seed: u64,
    /// Probability of a loss on all lines, times 2^64.
    common: u128,
    /// Probability of an independent loss on one line, times 2^64.
    single: u128,
}

impl LossModel {
    /// Creates a model with the probabilities of `config`, each exact to 2^-64.
    #[must_use]
    pub fn new(config: &LossConfig) -> LossModel {
        let loss = u128::from(config.loss_ppm).min(PPM);
        let common = loss * u128::from(config.common_ppm).min(PPM);
        let whole = PPM * PPM;
        let single = match whole - common {
            0 => 0,
            rest => (loss * PPM - common) * (1 << 64) / rest,
        };
        LossModel { seed: config.seed, common: common * (1 << 64) / whole, single }
    }

    /// Returns true if this line (0 for A, 1 for B) loses the packet that begins with message `sequence`.
    #[must_use]
    pub fn drops(&self, line: usize, sequence: u64) -> bool {
        self.falls_below(self.common, 0, sequence) || self.falls_below(self.single, line as u64 + 1, sequence)
    }

    fn falls_below(&self, threshold: u128, stream: u64, sequence: u64) -> bool {
        u128::from(mix(mix(self.seed ^ mix(stream)) ^ sequence)) < threshold
    }
}

/// One step of SplitMix64 (golden-ratio increment, then finalizer): a bijection in which every output bit
/// depends on every input bit.
const fn mix(value: u64) -> u64 {
    let z = value.wrapping_add(0x9E37_79B9_7F4A_7C15);
    let z = (z ^ z >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let z = (z ^ z >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ z >> 31
}

#[cfg(test)]
mod tests {
    use super::*;

    const PACKETS: u64 = 1_000_000;

    /// Returns the numbers of packets lost on line A, on line B, and on both lines.
    fn losses(config: &LossConfig) -> (f64, f64, f64) {
        let model = LossModel::new(config);
        let (mut a, mut b, mut both) = (0_u32, 0_u32, 0_u32);
        for sequence in 1..=PACKETS {
            let (on_a, on_b) = (model.drops(0, sequence), model.drops(1, sequence));
            a += u32::from(on_a);
            b += u32::from(on_b);
            both += u32::from(on_a && on_b);
        }
        (f64::from(a), f64::from(b), f64::from(both))
    }

    /// Returns true if `count` is within 5 standard deviations of the mean of the binomial distribution.
    fn is_near(count: f64, probability: f64) -> bool {
        let packets = PACKETS as f64;
        let deviation = (packets * probability * (1.0 - probability)).sqrt();
        (count - packets * probability).abs() <= 5.0 * deviation
    }

    #[test]
    fn each_line_loses_its_share_and_both_lose_the_common_part() {
        for (loss_ppm, common_ppm) in [(10_000, 0), (10_000, 100_000), (2_000, 500_000), (300_000, 250_000)] {
            let (a, b, both) = losses(&LossConfig { seed: 5, loss_ppm, common_ppm });
            let (p, c) = (f64::from(loss_ppm) / 1e6, f64::from(common_ppm) / 1e6);
            let q = p * (1.0 - c) / (1.0 - p * c);
            assert!(is_near(a, p) && is_near(b, p), "{loss_ppm} {common_ppm}: {a} {b}");
            assert!(is_near(both, p * c + (1.0 - p * c) * q * q), "{loss_ppm} {common_ppm}: {both}");
        }
    }

    #[test]
    fn nothing_and_everything_are_exact() {
        let all = |loss_ppm, common_ppm| losses(&LossConfig { seed: 1, loss_ppm, common_ppm });
        let packets = PACKETS as f64;
        assert_eq!(all(0, 500_000), (0.0, 0.0, 0.0));
        assert_eq!(all(1_000_000, 0), (packets, packets, packets));
        assert_eq!(all(1_000_000, 1_000_000), (packets, packets, packets));
        let (a, b, both) = all(10_000, 1_000_000);
        assert!(a == b && b == both && a > 0.0);
    }

    #[test]
    fn losses_are_independent_of_sequences_and_seeds() {
        let model = |seed| LossModel::new(&LossConfig { seed, loss_ppm: 500_000, common_ppm: 0 });
        let (first, second) = (model(1), model(2));
        let same = (0..PACKETS).filter(|s| first.drops(0, *s) == second.drops(0, *s)).count();
        assert!(is_near(same as f64, 0.5));
        let pairs = (0..PACKETS).filter(|s| first.drops(0, *s) == first.drops(0, s + 1)).count();
        assert!(is_near(pairs as f64, 0.5));
    }

    #[test]
    fn a_seed_loses_the_same_packets_for_ever() {
        let model = LossModel::new(&LossConfig { seed: 42, loss_ppm: 20_000, common_ppm: 100_000 });
        let lost = |line| (1..400).filter(|sequence| model.drops(line, *sequence)).collect::<Vec<u64>>();
        assert_eq!(lost(0), [21, 34, 85, 118, 259, 391]);
        assert_eq!(lost(1), [21, 43, 69, 118, 160, 183, 267, 304, 392, 397]);
    }
}
