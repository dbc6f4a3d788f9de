//! State of a gateway as reported to clients, by the admin socket and in the metrics.

use tickpath_gateway::admin::call;
use tickpath_gateway_protocol::{
    CancelAll, ErrorCode, Event, GatewayStatus, MassQuote, OrderAck, OrderStatus, RiskLimits, Side,
};
use tickpath_test_support::Deadline;

use crate::support::{PERPETUAL, TestGateway, TestVenue, fixed};

/// Value of a metric's sample; `labels` are those after the gateway's name.
fn sample(page: &str, name: &str, labels: &str) -> Option<u64> {
    let labels = if labels.is_empty() { String::new() } else { format!(",{labels}") };
    let start = format!("tickpath_gateway_{name}{{gateway=\"test\"{labels}}} ");
    page.lines().find_map(|line| line.strip_prefix(&start)).map(|value| value.parse().unwrap())
}

#[test]
fn a_running_gateway_is_told_whole() {
    let folder = tempfile::tempdir().unwrap();
    let venue = TestVenue::start(folder.path());
    let gateway = TestGateway::start(folder.path(), venue.address);
    let socket = gateway.admin_socket();
    let (mut trader, mut maker) = (gateway.client("trader"), gateway.client("maker"));
    let (account, symbol) = trader.ready(PERPETUAL);
    maker.ready(PERPETUAL);
    trader.wait("both accounts", |own| {
        let both = |(_, status): (Event, GatewayStatus)| {
            (status.accounts_ready == 2).then(|| status.text.as_str().to_owned())
        };
        own.all().find_map(both)
    });
    let id = trader.create(account, symbol, Side::BUY, "100", "59000");
    trader.wait_order(id, OrderStatus::WORKING);

    let answer = call(&socket, "status").unwrap();
    for (key, value) in [
        ("gateway", serde_json::json!("test")),
        ("state", "ready".into()),
        ("transport", "ws".into()),
        ("is_trading", true.into()),
        ("why", "".into()),
        ("accounts_ready", 2.into()),
        ("open_orders", 1.into()),
        ("clients", 2.into()),
    ] {
        assert_eq!(answer[key], value, "{key} in {answer:#}");
    }
    assert!(answer["state_since_ns"].as_u64() > answer["started_ns"].as_u64(), "{answer:#}");
    let of = |list: &str, name: &str| {
        let items = answer[list].as_array().unwrap();
        items.iter().find(|item| item["name"] == name || item["user"] == name).cloned().unwrap()
    };
    let account_told = of("accounts", "A1");
    assert_eq!((&account_told["step"], &account_told["open_orders"]), (&"ready".into(), &1.into()));
    let connection = of("connections", "A1");
    assert_eq!(
        (&connection["status"], &connection["is_trading"], &connection["losses"]),
        (&"ready".into(), &true.into(), &0.into())
    );
    assert_eq!(of("connections", "market-1")["is_trading"], false);
    assert_eq!(of("client_list", "maker")["may_trade"], true);

    let answer = call(&socket, "limits A1 order_size_max=150 open_orders_max=4").unwrap();
    assert_eq!(answer["accounts"][0]["published"]["order_size_max"], "150", "{answer:#}");
    assert_eq!(answer["accounts"][1]["published"], serde_json::Value::Null, "{answer:#}");
    trader.wait("limits", |own| {
        own.all::<RiskLimits>().find(|(_, it)| it.max_order_quantity == fixed("150")).map(|_| ())
    });
    let answer = call(&socket, "kill").unwrap();
    assert_eq!((&answer["is_trading"], &answer["is_killed"]), (&false.into(), &true.into()), "{answer:#}");
    assert_eq!(answer["state"], "killed", "{answer:#}");
    assert!(answer["why"].as_str().unwrap().contains("release test"), "{answer:#}");
    trader
        .wait("the kill switch", |own| own.all::<RiskLimits>().find(|(_, it)| it.is_killed == 1).map(|_| ()));
    trader.wait_order(id, OrderStatus::CANCELED);
    maker
        .wait("the kill switch", |own| own.all::<RiskLimits>().find(|(_, it)| it.is_killed == 1).map(|_| ()));
    let answer = call(&socket, "release test").unwrap();
    let told = (&answer["state"], &answer["is_trading"], &answer["why"]);
    assert_eq!(told, (&"ready".into(), &true.into(), &"".into()), "{answer:#}");
    gateway.stop();
    venue.stop();
}

#[test]
fn refusals_of_every_kind_and_clients_of_one_name_are_measured() {
    let folder = tempfile::tempdir().unwrap();
    let venue = TestVenue::start(folder.path());
    let gateway = TestGateway::start(folder.path(), venue.address);
    // Two clients of one user with the same name.
    let (mut trader, mut second) = (gateway.client("trader"), gateway.client("trader"));
    let (account, symbol) = trader.ready(PERPETUAL);
    second.ready(PERPETUAL);
    let beyond = account + 7;
    trader.client.request(beyond, symbol, 0, &CancelAll::default()).unwrap();
    trader.client.request(beyond, symbol, 0, &MassQuote::default()).unwrap();
    trader.wait("two refusals", |own| {
        let refused = own.events.iter().filter_map(|event| event.quote_ack());
        (refused.filter(|ack| ack.error != ErrorCode::default()).count() == 2).then_some(())
    });
    let id = trader.create(account, symbol, Side::BUY, "100", "59000");
    trader.wait_order(id, OrderStatus::WORKING);
    let refused = trader.create(account, symbol, Side::BUY, "105", "59000");
    trader.wait("the refusal", |own| {
        own.all::<OrderAck>().find(|(_, ack)| ack.client_order_id == refused).map(|_| ())
    });
    let mut wrong = gateway.client_with("trader", "guess");
    wrong.wait("its refusal", |own| own.client.failure().map(|_| ()));
    // The metrics page of a gateway lags by some milliseconds.
    let deadline = Deadline::start();
    let page = loop {
        let page = gateway.metrics.render();
        if sample(&page, "door_total", "what=\"refused\"") == Some(1) {
            break page;
        }
        assert!(!deadline.is_over(), "{page}");
        std::thread::sleep(std::time::Duration::from_millis(5));
    };
    assert_eq!(sample(&page, "exceptions_total", "exception=\"login_refused\""), Some(1), "{page}");
    assert_eq!(sample(&page, "door_total", "what=\"admitted\""), Some(2), "{page}");
    assert_eq!(sample(&page, "refusals_total", "reason=\"invalid_quantity\""), Some(1), "{page}");
    let refusals = page.lines().filter(|line| line.starts_with("tickpath_gateway_refusals_total{"));
    let count = |line: &str| line.rsplit(' ').next().unwrap().parse::<u64>().unwrap();
    assert_eq!(refusals.map(count).sum::<u64>(), 3, "{page}");
    // Two orders were requested, and one was sent.
    assert_eq!(sample(&page, "requests_total", "request=\"create_order\""), Some(2), "{page}");
    let left = "request=\"create_order\"";
    assert_eq!(sample(&page, "request_latency_nanoseconds_count", left), Some(1), "{page}");
    assert_eq!(sample(&page, "round_trip_latency_nanoseconds_count", left), Some(1), "{page}");
    let heartbeats: Vec<&str> = page
        .lines()
        .filter(|line| line.starts_with("tickpath_gateway_heartbeat_latency_nanoseconds_count{"))
        .map(|line| line.rsplit_once(' ').unwrap().0)
        .collect();
    let mut distinct = heartbeats.clone();
    distinct.sort_unstable();
    distinct.dedup();
    assert_eq!((heartbeats.len(), distinct.len()), (4, 4), "{heartbeats:#?}");
    gateway.stop();
    venue.stop();
}

/// The fourth wrong password in a row is answered later, and so are further ones; the right one is accepted.
#[test]
fn wrong_passwords_are_put_off_and_the_right_one_is_taken() {
    let folder = tempfile::tempdir().unwrap();
    let venue = TestVenue::start(folder.path());
    let gateway = TestGateway::start(folder.path(), venue.address);
    let guess = || {
        let started = std::time::Instant::now();
        let mut wrong = gateway.client_with("trader", "guess");
        wrong.wait("its refusal", |own| own.client.failure().map(|_| ()));
        started.elapsed()
    };
    let took: Vec<_> = (0..5).map(|_| guess()).collect();
    let [.., fourth, fifth] = took[..] else { panic!() };
    let ms = std::time::Duration::from_millis;
    assert!(fourth >= ms(100) && fifth >= ms(200), "{took:?}");
    gateway.client("trader").ready(PERPETUAL);
    gateway.stop();
    venue.stop();
}
