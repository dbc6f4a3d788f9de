//! Programs in C and in Python, built and run against a real door.
#![allow(clippy::unwrap_used)]

#[path = "../../../io/gateway/tests/support/rehearsal.rs"]
mod rehearsal;

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use rehearsal::{PASSWORD, Rehearsal, SYMBOL, USER};
use tempfile::TempDir;

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Where cargo has put the libraries: beside this program.
fn libraries() -> PathBuf {
    std::env::current_exe().unwrap().parent().unwrap().to_owned()
}

fn shared_library() -> PathBuf {
    let path = libraries().join("libtickpath_gateway_client.so");
    assert!(path.exists(), "{} was not built", path.display());
    path
}

/// Builds an example. There is a C compiler wherever Rust links.
fn build(place: &TempDir, name: &str, is_static: bool) -> PathBuf {
    let program = place.path().join(name);
    let mut compile = Command::new("cc");
    compile.args(["-std=c11", "-O1", "-Wall", "-Wextra", "-Werror", "-pedantic"]);
    compile.arg("-I").arg(root().join("include")).arg(root().join("examples").join(format!("{name}.c")));
    compile.arg("-o").arg(&program);
    if is_static {
        compile.arg(libraries().join("libtickpath_gateway_client.a")).args([
            "-lpthread",
            "-ldl",
            "-lm",
            "-lgcc_s",
        ]);
    } else {
        compile.arg(shared_library()).arg(format!("-Wl,-rpath,{}", libraries().display()));
    }
    let built = compile.output().unwrap();
    assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
    program
}

fn run(mut command: Command, gateway: &Rehearsal, args: &[&str]) -> Output {
    command
        .arg(gateway.socket())
        .arg(USER)
        .args(args)
        .env("TICKPATH_GATEWAY_PASSWORD", PASSWORD)
        .output()
        .unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

const DOWNLOAD: [&str; 14] = [
    "start",
    "connected",
    "download_begin",
    "reference_data",
    "market_status",
    "market_by_price",
    "top_of_book",
    "ready",
    "download_end",
    "ready",
    "account_reference",
    "download_begin",
    "download_end",
    "ready",
];

fn check_all(ran: &Output) {
    let out = text(&ran.stdout);
    assert!(ran.status.success(), "{out} {}", text(&ran.stderr));
    let kinds: Vec<_> = out.lines().map(|line| line.split_whitespace().next().unwrap()).collect();
    assert_eq!(kinds[..DOWNLOAD.len()], DOWNLOAD);
    assert_eq!(kinds.len(), 40);
    assert!(kinds[DOWNLOAD.len()..].iter().all(|kind| *kind == "top_of_book"), "{out}");
    assert!(out.contains("top_of_book symbol=1") && out.contains("bid_price=64250.5"), "{out}");
}

fn check_order(ran: &Output, gateway: &Rehearsal) {
    let out = text(&ran.stdout);
    assert!(ran.status.success(), "{out} {}", text(&ran.stderr));
    assert_eq!(
        gateway.requests(),
        [
            "create_order symbol=1 account=1 request_id=1 client_order_id=1001 price=64248 quantity=10 stop_price=0 \
         max_show=0 side=buy order_type=limit time_in_force=gtc execution=post_only",
            "modify_order symbol=1 account=1 request_id=2 client_order_id=1001 price=64250.5 quantity=10 stop_price=0 \
         execution=post_only",
            "cancel_order symbol=1 account=1 request_id=3 client_order_id=1001",
        ]
    );
    assert_eq!(out.matches("origin=gateway status=forwarded").count(), 3, "{out}");
    assert!(out.lines().last().unwrap().contains("status=canceled"), "{out}");
}

#[test]
fn the_examples_in_c_hear_everything_and_trade() {
    let place = tempfile::tempdir().unwrap();
    for is_static in [false, true] {
        let gateway = Rehearsal::start();
        let subscribe_all = build(&place, "subscribe-all", is_static);
        check_all(&run(Command::new(&subscribe_all), &gateway, &["40"]));
        let order_test = build(&place, "order-test", is_static);
        check_order(&run(Command::new(&order_test), &gateway, &[SYMBOL, "10"]), &gateway);

        let mut wrong = Command::new(&order_test);
        let ran = wrong
            .arg(gateway.socket())
            .args([USER, SYMBOL])
            .env("TICKPATH_GATEWAY_PASSWORD", "guess")
            .output()
            .unwrap();
        assert_eq!(text(&ran.stderr), "error: the gateway refuses: wrong user or password\n");
        assert_eq!(ran.status.code(), Some(1));
    }
}

/// `None`, and a line, where there is no Python.
fn python(script: &str) -> Option<Command> {
    if Command::new("python3").arg("--version").output().is_err() {
        #[expect(clippy::print_stdout, reason = "it says what is not tested")]
        {
            println!("skipped: there is no python3");
        }
        return None;
    }
    let folder = root().join("../python");
    let mut command = Command::new("python3");
    command.arg(folder.join(script)).env("PYTHONPATH", &folder).env("PYTHONDONTWRITEBYTECODE", "1");
    command.env("TICKPATH_GATEWAY_LIBRARY", shared_library());
    Some(command)
}

#[test]
fn the_examples_in_python_hear_everything_and_trade() {
    let gateway = Rehearsal::start();
    if let Some(command) = python("examples/subscribe_all.py") {
        check_all(&run(command, &gateway, &["40"]));
    }
    if let Some(command) = python("examples/order_test.py") {
        check_order(&run(command, &gateway, &[SYMBOL, "10"]), &gateway);
    }
}

#[test]
fn the_python_module_keeps_its_word() {
    let gateway = Rehearsal::start();
    let Some(command) = python("tests/check.py") else { return };
    let ran = run(command, &gateway, &[]);
    assert!(ran.status.success(), "{} {}", text(&ran.stdout), text(&ran.stderr));
    assert_eq!(text(&ran.stdout), "all checks passed\n");
}
