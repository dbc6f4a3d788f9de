//! Kills a real venue under load at random moments and restarts it: no message that a client received may be
//! lost or changed.
//!
//! `KILL_TEST_KILLS` sets the number of kills, and `KILL_TEST_SEED` the random seed. With
//! `KILL_TEST_ENDS_WITH_INPUT` the test ends when standard input ends. `cargo xtask kill-test` sets them.
#![allow(clippy::unwrap_used)] // a failed step of a test is a failed test

mod client;
mod forged;
#[path = "../program/support.rs"]
#[allow(dead_code, unreachable_pub)] // shared with the other suite
mod support;

use std::collections::HashMap;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

use crate::client::{Client, OuchMessage, decode};
use crate::support::{Site, run};

/// Default number of kills, which CI uses.
const KILLS: u64 = 5;
/// Maximum number of kills in one session of the venue; then another session begins.
const KILLS_PER_SESSION: u64 = 20;
const CLIENTS: u64 = 4;
/// Minimum time from the start of the clients to the kill; the maximum is three times as long.
const RUN_TIME_MIN: Duration = Duration::from_millis(20);

/// Totals over all sessions.
#[derive(Debug, Default)]
struct Totals {
    kills: u64,
    messages: u64,
    executions: u64,
    restart_max: Duration,
}

#[test]
fn a_kill_loses_and_changes_no_message() {
    let number = |name: &str, default| std::env::var(name).map_or(default, |text| text.parse().unwrap());
    let (kills, seed) = (number("KILL_TEST_KILLS", KILLS), number("KILL_TEST_SEED", 1));
    let stop = stop();
    let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
    let mut totals = Totals::default();
    let mut policies = ["async", "group"].into_iter().cycle();
    while totals.kills < kills && !stop.load(Ordering::Relaxed) {
        let count =
            KILLS_PER_SESSION.min((kills - totals.kills).div_ceil(if kills <= KILLS { 2 } else { 1 }));
        let policy = policies.next().unwrap();
        session(policy, count, &mut random, &mut totals, &stop).unwrap_or_else(|problem| panic!("{problem}"));
        println!(
            "{policy}: {} of {kills} kills, {} messages told, {} executions, 0 lost, 0 doubled; slowest start {:?}",
            totals.kills, totals.messages, totals.executions, totals.restart_max
        );
    }
}

/// Returns a flag that is raised when standard input ends, if `KILL_TEST_ENDS_WITH_INPUT` is set.
fn stop() -> Arc<AtomicBool> {
    let stop = Arc::new(AtomicBool::new(false));
    if std::env::var_os("KILL_TEST_ENDS_WITH_INPUT").is_some() {
        let raised = Arc::clone(&stop);
        std::thread::spawn(move || {
            let _ = io::copy(&mut io::stdin(), &mut io::sink());
            raised.store(true, Ordering::Relaxed);
        });
    }
    stop
}

/// Without a journal the venue loses answered commands: the test must find this after the first kill.
#[test]
fn a_venue_without_a_journal_is_found() {
    let mut random = Xoshiro256PlusPlus::seed_from_u64(1);
    let problem =
        session("off", 1, &mut random, &mut Totals::default(), &AtomicBool::new(false)).unwrap_err();
    assert!(problem.contains("message 1 was") && problem.contains("were received, "), "{problem}");
}

/// Runs a session with `kills` kills, or until `stop` is raised. The error describes the violation found.
fn session(
    policy: &str,
    kills: u64,
    random: &mut Xoshiro256PlusPlus,
    totals: &mut Totals,
    stop: &AtomicBool,
) -> Result<(), String> {
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
    for instance in 0..=kills {
        let started = Instant::now();
        let (venue, address, _) = site.start_venue();
        if instance > 0 {
            totals.restart_max = totals.restart_max.max(started.elapsed());
        }
        for client in &mut clients {
            if let Err(problem) = client.verify_replay(&address) {
                // Keep the journal's folder for inspection, if the venue has a journal.
                let journal_folder =
                    if policy == "off" { String::new() } else { site.persist().display().to_string() };
                return Err(format!("{policy}, after {instance} kills, folder {journal_folder}: {problem}"));
            }
        }
        let streams: Vec<&[Vec<u8>]> = clients.iter().map(|client| client.messages.as_slice()).collect();
        let executions = check_trades(&streams)?;
        if instance == kills || stop.load(Ordering::Relaxed) {
            totals.executions += executions;
            break;
        }
        let extra = Duration::from_micros(random.next_u64() % (2 * RUN_TIME_MIN.as_micros() as u64));
        std::thread::scope(|scope| {
            for client in &mut clients {
                let address = &address;
                scope.spawn(move || client.trade(address));
            }
            std::thread::sleep(RUN_TIME_MIN + extra);
            // Sends SIGKILL.
            drop(venue);
        });
        totals.kills += 1;
    }
    totals.messages += clients.iter().map(|client| client.messages.len() as u64).sum::<u64>();
    let log = site.path("log");
    for command in ["verify", "replay"] {
        let printed = run(&["journal", command, &log]);
        assert_eq!((printed.code, printed.err.as_str()), (Some(0), ""), "{command}: {}", printed.out);
    }
    Ok(())
}

/// Checks that every order was accepted once and not overfilled, and that every execution was reported once
/// to each side, with equal quantity and price. Returns the number of executions.
fn check_trades(streams: &[&[Vec<u8>]]) -> Result<u64, String> {
    let mut sides: HashMap<u64, Vec<(u32, u64)>> = HashMap::new();
    for messages in streams {
        let mut left: HashMap<u32, u32> = HashMap::new();
        for message in messages.iter() {
            match decode(message) {
                OuchMessage::Accepted { user_ref, qty } if left.insert(user_ref, qty).is_some() => {
                    return Err(format!("order {user_ref} was accepted twice"));
                }
                OuchMessage::Accepted { .. } => {}
                OuchMessage::Executed { user_ref, qty, price, match_id } => {
                    let open = left.get_mut(&user_ref);
                    let rest = open.as_ref().and_then(|open| open.checked_sub(qty));
                    let (Some(open), Some(rest)) = (open, rest) else {
                        return Err(format!("order {user_ref} traded more than it was"));
                    };
                    *open = rest;
                    sides.entry(match_id).or_default().push((qty, price));
                }
                _ => {}
            }
        }
    }
    for (match_id, sides) in &sides {
        match sides.as_slice() {
            [one, other] if one == other => {}
            others => return Err(format!("execution {match_id} has the sides {others:?}")),
        }
    }
    Ok(sides.len() as u64)
}
