//! The core with orders over FIX: the exact bytes sent, and the effect of every answer and of missing ones.

use tickpath_deribit::method::Method;
use tickpath_deribit::session::{RequestError, SessionEvent};
use tickpath_gateway_protocol::{
    AckStatus, CreateOrder, ErrorCode, ExecutionFlags, Fixed, ModifyOrder, OrderAck, OrderStatus, OrderType,
    OrderUpdate, RateLimitKind, RateLimitsUpdate, Side, TimeInForce, Trigger,
};
use tickpath_types::Nanos;

use crate::machine::rig::{CLIENT, ENTRY, Rig, TRADING, limit};

const RECEIVED: AckStatus = AckStatus::RECEIVED;
const ACCEPTED: AckStatus = AckStatus::ACCEPTED;
const REJECTED: AckStatus = AckStatus::REJECTED;
const TIMEOUT: AckStatus = AckStatus::TIMEOUT;

/// 2027-01-15 08:00:00 UTC, the rig's time, plus the 5 seconds for which a request is valid.
const UNTIL: &str = "20270115-08:00:05.000";
const TIME: &str = "20270115-08:00:00.000";

fn ready() -> Rig {
    let mut rig = Rig::by_fix();
    assert_eq!(rig.core.ready_accounts(), 0, "one of two connections");
    assert_eq!(rig.core.accounts()[0].step.words(), "waits for its FIX session");
    assert_eq!(rig.core.why().as_str(), "not ready: A1 waits for its FIX session");
    rig.event(ENTRY, SessionEvent::Ready);
    rig.poll();
    assert_eq!(rig.core.ready_accounts(), 1);
    rig
}

impl Rig {
    /// The last FIX message sent, without BeginString, BodyLength and CheckSum.
    fn sent(&self) -> &str {
        let text = &self.venue.fix.last().unwrap().text;
        assert_eq!(self.venue.fix.last().unwrap().stream, ENTRY);
        let start = text.find("35=").unwrap();
        &text[start..text.len() - "10=000|".len()]
    }

    fn sequence(&self) -> i64 {
        self.venue.fix.last().unwrap().sequence
    }

    /// A complete execution report for an order of 100 USD at 59000.
    pub fn report(&self, id: u64, status: char, filled: i64, millis: u64, text: &str) -> String {
        let label = self.label(id);
        let left = if "01".contains(status) { 10 - filled } else { 0 };
        format!(
            "35=8|527=1|37=V-{id}|11=V-{id}|41={label}|39={status}|150=I|54=1|60=20270115-08:00:00.{millis:03}|12=0|\
             151={left}|14={filled}|38=10|40=2|44=59000|59=1|103=0|58={text}|207=Deribit|55=BTC-PERPETUAL|854=1|231=10|\
             6=59000|100010={label}|"
        )
    }

    fn working_by_fix(&mut self, id: u64) {
        self.create(id);
        let report = self.report(id, '0', 0, 1, "success");
        self.says(&report);
        assert_eq!((self.acks(id), self.status(id)), (vec![RECEIVED, ACCEPTED], Some(OrderStatus::WORKING)));
    }

    /// Loses the FIX session and establishes it again.
    fn lose_entry(&mut self) {
        self.core.handle_lost(ENTRY, self.now, &mut self.door);
        self.poll();
    }

    /// The WebSocket delivers the account's state again.
    fn tell_again(&mut self, orders: &str) {
        self.reply(Method::GetOpenOrders, orders);
        self.reply(Method::GetPositions, "[]");
        self.reply(Method::GetAccountSummaries, r#"{"summaries":[]}"#);
    }
}

#[test]
fn messages_are_these_bytes() {
    let mut rig = ready();
    let label = rig.label(1001);
    rig.create(1001);
    assert_eq!(
        rig.sent(),
        format!("35=D|11={label}|54=1|38=10|55=BTC-PERPETUAL|44=59000|40=2|854=1|62={UNTIL}|100010={label}|")
    );
    assert!(rig.venue.fix.last().unwrap().text.starts_with("8=FIX.4.4|9="));
    // The venue's order id is unknown yet: the message names the order by its label.
    rig.modify(1001, "200", "59000.5");
    assert_eq!(
        rig.sent(),
        format!("35=G|55=BTC-PERPETUAL|54=1|38=20|11={label}|40=2|44=59000.5|854=1|62={UNTIL}|")
    );
    rig.cancel(1001);
    assert_eq!(rig.sent(), format!("35=F|11={label}|55=BTC-PERPETUAL|"));
    assert_eq!(rig.venue.asked.iter().filter(|asked| asked.method.is_matching()).count(), 0);

    let mut rig = ready();
    rig.working_by_fix(1001);
    let change = ModifyOrder {
        price: "58000".parse().unwrap(),
        quantity: "100".parse().unwrap(),
        execution: ExecutionFlags::POST_ONLY.with(ExecutionFlags::REDUCE_ONLY),
        ..ModifyOrder::default()
    };
    rig.request(CLIENT, 1001, 1, &change);
    assert_eq!(
        rig.sent(),
        format!("35=G|55=BTC-PERPETUAL|54=1|38=10|41=V-1001|40=2|44=58000|18=6 E|854=1|62={UNTIL}|")
    );
    rig.cancel(1001);
    assert_eq!(rig.sent(), "35=F|41=V-1001|55=BTC-PERPETUAL|");

    let label = rig.label(1002);
    let order = CreateOrder {
        side: Side::SELL,
        execution: ExecutionFlags::POST_ONLY.with(ExecutionFlags::REJECT_POST_ONLY),
        max_show: "50".parse().unwrap(),
        ..limit("120", "61000")
    };
    rig.request(CLIENT, 1002, 1, &order);
    assert_eq!(
        rig.sent(),
        format!(
            "35=D|11={label}|54=2|38=12|55=BTC-PERPETUAL|44=61000|40=2|18=6A|1138=5|854=1|62={UNTIL}|100010={label}|"
        )
    );
    // A linear instrument with contracts of a thousandth of a coin.
    let label = rig.label(1003);
    let order = CreateOrder { time_in_force: TimeInForce::IOC, ..limit("0.25", "3000.05") };
    rig.request(CLIENT, 1003, 2, &order);
    assert_eq!(
        rig.sent(),
        format!(
            "35=D|11={label}|54=1|38=250|55=ETH_USDC-PERPETUAL|44=3000.05|40=2|59=3|854=1|62={UNTIL}|100010={label}|"
        )
    );
    let label = rig.label(1004);
    let order = CreateOrder {
        order_type: OrderType::STOP_MARKET,
        price: "0".parse().unwrap(),
        stop_price: "62000".parse().unwrap(),
        trigger: Trigger::MARK,
        ..limit("10", "1")
    };
    rig.request(CLIENT, 1004, 1, &order);
    assert_eq!(
        rig.sent(),
        format!(
            "35=D|11={label}|54=1|38=1|55=BTC-PERPETUAL|40=S|99=62000|854=1|62={UNTIL}|100010={label}|5127=1|"
        )
    );
    let label = rig.label(1005);
    let limited = CreateOrder { order_type: OrderType::STOP_LIMIT, price: "62500".parse().unwrap(), ..order };
    rig.request(CLIENT, 1005, 1, &limited);
    assert_eq!(
        rig.sent(),
        format!(
            "35=D|11={label}|54=1|38=1|55=BTC-PERPETUAL|44=62500|40=J|99=62000|854=1|62={UNTIL}|100010={label}|5127=1|"
        )
    );
    let label = rig.label(1006);
    let order =
        CreateOrder { order_type: OrderType::TRAILING_STOP, stop_price: "500".parse().unwrap(), ..order };
    rig.request(CLIENT, 1006, 1, &order);
    assert_eq!(
        rig.sent(),
        format!(
            "35=D|11={label}|54=1|38=1|55=BTC-PERPETUAL|40=4|854=1|211=500|1094=8|62={UNTIL}|100010={label}|5127=1|"
        )
    );
    rig.control.set_killed(true);
    rig.poll();
    assert_eq!(rig.sent(), "35=q|11=all|530=7|");
    assert_eq!(rig.count(Method::CancelAll), 0);
}

#[test]
fn what_fix_has_no_words_for_does_not_leave() {
    let mut rig = ready();
    for order_type in [OrderType::TAKE_LIMIT, OrderType::TAKE_MARKET] {
        let mut order = CreateOrder {
            order_type,
            stop_price: "58000".parse().unwrap(),
            trigger: Trigger::LAST,
            ..limit("100", "59000")
        };
        if order_type == OrderType::TAKE_MARKET {
            order.price = "0".parse().unwrap();
        }
        rig.request(CLIENT, 1001, 1, &order);
        assert_eq!((rig.error(), rig.venue.fix.len()), (ErrorCode::NOT_SUPPORTED, 0));
    }
    let stop = CreateOrder {
        order_type: OrderType::STOP_MARKET,
        price: "0".parse().unwrap(),
        stop_price: "62000".parse().unwrap(),
        trigger: Trigger::MARK,
        ..limit("100", "1")
    };
    rig.request(CLIENT, 1001, 1, &stop);
    rig.modify(1001, "200", "0");
    assert_eq!((rig.error(), rig.venue.fix.len()), (ErrorCode::NOT_SUPPORTED, 1));
    rig.venue.refusal = Some(RequestError::RateLimit { wait_ns: 5 });
    rig.create(1002);
    assert_eq!((rig.error(), rig.acks(1002)), (ErrorCode::VENUE_RATE_LIMITED, vec![REJECTED]));
    assert_eq!(rig.core.orders().live_count(), 1);
}

#[test]
fn answers_find_their_requests() {
    let mut rig = ready();
    rig.working_by_fix(1001);
    // A change followed by a cancel: each answer belongs to one of them.
    rig.modify(1001, "200", "59001");
    rig.cancel(1001);
    let changed =
        rig.report(1001, '0', 0, 2, "success").replace("|38=10|", "|38=20|").replace("44=59000", "44=59001");
    rig.says(&changed);
    assert_eq!(rig.acks(1001)[2..], [RECEIVED, RECEIVED, ACCEPTED]);
    let label = rig.label(1001);
    rig.says(&format!("35=8|39=4|150=4|11=V-1001|41={label}|58=success|"));
    assert_eq!(rig.acks(1001)[2..], [RECEIVED, RECEIVED, ACCEPTED, ACCEPTED]);
    // The order update with its quantities follows later.
    assert_eq!(rig.status(1001), Some(OrderStatus::WORKING));
    let ended =
        changed.replace("39=0", "39=4").replace("000.002", "000.003").replace("success", "notification");
    rig.says(&ended.replace("08:00:00.002", "08:00:00.003"));
    let last = rig.all::<OrderUpdate>().last().unwrap();
    assert_eq!((last.status, last.price), (OrderStatus::CANCELED, "59001".parse().unwrap()));
    // Later reports change nothing.
    rig.says(&changed.replace("success", "notification"));
    assert_eq!(rig.status(1001), Some(OrderStatus::CANCELED));
    assert_eq!((rig.core.accounts()[0].open_orders, rig.core.counters().faults), (0, 0));
}

#[test]
fn refusals_come_in_four_messages() {
    let mut rig = ready();
    rig.create(1001);
    let label = rig.label(1001);
    rig.says(&format!(
        "35=8|39=8|150=8|11={label}|41={label}|54=1|60={TIME}|151=0|14=0|38=10|103=99|58=not_enough_funds|100010={label}|"
    ));
    assert_eq!((rig.error(), rig.status(1001)), (ErrorCode::INSUFFICIENT_FUNDS, Some(OrderStatus::REJECTED)));
    rig.create(1002);
    rig.says(&format!("35=3|45={}|373=6|58=incorrect data format|", rig.sequence()));
    let ack = rig.all::<OrderAck>().last().unwrap();
    assert_eq!((ack.error, ack.text.as_str()), (ErrorCode::VENUE, "incorrect data format"));
    assert_eq!(rig.status(1002), Some(OrderStatus::REJECTED));
    // This answer leaves it open whether the order was entered.
    rig.create(1003);
    rig.says(&format!(
        "35=j|45={}|372=D|380=4|58=timed_out: ask for the state of the order|",
        rig.sequence()
    ));
    assert_eq!((rig.acks(1003), rig.status(1003)), (vec![RECEIVED, TIMEOUT], Some(OrderStatus::UNKNOWN)));
    let order = rig.order(1003, "open", 0, 1);
    rig.reply(Method::GetOrderStateByLabel, &format!("[{order}]"));
    assert_eq!(rig.status(1003), Some(OrderStatus::WORKING));
    // Rejecting a cancel as already closed shows that the order's assumed state was wrong.
    rig.cancel(1003);
    rig.says("35=9|39=2|102=0|58=already_closed|41=V-1003|");
    assert_eq!((rig.error(), rig.status(1003)), (ErrorCode::UNKNOWN_ORDER, Some(OrderStatus::UNKNOWN)));
    let filled = rig.order(1003, "filled", 100, 9);
    rig.reply(Method::GetOrderState, &filled);
    assert_eq!(rig.status(1003), Some(OrderStatus::COMPLETED));
    // Messages about unknown orders, and unreadable ones, cause no panic.
    let before = rig.core.counters().faults;
    for text in
        ["35=9|39=2|41=V-9|", "35=3|45=99|", "35=3|58=x|", "35=8|37=V-9|", "35=8|39=0|37=V-9|", "35=Z|"]
    {
        rig.says(text);
    }
    assert_eq!(rig.core.counters().faults, before + 2);
}

#[test]
fn an_answer_that_does_not_come_leads_to_a_question_over_the_websocket() {
    let mut rig = ready();
    rig.create(1001);
    rig.pass(Nanos::from_millis(4_999));
    assert_eq!(rig.acks(1001), [RECEIVED]);
    rig.pass(Nanos::from_millis(1));
    assert_eq!((rig.acks(1001), rig.status(1001)), (vec![RECEIVED, TIMEOUT], Some(OrderStatus::UNKNOWN)));
    let question = rig.last(Method::GetOrderStateByLabel);
    assert_eq!(question.stream, TRADING);
    // The order's own answer arrives at last, before that of the status query.
    let report = rig.report(1001, '0', 0, 1, "success");
    rig.says(&report);
    assert_eq!(rig.status(1001), Some(OrderStatus::WORKING));
    assert_eq!(rig.venue.fix.len(), 1);
}

#[test]
fn a_lost_session_leaves_nothing_forgotten_and_doubles_nothing() {
    let mut rig = ready();
    rig.working_by_fix(1001);
    rig.create(1002);
    rig.create(1003);
    rig.cancel(1001);
    rig.lose_entry();
    for id in [1001, 1002, 1003] {
        assert_eq!(
            rig.all::<OrderAck>().filter(|ack| ack.client_order_id == id).last().unwrap().status,
            TIMEOUT
        );
        assert_eq!(rig.status(id), Some(OrderStatus::UNKNOWN));
    }
    assert_eq!(rig.core.ready_accounts(), 0);
    rig.create(1004);
    assert_eq!((rig.error(), rig.venue.fix.len()), (ErrorCode::NOT_READY, 4));
    // 1001 and 1002 live, 1003 never arrived.
    let (first, second) = (rig.order(1001, "open", 0, 1), rig.order(1002, "open", 0, 1));
    rig.tell_again(&format!("[{first},{second}]"));
    assert_eq!(
        (rig.status(1001), rig.status(1002)),
        (Some(OrderStatus::WORKING), Some(OrderStatus::WORKING))
    );
    for _ in 0..8 {
        rig.reply(Method::GetOrderStateByLabel, "[]");
        rig.pass(Nanos::from_secs(1));
    }
    assert_eq!(rig.status(1003), Some(OrderStatus::REJECTED));
    // The cancel is sent again over the available connection.
    assert!(rig.last(Method::Cancel).text.contains("V-1001"));
    assert_eq!(rig.core.ready_accounts(), 0);
    rig.event(ENTRY, SessionEvent::Ready);
    rig.poll();
    assert_eq!((rig.core.ready_accounts(), rig.venue.fix.len()), (1, 4));
}

#[test]
fn the_kill_switch_needs_one_of_two_connections() {
    let mut rig = ready();
    rig.working_by_fix(1001);
    rig.lose_entry();
    rig.control.set_killed(true);
    rig.poll();
    assert_eq!((rig.count(Method::CancelAll), rig.venue.fix.len()), (1, 1));
    let mut rig = ready();
    rig.control.set_killed(true);
    rig.poll();
    rig.says("35=r|11=all|530=7|532=99|58=refused|");
    rig.pass(Nanos::from_secs(2));
    assert_eq!(rig.venue.fix.len(), 2, "what was refused is requested again");
    rig.says("35=r|11=all|530=7|531=7|533=0|");
    rig.pass(Nanos::from_secs(2));
    assert_eq!(rig.venue.fix.len(), 2);
}

#[test]
fn two_connections_tell_of_the_same_and_clients_hear_it_once() {
    let mut rig = ready();
    rig.working_by_fix(1001);
    let echo = rig.order(1001, "open", 0, 1_800_000_000_001);
    rig.changes(&echo, "[]");
    assert_eq!(rig.statuses(1001), [OrderStatus::WORKING]);
    // Two changes in one millisecond over FIX, and then both over the WebSocket.
    for price in ["59001", "59002"] {
        rig.modify(1001, "100", price);
        let report = rig.report(1001, '0', 0, 7, "success").replace("44=59000", &format!("44={price}"));
        rig.says(&report);
    }
    for price in ["59001", "59002"] {
        let news = rig.order(1001, "open", 0, 1_800_000_000_007).replace("59000", price);
        rig.changes(&news, "[]");
    }
    let prices: Vec<Fixed> = rig.all::<OrderUpdate>().map(|order| order.price).collect();
    assert_eq!(prices, ["59000", "59001", "59002"].map(|price| price.parse().unwrap()));
    // The reason for an end that no client requested comes over the WebSocket.
    let report = rig.report(1001, '4', 0, 9, "notification");
    rig.says(&report);
    assert_eq!(rig.status(1001), Some(OrderStatus::WORKING));
    let news = rig
        .order(1001, "cancelled", 0, 1_800_000_000_009)
        .replace("\"mmp\"", "\"cancel_reason\":\"cancel_on_disconnect\",\"mmp\"");
    rig.changes(&news, "[]");
    let last = rig.all::<OrderUpdate>().last().unwrap();
    assert_eq!((last.status, last.error), (OrderStatus::CANCELED, ErrorCode::CONNECTION_LOST));
}

#[test]
fn the_websocket_may_be_lost_while_the_session_stands() {
    let mut rig = ready();
    rig.create(1001);
    rig.lose(&[]);
    assert_eq!((rig.core.ready_accounts(), rig.acks(1001)), (0, vec![RECEIVED]));
    let report = rig.report(1001, '0', 0, 1, "success");
    rig.says(&report);
    assert_eq!(rig.acks(1001), [RECEIVED, ACCEPTED]);
    let order = rig.order(1001, "open", 0, 1_800_000_000_001);
    rig.log_in(&format!("[{order}]"));
    assert_eq!((rig.core.ready_accounts(), rig.status(1001)), (1, Some(OrderStatus::WORKING)));
    assert_eq!(rig.statuses(1001), [OrderStatus::WORKING]);
}

#[test]
fn a_session_that_does_not_come_to_be_begins_nothing_anew() {
    let mut rig = ready();
    for _ in 0..5 {
        rig.lose_entry();
    }
    rig.tell_again("[]");
    for _ in 0..5 {
        rig.lose_entry();
    }
    assert_eq!((rig.count(Method::GetOpenOrders), rig.core.ready_accounts()), (2, 0));
    rig.event(ENTRY, SessionEvent::Ready);
    rig.poll();
    assert_eq!((rig.count(Method::GetOpenOrders), rig.core.ready_accounts()), (2, 1));
}

#[test]
fn the_kill_switch_leaves_alone_what_comes_after_it() {
    let mut rig = ready();
    rig.working_by_fix(1001);
    rig.lose_entry();
    rig.control.set_killed(true);
    rig.poll();
    rig.reply(Method::CancelAll, "1");
    rig.tell_again("[]");
    rig.pass(Nanos::from_secs(10));
    rig.refuse(Method::GetOrderState, 10004, "order_not_found");
    for _ in 0..60 {
        rig.pass(Nanos::from_secs(1));
    }
    assert_eq!(rig.core.accounts()[0].step.words(), "waits for its FIX session");
    assert_eq!(rig.count(Method::CancelAll), 2, "at once, and once nothing is in doubt");
    rig.event(ENTRY, SessionEvent::Ready);
    rig.pass(Nanos::from_secs(5));
    assert_eq!((rig.core.ready_accounts(), rig.count(Method::CancelAll), rig.venue.fix.len()), (1, 2, 1));
}

#[test]
fn what_is_left_of_the_venues_credits_is_that_of_the_session() {
    let mut rig = ready();
    (rig.venue.left, rig.venue.left_by_fix) = (Some(20), Some(7));
    rig.pass(Nanos::from_secs(1));
    let of_venue = |it: &RateLimitsUpdate| it.limit == RateLimitKind::VENUE;
    assert_eq!(rig.all::<RateLimitsUpdate>().filter(of_venue).last().unwrap().available, 7);
}

#[test]
fn a_clients_cancellation_goes_by_the_other_connection_while_the_session_is_down() {
    let mut rig = ready();
    rig.working_by_fix(1001);
    rig.lose_entry();
    let open = rig.order(1001, "open", 0, 5);
    rig.tell_again(&format!("[{open}]"));
    assert_eq!(rig.core.ready_accounts(), 0);
    rig.cancel(1001);
    rig.poll();
    assert_eq!(rig.acks(1001), [RECEIVED, ACCEPTED, RECEIVED]);
    assert!(rig.last(Method::Cancel).text.contains("V-1001"));
}

#[test]
fn while_the_websocket_is_down_cancellations_and_the_kill_switch_go_by_fix() {
    let mut rig = ready();
    rig.working_by_fix(1001);
    rig.working_by_fix(1002);
    rig.lose(&[]);
    rig.cancel(1001);
    assert!(rig.sent().starts_with("35=F|"), "{}", rig.sent());
    let count = rig.venue.fix.len();
    rig.control.set_killed(true);
    rig.poll();
    assert_eq!(rig.venue.fix.len(), count + 1);
    assert!(rig.sent().starts_with("35=q|"), "{}", rig.sent());
    assert!(rig.core.has_cancels(), "the answer is waited for");
}

#[test]
fn an_order_that_comes_to_light_after_the_kill_is_cancelled_too() {
    let mut rig = ready();
    rig.create(1001);
    rig.control.set_killed(true);
    rig.poll();
    assert!(rig.sent().starts_with("35=q|"), "{}", rig.sent());
    // Both requests are unanswered when the session is lost.
    rig.lose_entry();
    rig.pass(Nanos::from_secs(1));
    assert_eq!(rig.count(Method::CancelAll), 1);
    rig.reply(Method::CancelAll, "0");
    rig.tell_again("[]");
    let found = rig.order(1001, "open", 0, 1);
    rig.reply(Method::GetOrderStateByLabel, &format!("[{found}]"));
    rig.pass(Nanos::from_secs(2));
    assert_eq!((rig.status(1001), rig.count(Method::CancelAll)), (Some(OrderStatus::WORKING), 2));
}
