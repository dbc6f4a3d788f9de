//! Orders over FIX, at the venue's own FIX acceptor.

use std::collections::BTreeMap;
use std::net::SocketAddrV4;

use tickpath_gateway::admin::call;
use tickpath_gateway::replay::replay;
use tickpath_gateway_protocol::{
    AckStatus, CancelAll, ConnectionStatus, CreateOrder, ErrorCode, Event, ExecutionFlags, GatewayStatus,
    ModifyOrder, OrderAck, OrderStatus, OrderType, Origin, Ready, ReadyScope, Side, StreamStatus,
    TimeInForce, TradeUpdate, Transport, Trigger,
};
use tickpath_test_support::{Direction, FaultProxy};

use crate::support::{Killable, PERPETUAL, TestClient, TestGateway, TestVenue, fixed};

/// Keys of the table `[venue]` for orders over FIX at this address.
pub fn by_fix(acceptor: SocketAddrV4) -> String {
    format!(
        "transport = 'fix'\nfix_uri = 'tcp://{acceptor}'\nfix_ping_interval = '1s'\nreconnect_pause_max = '1s'\n"
    )
}

impl TestClient {
    fn modify(&mut self, account: u16, symbol: u32, id: u64, quantity: &str, price: &str) {
        let change = ModifyOrder { price: fixed(price), quantity: fixed(quantity), ..ModifyOrder::default() };
        self.client.request(account, symbol, id, &change).unwrap();
    }

    /// The last ack of an order's requests.
    fn last_ack(&self, id: u64) -> Option<OrderAck> {
        self.all::<OrderAck>().map(|(_, ack)| ack).rfind(|ack| ack.client_order_id == id)
    }

    fn wait_acks(&mut self, id: u64, count: usize) -> OrderAck {
        self.wait(&format!("{count} acks of {id}"), |own| {
            (own.acks(id).len() >= count).then(|| own.last_ack(id)).flatten()
        })
    }

    /// Number of ready events of the account.
    fn ready_count(&self, account: u16) -> usize {
        let is_it = |(event, ready): &(Event, Ready)| {
            ready.scope == ReadyScope::ACCOUNT && event.header.account == account
        };
        self.all::<Ready>().filter(is_it).count()
    }

    fn wait_ready(&mut self, account: u16, count: usize) {
        self.wait("a ready account", |own| (own.ready_count(account) >= count).then_some(()));
    }

    /// Waits until the session of the account of `trader` is lost for the `losses`th time.
    fn wait_lost_fix(&mut self, losses: u32) {
        self.wait("the loss", |own| {
            own.all::<StreamStatus>()
                .any(|(_, body)| body.name.as_str() == "fix-A1" && body.losses >= losses)
                .then_some(())
        });
    }
}

#[test]
fn an_order_by_fix_lives_and_is_cancelled() {
    let folder = tempfile::tempdir().unwrap();
    let venue = TestVenue::start(folder.path());
    let gateway = TestGateway::start_with(folder.path(), venue.address, &by_fix(venue.fix));
    let mut trader = gateway.client("trader");
    let (account, symbol) = trader.ready(PERPETUAL);
    let id = trader.create(account, symbol, Side::BUY, "100", "59000");
    let working = trader.wait_order(id, OrderStatus::WORKING);
    trader.wait_acks(id, 2);
    assert_eq!(trader.acks(id), [AckStatus::RECEIVED, AckStatus::ACCEPTED]);
    assert_eq!((working.price, working.remaining_quantity), (fixed("59000"), fixed("100")));
    assert!(!working.external_order_id.is_empty());
    trader.cancel(account, symbol, id);
    let canceled = trader.wait_order(id, OrderStatus::CANCELED);
    assert_eq!(canceled.remaining_quantity, fixed("0"));
    let last = trader.wait_acks(id, 4);
    assert_eq!((last.origin, last.status), (Origin::EXCHANGE, AckStatus::ACCEPTED));
    assert_eq!(
        trader.acks(id),
        [AckStatus::RECEIVED, AckStatus::ACCEPTED, AckStatus::RECEIVED, AckStatus::ACCEPTED]
    );
    assert_eq!(trader.statuses(id), [OrderStatus::WORKING, OrderStatus::CANCELED]);
    // The status events name the transport of orders.
    assert!(trader.all::<GatewayStatus>().all(|(_, status)| status.trading == Transport::FIX));
    let mut streams = trader.all::<StreamStatus>().map(|(_, stream)| stream);
    assert!(streams.any(|stream| stream.transport == Transport::FIX && stream.is_trading == 1));
    assert!(streams.all(|stream| (stream.transport == Transport::FIX) == (stream.is_trading == 1)));
    let answer = call(&gateway.admin_socket(), "status").unwrap();
    assert_eq!(answer["transport"], "fix");
    gateway.stop();
    venue.stop();
}

#[test]
fn orders_by_fix_are_changed_filled_in_parts_and_refused_with_a_reason() {
    let folder = tempfile::tempdir().unwrap();
    let venue = TestVenue::start(folder.path());
    let gateway = TestGateway::start_with(folder.path(), venue.address, &by_fix(venue.fix));
    let (mut trader, mut maker) = (gateway.client("trader"), gateway.client("maker"));
    let (of_maker, symbol) = maker.ready(PERPETUAL);
    let (account, _) = trader.ready(PERPETUAL);

    // Other prices and quantities: each change has its two acks, and is reported once.
    let resting = maker.create(of_maker, symbol, Side::SELL, "1000", "60020");
    maker.wait_order(resting, OrderStatus::WORKING);
    maker.modify(of_maker, symbol, resting, "2000", "60010");
    maker.wait("the change", |own| {
        own.order(resting).filter(|it| it.remaining_quantity == fixed("2000") && it.price == fixed("60010"))
    });
    maker.wait_acks(resting, 4);
    maker.modify(of_maker, symbol, resting, "1000", "60011");
    maker.wait("the change", |own| own.order(resting).filter(|it| it.price == fixed("60011")));
    maker.wait_acks(resting, 6);
    assert!(maker.acks(resting).iter().all(|ack| [AckStatus::RECEIVED, AckStatus::ACCEPTED].contains(ack)));

    // Both sides get the partial fill, with its trade and the price.
    let taking = trader.create(account, symbol, Side::BUY, "400", "60011");
    let filled = trader.wait_order(taking, OrderStatus::COMPLETED);
    assert_eq!((filled.traded_quantity, filled.average_price), (fixed("400"), fixed("60011")));
    let rest =
        maker.wait("what is left", |own| own.order(resting).filter(|it| it.traded_quantity == fixed("400")));
    assert_eq!((rest.status, rest.remaining_quantity), (OrderStatus::WORKING, fixed("600")));
    for client in [&mut trader, &mut maker] {
        client.wait("the trade", |own| own.all::<TradeUpdate>().next().map(|_| ()));
        assert_eq!(client.all::<TradeUpdate>().count(), 1);
    }

    // Rejections carry the venue's text; requests that FIX cannot express are not sent.
    let dear = trader.create(account, symbol, Side::BUY, "100", "90000");
    let refused = trader.wait_acks(dear, 2);
    assert_eq!(
        (refused.origin, refused.status, refused.error),
        (Origin::EXCHANGE, AckStatus::REJECTED, ErrorCode::VENUE)
    );
    assert!(refused.text.as_str().starts_with("price_too_high"), "{}", refused.text);
    trader.wait_order(dear, OrderStatus::REJECTED);
    let limit = CreateOrder {
        price: fixed("60011"),
        quantity: fixed("100"),
        side: Side::BUY,
        order_type: OrderType::LIMIT,
        time_in_force: TimeInForce::GTC,
        ..CreateOrder::default()
    };
    let post = ExecutionFlags::POST_ONLY.with(ExecutionFlags::REJECT_POST_ONLY);
    for (order, status, error) in [
        (CreateOrder { execution: post, ..limit }, AckStatus::REJECTED, ErrorCode::WOULD_TAKE),
        (
            CreateOrder {
                order_type: OrderType::TAKE_LIMIT,
                stop_price: fixed("60500"),
                trigger: Trigger::LAST,
                ..limit
            },
            AckStatus::REJECTED,
            ErrorCode::NOT_SUPPORTED,
        ),
    ] {
        let id = trader.client.next_order_id();
        trader.client.request(account, symbol, id, &order).unwrap();
        let ack = trader.wait("the refusal", |own| own.last_ack(id).filter(|ack| ack.status == status));
        assert_eq!((ack.status, ack.error), (status, error), "{ack:?}");
    }

    // A stop order, which cannot be changed over FIX.
    let stop = CreateOrder {
        order_type: OrderType::STOP_MARKET,
        price: fixed("0"),
        stop_price: fixed("62000"),
        trigger: Trigger::LAST,
        ..limit
    };
    let waiting = trader.client.next_order_id();
    trader.client.request(account, symbol, waiting, &stop).unwrap();
    trader.wait_order(waiting, OrderStatus::UNTRIGGERED);
    trader.wait_acks(waiting, 2);
    let limited = CreateOrder { order_type: OrderType::STOP_LIMIT, price: fixed("62500"), ..stop };
    let stop_limit = trader.client.next_order_id();
    trader.client.request(account, symbol, stop_limit, &limited).unwrap();
    let untriggered = trader.wait_order(stop_limit, OrderStatus::UNTRIGGERED);
    assert_eq!((untriggered.price, untriggered.stop_price), (fixed("62500"), fixed("62000")));
    assert_eq!(
        (untriggered.order_type, untriggered.remaining_quantity),
        (OrderType::STOP_LIMIT, fixed("100"))
    );
    let accepted = trader.wait_acks(stop_limit, 2);
    assert_eq!((accepted.origin, accepted.status), (Origin::EXCHANGE, AckStatus::ACCEPTED));
    let change = ModifyOrder { quantity: fixed("200"), ..ModifyOrder::default() };
    trader.client.request(account, symbol, waiting, &change).unwrap();
    assert_eq!(trader.wait_acks(waiting, 3).error, ErrorCode::NOT_SUPPORTED);

    // All orders at once.
    let open = trader.create(account, symbol, Side::BUY, "100", "59000");
    trader.wait_order(open, OrderStatus::WORKING);
    trader.client.request(account, 0, 0, &CancelAll::default()).unwrap();
    for id in [open, waiting, stop_limit] {
        trader.wait_order(id, OrderStatus::CANCELED);
    }
    assert_eq!(maker.order(resting).unwrap().status, OrderStatus::WORKING);
    gateway.stop();
    venue.stop();
}

#[test]
fn the_kill_switch_cancels_by_fix() {
    let folder = tempfile::tempdir().unwrap();
    let venue = TestVenue::start(folder.path());
    let gateway = TestGateway::start_with(folder.path(), venue.address, &by_fix(venue.fix));
    let mut trader = gateway.client("trader");
    let (account, symbol) = trader.ready(PERPETUAL);
    let ids: Vec<u64> =
        ["59000", "59001"].map(|price| trader.create(account, symbol, Side::BUY, "100", price)).into();
    for id in &ids {
        trader.wait_order(*id, OrderStatus::WORKING);
    }
    call(&gateway.admin_socket(), "kill").unwrap();
    for id in &ids {
        trader.wait_order(*id, OrderStatus::CANCELED);
    }
    let refused = trader.create(account, symbol, Side::BUY, "100", "59000");
    assert_eq!(trader.wait_acks(refused, 1).error, ErrorCode::KILLED);
    gateway.stop();
    venue.stop();
}

#[test]
fn orders_in_flight_when_the_session_is_cut_are_found_or_rejected_and_never_doubled() {
    let folder = tempfile::tempdir().unwrap();
    let venue = TestVenue::start(folder.path());
    let proxy = FaultProxy::to(venue.fix);
    // Long enough that no request times out before the session is cut.
    let more = by_fix(proxy.address) + "cancel_on_disconnect = false\nrequest_timeout = '30s'\n";
    let gateway = TestGateway::start_with(folder.path(), venue.address, &more);
    let mut trader = gateway.client("trader");
    let (account, symbol) = trader.ready(PERPETUAL);
    let stays = trader.create(account, symbol, Side::BUY, "100", "59000");
    trader.wait_order(stays, OrderStatus::WORKING);
    trader.wait_acks(stays, 2);

    // The order reaches the venue, and its answer is lost.
    proxy.drop_bytes(Direction::ToClient, true);
    let lives = trader.create(account, symbol, Side::BUY, "100", "59001");
    trader.wait_order(lives, OrderStatus::WORKING);
    assert_eq!(trader.acks(lives), [AckStatus::RECEIVED], "the WebSocket told of it, FIX has not answered");
    proxy.cut();
    trader.wait_lost_fix(1);
    assert_eq!(trader.wait_acks(lives, 2).error, ErrorCode::CONNECTION_LOST);
    trader.wait_ready(account, 2);
    assert_eq!(trader.order(lives).unwrap().status, OrderStatus::WORKING);
    assert_eq!(trader.order(stays).unwrap().status, OrderStatus::WORKING);

    // An order and a cancel that never arrive.
    proxy.drop_bytes(Direction::ToServer, true);
    let never = trader.create(account, symbol, Side::BUY, "100", "59002");
    trader.cancel(account, symbol, stays);
    trader.wait_acks(never, 1);
    trader.wait_acks(stays, 3);
    trader.wait("lost bytes", |_| (proxy.dropped(Direction::ToServer) > 0).then_some(()));
    proxy.cut();
    let unknown = trader.wait_acks(never, 2);
    assert_eq!((unknown.origin, unknown.status), (Origin::GATEWAY, AckStatus::TIMEOUT));
    // The result is certain only when its request can no longer arrive; the cancel is sent again.
    trader.wait_order(never, OrderStatus::REJECTED);
    trader.wait_order(stays, OrderStatus::CANCELED);
    trader.wait_ready(account, 3);

    // The client's view matches the venue: exactly one order is open.
    trader.wait("one open order", |_| (gateway.view.open_orders.read() == 1).then_some(()));
    trader.cancel(account, symbol, lives);
    trader.wait_order(lives, OrderStatus::CANCELED);
    gateway.stop();
    venue.stop();
}

#[test]
fn a_silent_session_is_left_and_orders_go_with_it_where_that_is_wanted() {
    let folder = tempfile::tempdir().unwrap();
    let venue = TestVenue::start(folder.path());
    let proxy = FaultProxy::to(venue.fix);
    let gateway = TestGateway::start_with(folder.path(), venue.address, &by_fix(proxy.address));
    let mut trader = gateway.client("trader");
    let (account, symbol) = trader.ready(PERPETUAL);
    let id = trader.create(account, symbol, Side::BUY, "100", "59000");
    trader.wait_order(id, OrderStatus::WORKING);
    // Neither end receives anything: both notice it by missing heartbeats, and the venue cancels.
    proxy.drop_bytes(Direction::ToServer, true);
    proxy.drop_bytes(Direction::ToClient, true);
    trader.wait_lost_fix(1);
    let refused = trader.create(account, symbol, Side::BUY, "100", "59000");
    assert_eq!(trader.wait_acks(refused, 1).error, ErrorCode::NOT_READY);
    let canceled = trader.wait_order(id, OrderStatus::CANCELED);
    assert_eq!(canceled.error, ErrorCode::CONNECTION_LOST);
    proxy.cut();
    trader.wait_ready(account, 2);
    // The reconnect was reported step by step.
    let mut steps: BTreeMap<_, Vec<ConnectionStatus>> = BTreeMap::new();
    for (event, status) in trader.all::<StreamStatus>() {
        if status.transport == Transport::FIX && status.is_trading == 1 {
            steps.entry(event.header.stream).or_default().push(status.status);
        }
    }
    let expected = [
        ConnectionStatus::WAITING,
        ConnectionStatus::CONNECTING,
        ConnectionStatus::LOGIN_SENT,
        ConnectionStatus::READY,
    ];
    let is_told = |told: &Vec<ConnectionStatus>| told.windows(expected.len()).any(|part| part == expected);
    assert!(steps.values().any(is_told), "{steps:?}");
    let next = trader.create(account, symbol, Side::BUY, "100", "59000");
    trader.wait_order(next, OrderStatus::WORKING);
    gateway.stop();
    venue.stop();
}

#[test]
fn a_client_that_goes_while_the_session_is_down_has_its_orders_cancelled_by_the_other_connection() {
    let folder = tempfile::tempdir().unwrap();
    let venue = TestVenue::start(folder.path());
    let proxy = FaultProxy::to(venue.fix);
    let more = by_fix(proxy.address) + "cancel_on_disconnect = false\n";
    let gateway = TestGateway::start_with(folder.path(), venue.address, &more);
    let (mut trader, mut watcher) = (gateway.client("trader"), gateway.client("trader"));
    let (account, symbol) = trader.ready(PERPETUAL);
    watcher.ready(PERPETUAL);
    let id = trader.create(account, symbol, Side::BUY, "100", "59000");
    trader.wait_order(id, OrderStatus::WORKING);
    watcher.wait_order(id, OrderStatus::WORKING);
    proxy.drop_bytes(Direction::ToServer, true);
    proxy.drop_bytes(Direction::ToClient, true);
    watcher.wait_lost_fix(1);
    drop(trader);
    watcher.wait_order(id, OrderStatus::CANCELED);
    assert_eq!(watcher.ready_count(account), 1);
    gateway.stop();
    drop(proxy);
    venue.stop();
}

#[test]
fn the_venue_and_the_gateway_may_go_and_come_back_with_orders_by_fix() {
    let folder = tempfile::tempdir().unwrap();
    let venue = TestVenue::start(folder.path());
    let (address, fix) = (venue.address, venue.fix);
    let more = by_fix(fix) + "cancel_on_disconnect = false\n";
    let gateway = Killable::start(folder.path(), address, &more);
    let mut trader = gateway.client("trader");
    let (account, symbol) = trader.ready(PERPETUAL);
    let id = trader.create(account, symbol, Side::BUY, "100", "59000");
    trader.wait_order(id, OrderStatus::WORKING);
    venue.stop();
    trader.wait_lost_fix(1);
    let venue = TestVenue::start_at(folder.path(), address, Some(fix));
    trader.wait_ready(account, 2);
    assert_eq!(trader.order(id).unwrap().status, OrderStatus::WORKING);
    gateway.kill();
    let gateway = TestGateway::start_with(folder.path(), venue.address, &more);
    trader.events.clear();
    let (account, symbol) = trader.ready(PERPETUAL);
    trader.wait_order(id, OrderStatus::WORKING);
    // The venue's order id is used to change and cancel an order of an earlier instance.
    trader.modify(account, symbol, id, "200", "59001");
    trader.wait("the change", |own| own.order(id).filter(|it| it.remaining_quantity == fixed("200")));
    trader.cancel(account, symbol, id);
    trader.wait_order(id, OrderStatus::CANCELED);
    gateway.stop();
    venue.stop();
}

#[test]
fn a_run_with_orders_by_fix_is_logged_and_replayed() {
    let folder = tempfile::tempdir().unwrap();
    let venue = TestVenue::start(folder.path());
    let proxy = FaultProxy::to(venue.fix);
    let logs = folder.path().join("logs");
    let more = format!("{}[event_log]\nfolder = '{}'\n", by_fix(proxy.address), logs.display());
    let gateway = TestGateway::start_with(folder.path(), venue.address, &more);
    let (mut trader, mut maker) = (gateway.client("trader"), gateway.client("maker"));
    let (of_maker, symbol) = maker.ready(PERPETUAL);
    let (account, _) = trader.ready(PERPETUAL);
    let resting = maker.create(of_maker, symbol, Side::SELL, "1000", "60010");
    maker.wait_order(resting, OrderStatus::WORKING);
    let taking = trader.create(account, symbol, Side::BUY, "400", "60010");
    trader.wait_order(taking, OrderStatus::COMPLETED);
    // The updates may have come over the WebSocket; the second ack comes over FIX.
    maker.wait_acks(resting, 2);
    trader.wait_acks(taking, 2);
    proxy.drop_bytes(Direction::ToClient, true);
    let id = trader.create(account, symbol, Side::BUY, "100", "59000");
    trader.wait_acks(id, 1);
    proxy.cut();
    trader.wait_ready(account, 2);
    gateway.stop();
    drop(proxy);
    venue.stop();
    let found = crate::story::log::files(&logs);
    let count =
        |text: &str| found.iter().map(|file| crate::story::log::count(file, text.as_bytes())).sum::<usize>();
    assert_eq!(count("\u{1}35=D\u{1}"), 3, "what was sent is in the log");
    assert!(count("\u{1}35=8\u{1}") >= 2, "what came too");
    assert_eq!(count("\u{1}554="), 0, "no password is");
    let replayed = replay(&found).unwrap();
    assert_eq!(replayed.difference, None);
}

#[test]
fn the_sample_trades_by_fix_where_two_lines_of_it_say_so() {
    let folder = tempfile::tempdir().unwrap();
    let venue = TestVenue::start(folder.path());
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../configs/gateway.toml");
    let socket = folder.path().join("gateway.sock");
    let own =
        format!("client_listen_address = '{0}'\nadmin_listen_address = '{0}.admin'\n", socket.display());
    let mut text = own + &std::fs::read_to_string(path).unwrap();
    for (sample, here) in [
        ("metrics_listen_address = \"127.0.0.1:26440\"", String::new()),
        ("127.0.0.1:26420", venue.address.to_string()),
        ("# transport = \"fix\"", "transport = \"fix\"".to_owned()),
        ("# fix_uri = \"tcp://127.0.0.1:26421\"", format!("fix_uri = \"tcp://{}\"", venue.fix)),
    ] {
        assert!(text.contains(sample), "{sample}");
        text = text.replace(sample, &here);
    }
    let gateway = TestGateway::of(folder.path(), &text, socket);
    let mut trader = gateway.client("trader");
    let (account, symbol) = trader.ready(PERPETUAL);
    let id = trader.create(account, symbol, Side::BUY, "100", "59000");
    trader.wait_order(id, OrderStatus::WORKING);
    let stream = trader.wait("the ack", |own| {
        let mut acks = own.all::<OrderAck>();
        acks.find(|(_, ack)| ack.origin == Origin::EXCHANGE).map(|(event, _)| event.header.stream)
    });
    let by = trader.all::<StreamStatus>().find(|(event, _)| event.header.stream == stream).unwrap().1;
    assert_eq!((by.transport, by.name.as_str()), (Transport::FIX, "fix-A1"));
    gateway.stop();
    venue.stop();
}
