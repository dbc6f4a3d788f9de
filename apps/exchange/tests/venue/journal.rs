//! A venue with a journal: a kill and a restart preserve its state, and it sends only durable results.

use tickpath_exchange::{AdminCommand, AdminOutcome, JournalSettings, UserLimits, VenueSettings};
use tickpath_journal::{ACKNOWLEDGED_FILE, DiskFaults, FaultyDisk, Policy, Storage};
use tickpath_types::{
    CancelReason, Instrument, InstrumentId, Nanos, OrderEventKind, Qty, RejectReason, SessionId, Side,
    Symbol, TradingState,
};

use crate::market_data::RetransmissionClient;
use crate::support::{
    ALPHA, Client, Received, Rig, USERS, build, build_on, cancel, enter, event, journal, replace, settings,
};

/// A venue's settings, and its disk, which keeps its data when the venue ends.
pub struct Site {
    pub settings: VenueSettings,
    pub journal: JournalSettings,
    pub disk: FaultyDisk,
}

impl Site {
    pub fn new(policy: Policy) -> Site {
        let disk = FaultyDisk::new(1, DiskFaults::default());
        Site { settings: settings(), journal: journal(policy), disk }
    }

    pub fn start(&self) -> Rig {
        Rig::of(build_on(&self.settings, &self.journal, &self.disk).unwrap())
    }

    /// The error with which the venue refuses to start.
    pub fn refusal(&self) -> String {
        let error = build_on(&self.settings, &self.journal, &self.disk)
            .err()
            .unwrap_or_else(|| panic!("a venue started"));
        format!("{error:#}")
    }

    /// Kills the venue and starts it again.
    pub fn restart(&self, rig: Rig) -> Rig {
        self.disk.kill();
        drop(rig);
        self.start()
    }
}

/// Returns a client's messages until no more arrive for 200 turns.
pub fn receive_messages(rig: &mut Rig, client: &mut Client) -> Vec<Vec<u8>> {
    let mut messages = vec![];
    let mut silent_turns = 0;
    while silent_turns < 200 {
        rig.turn();
        silent_turns += 1;
        while let Some(received) = client.try_receive() {
            match received {
                Received::Message(message) => messages.push(message),
                Received::Heartbeat => {}
                other => panic!("{other:?}"),
            }
            silent_turns = 0;
        }
    }
    messages
}

/// All messages that the venue has sent to the user after the start of the day.
fn all_messages(rig: &mut Rig, user: &str) -> Vec<Vec<u8>> {
    let mut client = rig.log_in(user);
    let messages = receive_messages(rig, &mut client);
    let hung_up = rig.view.order_server.disconnects.read();
    drop(client);
    rig.until_true("the hang-up", |rig| rig.view.order_server.disconnects.read() > hung_up);
    messages
}

/// Sends two users' orders, some of which trade, with UserRefNums from `from`. Returns each user's messages.
pub fn trade(rig: &mut Rig, [anna, bert]: [&mut Client; 2], from: u32) -> [Vec<Vec<u8>>; 2] {
    for user_ref in from..from + 40 {
        let price = 1_000_000 + i64::from(user_ref % 7) * 100;
        anna.request(&enter(user_ref, Side::Sell, 10 + u64::from(user_ref % 5), price));
        bert.request(&enter(2 * user_ref, Side::Buy, 7, price - 200));
        rig.turn();
        if user_ref.is_multiple_of(5) {
            anna.request(&cancel(user_ref - 2, 3));
            bert.request(&replace(2 * user_ref, 2 * user_ref + 1, 4, 1_000_300));
        }
    }
    [receive_messages(rig, anna), receive_messages(rig, bert)]
}

fn hash(rig: &Rig) -> u64 {
    rig.view.engine.lock().unwrap().as_ref().unwrap().state_hash()
}

#[test]
fn a_killed_venue_resumes_at_the_end_of_its_log() {
    for policy in Policy::ALL {
        let site = Site::new(policy);
        let mut rig = site.start();
        let (mut anna, mut bert) = (rig.log_in("ANNA"), rig.log_in("BERT"));
        let [mut anna_received, mut bert_received] = trade(&mut rig, [&mut anna, &mut bert], 1);
        assert!(anna_received.len() > 60 && bert_received.len() > 60, "{policy}");
        let published = rig.view.publisher.messages.read();

        for round in 1..=3 {
            rig = site.restart(rig);
            let recovery = rig.journal.as_ref().unwrap().recovery.clone();
            assert!(recovery.snapshot.is_some() && recovery.replayed < 100, "{policy}: {recovery}");
            assert_eq!(rig.view.publisher.messages.read(), published, "{policy}: {round}");
            // Anna requests only new messages, and Bert all.
            let mut anna = rig.log_in_from("ANNA", anna_received.len() as u64 + 1);
            assert_eq!(receive_messages(&mut rig, &mut anna), Vec::<Vec<u8>>::new(), "{policy}");
            assert_eq!(all_messages(&mut rig, "BERT"), bert_received, "{policy}: the same bytes");
        }

        // Used UserRefNums stay used, the next ones are free, and old orders trade with new ones.
        rig = site.restart(rig);
        let mut anna = rig.log_in_from("ANNA", anna_received.len() as u64 + 1);
        let mut bert = rig.log_in_from("BERT", bert_received.len() as u64 + 1);
        bert.request(&enter(7, Side::Buy, 1, 1_000_000));
        assert_eq!(receive_messages(&mut rig, &mut bert), Vec::<Vec<u8>>::new(), "{policy}: sent again");
        let more = trade(&mut rig, [&mut anna, &mut bert], 5_000);
        let executions = more[1].iter().filter(|message| message[0] == b'E').count();
        assert!(executions > 10, "{policy}: {executions}");
        anna_received.extend(more[0].clone());
        bert_received.extend(more[1].clone());
        drop((anna, bert));
        rig = site.restart(rig);
        assert_eq!(all_messages(&mut rig, "ANNA"), anna_received, "{policy}");
        assert_eq!(all_messages(&mut rig, "BERT"), bert_received, "{policy}");
    }
}

#[test]
fn market_data_resumes_and_old_messages_are_retransmitted() {
    let site = Site::new(Policy::Group);
    let mut rig = site.start();
    let (mut anna, mut bert) = (rig.log_in("ANNA"), rig.log_in("BERT"));
    trade(&mut rig, [&mut anna, &mut bert], 1);
    let count = rig.view.publisher.messages.read();
    let request = |rig: &mut Rig, first: u64, count: u16| {
        let mut requester = RetransmissionClient::new(rig);
        requester.request("TODAY", first, count);
        requester.receive(rig, count.into())
    };
    let before = request(&mut rig, 1, count as u16);
    drop((anna, bert));
    let mut rig = site.restart(rig);
    assert_eq!(request(&mut rig, 1, count as u16), before);
    let mut anna = rig.log_in("ANNA");
    receive_messages(&mut rig, &mut anna);
    rig.submit(&mut anna, &enter(900, Side::Buy, 1, 900_000));
    let (first, _) = request(&mut rig, count, 2);
    assert_eq!((first, rig.view.publisher.messages.read()), (count, count + 1), "nothing between");
}

#[test]
fn nothing_is_sent_before_it_is_durable() {
    for policy in [Policy::Group, Policy::Sync] {
        let site = Site::new(policy);
        let mut rig = site.start();
        let mut anna = rig.log_in("ANNA");
        rig.until_true("the opening", |rig| rig.view.publisher.messages.read() == 7);
        rig.is_disk_stuck = true;
        anna.request(&enter(1, Side::Buy, 1, 900_000));
        rig.until_true("matching", |rig| rig.view.matcher.market_events.read() == 8);
        for _ in 0..1_000 {
            rig.turn();
        }
        assert_eq!((anna.try_receive(), rig.view.publisher.messages.read()), (None, 7), "{policy}");
        rig.is_disk_stuck = false;
        assert!(matches!(rig.receive_event(&mut anna), OrderEventKind::Accepted { .. }));
        rig.until_true("the publication", |rig| rig.view.publisher.messages.read() == 8);
    }
}

#[test]
fn power_loss_loses_only_unanswered_requests() {
    for seed in 0..20 {
        let mut site = Site::new(Policy::Group);
        site.disk = FaultyDisk::new(seed, DiskFaults::default());
        let mut rig = site.start();
        let mut anna = rig.log_in("ANNA");
        let mut received = vec![];
        for user_ref in 1..=30 {
            anna.request(&enter(user_ref, Side::Buy, 1, 900_000));
            if user_ref % 10 != 9 {
                received.extend(receive_messages(&mut rig, &mut anna));
            }
        }
        rig.is_disk_stuck = true;
        for user_ref in 31..=40 {
            anna.request(&enter(user_ref, Side::Buy, 1, 900_000));
            rig.turn();
        }
        site.disk.crash();
        drop(rig);
        let mut rig = site.start();
        let again = all_messages(&mut rig, "ANNA");
        assert!(again.starts_with(&received), "seed {seed}: {} of {}", again.len(), received.len());
    }
}

#[test]
fn a_stop_does_not_end_the_session() {
    let site = Site::new(Policy::Group);
    let mut rig = site.start();
    let mut anna = rig.log_in("ANNA");
    rig.submit(&mut anna, &enter(1, Side::Buy, 10, 1_000_000));
    rig.close();
    let received = loop {
        if let Some(received) = anna.try_receive() {
            break received;
        }
    };
    assert_eq!(received, Received::Closed, "and not the end of the session");
    let stopped = hash(&rig);
    drop(rig);
    let mut rig = site.start();
    let mut anna = rig.log_in_from("ANNA", 2);
    let answer = rig.submit(&mut anna, &cancel(1, 0));
    assert!(matches!(answer, OrderEventKind::Canceled { .. }), "{answer:?}");
    rig.close();
    assert_ne!(hash(&rig), stopped);
    drop(rig);
    // Two starts from the same log result in the same state.
    let [first, second] = [(); 2].map(|()| {
        let mut rig = site.start();
        rig.turn();
        rig.close();
        hash(&rig)
    });
    assert_eq!(first, second);
}

#[test]
fn the_opening_is_logged_once() {
    let site = Site::new(Policy::Async);
    let mut rig = site.start();
    rig.turn();
    let commands = rig.view.order_server.commands.read();
    assert_eq!(commands, 5, "three stages and two instruments");
    for _ in 0..3 {
        rig = site.restart(rig);
        rig.turn();
        assert_eq!(rig.view.order_server.commands.read(), commands);
    }
}

#[test]
fn an_interrupted_opening_is_finished() {
    // In each round, power is lost after `changes` disk changes by the opening.
    for changes in 0..40 {
        let site = Site::new(Policy::Sync);
        let mut rig = site.start();
        site.disk.crash_after(changes);
        for _ in 0..60 {
            if rig.try_turn().is_err() {
                break;
            }
        }
        site.disk.crash();
        drop(rig);
        let mut rig = site.start();
        rig.until_true("the opening", |rig| rig.view.order_server.commands.read() == 5);
        let mut anna = rig.log_in("ANNA");
        rig.assert_serves(&mut anna, 1);
        rig.until_true("market data", |rig| rig.view.publisher.messages.read() == 9);
    }
}

#[test]
fn kills_limits_and_grace_periods_survive_restarts() {
    let grace = Nanos::from_secs(5);
    let mut site = Site::new(Policy::Group);
    site.settings.users[1].cancel_on_disconnect = Some(grace);
    site.settings.users[2].limits = UserLimits { order_qty: Some(Qty(5)), ..UserLimits::default() };
    let mut rig = site.start();
    let mut anna = rig.log_in("ANNA");
    let mut bert = rig.log_in("BERT");
    rig.submit(&mut anna, &enter(1, Side::Sell, 1, 1_000_000));
    rig.submit(&mut bert, &enter(1, Side::Buy, 1, 900_000));
    assert_eq!(rig.command(AdminCommand::Kill(Some(SessionId(1)))), AdminOutcome::Done { commands: 1 });
    drop((anna, bert));
    let mut rig = site.restart(rig);
    let killed: Vec<u64> = rig.view.users.iter().map(|user| user.is_killed.read()).collect();
    assert_eq!((killed, rig.view.order_server.is_killed.read()), (vec![1, 0, 0], 0));
    let mut anna = rig.log_in_from("ANNA", 3);
    let answer = rig.submit(&mut anna, &enter(2, Side::Sell, 1, 1_000_000));
    assert!(matches!(answer, OrderEventKind::Rejected { reason: RejectReason::Killed, .. }), "{answer:?}");
    let mut cleo = rig.log_in("CLEO");
    let answer = rig.submit(&mut cleo, &enter(1, Side::Sell, 6, 1_000_000));
    assert!(matches!(answer, OrderEventKind::Rejected { reason: RejectReason::QtyAboveLimit, .. }));
    // Bert was not connected when the venue restarted, so his grace period begins at the start.
    rig.advance(grace - Nanos::from_millis(100));
    assert_eq!(rig.view.order_server.cancels_on_disconnect.read(), 0);
    rig.advance(Nanos::from_millis(200));
    assert_eq!(rig.view.order_server.cancels_on_disconnect.read(), 1, "of who ever sent something");
    let mut bert = rig.log_in_from("BERT", 2);
    let canceled = rig.receive_event(&mut bert);
    assert!(
        matches!(canceled, OrderEventKind::Canceled { reason: CancelReason::System, .. }),
        "{canceled:?}"
    );
    drop((anna, bert, cleo));

    // A limit that was removed from the configuration no longer applies.
    site.settings.users[2].limits = UserLimits::default();
    let mut rig = site.restart(rig);
    let mut cleo = rig.log_in_from("CLEO", 2);
    let answer = rig.submit(&mut cleo, &enter(2, Side::Sell, 6, 1_000_000));
    assert!(matches!(answer, OrderEventKind::Accepted { .. }), "{answer:?}");
    assert_eq!(rig.command(AdminCommand::Kill(None)), AdminOutcome::Done { commands: 1 });
    let rig = site.restart(rig);
    assert_eq!(rig.view.order_server.is_killed.read(), 1);
}

#[test]
fn an_administrator_is_answered_when_the_command_is_durable() {
    let site = Site::new(Policy::Group);
    let mut rig = site.start();
    rig.until_true("the opening", |rig| rig.view.publisher.messages.read() == 7);
    let mut admin = rig.admin.take().unwrap();
    rig.is_disk_stuck = true;
    let halt = AdminCommand::SetTradingState { instrument: ALPHA, state: TradingState::Halted };
    admin.submit(halt).unwrap();
    for _ in 0..10 {
        rig.advance(Nanos::from_millis(20));
        assert_eq!(admin.poll(), None);
    }
    rig.is_disk_stuck = false;
    let answer = rig.until("an answer", |_| admin.poll());
    assert_eq!(answer.outcome, AdminOutcome::Done { commands: 1 });
}

#[test]
fn a_full_disk_refuses_new_orders_and_accepts_cancels() {
    let mut site = Site::new(Policy::Group);
    site.journal.snapshot_every = 0;
    let mut rig = site.start();
    let mut anna = rig.log_in("ANNA");
    rig.submit(&mut anna, &enter(1, Side::Buy, 10, 900_000));
    while rig.turn() > 0 {}
    // From now on, no further segment fits on the disk.
    let names = site.disk.list().unwrap();
    let capacity = names.iter().filter_map(|name| Some(site.disk.contents(name)?.len() as u64)).sum();
    site.disk.set_faults(DiskFaults { capacity, ..DiskFaults::default() });
    let mut user_ref = 2;
    while rig.view.journal.is_full.read() == 0 {
        let answer = rig.submit(&mut anna, &enter(user_ref, Side::Buy, 1, 900_000));
        assert!(matches!(answer, OrderEventKind::Accepted { .. }), "{answer:?}");
        user_ref += 1;
        assert!(user_ref < 1_000, "segments are small");
    }
    let answer = rig.submit(&mut anna, &enter(user_ref, Side::Buy, 1, 900_000));
    assert!(
        matches!(answer, OrderEventKind::Rejected { reason: RejectReason::JournalFull, .. }),
        "{answer:?}"
    );
    let answer = rig.submit(&mut anna, &cancel(1, 0));
    assert!(matches!(answer, OrderEventKind::Canceled { .. }), "{answer:?}");

    // Fill the last segment too. Then requests wait, and no response is sent before its command is logged.
    let mut sent = 0;
    while rig.view.journal.delayed.read() == 0 {
        anna.request(&cancel(2, 0));
        rig.turn();
        sent += 1;
        assert!(sent < 1_000, "segments are small");
    }
    anna.request(&enter(user_ref + 1, Side::Buy, 1, 900_000));
    let messages = receive_messages(&mut rig, &mut anna);
    assert!(messages.iter().all(|message| event(message).user_ref().0 <= user_ref));

    // The disk has free space again.
    site.disk.set_faults(DiskFaults::default());
    let answer = rig.receive_event(&mut anna);
    assert_eq!(answer.user_ref().0, user_ref + 1, "what waited: {answer:?}");
    rig.until_true("room", |rig| rig.view.journal.is_full.read() == 0);
    let answer = rig.submit(&mut anna, &enter(user_ref + 2, Side::Buy, 1, 900_000));
    assert!(matches!(answer, OrderEventKind::Accepted { .. }), "{answer:?}");
}

#[test]
fn refusals_leave_journal_space_for_all_cancels() {
    const OPEN: u32 = 40;
    let mut site = Site::new(Policy::Async);
    site.journal.snapshot_every = 0;
    let mut rig = site.start();
    let mut anna = rig.log_in("ANNA");
    for user_ref in 1..=OPEN {
        rig.submit(&mut anna, &enter(user_ref, Side::Buy, 10, 900_000));
    }
    while rig.turn() > 0 {}
    let names = site.disk.list().unwrap();
    let capacity = names.iter().filter_map(|name| Some(site.disk.contents(name)?.len() as u64)).sum();
    site.disk.set_faults(DiskFaults { capacity, ..DiskFaults::default() });
    // Send only new orders, many more than a segment can hold.
    let mut refused = [0_u64; 2];
    for user_ref in OPEN + 1..2_000 {
        anna.request(&enter(user_ref, Side::Buy, 1, 900_000));
        loop {
            match rig.receive(&mut anna) {
                Received::Message(message) => {
                    refused[0] += u64::from(message[0] == b'J');
                    break;
                }
                Received::Debug(text) => {
                    assert!(text.contains("the journal is full"), "{text}");
                    refused[1] += 1;
                    break;
                }
                _ => {}
            }
        }
    }
    assert!(refused[0] > 20 && refused[1] > 500, "{refused:?}");
    assert_eq!(rig.view.journal.unlogged_refusals.read(), refused[1]);
    for user_ref in 1..=OPEN {
        let answer = rig.submit(&mut anna, &cancel(user_ref, 0));
        assert!(matches!(answer, OrderEventKind::Canceled { .. }), "{answer:?}");
    }
    // A UserRefNum refused without a record is still free, and the refusal is not resent.
    let last = rig.view.order_server.commands.read();
    site.disk.set_faults(DiskFaults::default());
    rig.until_true("room", |rig| rig.view.journal.is_full.read() == 0);
    let answer = rig.submit(&mut anna, &enter(1_999, Side::Buy, 1, 900_000));
    assert!(matches!(answer, OrderEventKind::Accepted { .. }), "{answer:?}");
    assert_eq!(rig.view.order_server.commands.read(), last + 1);
    drop(anna);
    let mut rig = site.restart(rig);
    let again = all_messages(&mut rig, "ANNA");
    assert_eq!(again.iter().filter(|message| message[0] == b'J').count() as u64, refused[0]);
}

#[test]
fn a_failed_disk_stops_the_venue_without_false_answers() {
    for (policy, seed) in [(Policy::Async, 1), (Policy::Group, 2), (Policy::Sync, 3)] {
        let mut site = Site::new(policy);
        site.disk = FaultyDisk::new(seed, DiskFaults::default());
        let mut rig = site.start();
        let mut anna = rig.log_in("ANNA");
        let mut received = vec![];
        anna.request(&enter(1, Side::Buy, 10, 900_000));
        received.extend(receive_messages(&mut rig, &mut anna));
        assert_eq!(received.len(), 1, "{policy}");
        if policy == Policy::Async {
            site.disk.fail_writes(1)
        } else {
            site.disk.fail_syncs(1)
        }
        anna.request(&enter(2, Side::Buy, 10, 900_000));
        let failure = loop {
            if let Err(failure) = rig.try_turn() {
                break failure;
            }
        };
        assert!(failure.to_string().contains("answers no more requests"), "{policy}: {failure}");
        assert_eq!(rig.view.journal.has_failed.read(), 1);
        rig.close_at_once();
        drop(rig);
        let last = loop {
            if let Some(received) = anna.try_receive() {
                break received;
            }
        };
        assert_eq!(last, Received::Closed, "{policy}: no answer to what is not in the log");
        site.disk.kill();
        let mut rig = site.start();
        assert!(all_messages(&mut rig, "ANNA").starts_with(&received), "{policy}");
    }
}

#[test]
fn a_venue_that_cannot_resume_states_the_reason() {
    let mut site = Site::new(Policy::Group);
    let mut rig = site.start();
    assert!(site.refusal().contains("in use by another process"), "{}", site.refusal());
    let (mut anna, mut bert) = (rig.log_in("ANNA"), rig.log_in("BERT"));
    trade(&mut rig, [&mut anna, &mut bert], 1);
    drop((anna, bert));
    site.disk.kill();
    drop(rig);

    let good = (site.settings.clone(), site.journal.clone());
    let mut refuses = |change: &dyn Fn(&mut Site), parts: &[&str]| {
        (site.settings, site.journal) = good.clone();
        change(&mut site);
        let refusal = site.refusal();
        for word in parts {
            assert!(refusal.contains(word), "no '{word}' in {refusal}");
        }
    };
    refuses(
        &|site| {
            let mut list = site.settings.instruments.as_slice().to_vec();
            list[1].collar_high.0 += 100;
            site.settings.instruments = tickpath_types::InstrumentTable::new(&list);
        },
        &["BRAVO has changed", "highest price was 110.0000 and is 110.0100", "--new-session"],
    );
    refuses(
        &|site| {
            let list = site.settings.instruments.as_slice();
            site.settings.instruments = tickpath_types::InstrumentTable::new(&list[..1]);
        },
        &["lacks instruments of the journal's session: BRAVO", "suspend", "--new-session"],
    );
    refuses(
        &|site| {
            let [alpha, bravo] = site.settings.instruments.as_slice() else { panic!("two instruments") };
            let new = Instrument { symbol: Symbol::new("AHEAD").unwrap(), ..*bravo };
            let bravo = Instrument { id: InstrumentId(3), ..*bravo };
            site.settings.instruments = tickpath_types::InstrumentTable::new(&[*alpha, new, bravo]);
        },
        &["AHEAD is at place 2", "that of BRAVO", "new ones behind them all"],
    );
    refuses(&|site| site.settings.users.swap(0, 1), &["ANNA, BERT, CLEO", "--new-session"]);
    refuses(&|site| _ = site.settings.users.pop(), &["ANNA, BERT, CLEO"]);
    refuses(
        &|site| site.settings.limits.max_sessions = 5,
        &["room for 3 users", "max_sessions 4, not 5", "--new-session"],
    );
    let monday = tickpath_journal::SessionName::new("MONDAY").ok();
    refuses(&|site| site.journal.session = monday, &["session TODAY, not MONDAY"]);

    // Changed limits do not prevent a start.
    (site.settings, site.journal) = good;
    site.settings.limits.max_open_orders *= 2;
    site.settings.retained_messages *= 2;
    site.settings.users[2].name = "cleo".to_owned();
    let mut rig = site.start();
    let mut cleo = rig.log_in(USERS[2]);
    rig.assert_serves(&mut cleo, 1);
    let mut rig = site.restart(rig);
    assert_eq!(all_messages(&mut rig, "CLEO").len(), 2);
}

#[test]
fn a_damaged_log_is_refused_and_a_torn_tail_is_cut() {
    let site = Site::new(Policy::Async);
    let mut rig = site.start();
    let (mut anna, mut bert) = (rig.log_in("ANNA"), rig.log_in("BERT"));
    let [received, _] = trade(&mut rig, [&mut anna, &mut bert], 1);
    drop((anna, bert));
    site.disk.kill();
    drop(rig);
    let names = |site: &Site| {
        let mut names: Vec<String> =
            site.disk.list().unwrap().into_iter().filter(|name| name.ends_with(".journal")).collect();
        names.sort();
        names
    };
    let last = names(&site).pop().unwrap();
    let good = site.disk.contents(&last).unwrap();
    let end = good.iter().rposition(|byte| *byte != 0).unwrap();

    let mut torn = good.clone();
    torn[end] ^= 1;
    site.disk.put(&last, torn);
    let refusal = site.refusal();
    assert!(refusal.contains(&last) && refusal.contains("--accept-loss"), "{refusal}");
    // Without this file, recovery cannot distinguish the damage from a write torn by a crash.
    site.disk.remove(ACKNOWLEDGED_FILE).unwrap();
    let mut rig = site.start();
    let recovery = rig.journal.as_ref().unwrap().recovery.clone();
    let description = recovery.to_string();
    assert!(description.contains(&last) && description.contains("torn tail at byte"), "{description}");
    assert!(description.contains("no file acknowledged could be read"), "{description}");
    let again = all_messages(&mut rig, "ANNA");
    assert!(received.starts_with(&again) && again.len() + 3 > received.len());
    site.disk.kill();
    drop(rig);

    // Damage in the middle of the log is never skipped.
    let site = Site::new(Policy::Group);
    let mut rig = site.start();
    let (mut anna, mut bert) = (rig.log_in("ANNA"), rig.log_in("BERT"));
    trade(&mut rig, [&mut anna, &mut bert], 1);
    site.disk.kill();
    drop(rig);
    let last = names(&site).pop().unwrap();
    let mut bad = site.disk.contents(&last).unwrap();
    let first_record = 200;
    bad[first_record] ^= 1;
    site.disk.put(&last, bad);
    let refusal = site.refusal();
    assert!(refusal.contains(&last) && refusal.contains("damaged at byte"), "{refusal}");
}

#[test]
fn duty_cycles_with_a_journal_allocate_nothing() {
    for policy in Policy::ALL {
        let folder = tempfile::tempdir().unwrap();
        let journal = JournalSettings {
            segment_len: 32 << 10,
            buffer_len: 8 << 10,
            snapshot_every: 100,
            ..JournalSettings::new(folder.path(), policy)
        };
        let mut rig = Rig::of(build(&VenueSettings { journal: Some(journal), ..settings() }).unwrap());
        let threads = rig.journal.take().unwrap().start().unwrap();
        rig.until_true("the start of the day", |rig| rig.view.journal.durable.read() >= 5);
        rig.turn();
        let mut anna = rig.log_in("ANNA");
        assert!(tickpath_agent::counts_allocations());
        let mut allocations = 0;
        for user_ref in 1..=400 {
            anna.request(&enter(user_ref, Side::Buy, 1, 900_000));
            anna.request(&cancel(user_ref, 0));
            let mut received = 0;
            rig.until_true("the answers", |_| true);
            while received < 2 {
                allocations += rig.allocations_of(1);
                received += usize::from(anna.try_receive().is_some());
            }
        }
        assert_eq!(allocations, 0, "{policy}");
        assert!(folder.path().read_dir().unwrap().count() > 3, "{policy}: segments and snapshots");
        drop(rig);
        drop(threads);
    }
}
