//! Every fuzz target has initial inputs.

#[test]
fn every_target_has_inputs() {
    let manifest = include_str!("../targets/Cargo.toml");
    let lines: Vec<&str> = manifest.lines().collect();
    let mut targets: Vec<&str> = lines
        .windows(2)
        .filter(|pair| pair[0] == "[[bin]]")
        .map(|pair| pair[1].trim_start_matches("name = ").trim_matches('"'))
        .collect();
    let inputs = tickpath_fuzz::inputs();
    let mut with_inputs: Vec<&str> = inputs.iter().map(|(target, _)| *target).collect();
    targets.sort_unstable();
    with_inputs.sort_unstable();
    assert_eq!(with_inputs, targets);
    assert!(inputs.iter().all(|(_, seeds)| !seeds.is_empty()));
}
