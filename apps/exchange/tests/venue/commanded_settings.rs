//! User settings changed by a command survive restarts until the configuration changes them. Instruments
//! added to the configuration file are added at the next restart.

use tickpath_exchange::{
    AdminCommand, AdminOutcome, AdminRefusal, LimitsChange, Phase, RateLimit, UserLimits, Venue,
};
use tickpath_journal::Policy;
use tickpath_types::{
    Instrument, InstrumentId, InstrumentTable, Qty, RejectReason, SessionId, Side, TradingState,
};

use crate::day::{
    GAMMA, Site, accepted, done, enter_gamma, gamma, phase, reason, receive_type, run_due_steps, schedule,
    state, with_spare_instrument,
};
use crate::support::{ALPHA, Client, Rig, build_on, cancel, enter, instruments, journal, settings};

const ANNA: SessionId = SessionId(1);

/// A client whose message numbers and UserRefNums continue over restarts of the venue.
struct Anna {
    received: u64,
    user_ref: u32,
}

impl Anna {
    fn log_in(&self, rig: &mut Rig) -> Client {
        rig.log_in_from("ANNA", self.received + 1)
    }

    /// Enters an order. Returns the reason if it is refused; cancels it if it is accepted.
    fn try_order(&mut self, rig: &mut Rig, client: &mut Client, qty: u64) -> Option<RejectReason> {
        self.user_ref += 1;
        self.received += 1;
        let answer = rig.submit(client, &enter(self.user_ref, Side::Buy, qty, 900_000));
        if let tickpath_types::OrderEventKind::Rejected { .. } = answer {
            return Some(reason(answer));
        }
        self.received += 1;
        rig.submit(client, &cancel(self.user_ref, 0));
        None
    }

    fn try_gamma(&mut self, rig: &mut Rig, client: &mut Client) -> u8 {
        self.user_ref += 1;
        self.received += 1;
        client.send(&enter_gamma(self.user_ref, Side::Buy, 1_000_000));
        receive_type(rig, client)
    }
}

fn build(site: &Site) -> Venue {
    build_on(&site.settings, &journal(Policy::Group), &site.disk).unwrap()
}

/// Kills the venue and restarts it. Returns the new venue and its notices about the configuration.
fn restart(site: &Site, mut rig: Rig) -> (Rig, Vec<String>) {
    rig.journal.as_mut().unwrap().save_trusted_logins().unwrap();
    site.disk.kill();
    drop(rig);
    let venue = build(site);
    let notices = venue.notices.clone();
    let mut rig = Rig::of(venue);
    run_due_steps(&mut rig);
    (rig, notices)
}

#[test]
fn a_commanded_limit_holds_until_the_file_changes() {
    let mut site = Site::new(settings());
    let qty = |qty| UserLimits { order_qty: Some(Qty(qty)), ..UserLimits::default() };
    site.settings.users[0].limits = qty(100);
    let mut rig = site.start();
    let rate = RateLimit { per_second: 1, burst: 7 };
    let change =
        LimitsChange { order_qty: Some(Some(Qty(10))), rate: Some(Some(rate)), ..LimitsChange::default() };
    assert_eq!(rig.command(AdminCommand::SetLimits { session: ANNA, change }), done(2));
    let mut anna = Anna { received: 0, user_ref: 0 };
    let mut commands = rig.view.order_server.commands.read();
    // The first restart replays the log alone; the later ones begin with a snapshot.
    for round in 0..3 {
        let notices;
        (rig, notices) = restart(&site, rig);
        assert_eq!(rig.view.order_server.commands.read(), commands, "nothing to be said again");
        let expected = ["messages=1/7 as commanded, and not none", "qty=10 as commanded, and not 100"];
        for (notice, expected) in notices.iter().zip(expected) {
            assert!(notice.contains("user ANNA") && notice.contains(expected), "{notice}");
        }
        assert_eq!(notices.len(), 2, "{notices:?}");
        let limits = rig.view.users[0].limits.read();
        assert_eq!(limits, UserLimits { rate: Some(rate), ..qty(10) }, "as the status reports");
        let mut client = anna.log_in(&mut rig);
        assert_eq!(anna.try_order(&mut rig, &mut client, 11), Some(RejectReason::QtyAboveLimit));
        assert_eq!(anna.try_order(&mut rig, &mut client, 10), None);
        assert_eq!(anna.try_order(&mut rig, &mut client, 10), None);
        assert_eq!(anna.try_order(&mut rig, &mut client, 10), None);
        assert_eq!(anna.try_order(&mut rig, &mut client, 10), Some(RejectReason::RateAboveLimit), "{round}");
        drop(client);
        // Write enough commands for a snapshot.
        for change in [Some(Qty(9)), Some(Qty(10))].repeat(10) {
            let change = LimitsChange { order_qty: Some(change), ..LimitsChange::default() };
            rig.command(AdminCommand::SetLimits { session: ANNA, change });
        }
        commands = rig.view.order_server.commands.read();
    }
    assert!(rig.journal.as_ref().unwrap().recovery.snapshot.is_some());

    // The configuration changes only one of the limits that were set by commands.
    site.settings.users[0].limits = qty(50);
    for is_first in [true, false] {
        let notices;
        (rig, notices) = restart(&site, rig);
        let has_notice =
            notices.iter().any(|notice| notice.contains("qty=50 as the file says now, and not 10"));
        assert_eq!((has_notice, notices.len()), (is_first, 1 + usize::from(is_first)), "{notices:?}");
        let mut client = anna.log_in(&mut rig);
        assert_eq!(anna.try_order(&mut rig, &mut client, 51), Some(RejectReason::QtyAboveLimit));
        for _ in 0..3 {
            assert_eq!(anna.try_order(&mut rig, &mut client, 50), None);
        }
        assert_eq!(anna.try_order(&mut rig, &mut client, 1), Some(RejectReason::RateAboveLimit));
    }
}

#[test]
fn a_commanded_permission_survives_restarts() {
    let mut site = Site::new(with_spare_instrument());
    site.settings.users[0].instruments = Some(vec![ALPHA]);
    let mut rig = site.start();
    let mut anna = Anna { received: 0, user_ref: 0 };
    let allow =
        |instrument, is_allowed| AdminCommand::AllowInstrument { session: ANNA, instrument, is_allowed };
    let unknown = InstrumentId(u16::MAX);
    for command in [
        allow(GAMMA, true),
        allow(InstrumentId(0), true),
        phase(Phase::Auction, Some(unknown)),
        AdminCommand::SuspendInstrument { instrument: unknown },
    ] {
        let refused = AdminOutcome::Refused(AdminRefusal::NoInstrument);
        assert_eq!(rig.command(command), refused, "{command:?}");
    }
    assert_eq!(rig.command(AdminCommand::AddInstrument(gamma())), done(2));
    assert_eq!(rig.command(phase(Phase::Open, Some(GAMMA))), done(1));
    let unknown_user =
        AdminCommand::AllowInstrument { session: SessionId(4), instrument: GAMMA, is_allowed: true };
    assert_eq!(rig.command(unknown_user), AdminOutcome::UnknownUser);
    let mut client = anna.log_in(&mut rig);
    assert_eq!(anna.try_gamma(&mut rig, &mut client), b'J');
    assert_eq!(rig.command(allow(GAMMA, true)), done(1));
    assert_eq!(rig.command(allow(GAMMA, true)), done(0), "nothing new");
    assert_eq!(anna.try_gamma(&mut rig, &mut client), b'A');
    for _ in 0..3 {
        drop(client);
        let notices;
        (rig, notices) = restart(&site, rig);
        assert!(
            notices.iter().any(|notice| notice == "user ANNA may trade GAMMA as commanded"),
            "{notices:?}"
        );
        client = anna.log_in(&mut rig);
        for _ in 0..20 {
            assert_eq!(anna.try_gamma(&mut rig, &mut client), b'A');
        }
    }
    assert_eq!(rig.command(allow(ALPHA, false)), done(1));
    let refused = Some(RejectReason::InstrumentNotAllowed);
    assert_eq!(anna.try_order(&mut rig, &mut client, 1), refused);
    drop(client);
    (rig, _) = restart(&site, rig);
    client = anna.log_in(&mut rig);
    assert_eq!(anna.try_order(&mut rig, &mut client, 1), refused);
    drop(client);
    // A user's instrument list, once changed in the configuration, replaces permissions set by commands.
    append(&mut site);
    site.settings.users[0].instruments = Some(vec![ALPHA, GAMMA]);
    let notices;
    (rig, notices) = restart(&site, rig);
    assert!(notices[0].contains("ANNA may trade GAMMA: this command no longer applies"), "{notices:?}");
    assert!(notices[1].contains("ANNA may not trade ALPHA: this command no longer applies"), "{notices:?}");
    assert_eq!(notices.len(), 2);
    client = anna.log_in(&mut rig);
    assert_eq!(anna.try_order(&mut rig, &mut client, 1), None);
    assert_eq!(anna.try_gamma(&mut rig, &mut client), b'A');
}

/// Adds the instrument GAMMA to the configuration.
fn append(site: &mut Site) {
    let more = Instrument { id: GAMMA, ..gamma() };
    let listed: Vec<Instrument> = instruments().iter().copied().chain([more]).collect();
    site.settings.instruments = InstrumentTable::new(&listed);
}

#[test]
fn a_new_instrument_of_the_file_is_added_at_the_start() {
    let mut site = Site::new(settings());
    let mut rig = site.start();
    let mut anna = rig.log_in("ANNA");
    accepted(&mut rig, &mut anna, &enter(1, Side::Buy, 1, 900_000));
    drop(anna);
    append(&mut site);
    site.settings.users[0].instruments = Some(vec![GAMMA]);
    let mut notices;
    (rig, notices) = restart(&site, rig);
    assert_eq!(notices, ["instrument GAMMA is new in the file and is added"]);
    assert_eq!(state(&rig, GAMMA), TradingState::Trading);
    let mut anna = rig.log_in_from("ANNA", 2);
    anna.send(&enter_gamma(2, Side::Buy, 1_000_000));
    assert_eq!(receive_type(&mut rig, &mut anna), b'A');
    drop(anna);
    let commands = rig.view.order_server.commands.read();
    (rig, notices) = restart(&site, rig);
    assert_eq!((rig.view.order_server.commands.read(), notices.len()), (commands, 0), "once");
    // The instrument stays when the configuration no longer lists it.
    site.settings.instruments = instruments();
    site.settings.users[0].instruments = None;
    (rig, notices) = restart(&site, rig);
    assert_eq!(notices, ["instrument GAMMA was added before and stays: the file lacks it"]);
    let mut bert = rig.log_in("BERT");
    bert.send(&enter_gamma(1, Side::Sell, 1_000_000));
    assert_eq!([receive_type(&mut rig, &mut bert), receive_type(&mut rig, &mut bert)], *b"AE");
}

#[test]
fn with_a_schedule_a_new_instrument_is_halted() {
    for steps in [&[(0, Phase::Start), (0, Phase::Open)][..], &[(1_000, Phase::Start)]] {
        let has_begun = steps.len() == 2;
        let mut site = Site::new(settings());
        let now = tickpath_agent::TscClock::system().now();
        site.settings.day.schedule = Some(schedule(now, steps));
        let mut rig = site.start();
        run_due_steps(&mut rig);
        append(&mut site);
        let before = rig.view.publisher.messages.read();
        (rig, _) = restart(&site, rig);
        assert_eq!(state(&rig, GAMMA), TradingState::Halted);
        let published = rig.view.publisher.messages.read() - before;
        assert_eq!(published, if has_begun { 2 } else { 0 }, "its directory and state");
        assert_eq!(state(&rig, ALPHA), [TradingState::Halted, TradingState::Trading][usize::from(has_begun)]);
        assert!(matches!(rig.command(phase(Phase::Open, Some(GAMMA))), AdminOutcome::Done { .. }));
        assert_eq!(state(&rig, GAMMA), TradingState::Trading);
    }
}

#[test]
fn an_interrupted_addition_is_finished() {
    // In each round, power is lost after `changes` disk changes by the second start.
    for changes in 0..40 {
        let mut site = Site::new(settings());
        let mut rig = site.start();
        run_due_steps(&mut rig);
        append(&mut site);
        site.disk.kill();
        drop(rig);
        site.disk.crash_after(changes);
        if let Ok(venue) = build_on(&site.settings, &journal(Policy::Sync), &site.disk) {
            rig = Rig::of(venue);
            while rig.try_turn().is_ok_and(|work| work > 0) {}
            site.disk.crash();
            drop(rig);
        } else {
            site.disk.crash();
        }
        rig = site.start();
        rig.until_true("the opening", |rig| rig.view.order_server.commands.read() == 7);
        let mut anna = rig.log_in("ANNA");
        anna.send(&enter_gamma(1, Side::Buy, 1_000_000));
        assert_eq!(receive_type(&mut rig, &mut anna), b'A', "{changes}");
    }
}
