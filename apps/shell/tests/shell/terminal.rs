//! A person at a terminal: this test binary runs again as the shell, on a pseudo-terminal of the test.

use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::process::Child;
use std::sync::mpsc::{Receiver, sync_channel};
use std::thread;
use std::time::Duration;

use nix::pty::{Winsize, openpty};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use tickpath_deribit::method::Method;
use tickpath_shell::{Interrupt, RunOptions, Source, run};
use tickpath_test_support::{Deadline, this_test, wait_until};

use crate::shell::venue::{CLIENT_ID, SECRET, Venue};

/// The variable that passes the venue's address to the shell.
const URL: &str = "TICKPATH_SHELL_TEST_URL";
/// This test's name.
const SELF: &str = "a_person_at_a_terminal_trades";

/// A terminal that runs a shell.
struct Terminal {
    keys: File,
    bytes: Receiver<Vec<u8>>,
    seen: String,
    child: Child,
}

impl Terminal {
    fn start(url: &str, home: &std::path::Path) -> Terminal {
        let size = Winsize { ws_row: 40, ws_col: 120, ws_xpixel: 0, ws_ypixel: 0 };
        let pty = openpty(Some(&size), None).unwrap();
        let end = |fd: &OwnedFd| fd.try_clone().unwrap();
        let child = this_test(module_path!(), SELF)
            .env(URL, url)
            .env("HOME", home)
            .env("TERM", "xterm")
            .env("TICKPATH_CLIENT_ID", CLIENT_ID)
            .env("TICKPATH_CLIENT_SECRET", SECRET)
            .stdin(end(&pty.slave))
            .stdout(end(&pty.slave))
            .stderr(end(&pty.slave))
            .spawn()
            .unwrap();
        drop(pty.slave);
        let mut screen = File::from(end(&pty.master));
        // Output that the test does not read stays in the terminal, which fills up soon.
        let (sender, bytes) = sync_channel(4);
        thread::spawn(move || {
            let mut buffer = [0; 4096];
            // An error marks the end of the terminal, after the shell has ended.
            while let Ok(count @ 1..) = screen.read(&mut buffer) {
                if sender.send(buffer[..count].to_vec()).is_err() {
                    return;
                }
            }
        });
        Terminal { keys: File::from(pty.master), bytes, seen: String::new(), child }
    }

    fn type_in(&mut self, keys: &str) {
        self.keys.write_all(keys.as_bytes()).unwrap();
    }

    /// Waits for a text after the last one.
    fn wait_for(&mut self, text: &str) {
        self.wait_for_all(&[text]);
    }

    /// Sends Ctrl-C as the signal that a controlling terminal would raise, until a text appears: a signal
    /// before the command starts has no effect.
    fn interrupt_until(&mut self, text: &str) {
        let deadline = Deadline::start();
        let id = Pid::from_raw(i32::try_from(self.child.id()).unwrap());
        while !self.seen.contains(text) {
            assert!(!deadline.is_over(), "{text:?} does not come: {:?}", self.seen);
            kill(id, Signal::SIGINT).unwrap();
            if let Ok(bytes) = self.bytes.recv_timeout(Duration::from_millis(200)) {
                self.seen.push_str(&String::from_utf8_lossy(&bytes));
            }
        }
        self.wait_for(text);
    }

    /// Sends the end of input repeatedly, since one before the prompt has no effect.
    fn end_input(&mut self) {
        let deadline = Deadline::start();
        while !self.seen.contains("the shell is over: ") {
            assert!(!deadline.is_over(), "the shell does not end: {:?}", self.seen);
            // The shell may have ended.
            let _ = self.keys.write_all(b"\x04");
            if let Ok(bytes) = self.bytes.recv_timeout(Duration::from_millis(200)) {
                self.seen.push_str(&String::from_utf8_lossy(&bytes));
            }
        }
    }

    /// Waits for several texts in any order.
    fn wait_for_all(&mut self, texts: &[&str]) {
        let deadline = Deadline::start();
        loop {
            let ends = texts.iter().map(|text| Some(self.seen.find(text)? + text.len()));
            if let Some(ends) = ends.collect::<Option<Vec<usize>>>() {
                self.seen.drain(..ends.into_iter().max().unwrap_or_default());
                return;
            }
            match self.bytes.recv_timeout(Duration::from_millis(100)) {
                Ok(bytes) => self.seen.push_str(&String::from_utf8_lossy(&bytes)),
                Err(_) => assert!(!deadline.is_over(), "{texts:?} do not come: {:?}", self.seen),
            }
        }
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        // After a failed test the shell would wait for input forever.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Runs the shell, if this binary was started for that.
fn be_a_shell(url: &str) {
    let options = RunOptions {
        config: tickpath_config::parse("shell.toml", &format!("url = '{url}'")).unwrap(),
        config_file: None,
        key_file: None,
        source: Source::Person,
        is_dry_run: false,
        keeps_going: false,
        is_silent: false,
        is_reported: false,
        log: Vec::new(),
        has_no_pane: false,
    };
    let report = run(&options, Interrupt::on_signals().unwrap()).unwrap();
    tickpath_config::print_stdout(format_args!("the shell is over: {:?}", report.ended)).unwrap();
}

#[test]
fn a_person_at_a_terminal_trades() {
    if let Ok(url) = std::env::var(URL) {
        return be_a_shell(&url);
    }
    let venue = Venue::start();
    let home = tempfile::tempdir().unwrap();
    let mut terminal = Terminal::start(&venue.url, home.path());
    terminal.wait_for("127.0.0.1 off> ");
    // Completion, and a command.
    terminal.type_in("posi\tBTC\r");
    terminal.wait_for("BTC-PERPETUAL  buy");
    terminal.wait_for("to the answer)");
    terminal.wait_for("127.0.0.1 ok> ");
    // A form with rejected values.
    terminal.type_in("buy\r");
    for (field, answer) in [
        ("instrument: ", "NO-SUCH"),
        ("instrument: ", "BTC-PERPETUAL"),
        ("amount (a multiple of 10): ", "15"),
        ("amount (a multiple of 10): ", "20"),
        ("contracts (of 10): ", "3"),
        ("contracts (of 10): ", "2"),
        ("type (limit): ", "iceberg"),
        ("type (limit): ", ""),
        ("price: ", ""),
        ("price: ", "50000.2"),
        ("price: ", "50000"),
        ("time_in_force (good_til_cancelled): ", ""),
        ("label: ", "by hand"),
        ("flags (none): ", "postonly"),
        ("flags (none): ", "post_only"),
        ("gives up: ", "yes"),
    ] {
        terminal.wait_for(field);
        terminal.type_in(&format!("{answer}\r"));
    }
    terminal.wait_for("order 1 open: buy 20 BTC-PERPETUAL at 50000");
    terminal.wait_for("127.0.0.1 ok> ");
    // The form of a change works likewise; unchanged fields keep their values.
    terminal.type_in("edit\r");
    for (field, answer) in [
        ("order_id: ", "77"),
        ("order_id: ", "1"),
        ("amount (20): ", "25"),
        ("amount (20): ", "30"),
        ("price (50000): ", ""),
        ("flags (post_only): ", ""),
        ("gives up: ", "y"),
    ] {
        terminal.wait_for(field);
        terminal.type_in(&format!("{answer}\r"));
    }
    terminal.wait_for("order 1 open: buy 30 BTC-PERPETUAL at 50000");
    terminal.wait_for("127.0.0.1 ok> ");
    // After a failed command or Ctrl-C, the rest of the line is not executed.
    terminal.type_in("bye; buy BTC-PERPETUAL 10 50000\r");
    terminal.wait_for("1 more of this line not carried out");
    terminal.wait_for("127.0.0.1 ok> ");
    terminal.type_in("wait 10m; buy BTC-PERPETUAL 10 50000\r");
    terminal.interrupt_until("1 more of this line not carried out");
    terminal.wait_for("127.0.0.1 ok> ");
    assert_eq!(venue.order_count(), 1);
    // Names that the venue has sent are completed.
    terminal.type_in("ticker BTC-P\t\r");
    terminal.wait_for("best bid");
    terminal.wait_for("127.0.0.1 ok> ");
    // An empty line is no confirmation: all fields are answered, but nothing is sent.
    terminal.type_in("sell BTC-PERPETUAL 10 60000; sell\r");
    for (field, answer) in [
        ("instrument: ", "BTC-PERPETUAL"),
        ("amount (a multiple of 10): ", "20"),
        ("contracts (of 10): ", ""),
        ("type (limit): ", ""),
        ("price: ", "60000"),
        ("time_in_force (good_til_cancelled): ", ""),
        ("label: ", ""),
        ("flags (none): ", ""),
        ("gives up: ", ""),
    ] {
        terminal.wait_for(field);
        terminal.type_in(&format!("{answer}\r"));
    }
    terminal.wait_for("given up: nothing was sent");
    terminal.wait_for("127.0.0.1 ok> ");
    // A cancelled form sends nothing.
    terminal.type_in("sell\r");
    terminal.wait_for("instrument: ");
    terminal.type_in("\x03");
    terminal.wait_for("nothing was sent");
    terminal.wait_for("127.0.0.1 ok> ");
    assert_eq!(venue.order_count(), 2);
    // The pane shows new data while nothing is typed.
    terminal.type_in("subscribe ticker.BTC-PERPETUAL.100ms\r");
    terminal.wait_for_all(&["subscribed: 1 channel", "ticker.BTC-PERPETUAL.100ms  #3  bid 50000 x 100"]);
    // A lost connection is restored automatically.
    venue.drop_all();
    terminal.wait_for("tickpath: the connection broke without a word of the venue (1006)");
    terminal.wait_for_all(&["tickpath: connected again, 1 channel", "ticker.BTC-PERPETUAL.100ms  #6"]);
    // Neither Ctrl-C nor an error ends the shell.
    terminal.type_in("wait 10m\r");
    terminal.interrupt_until("wait 10m: interrupted");
    terminal.type_in("bye\r");
    terminal.wait_for("no command \"bye\"");
    terminal.wait_for("127.0.0.1 ok> ");
    terminal.type_in("\x04");
    terminal.wait_for("the shell is over: Done");
    assert!(terminal.child.wait().unwrap().success());
    let kept = std::fs::read_to_string(home.path().join(".tickpath_shell_history")).unwrap();
    assert!(
        kept.contains("positions") && kept.contains("bye") && kept.contains("\"label=by hand\""),
        "{kept}"
    );
    // The next run restores the history.
    let mut terminal = Terminal::start(&venue.url, home.path());
    terminal.wait_for("127.0.0.1 off> ");
    terminal.type_in("\x1b[A");
    terminal.wait_for("bye");
    terminal.type_in("\x03");
    // A closed terminal: the shell stops reading, and closes the connection properly.
    kill(Pid::from_raw(i32::try_from(terminal.child.id()).unwrap()), Signal::SIGHUP).unwrap();
    terminal.wait_for("the shell is over: Interrupted");
}

#[test]
fn a_terminal_that_stands_still_does_not_keep_the_connection_from_going_on() {
    let venue = Venue::start();
    // Each subscription sends some hundred kilobytes of lines, more than an unread terminal buffers.
    venue.send_on_subscription(&format!("\"{}\"", "x".repeat(150)), 2_000);
    let home = tempfile::tempdir().unwrap();
    let mut terminal = Terminal::start(&venue.url, home.path());
    terminal.wait_for("127.0.0.1 off> ");
    terminal.type_in("subscribe platform_state\r");
    terminal.wait_for("subscribed: 1 channel");
    terminal.type_in("wait 10m\r");
    for count in 2..6 {
        venue.drop_all();
        wait_until("the next connection", || {
            venue.seen(Method::PrivateSubscribe) + venue.seen(Method::PublicSubscribe) >= count
        });
    }
    // Once the terminal is read again, the shell continues as before.
    terminal.interrupt_until("wait 10m: interrupted");
    terminal.end_input();
    terminal.wait_for("the shell is over: Done");
}

#[test]
fn another_program_talks_to_the_shell_line_by_line() {
    use std::io::{BufRead, BufReader};
    let venue = Venue::start();
    let mut child = this_test(module_path!(), SELF)
        .env(URL, &venue.url)
        .env("TICKPATH_CLIENT_ID", CLIENT_ID)
        .env("TICKPATH_CLIENT_SECRET", SECRET)
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let mut keys = child.stdin.take().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut wait_for = |text: &str| {
        assert!(lines.by_ref().any(|line| line.unwrap().contains(text)), "{text:?} does not come");
    };
    keys.write_all(b"buy BTC-PERPETUAL 10 50000\n").unwrap();
    wait_for("order 1 open");
    // An incomplete line waits for its end.
    keys.write_all(b"cancel_all; cance").unwrap();
    keys.write_all(b"l 1\n").unwrap();
    wait_for("1 order cancelled");
    // The shell ends at the first failure, before the end of the input.
    wait_for("the shell is over: Failed");
    assert!(child.wait().unwrap().success());
}

#[test]
fn the_prompt_follows_the_connection_and_ctrl_d_ends_a_command_with_the_shell() {
    // One command waits while connected, the other for the connection.
    for (command, printed) in [("wait 10m\r", "wait 10m"), ("positions\r", "waiting for the connection")] {
        let venue = Venue::start();
        let home = tempfile::tempdir().unwrap();
        let mut terminal = Terminal::start(&venue.url, home.path());
        terminal.wait_for("127.0.0.1 off> ");
        terminal.type_in("positions\r");
        terminal.wait_for("127.0.0.1 ok> ");
        drop(venue);
        terminal.wait_for("127.0.0.1 ...>");
        terminal.type_in(command);
        terminal.wait_for(printed);
        terminal.end_input();
        terminal.wait_for("interrupted");
        terminal.wait_for("the shell is over: Done");
    }
}

#[test]
fn a_shell_that_is_told_to_end_ends() {
    let home = tempfile::tempdir().unwrap();
    let mut terminal = Terminal::start("ws://127.0.0.1:1/", home.path());
    terminal.wait_for("127.0.0.1 off> ");
    kill(Pid::from_raw(i32::try_from(terminal.child.id()).unwrap()), Signal::SIGTERM).unwrap();
    terminal.wait_for("the shell is over: Interrupted");
    assert!(terminal.child.wait().unwrap().success());
}
