//! The shell at the venue's own Deribit front: two clients trade with each other over loopback.

#![allow(clippy::unwrap_used)]

#[path = "../../deribit-front/tests/running/mod.rs"]
mod running;

use running::Running;
use tickpath_deribit::error_code::ErrorCode;
use tickpath_deribit::session::Key;
use tickpath_deribit_front::FaultKind;
use tickpath_shell::{Failure, Interrupt, Link, Shell, ShellConfig};

fn shell_with(venue: &Running, client_id: &str, more: &str) -> Shell {
    let text = format!("url = '{}'\n{more}", venue.url());
    let config: ShellConfig = tickpath_config::parse("shell.toml", &text).unwrap();
    let url = config.checked_url().unwrap();
    let key = Some(Key::new(client_id, "test"));
    Shell::new(Link::new(config, url, key.clone()), key, false, Interrupt::default())
}

fn shell(venue: &Running, client_id: &str) -> Shell {
    shell_with(venue, client_id, "")
}

/// Executes a command and returns its text.
fn said(shell: &mut Shell, command: &str) -> String {
    match shell.execute(command) {
        Ok(done) => done.text,
        Err(failure) => panic!("{command}: {failure}"),
    }
}

/// Returns the code with which a command is refused.
fn refused(shell: &mut Shell, command: &str) -> i64 {
    match shell.execute(command) {
        Err(Failure::Refused { code, .. }) => code,
        other => panic!("{command} was not refused: {other:?}"),
    }
}

/// Returns the order id in a command's text.
fn id_of(text: &str) -> &str {
    text.split_whitespace().nth(1).unwrap()
}

#[test]
fn two_clients_trade_with_each_other() {
    let folder = tempfile::tempdir().unwrap();
    let venue = Running::start(folder.path(), |text| text);
    let (mut anna, mut bert) = (shell(&venue, "anna"), shell(&venue, "bert"));
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
    assert!(said(&mut anna, "status").contains("logged in as anna ("));
    assert!(said(&mut anna, "logout").starts_with("logged out"));
    drop((anna, bert));
    venue.stop();
}

#[test]
fn a_login_says_what_it_does_not_allow() {
    let folder = tempfile::tempdir().unwrap();
    let venue = Running::start(folder.path(), |text| text);
    let reader = "grant = 'client_credentials'\nscope = 'account:read trade:read'";
    let mut reader = shell_with(&venue, "anna", reader);
    let text = said(&mut reader, "connect");
    assert!(text.contains("trade:read ") && text.contains("this login cannot trade"), "{text}");
    assert_eq!(refused(&mut reader, "buy BTC-PERPETUAL 10 59000"), 13_021);
    assert_eq!(said(&mut reader, "orders"), "no open orders");
    assert!(said(&mut reader, "status").contains("this login cannot trade"));
    // The secret is sent only to the host that it belongs to.
    let other = venue.url().replace("127.0.0.1", "localhost");
    assert!(said(&mut reader, &format!("connect {other}")).contains("public data only"));

    let mut trader = shell_with(
        &venue,
        "anna",
        "grant = 'client_credentials'\nscope = 'account:read_write trade:read_write'",
    );
    let text = said(&mut trader, "auth");
    assert!(text.contains("trade:read_write") && !text.contains("cannot"), "{text}");
    assert!(said(&mut trader, "buy BTC-PERPETUAL 10 59000").contains("open: buy 10"));
    drop((reader, trader));
    venue.stop();
}

#[test]
fn an_order_goes_with_the_connection_that_is_lost() {
    let folder = tempfile::tempdir().unwrap();
    let venue = Running::start(folder.path(), |text| text);
    let (mut anna, mut again) = (shell(&venue, "anna"), shell(&venue, "anna"));
    let text = said(&mut anna, "buy BTC-PERPETUAL 20 59900");
    let id = id_of(&text).to_owned();
    assert!(said(&mut again, "orders").contains("59900"));
    // Without a logout the venue cancels the order.
    drop(anna);
    let start = std::time::Instant::now();
    while !said(&mut again, &format!("order {id}")).contains("cancelled") {
        assert!(start.elapsed().as_secs() < 60, "the order stays");
        std::thread::sleep(std::time::Duration::from_millis(200));
    }
    drop(again);
    venue.stop();
}

/// A shell whose orders survive a disconnect, at a venue with short faults.
fn place(folder: &std::path::Path) -> (Running, Shell) {
    let venue = Running::start(folder, |text| {
        let faults =
            "[deribit]\nfaults = { maintenance_for = '1s', half_open_for = '2s', reply_delay = '6s' }\n";
        text.replace("[deribit]\n", faults)
    });
    let shell = shell_with(&venue, "anna", "cancel_on_disconnect = false\nrequest_timeout = '3s'");
    (venue, shell)
}

/// Checks the open orders over another connection.
fn has_orders(venue: &Running, labels: &[&str]) {
    let mut other = shell(venue, "anna");
    let text = said(&mut other, "orders");
    let count = text.lines().filter(|line| line.contains("BTC-PERPETUAL")).count();
    assert_eq!(count, labels.len(), "{text}");
    assert!(labels.iter().all(|label| text.contains(label)), "{text}");
}

#[test]
fn an_order_whose_reply_is_lost_late_or_cut_off_is_found() {
    let folder = tempfile::tempdir().unwrap();
    let (venue, mut shell) = place(folder.path());
    said(&mut shell, "connect");
    let kinds = [FaultKind::ReplyLost, FaultKind::ReplySlow, FaultKind::ReplyCut];
    for (kind, label) in kinds.into_iter().zip(["lost", "slow", "cut"]) {
        venue.faults.happen_next(kind, 1);
        let text = said(&mut shell, &format!("buy BTC-PERPETUAL 10 59000 label={label}"));
        assert!(text.contains("open: buy 10") && text.contains(label), "{text}");
        assert_eq!(venue.faults.count(kind), 1);
        venue.faults.happen_next(kind, 1);
        let id = id_of(&text).to_owned();
        assert!(said(&mut shell, &format!("edit {id} amount=20 price=59001")).contains("buy 20"));
        assert_eq!(venue.faults.count(kind), 2);
    }
    has_orders(&venue, &["lost", "slow", "cut"]);
    drop(shell);
    venue.stop();
}

#[test]
fn a_lost_order_that_the_venue_made_another_of_is_not_called_lost() {
    let folder = tempfile::tempdir().unwrap();
    let venue = Running::start(folder.path(), |text| {
        text.replace("[deribit]\n", "[deribit]\nbeyond_band = 'clamp'\nfaults = { reply_delay = '6s' }\n")
    });
    let mut shell = shell_with(&venue, "anna", "cancel_on_disconnect = false\nrequest_timeout = '3s'");
    said(&mut shell, "connect");
    let mut lost = |command: &str| {
        venue.faults.happen_next(FaultKind::ReplyLost, 1);
        shell.execute(command)
    };
    // There is no seller: the rest of a market order becomes a limit order.
    for order in ["10", "10 label=market"] {
        let text = lost(&format!("buy BTC-PERPETUAL {order}")).unwrap().text;
        assert!(text.contains("open: buy 10"), "{order}: {text}");
    }
    // Beyond the band: the shell's own label identifies the order at any price; a user's label does not.
    let text = lost("buy BTC-PERPETUAL 10 90000").unwrap().text;
    assert!(text.contains("open: buy 10"), "{text}");
    let failure = lost("buy BTC-PERPETUAL 10 90000 label=far").unwrap_err();
    assert!(failure.kind() == "unknown" && failure.to_string().contains("not as it was sent"), "{failure}");
    has_orders(&venue, &["tp-", "market", "far", "tp-"]);
    drop(shell);
    venue.stop();
}

#[test]
fn a_request_that_is_lost_is_told_and_not_repeated() {
    let folder = tempfile::tempdir().unwrap();
    let (venue, mut shell) = place(folder.path());
    let text = said(&mut shell, "buy BTC-PERPETUAL 10 59000 label=stays");
    let id = id_of(&text).to_owned();
    venue.faults.happen_next(FaultKind::RequestLost, 1);
    let failure = shell.execute("buy BTC-PERPETUAL 10 59000 label=gone").unwrap_err();
    assert!(failure.to_string().contains("it was not entered"), "{failure}");
    venue.faults.happen_next(FaultKind::RequestLost, 1);
    let failure = shell.execute(&format!("cancel {id}")).unwrap_err();
    assert!(failure.to_string().contains("open"), "{failure}");
    venue.faults.happen_next(FaultKind::RateLimited, 1);
    assert_eq!(refused(&mut shell, &format!("cancel {id}")), 10_028);
    has_orders(&venue, &["stays"]);
    drop(shell);
    venue.stop();
}

#[test]
fn a_refusal_for_the_moment_is_told_with_its_remedy_and_nothing_was_entered() {
    let folder = tempfile::tempdir().unwrap();
    let (venue, mut shell) = place(folder.path());
    let mut codes = Vec::new();
    // Six codes in random order; each is likely to occur.
    for number in 0..40 {
        venue.faults.happen_next(FaultKind::Refused, 1);
        let failure =
            shell.execute(&format!("buy BTC-PERPETUAL 10 59000 label=refused{number}")).unwrap_err();
        let text = failure.to_string();
        let Failure::Refused { code, .. } = failure else {
            // 11094: the venue does not know the outcome, so the shell queries it.
            assert!(text.contains("it was not entered"), "{text}");
            continue;
        };
        let code = ErrorCode::from_code(code).unwrap();
        assert!(code.is_retryable() && text.ends_with(code.remedy()), "{text}");
        codes.push(code);
    }
    assert_eq!(venue.faults.count(FaultKind::Refused), 40);
    assert!(codes.contains(&ErrorCode::MatchingEngineQueueFull), "{codes:?}");
    said(&mut shell, "buy BTC-PERPETUAL 10 59000 label=taken");
    has_orders(&venue, &["taken"]);
    drop(shell);
    venue.stop();
}

#[test]
fn a_shell_outlives_cables_maintenance_and_tokens() {
    let folder = tempfile::tempdir().unwrap();
    let (venue, mut shell) = place(folder.path());
    said(&mut shell, "subscribe book.BTC-PERPETUAL.none.10.100ms");
    said(&mut shell, "buy BTC-PERPETUAL 10 59000 label=stays");
    for kind in [FaultKind::Cut, FaultKind::Maintenance, FaultKind::HalfOpen] {
        // Maintenance also refuses some connections.
        let before = shell.link().losses();
        venue.faults.happen_next(kind, 1);
        let start = std::time::Instant::now();
        while shell.link().losses() == before {
            assert!(start.elapsed().as_secs() < 60, "{kind:?} is not noticed");
            said(&mut shell, "wait 100ms");
        }
        // The link has reconnected before the first command succeeds.
        while let Err(failure) = shell.execute("positions") {
            assert!(start.elapsed().as_secs() < 60, "{kind:?}: {failure}");
        }
        assert_eq!(venue.faults.count(kind), 1);
    }
    venue.faults.happen_next(FaultKind::TokenExpired, 1);
    // The session renews its tokens, and the query is repeated.
    said(&mut shell, "positions");
    assert_eq!(venue.faults.count(FaultKind::TokenExpired), 1);
    assert!(said(&mut shell, "subscriptions").contains("book.BTC-PERPETUAL"));
    has_orders(&venue, &["stays"]);
    drop(shell);
    venue.stop();
}
