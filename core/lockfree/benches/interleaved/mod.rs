//! Benchmarks contenders in interleaved rounds, so that noise and the distance between the two cores are the
//! same for all of them.

/// Name of a contender, and a function that runs `n` operations and returns the nanoseconds per operation.
pub type Contender<'a> = (&'static str, Box<dyn FnMut(u64) -> f64 + 'a>);

/// Runs all contenders in turn, round by round. Prints each contender's median time, and the median over the
/// rounds of the ratio of its time to the first contender's.
///
/// Without `--bench` among the arguments (`cargo test --benches`) it runs one short round, without output.
pub fn compare(title: &str, count: u64, mut contenders: Vec<Contender>) {
    #[allow(clippy::disallowed_methods)] //  the arguments decide whether a bench measures
    let timed = std::env::args().any(|argument| argument == "--bench");
    let (rounds, count) = if timed { (31, count) } else { (1, count.min(2_000)) };
    let mut nanos = vec![Vec::new(); contenders.len()];
    for _ in 0..rounds {
        for (contender, nanos) in contenders.iter_mut().zip(&mut nanos) {
            nanos.push((contender.1)(count));
        }
    }
    if timed {
        println!("{title}: median of {rounds} interleaved rounds of {count}");
        for (contender, own) in contenders.iter().zip(&nanos) {
            let ratios = own.iter().zip(&nanos[0]).map(|(own, first)| own / first).collect();
            let (ratio, own) = (median(ratios), median(own.clone()));
            println!("  {:28}{own:9.2} ns   {ratio:5.2} x", contender.0);
        }
    }
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}
