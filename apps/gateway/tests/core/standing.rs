//! What clients are told of the gateway itself: how it stands and why, and what their accounts are held to.

use tickpath_gateway::admin::AdminCommand;
use tickpath_gateway::safety::RiskLimit;
use tickpath_gateway_protocol::{GatewayState, GatewayStatus, RiskLimits};

use crate::rig::{CLIENT, Rig};

/// The limits that the client was told last.
fn told(rig: &Rig) -> RiskLimits {
    rig.all::<RiskLimits>().last().expect("it was told")
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
    // One that comes later, with an order open and other limits.
    rig.working(1001);
    let limit = RiskLimit { order_size_max: Some(12_000_000_000), ..RiskLimit::default() };
    command(&mut rig, AdminCommand::SetLimits(0, Some(limit)));
    rig.door.sent.clear();
    let user = rig.core.user("trader").unwrap();
    rig.core.handle_join(CLIENT + 1, user, true);
    rig.poll();
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
    // An account that is not there is nobody's.
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
    rig.event(crate::rig::TRADING, tickpath_deribit::session::SessionEvent::Ready);
    rig.poll();
    assert_eq!(last(&rig).2, "not ready: A1 waits for its channels");
}
