//! Decoding and encoding one message in memory, in one thread.

use std::hint::black_box;

use criterion::{Criterion, criterion_group, criterion_main};
use tickpath_fix::deribit::{
    Credentials, ExecutionReport, MarketDataIncremental, NewOrderSingle, OrdType, SideCode, TimeInForceCode,
};
use tickpath_fix::session::{Header, Listener, NoStore, Refusal, Session, SessionConfig};
use tickpath_fix::{Body, Decimal, Message, Parsed};
use tickpath_types::Nanos;

const RECORDED: &[u8] = include_bytes!("../tests/data/messages.txt");

fn recorded(index: usize) -> &'static [u8] {
    RECORDED.split(|&byte| byte == b'\n').nth(index).expect("there are ten messages")
}

#[inline]
fn parsed(bytes: &[u8]) -> Message<'_> {
    match Message::parse(bytes) {
        Parsed::Complete { message, .. } => message,
        other => panic!("{other:?}"),
    }
}

fn order(price: i64) -> NewOrderSingle<'static> {
    NewOrderSingle {
        cl_ord_id: "100000017",
        side: SideCode::BUY,
        order_qty: Decimal::from(100),
        symbol: "BTC-PERPETUAL",
        price: Some(Decimal::new(price, 1)),
        ord_type: Some(OrdType::LIMIT),
        time_in_force: Some(TimeInForceCode::GOOD_TIL_CANCEL),
        exec_inst: Some("6"),
        label: Some("maker-1"),
        ..NewOrderSingle::default()
    }
}

fn read(c: &mut Criterion) {
    let mut group = c.benchmark_group("read");
    let report = recorded(1);
    group.bench_function("frame/report", |b| b.iter(|| parsed(black_box(report)).msg_type()));
    group.bench_function("decode/report", |b| {
        b.iter(|| {
            let report = ExecutionReport::decode(&parsed(black_box(report))).expect("it is good");
            assert_eq!(report.last_px, Some(Decimal::new(95_935, 1)));
            report.fills.len()
        });
    });
    for (name, line) in [("change", recorded(2)), ("5 trades", recorded(3))] {
        group.bench_function(format!("decode/{name}"), |b| {
            b.iter(|| {
                let changes = MarketDataIncremental::decode(&parsed(black_box(line))).expect("it is good");
                changes
                    .changes
                    .iter()
                    .map(|change| change.map_or(0, |c| c.price.map_or(0, |p| p.mantissa())))
                    .sum::<i64>()
            });
        });
    }
    group.finish();
}

fn write(c: &mut Criterion) {
    let mut group = c.benchmark_group("write");
    let mut buffer = [0; 1024];
    group.bench_function("order", |b| {
        let mut price = 0;
        b.iter(|| {
            price += 1;
            order(black_box(price)).write_bare(&mut buffer).expect("there is room")
        });
    });
    group.finish();
}

struct Count(usize);

impl Listener for Count {
    fn on_message(&mut self, _: &Header<'_>, message: &Message<'_>) -> Result<(), Refusal> {
        self.0 += NewOrderSingle::decode(message)?.symbol.len();
        Ok(())
    }
}

fn session(c: &mut Criterion) {
    let now = Nanos(1_767_225_600_000_000_000);
    let mut client = Session::new(SessionConfig::deribit_client("CLIENT"), NoStore);
    let mut venue = Session::new(SessionConfig::deribit_server(), NoStore);
    let mut count = Count(0);
    client.connect(now, &Credentials::default()).expect("it is new");
    venue.accept(now).expect("it is new");
    venue.handle_bytes(now, client.output(), &mut count);
    client.handle_sent(now, usize::MAX);
    client.handle_bytes(now, venue.output(), &mut count);
    venue.handle_sent(now, usize::MAX);
    assert!(client.is_up() && venue.is_up());
    let (mut price, mut orders) = (0, 0);
    c.bench_function("session/order there and read", |b| {
        b.iter(|| {
            price += 1;
            orders += 1;
            client.send(now, &order(black_box(price))).expect("there is room");
            venue.handle_bytes(now, client.output(), &mut count);
            client.handle_sent(now, usize::MAX);
        });
    });
    assert_eq!(count.0, orders * "BTC-PERPETUAL".len());
}

criterion_group!(benches, read, write, session);
criterion_main!(benches);
