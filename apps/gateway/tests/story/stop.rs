//! Shutdown of a gateway whose venue does not cancel orders on disconnect.

use tickpath_agent::StopSignal;
use tickpath_gateway::admin::call;
use tickpath_gateway::config::GatewayConfig;
use tickpath_gateway::run::run;
use tickpath_gateway_protocol::{OrderStatus, OrderUpdate, Side};

use crate::support::{PERPETUAL, TestGateway, TestVenue, client, config_text};

#[test]
fn no_order_of_clients_stands_when_the_gateway_is_gone() {
    let folder = tempfile::tempdir().unwrap();
    let venue = TestVenue::start(folder.path());
    let (text, socket) = config_text(folder.path(), venue.address, "cancel_on_disconnect = false\n");
    // One by one, the cancels would take half a minute.
    let text = text
        .replace("matching_rate = 1000", "matching_rate = 1")
        .replace("matching_burst = 1000", "matching_burst = 45");
    let config = GatewayConfig::parse("gateway.toml", &text).unwrap();
    let (stop, shm) = (StopSignal::new(), folder.path().join("shm"));
    let gateway = std::thread::spawn({
        let stop = stop.clone();
        move || run(&config, None, Some(&shm), &stop)
    });
    let mut trader = client(&socket, "trader");
    let (account, symbol) = trader.ready(PERPETUAL);
    let ids: Vec<u64> = (0..40)
        .map(|at| trader.create(account, symbol, Side::BUY, "10", &(58_900 + at).to_string()))
        .collect();
    for id in &ids {
        trader.wait_order(*id, OrderStatus::WORKING);
    }
    stop.stop();
    gateway.join().unwrap().unwrap();
    // The next gateway finds no order.
    let gateway = TestGateway::start(folder.path(), venue.address);
    let mut trader = gateway.client("trader");
    trader.ready(PERPETUAL);
    assert_eq!(trader.all::<OrderUpdate>().count(), 0, "{}", trader.story());
    // Queries the current status: the view may be from before the account was ready.
    let told = call(&gateway.admin_socket(), "status").unwrap();
    assert_eq!((&told["open_orders"], &told["foreign_orders"]), (&0.into(), &0.into()), "{told:#}");
    gateway.stop();
    venue.stop();
}
