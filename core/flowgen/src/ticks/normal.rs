//! Normal variates from random bits by the Box-Muller method, in arithmetic that can be vectorised.

use std::f32::consts::{FRAC_PI_4, LN_2};

/// Two independent standard normals from 64 random bits: radius from the upper half, direction from the rest.
///
/// The results are at most 6.6; a true normal exceeds this with a probability of about 10^-10.
#[inline(always)]
pub(super) fn normals(bits: u64) -> (f32, f32) {
    // `upper` is odd, so never 0. Its conversion to `f32` may round up: `uniform` is then 1, its logarithm 0.
    let upper = (bits >> 33) as i32 | 1;
    let uniform = upper as f32 * (1.0 / (1_u32 << 31) as f32);
    let radius = (-2.0 * ln(uniform)).sqrt();
    let (along, across) = direction(bits as u32);
    (radius * along, radius * across)
}

/// Natural logarithm of a positive number, with absolute and relative errors of about 10^-7.
#[inline(always)]
fn ln(x: f32) -> f32 {
    /// Square root of 1/2 as `f32` bits: `mantissa` is between it and the square root of 2.
    const ROOT_HALF: u32 = 0x3f35_04f3;
    let above = x.to_bits().wrapping_sub(ROOT_HALF);
    let exponent = above.cast_signed() >> 23;
    let mantissa = f32::from_bits((above & 0x007f_ffff) + ROOT_HALF);
    // ln m = 2 artanh((m - 1) / (m + 1)). The absolute value of the ratio is below 0.172.
    let ratio = (mantissa - 1.0) / (mantissa + 1.0);
    let square = ratio * ratio;
    let series = 2.0 + square * (2.0 / 3.0 + square * (2.0 / 5.0 + square * (2.0 / 7.0)));
    exponent as f32 * LN_2 + ratio * series
}

/// Returns the cosine and sine of a random angle that is uniform over the circle.
///
/// Thirty bits give an angle of at most 45 degrees to an axis; the lowest two select the axis and its sign.
#[inline(always)]
fn direction(bits: u32) -> (f32, f32) {
    let angle = (bits << 2).cast_signed() as f32 * (FRAC_PI_4 / (1_u32 << 31) as f32);
    let square = angle * angle;
    let sine = angle * (1.0 - square * (1.0 / 6.0 - square * (1.0 / 120.0 - square * (1.0 / 5040.0))));
    let cosine =
        1.0 - square * (0.5 - square * (1.0 / 24.0 - square * (1.0 / 720.0 - square * (1.0 / 40320.0))));
    let cosine = f32::from_bits(cosine.to_bits() ^ bits << 31);
    let is_turned = bits & 2 != 0;
    (if is_turned { sine } else { cosine }, if is_turned { cosine } else { sine })
}

#[cfg(test)]
mod tests {
    use super::*;
    use tickpath_types::Rng;

    #[test]
    fn the_logarithm_matches_the_library() {
        let mut rng = Rng::new(3);
        for _ in 0..100_000 {
            let x = (((rng.next() >> 33) | 1) >> rng.below(30)).max(1) as f32 / (1_u32 << 31) as f32;
            let exact = f64::from(x).ln();
            assert!((f64::from(ln(x)) - exact).abs() < 4e-7 * (1.0 - exact), "{x}: {} {exact}", ln(x));
        }
        assert_eq!(ln(1.0), 0.0);
    }

    #[test]
    fn directions_lie_on_the_circle_in_all_quarters() {
        let mut rng = Rng::new(4);
        let mut octants = [0_u32; 8];
        for _ in 0..80_000 {
            let (x, y) = direction(rng.next() as u32);
            assert!((x * x + y * y - 1.0).abs() < 1e-6, "{x} {y}");
            let octant =
                usize::from(x > 0.0) | usize::from(y > 0.0) << 1 | usize::from(x.abs() > y.abs()) << 2;
            octants[octant] += 1;
        }
        assert!(octants.iter().all(|count| count.abs_diff(10_000) < 400), "{octants:?}");
    }

    /// Checks the first four moments, and the tails beyond two, three and four standard deviations.
    #[test]
    fn normals_are_normal_and_the_two_independent() {
        const COUNT: u32 = 2_000_000;
        let mut rng = Rng::new(5);
        let (mut moments, mut product, mut squares) = ([0.0; 4], 0.0, 0.0);
        let mut beyond = [0_u32; 3];
        for _ in 0..COUNT {
            let (x, y) = normals(rng.next());
            let (x, y) = (f64::from(x), f64::from(y));
            product += x * y;
            squares += x * x * y * y;
            for value in [x, y] {
                let powers = [value, value.powi(2), value.powi(3), value.powi(4)];
                moments.iter_mut().zip(powers).for_each(|(sum, power)| *sum += power);
                (0..3).filter(|at| value.abs() > f64::from(at + 2)).for_each(|at| beyond[at as usize] += 1);
            }
        }
        let count = 2.0 * f64::from(COUNT);
        let [mean, square, cube, fourth] = moments.map(|sum| sum / count);
        // Each tolerance is five standard errors.
        let close = |value: f64, expected: f64, variance: f64| {
            let error = 5.0 * (variance / count).sqrt();
            assert!((value - expected).abs() < error, "{value} is not {expected}");
        };
        close(mean, 0.0, 1.0);
        close(square, 1.0, 2.0);
        close(cube, 0.0, 15.0);
        close(fourth, 3.0, 96.0);
        close(product / f64::from(COUNT), 0.0, 2.0);
        close(squares / f64::from(COUNT), 1.0, 16.0);
        for (count_beyond, expected) in beyond.into_iter().zip([0.045_500_26, 0.002_699_80, 0.000_063_34]) {
            close(f64::from(count_beyond) / count, expected, expected);
        }
        assert_eq!(normals(0).0.abs().max(normals(0).1.abs()), normals(0).0.abs());
        assert!((6.5..6.6).contains(&normals(0).0.hypot(normals(0).1)), "the greatest radius");
    }
}
