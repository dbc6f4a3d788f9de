//! Events about the gateway itself: its state and the reason for it, and the limits of accounts.

use tickpath_deribit::method::Method;
use tickpath_deribit::session::RequestError;
use tickpath_gateway_core::AdminCommand;
use tickpath_gateway_core::RiskLimit;
use tickpath_gateway_protocol::{
    AccountReference, ConnectionStatus, ErrorCode, GatewayState, GatewayStatus, RateLimitKind,
    RateLimitReason, RateLimitTrigger, RateLimitsUpdate, RiskLimits, StreamStatus,
};
use tickpath_types::Nanos;

use crate::machine::rig::{CLIENT, Rig, TRADING};

/// The last limits that clients received.
fn told(rig: &Rig) -> RiskLimits {
    rig.all::<RiskLimits>().last().expect("it was sent")
}

fn command(rig: &mut Rig, command: AdminCommand) {
    rig.core.handle_admin(&command, &rig.control, &mut rig.door);
    rig.poll();
}

#[test]
fn a_client_learns_its_limits_as_it_comes() {
    let mut rig = Rig::ready_with("[limits]\norder_size_max = '150'\nopen_orders_max = 3\n", "[]");
    let limits = told(&rig);
    assert_eq!((limits.max_order_quantity, limits.max_open_orders), ("150".parse().unwrap(), 3));
    assert_eq!((limits.open_orders, limits.is_killed), (0, 0));
    // A client that connects later, with an open order and other limits.
    rig.working(1001);
    let limit = RiskLimit { order_size_max: Some(12_000_000_000), ..RiskLimit::default() };
    command(&mut rig, AdminCommand::SetLimits(0, Some(limit)));
    rig.door.sent.clear();
    rig.join(CLIENT + 1, "trader", true);
    let limits = told(&rig);
    assert_eq!((limits.max_order_quantity, limits.open_orders), ("120".parse().unwrap(), 1));
    assert_eq!(rig.all::<RiskLimits>().count(), 1, "who was in is not told again");
}

#[test]
fn what_whoever_runs_the_gateway_commands_is_told() {
    let mut rig = Rig::ready();
    rig.door.sent.clear();
    let limit = RiskLimit { open_orders_max: Some(7), ..RiskLimit::default() };
    command(&mut rig, AdminCommand::SetLimits(0, Some(limit)));
    assert_eq!((told(&rig).max_open_orders, told(&rig).is_killed), (7, 0));
    command(&mut rig, AdminCommand::Kill);
    assert_eq!((told(&rig).max_open_orders, told(&rig).is_killed), (7, 1));
    command(&mut rig, AdminCommand::Release);
    assert_eq!(told(&rig).is_killed, 0);
    command(&mut rig, AdminCommand::SetLimits(0, None));
    assert_eq!((told(&rig).max_open_orders, rig.all::<RiskLimits>().count()), (0, 4));
    // No client has an account that does not exist.
    command(&mut rig, AdminCommand::SetLimits(9, None));
    assert_eq!(rig.all::<RiskLimits>().count(), 4);
}

#[test]
fn why_the_gateway_stands_so_is_told() {
    let mut rig = Rig::new("");
    assert_eq!(rig.core.why().as_str(), "no account is connected: orders are refused");
    rig = Rig::ready();
    let last = |rig: &Rig| {
        let status = rig.door.broadcast.iter().rev().find_map(|event| event.body::<GatewayStatus>()).unwrap();
        (status.state, status.accounts_ready, status.text.as_str().to_owned())
    };
    assert_eq!(last(&rig), (GatewayState::READY, 1, String::new()));
    command(&mut rig, AdminCommand::Kill);
    let text = "the kill switch is on: no order leaves".to_owned();
    assert_eq!(last(&rig), (GatewayState::KILLED, 1, text));
    command(&mut rig, AdminCommand::Release);
    rig.lose(&[]);
    let (state, ready, text) = last(&rig);
    assert_eq!((state, ready), (GatewayState::MARKET_DATA, 0));
    assert_eq!(text, "no account is connected: orders are refused");
    rig.event(TRADING, tickpath_deribit::session::SessionEvent::Ready);
    rig.poll();
    assert_eq!(last(&rig).2, "not ready: A1 waits for its channels");
}

/// The last remaining rate limit that was published: available, maximum, period in ms.
fn left(rig: &Rig, limit: RateLimitKind) -> (u32, u32, u64) {
    let update = rig.all::<RateLimitsUpdate>().filter(|update| update.limit == limit).last().unwrap();
    (update.available, update.maximum, update.period_ns / 1_000_000)
}

#[test]
fn what_is_left_of_limits_is_told_once_a_second_where_it_has_changed() {
    let mut rig = Rig::ready();
    rig.venue.left = Some(20);
    rig.pass(Nanos::from_secs(1));
    assert_eq!(left(&rig, RateLimitKind::VENUE), (20, 20, 4_000));
    assert_eq!(left(&rig, RateLimitKind::USER), (100, 100, 60_000));
    let count = |rig: &Rig| rig.all::<RateLimitsUpdate>().count();
    let before = count(&rig);
    rig.pass(Nanos::from_secs(1));
    assert_eq!(count(&rig), before, "nothing has changed");
    rig.create(1001);
    rig.venue.left = Some(19);
    rig.poll();
    assert_eq!(count(&rig), before, "not yet");
    rig.pass(Nanos::from_secs(1));
    assert_eq!((left(&rig, RateLimitKind::VENUE).0, left(&rig, RateLimitKind::USER).0), (19, 99));
    // A client that connects later receives it in its download.
    rig.door.sent.clear();
    rig.join(CLIENT + 1, "trader", true);
    assert_eq!((left(&rig, RateLimitKind::VENUE).0, left(&rig, RateLimitKind::USER).0), (19, 99));
    rig.pass(Nanos::from_secs(60));
    assert_eq!(left(&rig, RateLimitKind::USER).0, 100);
}

#[test]
fn a_limit_of_the_venue_that_was_hit_is_told_to_whoever_has_the_account() {
    let mut rig = Rig::ready();
    rig.venue.refusal = Some(RequestError::RateLimit { wait_ns: 5 });
    rig.create(1001);
    rig.create(1001);
    rig.refuse(Method::Buy, 10028, "too_many_requests");
    let told: Vec<_> = rig.all::<RateLimitTrigger>().map(|it| (it.limit, it.reason)).collect();
    let venue = RateLimitKind::VENUE;
    assert_eq!(told, [(venue, RateLimitReason::REFUSED), (venue, RateLimitReason::VENUE_REFUSED)]);
    let until = rig.all::<RateLimitTrigger>().last().unwrap().until_ns;
    assert_eq!(until, rig.now.0 + 200_000_000, "five a second");
}

#[test]
fn each_step_of_a_connection_is_told() {
    let mut rig = Rig::ready();
    rig.lose(&[]);
    rig.core.handle_begun(TRADING, rig.now, &mut rig.door);
    rig.core.handle_opened(TRADING, rig.now, &mut rig.door);
    rig.log_in("[]");
    let of_trading =
        rig.door.broadcast.iter().filter(|event| usize::from(event.header.stream) == TRADING + 1);
    let told: Vec<_> =
        of_trading.filter_map(|event| event.body::<StreamStatus>()).map(|it| it.status).collect();
    let expected = [
        ConnectionStatus::WAITING,
        ConnectionStatus::CONNECTING,
        ConnectionStatus::LOGIN_SENT,
        ConnectionStatus::DOWNLOADING,
        ConnectionStatus::READY,
    ];
    assert_eq!(told[told.len() - expected.len()..], expected);
}

#[test]
fn what_the_venue_refuses_of_a_step_is_why_the_account_stays() {
    let mut rig = Rig::ready();
    rig.lose(&[]);
    rig.event(TRADING, tickpath_deribit::session::SessionEvent::Ready);
    rig.poll();
    rig.refuse(Method::GetOpenOrders, 13021, "forbidden");
    assert_eq!(rig.core.why().as_str(), "A1 requests open orders: forbidden (13021)");
    assert_eq!(rig.core.counters().faults, 0);
    rig.pass(Nanos::from_secs(2));
    rig.reply(Method::GetOpenOrders, "[]");
    rig.poll();
    rig.reply(Method::GetPositions, "[]");
    rig.reply(Method::GetAccountSummaries, r#"{"summaries":[]}"#);
    assert_eq!((rig.core.why().as_str(), rig.core.ready_accounts()), ("", 1));
}

#[test]
fn an_account_whose_login_may_not_trade_is_watched() {
    let mut rig = Rig::ready();
    let references = |rig: &Rig| rig.all::<AccountReference>().map(|it| it.may_trade).collect::<Vec<_>>();
    rig.lose(&[]);
    rig.event(TRADING, tickpath_deribit::session::SessionEvent::Ready);
    rig.core.handle_scope(TRADING, rig.now, false, &mut rig.door);
    rig.log_in("[]");
    assert_eq!((rig.core.ready_accounts(), references(&rig)), (1, vec![1, 0]));
    assert_eq!(rig.core.why().as_str(), "A1 is ready, and its login may not trade");
    let told = rig.door.broadcast.iter().rev().find_map(|event| event.body::<GatewayStatus>()).unwrap();
    assert_eq!(told.text, rig.core.why());
    rig.create(1001);
    assert_eq!((rig.error(), rig.count(Method::Buy)), (ErrorCode::NOT_PERMITTED, 0));
    rig.join(2, "trader", true);
    assert_eq!(references(&rig), [1, 0, 0]);
    // The key gets more rights.
    rig.lose(&[]);
    rig.core.handle_scope(TRADING, rig.now, true, &mut rig.door);
    rig.log_in("[]");
    rig.working(1002);
    assert_eq!(rig.core.why().as_str(), "");
    // Orders over FIX use another login.
    let mut rig = Rig::by_fix();
    rig.core.handle_scope(TRADING, rig.now, false, &mut rig.door);
    assert!(rig.core.accounts()[0].may_trade);
}

#[test]
fn patterns_that_let_no_instrument_in_are_told() {
    let mut rig = Rig::listening_to_nothing();
    assert_eq!((rig.core.instruments().len(), rig.core.listed_instruments()), (0, 2));
    assert_eq!(rig.core.why().as_str(), "no instrument of the venue matches symbols.include");
    rig.control.set_killed(true);
    rig.poll();
    assert_eq!(rig.core.why().as_str(), "the kill switch is on: no order leaves");
}

#[test]
fn what_a_login_may_not_cancel_is_kept_until_it_may() {
    let mut rig = Rig::ready();
    rig.working(1_001);
    let order = format!("[{}]", rig.order(1_001, "open", 0, 1));
    rig.lose(&[]);
    rig.core.handle_scope(TRADING, rig.now, false, &mut rig.door);
    rig.log_in(&order);
    rig.core.handle_leave(1);
    rig.pass(Nanos::from_secs(100));
    assert_eq!((rig.count(Method::Cancel), rig.core.cancels_wanted()), (0, 1));
    assert!(!rig.core.has_cancels(), "the gateway's end does not wait for it");
    rig.lose(&[]);
    rig.core.handle_scope(TRADING, rig.now, true, &mut rig.door);
    rig.log_in(&order);
    assert_eq!(rig.count(Method::Cancel), 1);
}
