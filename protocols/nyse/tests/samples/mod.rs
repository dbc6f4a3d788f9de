//! Sample packets: recorded ones, and one constructed from the specification.

/// Returns all sample packets with their names.
pub fn samples() -> Vec<(String, Vec<u8>)> {
    let lines = include_str!("../data/packets.hex").lines().filter(|line| !line.starts_with('#'));
    lines
        .map(|line| {
            let (name, hex) = line.split_once(' ').unwrap();
            let bytes = (0..hex.len()).step_by(2).map(|at| u8::from_str_radix(&hex[at..at + 2], 16).unwrap());
            (name.to_owned(), bytes.collect())
        })
        .collect()
}

/// Returns the sample packet with this name.
#[allow(dead_code, reason = "not every test asks for one")]
pub fn packet(name: &str) -> Vec<u8> {
    samples().into_iter().find(|(of, _)| of == name).unwrap().1
}
