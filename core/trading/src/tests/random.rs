use tickpath_types::{InstrumentId, Nanos, Qty};

use crate::testing::{LIMITS, Rig, quote};
use crate::{EngineConfig, Limits, RandomConfig, RandomStrategy};

fn run(seed: u64) -> (Vec<String>, Rig<RandomStrategy>) {
    let mut rig = Rig::new(RandomStrategy::new(seed, RandomConfig::default()));
    rig.market(quote(1, (100, 100), (110, 100)));
    rig.market(quote(2, (100, 100), (110, 100)));
    let mut sent = Vec::new();
    for step in 1..=400 {
        let request = rig.timer(Nanos::from_secs(1) + Nanos::from_millis(20 * step));
        if let Some(number) = request.strip_prefix('#').and_then(|rest| rest.split(' ').next()) {
            rig.accept(number.parse().unwrap());
        }
        sent.push(request);
    }
    (sent, rig)
}

#[test]
fn a_seed_gives_the_same_orders_and_another_seed_others() {
    let (first, rig) = run(1);
    assert_eq!(first, run(1).0);
    assert_ne!(first, run(2).0);
    assert!(first.iter().any(|request| request.contains("buy")));
    assert!(first.iter().any(|request| request.contains("sell")));
    assert!(first.iter().any(|request| request.starts_with("cancel")));
    for id in [1, 2] {
        assert!(rig.engine.desk().orders().open_count(InstrumentId(id)) <= 4);
    }
    assert_eq!(rig.engine.desk().counters().refused_invalid, 0);
}

#[test]
fn it_acts_once_an_interval() {
    let mut rig = Rig::new(RandomStrategy::new(3, RandomConfig::default()));
    let market = quote(1, (100, 100), (110, 100));
    rig.market(market);
    let start = rig.now;
    let sent = (0..1_000).filter(|step| {
        rig.now = start + Nanos::from_millis(*step);
        !rig.market(market).is_empty()
    });
    let count = sent.count();
    assert!((1..=50).contains(&count), "{count} in a second of 50 intervals");
}

#[test]
fn a_clip_of_nothing_enters_nothing() {
    let (limits, config) = (Limits { clip: Qty::ZERO, ..LIMITS }, RandomConfig::default());
    let mut rig = Rig::with(EngineConfig::default(), limits, RandomStrategy::new(1, config));
    rig.market(quote(1, (100, 100), (110, 100)));
    for step in 1..=100 {
        assert_eq!(rig.timer(Nanos::from_secs(1) + Nanos::from_millis(20 * step)), "");
    }
}
