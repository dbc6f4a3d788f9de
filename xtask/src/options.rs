//! Command line options with a whole number each.

use anyhow::{Context, Result, bail};

/// Parses the `known` options, given with their defaults, and returns their values.
pub fn numbers<const N: usize>(args: &[&str], known: [(&str, u64); N]) -> Result<[u64; N]> {
    let mut values = known.map(|(_, default)| default);
    for pair in args.chunks(2) {
        let option = pair[0];
        let Some(place) = known.iter().position(|(name, _)| *name == option) else {
            let names = known.map(|(name, _)| format!("{name} N"));
            bail!("'{option}' is not an option: give {}", names.join(" or "));
        };
        let text = pair.get(1).with_context(|| format!("{option} has no value: give a whole number"))?;
        values[place] = text.parse().with_context(|| format!("{option} {text}: give a whole number"))?;
    }
    Ok(values)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kills(args: &[&str]) -> Result<[u64; 2], String> {
        numbers(args, [("--kills", 100), ("--seed", 1)]).map_err(|error| format!("{error:#}"))
    }

    #[test]
    fn options_come_in_any_order_and_have_defaults() {
        assert_eq!(kills(&[]), Ok([100, 1]));
        assert_eq!(kills(&["--seed", "7"]), Ok([100, 7]));
        assert_eq!(kills(&["--seed", "7", "--kills", "0"]), Ok([0, 7]));
    }

    #[test]
    fn an_unknown_option_is_named_with_the_known_ones() {
        assert_eq!(
            kills(&["--kill", "7"]).unwrap_err(),
            "'--kill' is not an option: give --kills N or --seed N"
        );
        assert_eq!(
            kills(&["--seed", "7", "--kills"]).unwrap_err(),
            "--kills has no value: give a whole number"
        );
        for number in ["many", "-1", "1.5", "99999999999999999999", "--seed"] {
            let error = kills(&["--kills", number]).unwrap_err();
            assert!(error.starts_with(&format!("--kills {number}: give a whole number: ")), "{error}");
        }
    }
}
