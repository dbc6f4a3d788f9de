//! Permissions and rate limits of users, and connections that are dropped deliberately.

use std::time::Duration;

use tickpath_gateway_protocol::frame::RefusalReason;
use tickpath_gateway_protocol::{
    AckStatus, ErrorCode, Event, GatewayStatus, OrderAck, OrderStatus, RateLimitKind, RateLimitReason,
    RateLimitTrigger, Ready, ReadyScope, ReferenceData, Side, StreamStatus,
};
use tickpath_test_support::{Deadline, PATIENCE};

use crate::support::{PERPETUAL, TestClient, TestGateway, TestVenue};

/// Error of a rejected order.
fn refusal(client: &mut TestClient, id: u64) -> ErrorCode {
    client.wait("a refusal", |own| {
        let of_order = |(_, ack): (Event, OrderAck)| {
            (ack.client_order_id == id && ack.status == AckStatus::REJECTED).then_some(ack.error)
        };
        own.all::<OrderAck>().find_map(of_order)
    })
}

#[test]
fn a_flood_is_banned_at_the_rings_and_at_the_door() {
    let folder = tempfile::tempdir().unwrap();
    let venue = TestVenue::start(folder.path());
    let more = "[users.flood]\npassword = 'test'\naccounts = 'A1'\nrequest_limit = 20\nban_period = '300s'\n";
    let gateway = TestGateway::start_with(folder.path(), venue.address, more);
    let (mut flood, mut trader) = (gateway.client("flood"), gateway.client("trader"));
    let (account, symbol) = flood.ready(PERPETUAL);
    trader.ready(PERPETUAL);
    // All at once: the first request over the limit and all later ones have no effect.
    let ids: Vec<u64> = (0..40).map(|_| flood.create(account, symbol, Side::BUY, "10", "59000")).collect();
    flood.wait("forty answers", |own| ids.iter().all(|id| !own.acks(*id).is_empty()).then_some(()));
    let refused: Vec<ErrorCode> = ids[20..].iter().map(|id| refusal(&mut flood, *id)).collect();
    assert_eq!(refused[0], ErrorCode::RATE_LIMITED);
    assert!(refused[1..].iter().all(|error| *error == ErrorCode::BANNED), "{refused:?}");
    assert!(ids[..20].iter().all(|id| flood.acks(*id)[0] == AckStatus::RECEIVED), "{}", flood.story());
    let trigger = flood.wait("the ban", |own| own.all::<RateLimitTrigger>().next().map(|(_, it)| it));
    assert_eq!((trigger.limit, trigger.reason), (RateLimitKind::USER, RateLimitReason::BANNED));
    // Another client of the same user receives the remaining time of the ban; others are not affected.
    let mut again = gateway.client("flood");
    let (reason, wait) = again.wait("its refusal", |own| own.refusal());
    assert_eq!(reason, RefusalReason::BANNED);
    assert!((1_000_000_000..=300_000_000_000).contains(&wait), "{wait}");
    let id = trader.create(account, symbol, Side::BUY, "100", "58000");
    trader.wait_order(id, OrderStatus::WORKING);
    gateway.stop();
    venue.stop();
}

#[test]
fn a_user_and_an_account_trade_their_own_symbols_alone() {
    let folder = tempfile::tempdir().unwrap();
    let venue = TestVenue::start(folder.path());
    let more = "[users.eth]\npassword = 'test'\naccounts = ['A1', 'C1']\nsymbols = 'ETH-.*'\nrequest_limit = 100\n\
                [accounts.C1]\nlogin = 'bert'\nsecret = 'test'\nsymbols = 'BTC-.*'\n";
    let gateway = TestGateway::start_with(folder.path(), venue.address, more);
    let mut eth = gateway.client("eth");
    eth.wait("two ready accounts", |own| {
        let ready = own.all::<Ready>().filter(|(_, ready)| ready.scope == ReadyScope::ACCOUNT);
        (ready.count() == 2).then_some(())
    });
    let symbol_of = |own: &TestClient, name: &str| {
        own.all::<ReferenceData>().find(|(_, it)| it.name.as_str() == name).map(|(it, _)| it.header.symbol)
    };
    let (btc, other) = (symbol_of(&eth, PERPETUAL).unwrap(), symbol_of(&eth, "ETH-PERPETUAL").unwrap());
    // Accounts are numbered by name: A1, B1, C1.
    let refused = eth.create(1, btc, Side::BUY, "100", "59000");
    assert_eq!(refusal(&mut eth, refused), ErrorCode::UNKNOWN_SYMBOL);
    let refused = eth.create(3, other, Side::BUY, "100", "2000");
    assert_eq!(refusal(&mut eth, refused), ErrorCode::UNKNOWN_SYMBOL);
    let id = eth.create(1, other, Side::BUY, "100", "2000");
    eth.wait_order(id, OrderStatus::WORKING);
    gateway.stop();
    venue.stop();
}

#[test]
fn connections_that_are_dropped_on_purpose_come_back_and_lose_no_order() {
    let folder = tempfile::tempdir().unwrap();
    let venue = TestVenue::start(folder.path());
    let more = "cancel_on_disconnect = false\n[test]\ndisconnect_after = '700ms'\n";
    let gateway = TestGateway::start_with(folder.path(), venue.address, more);
    let mut trader = gateway.client("trader");
    let (account, symbol) = trader.ready(PERPETUAL);
    let id = loop {
        let id = trader.create(account, symbol, Side::BUY, "100", "59000");
        trader.wait("an answer", |own| own.acks(id).first().map(|_| ()));
        // The connection may just have been dropped.
        if trader.acks(id)[0] == AckStatus::RECEIVED {
            break id;
        }
        std::thread::sleep(Duration::from_millis(20));
    };
    trader.wait_order(id, OrderStatus::WORKING);
    let of_account = |(event, status): (Event, StreamStatus)| {
        (status.is_trading == 1 && event.header.stream == 17).then_some(status.losses)
    };
    for losses in [1, 2] {
        trader
            .wait("a loss", |own| own.all().filter_map(of_account).any(|lost| lost >= losses).then_some(()));
    }
    trader.events.clear();
    trader.wait("a ready account", |own| {
        own.all::<Ready>().any(|(_, it)| it.scope == ReadyScope::ACCOUNT).then_some(())
    });
    // The order is still open, and its end is reported once.
    loop {
        trader.cancel(account, symbol, id);
        let is_over = trader.wait("an answer", |own| {
            let is_canceled = own.order(id).is_some_and(|it| it.status == OrderStatus::CANCELED);
            let refused = own.acks(id).contains(&AckStatus::REJECTED);
            (is_canceled || refused).then_some(is_canceled)
        });
        if is_over {
            break;
        }
        trader.events.clear();
    }
    gateway.stop();
    venue.stop();
}

#[test]
fn a_login_that_may_not_trade_says_so() {
    let folder = tempfile::tempdir().unwrap();
    let venue = TestVenue::start(folder.path());
    let (text, socket) =
        crate::support::config_text(folder.path(), venue.address, "cancel_on_disconnect = false");
    let scope = "[accounts.A1]\ngrant = 'client_credentials'\nscope = 'account:read trade:read'\n";
    let gateway = TestGateway::of(folder.path(), &text.replace("[accounts.A1]\n", scope), socket);
    let (mut trader, mut maker) = (gateway.client("trader"), gateway.client("maker"));
    let (account, symbol) = trader.ready(PERPETUAL);
    let (of_maker, _) = maker.ready(PERPETUAL);
    let id = trader.create(account, symbol, Side::BUY, "100", "59000");
    assert_eq!(refusal(&mut trader, id), ErrorCode::NOT_PERMITTED);
    let id = maker.create(of_maker, symbol, Side::BUY, "100", "59000");
    maker.wait_order(id, OrderStatus::WORKING);
    trader.wait("both accounts", |own| {
        let text = |(_, status): (Event, GatewayStatus)| (status.accounts_ready == 2).then_some(status.text);
        own.all().filter_map(text).find(|text| text.as_str() == "A1 is ready, and its login may not trade")
    });
    let deadline = Deadline::start();
    loop {
        let answer = tickpath_gateway::admin::call(&gateway.admin_socket(), "status").unwrap();
        let account = &answer["accounts"][0];
        if account["words"] == "is ready, and its login may not trade" {
            assert_eq!((&account["may_trade"], &answer["is_trading"]), (&false.into(), &true.into()));
            break;
        }
        assert!(!deadline.is_over(), "{answer:#}");
        std::thread::sleep(Duration::from_millis(5));
    }
    gateway.stop();
    venue.stop();
}

#[test]
fn an_account_whose_orders_the_venue_does_not_tell_of_cannot_be_traded_with() {
    let folder = tempfile::tempdir().unwrap();
    // A key without a trading scope.
    let key = "client_id = \"anna\"\n";
    let venue = TestVenue::start_with(folder.path(), |text| {
        text.replace(key, &format!("{key}scope = \"account:read\"\n"))
    });
    let gateway = TestGateway::start(folder.path(), venue.address);
    let words = "the venue refuses user.changes.any.any.raw: the account cannot be traded with";
    let mut lines = Vec::new();
    loop {
        let line = gateway.notes.recv_timeout(PATIENCE);
        lines.push(line.unwrap_or_else(|_| panic!("{lines:#?}")));
        if lines.iter().any(|line| line.starts_with("connection A1:") && line.contains(words)) {
            break;
        }
    }
    let (mut trader, mut maker) = (gateway.client("trader"), gateway.client("maker"));
    let (of_maker, symbol) = maker.ready(PERPETUAL);
    let id = maker.create(of_maker, symbol, Side::BUY, "100", "59000");
    maker.wait_order(id, OrderStatus::WORKING);
    trader.wait("the instruments", |own| own.all::<Ready>().next().map(|_| ()));
    let id = trader.create(1, symbol, Side::BUY, "100", "59000");
    assert_eq!(refusal(&mut trader, id), ErrorCode::NOT_READY);
    let told = tickpath_gateway::admin::call(&gateway.admin_socket(), "status").unwrap();
    assert_eq!((&told["accounts"][0]["step"], &told["accounts_ready"]), (&"channels".into(), &1.into()));
    assert_eq!(told["why"], "A1 waits for its channels", "{told:#}");
    gateway.stop();
    venue.stop();
}

#[test]
fn what_the_operator_has_to_know_stands_in_the_status() {
    let folder = tempfile::tempdir().unwrap();
    let venue = TestVenue::start(folder.path());
    let (text, socket) = crate::support::config_text(folder.path(), venue.address, "");
    let text =
        text.replacen("request_limit = 10000", "request_limit = 1", 1) + "[symbols]\ninclude = 'DOGE'\n";
    let gateway = TestGateway::of(folder.path(), &text, socket);
    let mut trader = gateway.client("trader");
    trader.wait("market data", |own| own.all::<Ready>().next().map(|_| ()));
    let told = || tickpath_gateway::admin::call(&gateway.admin_socket(), "status").unwrap();
    assert_eq!(told()["banned"], serde_json::json!([]));
    for _ in 0..2 {
        trader.create(1, 1, Side::BUY, "100", "59000");
    }
    trader.wait("a ban", |own| {
        own.all::<OrderAck>().any(|(_, ack)| ack.error == ErrorCode::RATE_LIMITED).then_some(())
    });
    let told = told();
    assert_eq!(told["banned"][0]["user"], "trader", "{told:#}");
    assert!(told["banned"][0]["until_ns"].as_u64() > told["started_ns"].as_u64(), "{told:#}");
    assert_eq!((&told["instruments"], &told["is_trading"]), (&0.into(), &false.into()), "{told:#}");
    assert!(told["instruments_listed"].as_u64() > Some(0), "{told:#}");
    let why = "no instrument of the venue matches symbols.include";
    assert!(told["accounts_ready"] != 2 || told["why"] == why, "{told:#}");
    gateway.stop();
    venue.stop();
}
