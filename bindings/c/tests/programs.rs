//! C and Python programs, built and run against a gateway's client port.
#![allow(clippy::unwrap_used)]

#[path = "../../../io/gateway/tests/support/examples.rs"]
mod examples;
#[path = "../../../io/gateway/tests/support/rehearsal.rs"]
mod rehearsal;

use std::path::{Path, PathBuf};
use std::process::Command;

use examples::{
    WHO, check_all, check_lost_change, check_no_order, check_nothing_to_trade, check_order,
    check_other_venue, check_refused_order, check_wrong_password, run, success,
};
use rehearsal::{Manner, Rehearsal, SYMBOL};
use tempfile::TempDir;

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Folder of the libraries that cargo built: next to this program.
fn libraries() -> PathBuf {
    std::env::current_exe().unwrap().parent().unwrap().to_owned()
}

fn shared_library() -> PathBuf {
    let path = libraries().join("libtickpath_gateway_client.so");
    assert!(path.exists(), "{} was not built", path.display());
    path
}

/// Builds an example. A C compiler exists wherever Rust can link.
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

#[test]
fn the_examples_in_c_hear_everything_and_trade() {
    let place = tempfile::tempdir().unwrap();
    for is_static in [false, true] {
        let gateway = Rehearsal::start();
        let subscribe_all = build(&place, "subscribe-all", is_static);
        check_all(&run(Command::new(&subscribe_all), &gateway, &[WHO, "40"]), "");
        let order_test = build(&place, "order-test", is_static);
        check_no_order(&run(Command::new(&order_test), &gateway, &[WHO, SYMBOL]), &gateway);
        let order = [WHO, SYMBOL, "10", "--enable_trading", "--exchange", "deribit"];
        check_order(&run(Command::new(&order_test), &gateway, &order), &gateway);
        check_wrong_password(Command::new(&order_test), &gateway, &[WHO, SYMBOL]);
        check_other_venue(Command::new(&subscribe_all), &gateway, &[WHO, "40"]);
        check_other_venue(Command::new(&order_test), &gateway, &[WHO, SYMBOL]);
    }
}

#[test]
fn order_tests_end_when_their_order_does_and_when_an_answer_is_lost() {
    let place = tempfile::tempdir().unwrap();
    let program = build(&place, "order-test", false);
    let flags = [WHO, SYMBOL, "10", "--enable_trading"];
    let in_c = || Some(Command::new(&program));
    let in_python = || python("examples/order_test.py");
    let languages: [&dyn Fn() -> Option<Command>; 2] = [&in_c, &in_python];
    for command in languages {
        let (Some(first), Some(second)) = (command(), command()) else { continue };
        let refusing = Rehearsal::with(Manner::Refusing);
        check_refused_order(&run(first, &refusing, &flags));
        let silent = Rehearsal::with(Manner::Silent);
        check_lost_change(&run(second, &silent, &flags), &silent);
    }
}

#[test]
fn order_tests_wait_for_nothing_that_is_not_there() {
    let place = tempfile::tempdir().unwrap();
    let program = build(&place, "order-test", false);
    let none = format!("the user {WHO} has no account that it may trade with");
    check_nothing_to_trade(|| Command::new(&program), &none);
    if python("examples/order_test.py").is_some() {
        let command = || python("examples/order_test.py").unwrap();
        check_nothing_to_trade(command, "the user has no account that it may trade with");
    }
}

/// `None`, and a printed line, without Python.
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
        check_all(&run(command, &gateway, &[WHO, "40"]), "");
    }
    if let Some(command) = python("examples/subscribe_all.py") {
        check_other_venue(command, &gateway, &[WHO]);
    }
    if let Some(command) = python("examples/order_test.py") {
        check_no_order(&run(command, &gateway, &[WHO, SYMBOL]), &gateway);
    }
    if let Some(command) = python("examples/order_test.py") {
        let order = ["--enable_trading", WHO, SYMBOL, "10", "--name", "py", "--exchange", "deribit"];
        check_order(&run(command, &gateway, &order), &gateway);
    }
}

#[test]
fn the_python_module_keeps_its_word() {
    let gateway = Rehearsal::start();
    let Some(command) = python("tests/check.py") else { return };
    assert_eq!(success(&run(command, &gateway, &[WHO])), "all checks passed\n");
}
