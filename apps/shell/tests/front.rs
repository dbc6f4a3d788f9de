//! The shell at the venue's own Deribit front: two clients trade with each other, over the loopback interface.

#![allow(clippy::unwrap_used)]

#[path = "../../deribit-front/tests/running/mod.rs"]
mod running;

use running::Running;
use tickpath_deribit::session::Key;
use tickpath_shell::{Failure, Interrupt, Link, Shell, ShellConfig};

/// What a test does with the venue.
trait Shells {
    fn shell(&self, client_id: &str) -> Shell;
}

impl Shells for Running {
    fn shell(&self, client_id: &str) -> Shell {
        let config: ShellConfig =
            tickpath_config::parse("shell.toml", &format!("url = '{}'", self.url())).unwrap();
        let url = config.checked_url().unwrap();
        let key = Some(Key::new(client_id, "test"));
        Shell::new(Link::new(config, url, key.clone()), key, false, Interrupt::default())
    }
}

/// What a command says.
fn said(shell: &mut Shell, command: &str) -> String {
    match shell.execute(command) {
        Ok(done) => done.text,
        Err(failure) => panic!("{command}: {failure}"),
    }
}

/// The code that a command is refused with.
fn refused(shell: &mut Shell, command: &str) -> i64 {
    match shell.execute(command) {
        Err(Failure::Refused { code, .. }) => code,
        other => panic!("{command} was not refused: {other:?}"),
    }
}

/// The id of the order that a command's answer is about.
fn id_of(text: &str) -> &str {
    text.split_whitespace().nth(1).unwrap()
}

#[test]
fn two_clients_trade_with_each_other() {
    let folder = tempfile::tempdir().unwrap();
    let venue = Running::start(folder.path(), |text| text);
    let (mut anna, mut bert) = (venue.shell("anna"), venue.shell("bert"));
    assert!(said(&mut anna, "instruments BTC future").contains("BTC-PERPETUAL"));
    let trades = "user.trades.any.any.raw";
    said(
        &mut anna,
        &format!("subscribe {trades} user.orders.BTC-PERPETUAL.raw book.BTC-PERPETUAL.none.10.100ms"),
    );

    let text = said(&mut anna, "buy BTC-PERPETUAL 20 59900 post_only label=first");
    assert!(text.contains("open: buy 20 BTC-PERPETUAL at 59900") && text.ends_with("label first"), "{text}");
    let id = id_of(&text).to_owned();
    let text = said(&mut anna, &format!("edit {id} amount=30 price=59950"));
    assert!(text.contains("buy 30 BTC-PERPETUAL at 59950"), "{text}");
    assert!(said(&mut bert, "book BTC-PERPETUAL 5").contains("59950"));

    let text = said(&mut bert, "sell BTC-PERPETUAL 10 59950 tif=ioc");
    assert!(text.contains("filled") && text.contains("at 59950"), "{text}");
    said(&mut anna, &format!("wait {trades}"));
    assert!(said(&mut anna, "positions").contains("10"));
    assert!(said(&mut anna, "trades BTC-PERPETUAL").contains("59950"));
    assert!(said(&mut anna, &format!("order {id}")).contains("10 done"));

    assert_eq!(refused(&mut bert, "buy BTC-PERPETUAL 15 59000"), 10_021);
    assert_eq!(refused(&mut bert, &format!("cancel {id}")), 10_004);
    assert!(said(&mut anna, &format!("cancel {id}")).contains("cancelled"));
    assert_eq!(said(&mut anna, "orders"), "no open orders");
    assert!(said(&mut anna, "account BTC").contains("equity"));
    said(&mut anna, "logout");
    drop((anna, bert));
    venue.stop();
}

#[test]
fn an_order_goes_with_the_connection_that_is_lost() {
    let folder = tempfile::tempdir().unwrap();
    let venue = Running::start(folder.path(), |text| text);
    let (mut anna, mut again) = (venue.shell("anna"), venue.shell("anna"));
    let text = said(&mut anna, "buy BTC-PERPETUAL 20 59900");
    let id = id_of(&text).to_owned();
    assert!(said(&mut again, "orders").contains("59900"));
    // Without a logout: the venue takes it back.
    drop(anna);
    let start = std::time::Instant::now();
    while !said(&mut again, &format!("order {id}")).contains("cancelled") {
        assert!(start.elapsed().as_secs() < 60, "the order stays");
        std::thread::sleep(std::time::Duration::from_millis(200));
    }
    drop(again);
    venue.stop();
}
