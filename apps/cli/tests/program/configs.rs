//! Tests of configuration files: the samples, their errors, `config check` and `config show`.

use std::os::unix::fs::PermissionsExt;

use crate::support::{Site, assert_refused, repository, run, tickpath};

#[test]
fn every_sample_is_valid_for_its_program() {
    let folder = repository().join("configs");
    let mut count = 0;
    for entry in std::fs::read_dir(&folder).unwrap() {
        let path = entry.unwrap().path();
        // Skip files that venues started with these samples have written to the folder.
        if path.extension().is_none_or(|extension| extension != "toml") {
            continue;
        }
        let (kind, shows) = match path.file_name().unwrap().to_str().unwrap() {
            "exchange.toml" => (
                "venue configuration",
                &["max_connections = 64", "heartbeat = \"1s\"", "policy = \"group\"", "\"matcher\""][..],
            ),
            "exchange-day.toml" => (
                "venue configuration",
                &[
                    "time_zone = \"UTC-05:00\"",
                    "at = \"09:30:00\"",
                    "price_band = \"5%\"",
                    "spare_instruments = 16",
                ][..],
            ),
            "trader.toml" => (
                "trader configuration",
                &["strategy = \"random\"", "max_position = 5000", "\"order-gateway\""][..],
            ),
            "demo.toml" => ("demo configuration", &["rate = 20000", "loss = \"0.1%\"", "order-gateway"][..]),
            "feed.toml" => (
                "feed handler configuration",
                &["name = \"itch\"", "reorder_wait = \"1ms\"", "max_orders = 1048576"][..],
            ),
            "deribit.toml" => (
                "venue configuration",
                &["ports = [\"deribit\"]", "[deribit]", "matching_rate = ", "[[deribit.key]]"][..],
            ),
            "gateway.toml" => (
                "gateway configuration",
                &[
                    "request_timeout = \"15s\"",
                    "flush_interval = \"5m\"",
                    "ban_period = \"5m\"",
                    "[users.watcher]",
                ][..],
            ),
            "shell.toml" => (
                "shell configuration",
                &["production = false", "request_timeout = \"10s\"", "order_size_max = \"1000\""][..],
            ),
            "shell-native.toml" => (
                "shell configuration",
                &["url = \"ouch://127.0.0.1:26400\"", "[native.market_data]", "client_secret = \"test\""][..],
            ),
            "deribit-instruments.toml" => ("instrument file", &["BTCPERP", "ETHUSDC", "\"0.50\""][..]),
            "instruments.toml" => ("instrument file", &["ALPHA", "HARBOR", "\"1250.00\"", "1375.0000"][..]),
            other => panic!("{other}: say here what it is"),
        };
        let file = path.to_str().unwrap();
        let printed = run(&["config", "check", file]);
        assert_eq!((printed.code, printed.err.as_str()), (Some(0), ""), "{file}");
        assert!(printed.out.contains(kind) && printed.out.lines().count() == 1, "{}", printed.out);
        let printed = run(&["config", "show", file]);
        assert_eq!((printed.code, printed.err.as_str()), (Some(0), ""), "{file}");
        for word in shows {
            assert!(printed.out.contains(word), "no '{word}' in\n{}", printed.out);
        }
        count += 1;
    }
    assert_eq!(count, 11);
}

#[test]
fn the_kind_of_a_file_follows_from_its_keys() {
    let site = Site::new();
    for (text, kind) in [
        ("instruments='instruments.toml'\norder_entry.test_users=['A']", "venue"),
        ("order_entry={test_users=['A']}\ninstruments=\"instruments.toml\"", "venue"),
        (
            "instruments = 'instruments.toml'\n[order_entry]\n[[order_entry.user]]\nname = 'A'\npassword = 'test'",
            "venue",
        ),
        (
            "instruments='instruments.toml'\norder_entry={address='127.0.0.1:1',user='A',password='test'}",
            "trader",
        ),
        ("rate=1", "demo"),
        ("", "demo"),
        ("instrument=[{symbol='A',reference_price='1'}]", "instrument file"),
        ("[accounts.A1]\nlogin='x'\nsecret='test'\n[users.u]\npassword='test'", "gateway"),
    ] {
        let file = site.write("some.toml", text);
        let printed = run(&["config", "check", &file]);
        assert_eq!((printed.code, printed.err.as_str()), (Some(0), ""), "{text}");
        assert!(printed.out.contains(kind), "{text}: {}", printed.out);
    }
}

#[test]
fn a_wrong_key_is_named_with_its_line() {
    let site = Site::new();
    let venue =
        site.write("venue.toml", "instruments = 'instruments.toml'\n[order_entry]\ntest_user = ['A']\n");
    let trader = site.write(
        "trader.toml",
        "instruments = 'instruments.toml'\n[order_entry]\naddress = '127.0.0.1:1'\nuser = 'A'\npassword = 'test'\n[limits]\nclib = 1\n",
    );
    let demo = site.write("demo.toml", "seconds = 1\nrats = 5\n");
    for (args, place, key) in [
        (["exchange", "--config", &venue], "venue.toml:3", "test_user"),
        (["config", "check", &venue], "venue.toml:3", "test_user"),
        (["trader", "--config", &trader], "trader.toml:7", "clib"),
        (["config", "show", &trader], "trader.toml:7", "clib"),
        (["demo", "--config", &demo], "demo.toml:2", "rats"),
        (["config", "check", &demo], "demo.toml:2", "rats"),
    ] {
        assert_refused(&args, &[place, "unknown field", key, "expected"]);
    }
    // Errors in the Deribit front's table are reported likewise, although the venue itself does not parse it.
    let sample = std::fs::read_to_string(repository().join("configs/deribit.toml")).unwrap();
    let sample = sample.replace("\nband = ", "\nbandx = ").replace("deribit-instruments", "instruments");
    let line = 1 + sample.lines().position(|line| line.starts_with("bandx")).unwrap();
    let front = site.write("front.toml", &sample);
    let place = format!("front.toml:{line}");
    assert_refused(&["config", "check", &front], &[&place, "unknown field", "bandx"]);
    let broken = site.write("broken.toml", "seconds = = 1\n");
    assert_refused(&["config", "check", &broken], &["broken.toml:1"]);
}

#[test]
fn unusable_values_are_refused() {
    let site = Site::new();
    let with = |name: &str, text: &str| site.write(name, text);
    let trader = "[order_entry]\naddress = '127.0.0.1:1'\nuser = 'A'\npassword = 'test'\n";
    let strategy =
        with("s.toml", &format!("instruments = 'instruments.toml'\nstrategy = 'oracle'\n{trader}"));
    assert_refused(&["trader", "--config", &strategy], &["oracle", "choose maker, taker or random"]);
    let no_file = with("n.toml", &format!("instruments = 'none.toml'\n{trader}"));
    assert_refused(&["trader", "--config", &no_file], &["none.toml"]);
    let gateway = with(
        "p.toml",
        &format!(
            "instruments = 'instruments.toml'\n{trader}[[placement.thread]]\nname = 'x'\nagents = ['feed-handler', 'engine']\n"
        ),
    );
    let lot_mismatch = with("l.toml", &format!("instruments = 'lots.toml'\n{trader}"));
    with("lots.toml", "[[instrument]]\nsymbol = 'ONLY'\nreference_price = '100'\nlot_size = 500\n");
    let venue = "instruments = 'instruments.toml'\norder_entry.test_users = ['A']\n";
    let memory = with("m.toml", &format!("{venue}market_data.retained_messages = 100000000000000\n"));
    let zero_heartbeat = with("b.toml", &format!("{venue}market_data.heartbeat = '0s'\n"));
    let demo = with("d.toml", "seconds = 0\n");
    let user =
        with("c.toml", &format!("instruments = 'instruments.toml'\n{trader}").replace("'A'", "'SEVENCH'"));
    for (program, file, words) in [
        ("trader", &strategy, &["oracle", "choose maker, taker or random"][..]),
        ("trader", &gateway, &["no thread runs the agent 'order-gateway'"]),
        ("trader", &lot_mismatch, &["ONLY", "clip = 100", "lot of 500"]),
        ("trader", &user, &["SEVENCH", "1 to 6"]),
        ("exchange", &memory, &["market_data.retained_messages", "67108864"]),
        ("exchange", &zero_heartbeat, &["heartbeat", "1ms"]),
        ("demo", &demo, &["seconds must be at least 1"]),
    ] {
        assert_refused(&["config", "check", file], words);
        assert_refused(&[program, "--config", file], words);
    }
    let no_users = with("u.toml", "instruments = 'instruments.toml'\n");
    assert_refused(&["exchange", "--config", &no_users], &["names no user", "test_users"]);
}

#[test]
fn a_password_is_not_shown_and_its_file_must_be_private() {
    let site = Site::new();
    let file = site.write(
        "trader.toml",
        "instruments = 'instruments.toml'\n[order_entry]\naddress = '127.0.0.1:1'\nuser = 'A'\npassword = 'hunter2'\n",
    );
    let set_mode = |mode| std::fs::set_permissions(&file, std::fs::Permissions::from_mode(mode)).unwrap();
    set_mode(0o644);
    assert_refused(&["config", "show", &file], &["chmod 600"]);
    set_mode(0o600);
    let printed = run(&["config", "show", &file]);
    assert_eq!(printed.code, Some(0), "{}", printed.err);
    assert!(!printed.out.contains("hunter2"), "{}", printed.out);
    let shown = site.write("shown.toml", &printed.out);
    assert_refused(&["trader", "--config", &shown], &["TICKPATH_PASSWORD_NOT_SHOWN"]);
}

#[test]
fn the_files_of_a_class_are_private_and_valid_for_other_machines() {
    let site = Site::new();
    let exchange = repository().join("configs/exchange.toml");
    let folder = site.path("class");
    let class = |options: &[&str]| {
        let args = ["config", "class", exchange.to_str().unwrap(), "--output", &folder];
        run(&[&args[..], options].concat())
    };
    let printed = class(&["--students", "100", "--address", "192.168.7.1"]);
    assert_eq!((printed.code, printed.err.as_str()), (Some(0), ""));
    let mut passwords = std::collections::BTreeSet::new();
    for number in 1..=100 {
        let file = format!("{folder}/STU{number:03}.toml");
        let mode = std::fs::metadata(&file).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        let text = std::fs::read_to_string(&file).unwrap();
        let line = |prefix: &str| text.lines().find_map(|line| line.strip_prefix(prefix)).unwrap();
        passwords.insert(line("client_secret = ").to_owned());
        assert_eq!(line("url = "), "\"ouch://192.168.7.1:26400\"");
        assert!(!printed.out.contains(line("client_secret = ").trim_matches('"')));
    }
    assert_eq!(passwords.len(), 100);
    let check = |name: &str| run(&["config", "check", &format!("{folder}/{name}.toml")]);
    assert_eq!((check("venue").code, check("STU100").code), (Some(0), Some(0)));
    let venue = std::fs::read_to_string(format!("{folder}/venue.toml")).unwrap();
    assert!(!venue.contains("127.0.0.1") && !venue.contains("test_users"), "{venue}");

    let again = class(&[]);
    assert!(again.code == Some(1) && again.err.contains("choose another with --output"), "{}", again.err);
    assert_eq!(std::fs::read_to_string(format!("{folder}/venue.toml")).unwrap(), venue);
}

/// A gateway's configuration; the test replaces its secret and its password.
const GATEWAY: &str = "name = 'never'\n[venue]\nws_uri = 'ws://127.0.0.1:9/'\n[accounts.A1]\nlogin = 'x'\n\
                       secret = 'test'\n[users.u]\npassword = 'test'\naccounts = 'A1'\n";

/// `config check` reports the same errors as the program's start, with the same exit code.
#[test]
fn check_and_start_validate_secrets() {
    let site = Site::new();
    let file = site.write("g.toml", "");
    let write = |text: &str, mode| {
        site.write("g.toml", text);
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(mode)).unwrap();
    };
    let open = format!("chmod 600 {file}");
    let kept = site.path("kept");
    for (secret, password, words) in [
        ("hunter2", "test", &[open.as_str(), "accounts.A1.secret"][..]),
        ("test", "hunter2", &[open.as_str()]),
        ("file:kept", "test", &["cannot read", kept.as_str(), "accounts.A1.secret"]),
        ("env:TICKPATH_NO_SUCH", "test", &["TICKPATH_NO_SUCH", "accounts.A1.secret"]),
        ("test", "$argon2id$x", &["users.u.password"]),
    ] {
        let text = GATEWAY.replace("secret = 'test'", &format!("secret = '{secret}'"));
        write(&text.replace("password = 'test'", &format!("password = '{password}'")), 0o644);
        assert_refused(&["config", "check", &file], words);
        let [checked, started] = [&["config", "check", &file][..], &["gateway", "--config", &file]].map(run);
        assert_eq!((checked.code, checked.err), (started.code, started.err));
    }
    // A file with a password's hash, unlike one with the password, may be readable by others.
    let made = tickpath().args(["gateway", "hash-password"]).write_stdin("hunter2\n").output().unwrap();
    let hash = String::from_utf8(made.stdout).unwrap();
    write(&GATEWAY.replace("password = 'test'", &format!("password = '{}'", hash.trim())), 0o644);
    let checked = run(&["config", "check", &file]);
    assert_eq!((checked.code, checked.err.as_str()), (Some(0), ""));
    // `config show` prints the absolute path of a secret's file.
    std::fs::write(&kept, "hunter2\n").unwrap();
    std::fs::set_permissions(&kept, std::fs::Permissions::from_mode(0o600)).unwrap();
    write(&GATEWAY.replace("secret = 'test'", "secret = 'file:kept'"), 0o644);
    assert_eq!(run(&["config", "check", &file]).code, Some(0));
    let text = run(&["config", "show", &file]).out;
    assert!(text.contains(&format!("\"file:{kept}\"")), "{text}");

    let shell = site.write("s.toml", "client_id = 'x'\nclient_secret = 'file:none'\n");
    let none = site.path("none");
    assert_refused(&["config", "check", &shell], &["cannot read", &none]);
    assert_refused(&["shell", "--config", &shell, "-c", "test"], &["cannot read", &none]);
}

/// Returns the output of `config show` without comments.
fn shown(file: &str) -> String {
    let printed = run(&["config", "show", file]);
    assert_eq!((printed.code, printed.err.as_str()), (Some(0), ""), "{file}");
    printed.out.lines().filter(|line| !line.starts_with('#')).map(|line| format!("{line}\n")).collect()
}

#[test]
fn a_shown_configuration_can_be_used_from_any_folder() {
    let site = Site::new();
    let trader = "instruments = 'instruments.toml'\nstrategy = 'taker'\n\
                  [order_entry]\naddress = '127.0.0.1:1'\nuser = 'A'\npassword = 'test'\nsettle_after = '1500us'\n\
                  [market_data]\ninject_loss = '0.05%'\n[limits]\nclip = 50\n[instrument_limits.ONLY]\nmax_loss = '0.5'\n";
    let mut files = vec![site.write("t.toml", trader), site.write("d.toml", ""), site.path("exchange.toml")];
    for name in ["demo.toml", "exchange.toml", "trader.toml", "instruments.toml"] {
        files.push(repository().join("configs").join(name).to_str().unwrap().to_owned());
    }
    let other_folder = tempfile::tempdir().unwrap();
    for file in files {
        let text = shown(&file);
        let copy = other_folder.path().join("copy.toml");
        std::fs::write(&copy, &text).unwrap();
        assert_eq!(shown(copy.to_str().unwrap()), text, "{file}");
    }
    let text = shown(&site.path("t.toml"));
    for line in [
        "clip = 50",
        "threshold = 700000",
        "max_loss = \"0.50\"",
        "settle_after = \"1500us\"",
        "inject_loss = \"0.05%\"",
    ] {
        assert!(text.lines().any(|shown| shown == line), "no '{line}' in\n{text}");
    }
}

/// A command's error for a file of another kind names that kind and the kind that the command needs.
#[test]
fn a_file_of_another_kind_is_named_with_its_command() {
    let configs = repository().join("configs");
    let samples = [
        ("exchange.toml", "a venue's configuration", "tickpath exchange"),
        ("trader.toml", "a trader's configuration", "tickpath trader"),
        ("feed.toml", "a feed handler's configuration", "tickpath feed"),
        ("shell.toml", "a shell's configuration", "tickpath shell"),
        ("gateway.toml", "a gateway's configuration", "tickpath gateway"),
        ("demo.toml", "a demo's configuration", "tickpath demo"),
        ("instruments.toml", "an instrument file", "name it in the file of a venue or a trader"),
    ];
    for (command, own) in [
        (&["exchange"][..], 0),
        (&["trader"], 1),
        (&["feed"], 2),
        (&["feed", "status"], 2),
        (&["shell", "-c", "help"], 3),
        (&["gateway"], 4),
        (&["gateway", "status"], 4),
        (&["demo", "--seconds", "1"], 5),
    ] {
        let (own_name, own_kind, _) = samples[own];
        for (name, kind, with) in samples {
            // An instrument file is also a valid demo configuration with these instruments.
            if name == own_name || (own == 5 && name == "instruments.toml") {
                continue;
            }
            let file = configs.join(name);
            let args = [command, &["--config", file.to_str().unwrap()]].concat();
            let sample = format!("configs/{own_name}");
            assert_refused(&args, &[name, kind, with, own_kind, &sample]);
        }
        let args = [command, &["--config", "/nowhere/x.toml"]].concat();
        assert_refused(&args, &["there is no file /nowhere/x.toml", &format!("configs/{own_name}")]);
    }
}

#[test]
fn a_missing_configuration_is_an_error_with_the_sample() {
    for (command, sample) in [
        (&["exchange"][..], "configs/exchange.toml"),
        (&["trader"], "configs/trader.toml"),
        (&["feed"], "configs/feed.toml"),
        (&["feed", "status"], "configs/feed.toml"),
        (&["gateway"], "configs/gateway.toml"),
    ] {
        assert_refused(command, &["--config", sample]);
    }
    for command in ["exchange", "trader", "feed", "shell", "gateway", "demo"] {
        let help = run(&[command, "--help"]).out;
        assert!(help.contains(&format!("configs/{command}.toml")), "{command}:\n{help}");
    }
}
