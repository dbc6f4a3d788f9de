//! A venue at the limit of open files. A separate test program, because the limit applies to the process.
#![allow(clippy::unwrap_used)] // a failed step of a test is a failed test

#[path = "venue/support.rs"]
#[allow(dead_code, unreachable_pub)] // shared with the other suite
mod support;

use std::fs::File;

use support::{Client, PASSWORD, Received, Rig, login};
use tickpath_types::Nanos;

#[test]
fn a_connection_refused_by_the_system_waits_without_work() {
    let mut rig = Rig::new();
    let mut anna = rig.log_in("ANNA");
    let mut bert = Client::prepare();
    let (soft, hard) = nix::sys::resource::getrlimit(nix::sys::resource::Resource::RLIMIT_NOFILE).unwrap();
    nix::sys::resource::setrlimit(nix::sys::resource::Resource::RLIMIT_NOFILE, soft.min(256), hard).unwrap();
    let mut files = vec![];
    while let Ok(file) = File::open("/dev/null") {
        files.push(file);
    }
    bert.connect_prepared(rig.endpoints.order_entry);
    rig.until_true("the refusal", |rig| rig.view.order_server.accept_errors.read() == 1);
    // Accepting is paused, so the connection in the kernel's queue causes no work.
    for _ in 0..1_000 {
        assert_eq!(rig.turn(), 0, "nothing is done");
    }
    assert_eq!(rig.view.order_server.accept_errors.read(), 1);
    rig.advance(Nanos::from_millis(200));
    rig.until_true("another look", |rig| rig.view.order_server.accept_errors.read() == 2);
    rig.assert_serves(&mut anna, 1);

    drop(files);
    bert.send(&login("BERT", PASSWORD, "", 1));
    rig.advance(Nanos::from_millis(200));
    assert!(matches!(rig.receive(&mut bert), Received::LoginAccepted { .. }));
    assert_eq!(rig.view.order_server.accept_errors.read(), 2);
}
