//! The server's duty cycles do not allocate once its subscribers have subscribed.
#![allow(clippy::unwrap_used)]

use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;

use tickpath_agent::{Agent, CountingAllocator, TscClock, counts_allocations, thread_allocations};
use tickpath_flowgen::{MarketRegime, TickGeneratorConfig};
use tickpath_test_support::Deadline;
use tickpath_ticks::checksum::with_checksum;
use tickpath_ticks::message::Hello;
use tickpath_ticks::request::encode_subscribe;
use tickpath_ticks_app::server::{ServeSettings, TickRate, TicksServer};
use tickpath_types::Nanos;
use zerocopy::IntoBytes;

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;

#[test]
fn ticks_are_made_and_sent_without_an_allocation() {
    assert!(counts_allocations());
    let market = TickGeneratorConfig::market(MarketRegime::Neutral, 50, 7);
    let names: Vec<_> = market.symbols.iter().map(|symbol| symbol.name).collect();
    let settings = ServeSettings {
        rate: TickRate::PerSecond(200_000),
        coalesce: Nanos::from_millis(1),
        heartbeat_ms: 60_000,
        ..ServeSettings::new(market)
    };
    let clock = TscClock::shared();
    let mut server = TicksServer::open(&settings, clock).unwrap();
    let mut clients: Vec<_> = [&[][..], &names[..7]]
        .iter()
        .map(|symbols| {
            let mut stream = TcpStream::connect(server.local_address()).unwrap();
            let mut request = with_checksum(Hello::client(0, Nanos(1))).as_bytes().to_vec();
            encode_subscribe(1, symbols, &mut request);
            stream.write_all(&request).unwrap();
            stream.set_nonblocking(true).unwrap();
            stream
        })
        .collect();
    let deadline = Deadline::start();
    while server.counters().subscriptions < 2 {
        assert!(!deadline.is_over(), "no subscription");
        server.do_work(clock.now()).unwrap();
    }
    let mut room = vec![0; 64 << 10];
    let mut run = |server: &mut TicksServer, ticks: u64| {
        let end = server.counters().ticks + ticks;
        let mut allocations = 0;
        while server.counters().ticks < end {
            assert!(!deadline.is_over(), "too few ticks");
            let before = thread_allocations();
            server.do_work(clock.now()).unwrap();
            allocations += thread_allocations() - before;
            for client in &mut clients {
                match client.read(&mut room) {
                    Ok(count) => assert!(count > 0, "the connection was closed"),
                    Err(error) => assert_eq!(error.kind(), ErrorKind::WouldBlock),
                }
            }
        }
        allocations
    };
    run(&mut server, 10_000);
    assert_eq!(run(&mut server, 100_000), 0);
    assert!(server.counters().ticks_sent > 100_000);
}
