//! Medians and quantiles of samples.

/// The value at `quantile`, 0 to 1, of the sorted samples; 0 when there are none.
pub(crate) fn quantile(samples: &mut [u64], quantile: f64) -> u64 {
    if samples.is_empty() {
        return 0;
    }
    let place = ((samples.len() - 1) as f64 * quantile).round() as usize;
    *samples.select_nth_unstable(place).1
}

/// The middle value, or the mean of the two middle values; `None` without values.
pub(crate) fn median(values: &[f64]) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let middle = sorted.len() / 2;
    match sorted.len() {
        0 => None,
        len if len % 2 == 1 => Some(sorted[middle]),
        _ => Some((sorted[middle - 1] + sorted[middle]) / 2.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_values_that_occurred() {
        let mut samples: Vec<u64> = (1..=101).rev().collect();
        assert_eq!(quantile(&mut samples, 0.5), 51);
        assert_eq!(quantile(&mut samples, 0.99), 100);
        assert_eq!(quantile(&mut samples, 1.0), 101);
        assert_eq!(quantile(&mut [], 0.5), 0);
    }

    #[test]
    fn the_median_of_an_even_number_lies_between() {
        assert_eq!(median(&[]), None);
        assert_eq!(median(&[3.0, 1.0, 2.0]), Some(2.0));
        assert_eq!(median(&[4.0, 1.0, 2.0, 3.0]), Some(2.5));
    }
}
