//! A venue with a certificate of a private CA, behind a private proxy.

use std::path::Path;
use std::time::Duration;

use tickpath_gateway::admin::call;
use tickpath_gateway_protocol::{OrderStatus, Side};
use tickpath_test_support::{Certificates, ConnectProxy, Deadline};

use crate::running::Running;
use crate::support::{PERPETUAL, TestGateway, config_text};

fn start_venue(folder: &Path) -> Running {
    Certificates::write(folder);
    let tls = "tls = { certificate = 'certificate.pem', private_key = 'key.pem' }";
    Running::start(folder, |text| {
        text.replace(
            "[deribit]\n",
            &format!("[deribit]\nmatching_rate = 1000\nmatching_burst = 1000\n{tls}\n"),
        )
    })
}

/// Starts a gateway at the venue's TLS endpoint that trusts a CA.
fn start_gateway(folder: &Path, venue: &Running, ca: &Path, keys: &str) -> TestGateway {
    let (text, socket) = config_text(folder, venue.address, &format!("ca_file = '{}'\n{keys}", ca.display()));
    let url = format!("wss://localhost:{}/ws", venue.address.port());
    TestGateway::of(folder, &text.replace(&format!("ws://{}/ws", venue.address), &url), socket)
}

fn trade(gateway: &TestGateway) {
    let mut trader = gateway.client("trader");
    let (account, symbol) = trader.ready(PERPETUAL);
    let id = trader.create(account, symbol, Side::BUY, "100", "59000");
    trader.wait_order(id, OrderStatus::WORKING);
    trader.cancel(account, symbol, id);
    trader.wait_order(id, OrderStatus::CANCELED);
}

#[test]
fn a_ca_of_the_sites_own_is_trusted_and_no_other() {
    let folder = tempfile::tempdir().unwrap();
    let venue = start_venue(folder.path());
    let gateway = start_gateway(folder.path(), &venue, &folder.path().join("ca.pem"), "");
    trade(&gateway);
    gateway.stop();
    // With another CA no connection is established, and the reason is reported.
    let other = tempfile::tempdir().unwrap();
    let gateway = start_gateway(other.path(), &venue, &Certificates::write(other.path()).ca, "");
    let deadline = Deadline::start();
    loop {
        let answer = call(&gateway.admin_socket(), "status").unwrap();
        let losses: Vec<&str> = answer["connections"]
            .as_array()
            .unwrap()
            .iter()
            .filter_map(|it| it["last_loss"].as_str())
            .collect();
        assert_eq!(answer["is_trading"], false, "{answer:#}");
        if losses.len() == 3 {
            assert!(losses.iter().all(|loss| loss.contains("ertificate")), "{losses:?}");
            break;
        }
        assert!(!deadline.is_over(), "{answer:#}");
        std::thread::sleep(Duration::from_millis(5));
    }
    gateway.stop();
    venue.stop();
}

#[test]
fn every_connection_goes_through_the_proxy() {
    let folder = tempfile::tempdir().unwrap();
    let venue = start_venue(folder.path());
    let proxy = ConnectProxy::to(venue.address);
    // The proxy resolves this machine's name to its own machine, so this counts as real money.
    let keys = format!(
        "proxy = '{}'\n[limits]\norder_size_max = '1000'\nnotional_max = '1000'\nopen_orders_max = 9\n",
        proxy.address
    );
    let (text, socket) = config_text(
        folder.path(),
        venue.address,
        &format!("ca_file = '{}'\n{keys}", folder.path().join("ca.pem").display()),
    );
    let url = format!("wss://localhost:{}/ws", venue.address.port());
    let text = text.replace(&format!("ws://{}/ws", venue.address), &url);
    let gateway = TestGateway::of(folder.path(), &format!("production = true\n{text}"), socket);
    trade(&gateway);
    gateway.stop();
    let asked = proxy.requests();
    let expected = format!("CONNECT localhost:{} HTTP/1.1\r\n", venue.address.port());
    // One connection for market data, and two for accounts.
    assert!(asked.len() >= 3 && asked.iter().all(|head| head.starts_with(&expected)), "{asked:?}");
    drop(proxy);
    venue.stop();
}
