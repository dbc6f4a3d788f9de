//! A real venue under load is killed at random moments and started again: whatever a client was told must still be so.
//!
//! `KILL_TEST_KILLS` and `KILL_TEST_SEED` set how often and by which moments; `cargo xtask kill-test` sets them.
#![allow(clippy::unwrap_used)] // a failed step of a test is a failed test

mod client;
#[path = "../program/support.rs"]
#[allow(dead_code, unreachable_pub)] // shared with the other suite
mod support;

use std::collections::HashMap;
use std::time::{Duration, Instant};

use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use tickpath_types::OrderEventKind;

use crate::client::{Client, decode, is_stage};
use crate::support::{Site, run};

/// Kills in CI.
const KILLS: u64 = 5;
/// Kills of one session of the venue, after which another begins.
const KILLS_PER_SESSION: u64 = 20;
const CLIENTS: u64 = 4;
/// A venue lives at least so long after its clients began, and up to three times as long.
const LIFE_MIN: Duration = Duration::from_millis(20);

/// What was seen over all lives.
#[derive(Debug, Default)]
struct Totals {
    kills: u64,
    messages: u64,
    executions: u64,
    restart_max: Duration,
}

#[test]
fn what_was_told_before_a_kill_is_so_after_it() {
    let number = |name: &str, default| std::env::var(name).map_or(default, |text| text.parse().unwrap());
    let (kills, seed) = (number("KILL_TEST_KILLS", KILLS), number("KILL_TEST_SEED", 1));
    let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
    let mut totals = Totals::default();
    let mut policies = ["async", "group"].into_iter().cycle();
    while totals.kills < kills {
        let count =
            KILLS_PER_SESSION.min((kills - totals.kills).div_ceil(if kills <= KILLS { 2 } else { 1 }));
        let policy = policies.next().unwrap();
        session(policy, count, &mut random, &mut totals);
        println!(
            "{policy}: {} of {kills} kills, {} messages told, {} executions, 0 lost, 0 doubled; slowest start {:?}",
            totals.kills, totals.messages, totals.executions, totals.restart_max
        );
    }
}

/// A session of a venue that is killed so many times.
fn session(policy: &str, kills: u64, random: &mut Xoshiro256PlusPlus, totals: &mut Totals) {
    let site = Site::new();
    let path = site.path("exchange.toml");
    let config = std::fs::read_to_string(&path).unwrap();
    let users = "test_users = ['USER1', 'USER2', 'USER3', 'USER4']\nretained_messages = 1000000";
    let config = config.replace("test_users = ['TEST01', 'TEST02']", users);
    let journal = "[journal]\nfolder = 'log'\nsegment = '4MiB'\nsnapshot_every = 5000\n";
    std::fs::write(&path, format!("{config}\n{journal}policy = '{policy}'\n")).unwrap();
    let mut clients: Vec<Client> = (1..=CLIENTS)
        .map(|user| Client::new(format!("USER{user}"), Xoshiro256PlusPlus::seed_from_u64(random.next_u64())))
        .collect();
    for life in 0..=kills {
        let started = Instant::now();
        let (venue, address, _) = site.start_venue();
        if life > 0 {
            totals.restart_max = totals.restart_max.max(started.elapsed());
        }
        for client in &mut clients {
            if let Err(problem) = client.read_again(&address) {
                let kept = site.keep();
                panic!("{policy}, after {life} kills, folder {}: {problem}", kept.display());
            }
        }
        check_trades(&clients, totals);
        if life == kills {
            break;
        }
        let extra = Duration::from_micros(random.next_u64() % (2 * LIFE_MIN.as_micros() as u64));
        std::thread::scope(|scope| {
            for client in &mut clients {
                let address = &address;
                scope.spawn(move || client.trade(address));
            }
            std::thread::sleep(LIFE_MIN + extra);
            // SIGKILL.
            drop(venue);
        });
        totals.kills += 1;
    }
    totals.messages += clients.iter().map(|client| client.told.len() as u64).sum::<u64>();
    let log = site.path("log");
    for command in ["verify", "replay"] {
        let printed = run(&["journal", command, &log]);
        assert_eq!((printed.code, printed.err.as_str()), (Some(0), ""), "{command}: {}", printed.out);
    }
}

/// Every order was accepted once and traded no more than it was; every execution has its two sides, once each.
fn check_trades(clients: &[Client], totals: &mut Totals) {
    let mut sides: HashMap<u64, Vec<(u64, i64)>> = HashMap::new();
    for client in clients {
        let mut left: HashMap<u32, u64> = HashMap::new();
        for message in client.told.iter().filter(|message| !is_stage(message)) {
            match decode(message) {
                OrderEventKind::Accepted { order, .. } => {
                    let before = left.insert(order.user_ref.0, order.qty.0);
                    assert_eq!(before, None, "{} was accepted twice", order.user_ref.0);
                }
                OrderEventKind::Replaced { order, .. } => {
                    let before = left.insert(order.user_ref.0, order.qty.0);
                    assert_eq!(before, None, "{} replaced twice", order.user_ref.0);
                }
                OrderEventKind::Executed { user_ref, qty, price, match_id, .. } => {
                    let open = left.get_mut(&user_ref.0).unwrap();
                    *open = open.checked_sub(qty.0).expect("no more than there was");
                    sides.entry(match_id.0).or_default().push((qty.0, price.0));
                }
                _ => {}
            }
        }
    }
    for (match_id, sides) in &sides {
        let [one, other] = sides.as_slice() else {
            panic!("execution {match_id} has {} sides: {sides:?}", sides.len())
        };
        assert_eq!(one, other, "execution {match_id}");
    }
    totals.executions = totals.executions.max(sides.len() as u64);
}
