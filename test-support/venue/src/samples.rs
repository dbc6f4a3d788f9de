//! The sample configuration files in the repository.

use std::path::{Path, PathBuf};

use tickpath_net::free_multicast_group;

/// The folder of the sample files.
#[must_use]
pub fn configs() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../configs")
}

/// Returns the text of a venue's sample file. Replaces every port and multicast group, also in comments, by a
/// free one, and the path of the instrument file by its absolute path.
#[must_use]
pub fn sample(name: &str) -> String {
    let text = std::fs::read_to_string(configs().join(name)).unwrap();
    let text = replace_after(&text, "127.0.0.1:", || "127.0.0.1:0".to_owned());
    let text = replace_after(&text, "239.255.", || free_multicast_group().unwrap().to_string());
    let path = |file: &str| format!("instruments = \"{}\"", configs().join(file).display());
    let line = text.lines().find(|line| line.starts_with("instruments = ")).unwrap();
    let file = line.split('"').nth(1).unwrap();
    text.replace(line, &path(file))
}

/// Replaces each `start` together with the digits, dots and colons after it.
fn replace_after(text: &str, start: &str, mut by: impl FnMut() -> String) -> String {
    let mut parts = text.split(start);
    let mut result = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        result += &by();
        result += part.trim_start_matches(|c: char| c.is_ascii_digit() || c == '.' || c == ':');
    }
    result
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sample_has_free_addresses() {
        let text = sample("deribit.toml");
        for port in ["26420", "26421", "26430", "26431", "26436", "239.255.26."] {
            assert!(!text.contains(port), "{port} in {text}");
        }
        assert!(
            text.contains("\"127.0.0.1:0\"") && text.contains("configs/deribit-instruments.toml"),
            "{text}"
        );
    }
}
