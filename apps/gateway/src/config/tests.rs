//! Accepted configurations, and the error line for each mistake.

use tickpath_config::{IdleStrategy, to_toml};

use super::*;

const BASE: &str = "[venue]\nws_uri = 'ws://127.0.0.1:9/'\n[accounts.A1]\nlogin = 'x'\nsecret = 'test'\n\
                    [users.u]\npassword = 'test'\naccounts = 'A1'\n";

fn base() -> GatewayConfig {
    GatewayConfig::parse("g.toml", BASE).unwrap()
}

/// Error for `text` followed by the keys that every gateway needs.
fn refused(text: &str) -> String {
    let error = GatewayConfig::parse("g.toml", text).unwrap_err().to_string();
    assert_eq!(error.lines().count(), 1, "{error}");
    error
}

#[test]
fn every_knob_has_its_default() {
    let config = base();
    let venue = &config.venue;
    let text = |duration: Duration| duration.to_string();
    assert_eq!(text(venue.request_timeout), "15s");
    assert_eq!(text(venue.fix_ping_interval), "5s");
    assert_eq!(text(venue.ws_ping_interval), "5s");
    assert_eq!((venue.ticker_interval, venue.book_interval), (Interval::Ms100, Interval::Raw));
    assert_eq!((venue.subscriptions_max, venue.subscribe_batch, venue.depth), (256, 56, 20));
    assert_eq!((venue.encode_buffer.0, venue.decode_buffer.0), (1 << 20, 16 << 20));
    assert!(venue.cancel_on_disconnect && config.clients.cancel_on_disconnect);
    let feeds = &venue.feeds;
    assert!(feeds.ticker && feeds.book && feeds.trades && feeds.instrument_state);
    assert_eq!((feeds.time_series.len(), feeds.time_series_length, feeds.candles_max()), (0, 20, 0));
    assert_eq!(text(config.duty_cycle.timer_interval), "250ns");
    let user = &config.users["u"];
    assert_eq!((text(user.monitor_period), text(user.ban_period)), ("1m".to_owned(), "5m".to_owned()));
    assert_eq!(user.request_limit, 10);
    assert_eq!(
        (config.event_log.flush_bytes.0, text(config.event_log.flush_interval)),
        (1 << 20, "5m".to_owned())
    );
    assert_eq!(config.client_socket().to_str(), Some("deribit.sock"));
    assert_eq!(config.admin_socket().to_str(), Some("deribit.admin.sock"));
    assert_eq!(config.master().unwrap().0, "A1");
    assert!(config.symbols.filter().unwrap().has("BTC-PERPETUAL"));
}

#[test]
fn an_account_has_one_who_quotes() {
    let quoting = format!("{BASE}mmp_group = 'desk'\n");
    let config = GatewayConfig::parse("g.toml", &quoting).unwrap();
    assert_eq!(config.users["u"].mmp_group.as_deref(), Some("desk"));
    let second = "[users.v]\npassword = 'test'\naccounts = 'A1'\nmmp_group = 'other'\n";
    let error = refused(&format!("{quoting}{second}"));
    assert!(error.contains("both quote at A1"), "{error}");
    let error = refused(&quoting.replace("'desk'", "'a desk'"));
    assert!(error.contains("users.u.mmp_group"), "{error}");
    let error = refused(&quoting.replace("[accounts.A1]", "cancel_on_disconnect = false\n[accounts.A1]"));
    assert!(error.contains("venue.cancel_on_disconnect"), "{error}");
    let error = refused(&quoting.replace("accounts = 'A1'\n", ""));
    assert!(error.contains("users.u.accounts"), "{error}");
}

#[test]
fn what_was_written_is_read_as_the_same() {
    let text = format!(
        "name = 'g-1'\nmetrics_listen_address = '127.0.0.1:7800'\n[loop]\nidle = 'spin'\ncore = 1\n\
         [limits]\norder_size_max = '1000.5'\n[symbols]\ninclude = 'BTC-.*'\nexclude = ['.*-C', '.*-P']\n{BASE}\
         monitor_period_secs = 10\nban_period = '90s'\nrequest_limit = 1000\n[accounts.A2]\nmaster = true\n\
         login = 'y'\nsecret = 'env:NOWHERE'\n[accounts.A2.limits]\nopen_orders_max = 3\n"
    );
    let config = GatewayConfig::parse("g.toml", &text).unwrap();
    let again = GatewayConfig::parse("again.toml", &to_toml(&config)).unwrap();
    assert_eq!(to_toml(&again), to_toml(&config));
    assert_eq!(again.duty_cycle.idle, IdleStrategy::Spin);
    let user = &again.users["u"];
    assert_eq!(
        (user.monitor_period.to_string(), user.ban_period.to_string()),
        ("10s".to_owned(), "90s".to_owned())
    );
    assert_eq!(again.master().unwrap().0, "A2");
    let caps = again.caps_of(&again.accounts["A2"]);
    assert_eq!((caps.order_size_max, caps.open_orders_max), (Some(Amount(100_050_000_000)), Some(3)));
    let filter = again.symbols.filter().unwrap();
    assert!(filter.has("BTC-PERPETUAL") && !filter.has("BTC-25DEC26-1-C") && !filter.has("XBTC-PERPETUAL"));
}

#[test]
fn secrets_are_not_shown() {
    let config = GatewayConfig::parse("g.toml", &BASE.replace("'test'", "'hunter2'")).unwrap();
    let shown = format!("{}{config:?}", to_toml(&config));
    assert!(!shown.contains("hunter2"), "{shown}");
}

#[test]
fn each_mistake_has_one_line_that_says_what_to_do() {
    let with = |line: &str| format!("{line}\n{BASE}");
    let user = |line: &str| format!("{BASE}{line}\n");
    let account = |line: &str| BASE.replace("[accounts.A1]\n", &format!("[accounts.A1]\n{line}\n"));
    let venue = |line: &str| BASE.replace("[venue]\n", &format!("[venue]\n{line}\n"));
    for (text, words) in [
        (with("nmae = 'x'"), &["g.toml:1", "unknown field `nmae`"][..]),
        (with("name = 'a b'"), &["\"a b\"", "1 to 32 letters"]),
        (with("metrics_listen_address = '0.0.0.0:1'"), &["0.0.0.0:1", "127.0.0.1"]),
        (with("[loop]\ntimer_interval = '1s'"), &["loop.timer_interval", "10ms at most"]),
        (with("[clients]\nmax = 0"), &["clients.max is 0", "1 to 1024"]),
        (with("[clients]\nheartbeat = '1ms'"), &["clients.heartbeat is 1ms", "10ms to 1m"]),
        (with("[symbols]\ninclude = 'BTC-('"), &["symbols.include", "BTC-(", "unclosed group"]),
        (with("[symbols]\ninclude = []"), &["symbols.include is empty"]),
        (with("[limits]\norder_size_max = 10"), &["g.toml:2", "expected a string"]),
        (with("[limits]\nnotional_max = '-1'"), &["-1", "no amount"]),
        (with("[event_log]\nflush_bytes = '1B'"), &["event_log.flush_bytes is 1B", "4KiB"]),
        (with("[event_log]\nflush_interval = '0s'"), &["event_log.flush_interval", "10ms to 1h"]),
        (user("request_limit = 0"), &["users.u.request_limit is 0", "1 to 65536"]),
        (user("ban_period = 'long'"), &["'long' is not a duration"]),
        (user("monitor_period = '0s'"), &["users.u.monitor_period is 0ns"]),
        (user("symbols = ['*']"), &["users.u.symbols", "\"*\""]),
        (user("risk_manager = 1"), &["expected a boolean"]),
        (BASE.replace("'A1'", "['A1', 'A9']"), &["users.u.accounts names A9", "[accounts.A9]"]),
        (account("scope = ' '"), &["accounts.A1.scope is \" \"", "leave it out"]),
        (account("scope = 'trade:write'"), &["accounts.A1.scope", "trade:write is no word of it"]),
        (account("scope = 'trade:read trade:read_write'"), &["accounts.A1.scope", "says trade twice"]),
        (account("scope = 'account:read trade:none'"), &["accounts.A1.scope", "trade:read to watch"]),
        (account("scope = 'account:read'"), &["accounts.A1.scope", "without a trade scope"]),
        (account("scope = 'expires:0'"), &["expires:0 is no word of it"]),
        (account("grant = 'password'"), &["unknown variant `password`", "client_signature"]),
        (BASE.replace("accounts = 'A1'", "risk_manager = true"), &["risk manager of no account"]),
        (BASE.replace("accounts = 'A1'", "mmp = true"), &["users.u.mmp", "users.u.accounts"]),
        (venue("feeds.time_series = ['1', '2']"), &["\"2\" is no length of candles", "\"1D\""]),
        (venue("feeds.time_series = ['60', '60']"), &["venue.feeds.time_series names 60 twice"]),
        (venue("feeds.time_series_length = 0"), &["venue.feeds.time_series_length is 0", "1 to 500"]),
        (
            venue("feeds = { time_series = ['1', '60', '1D'], time_series_length = 334 }"),
            &[
                "venue.feeds.time_series_length is 334: write 333 at most for 3 lengths",
                "1000 of an instrument",
            ],
        ),
        (
            with("[clients]\nmarket_data_max = 64").replace(
                "[venue]\n",
                "[venue]\nfeeds = { time_series = ['1', '1D'], time_series_length = 20 }\n",
            ),
            &["clients.market_data_max is 64: write 128", "20 candles (venue.feeds.time_series_length)"],
        ),
        (
            with("[clients]\nevents_max = 64")
                .replace("[venue]\n", "[venue]\ndepth = 100\nfeeds = { time_series = ['1', '1D'] }\n"),
            &["clients.events_max is 64: write 128", "2 lengths of candles (venue.feeds.time_series)"],
        ),
        (venue("subscriptions_max = 501"), &["venue.subscriptions_max is 501", "1 to 500"]),
        (venue("subscribe_batch = 257"), &["venue.subscribe_batch is 257", "1 to 256"]),
        (venue("depth = 0"), &["venue.depth is 0"]),
        (venue("transport = 'fix'"), &["venue.fix_uri", "tcp://host:port"]),
        (venue("fix_ping_interval = '1500ms'"), &["venue.fix_ping_interval is 1500ms", "whole seconds"]),
        (venue("fix_uri = 'ssl://x:1'"), &["no FIX address", "tls://host:port"]),
        (venue("fix_uri = 'tcp://x:0'"), &["no FIX address"]),
        (venue("ticker_interval = '5ms'"), &["`raw`", "`100ms`", "`agg2`"]),
        (venue("book_timeout = '1ms'"), &["venue.book_timeout", "1s"]),
        (
            format!("{}\n[clients]\nevents_max = 64", venue("depth = 1000")),
            &["clients.events_max", "512", "1000 levels"],
        ),
        (
            format!("{}\n[clients]\nreturn_patience = '1ms'", venue("depth = 1")),
            &["clients.return_patience", "1s"],
        ),
        (
            format!("{}\n[test]\nlogon_after = '1s'", venue("proxy = '10.0.0.1:3128'")),
            &["127.0.0.1 is not a test environment"],
        ),
        (venue("decode_buffer = '1B'"), &["venue.decode_buffer is 1B"]),
        (venue("udp_snapshot_port = 6101"), &["g.toml:2", "multicast", "leave it out"]),
        (BASE.replace("ws://127.0.0.1:9/", "http://x/"), &["venue.ws_uri"]),
        ("[venue]\n".to_owned(), &["0 accounts", "[accounts.NAME]"]),
        (BASE[..BASE.find("[users").unwrap()].to_owned(), &["0 users", "[users.NAME]"]),
        (
            format!("{BASE}[accounts.A2]\nmaster=true\nlogin='x'\nsecret='test'\n")
                .replace("login = 'x'", "login = 'x'\nmaster = true"),
            &["more than one account", "master"],
        ),
    ] {
        let line = refused(&text);
        for word in words {
            assert!(line.contains(word), "no {word:?} in {line:?}");
        }
    }
}

#[test]
fn real_money_needs_words_tls_and_every_cap_of_every_account() {
    let real = BASE.replace("ws://127.0.0.1:9/", "wss://www.deribit.com/ws/api/v2");
    assert!(refused(&real).contains("production = true"));
    let with = |limits: &str| format!("production = true\n[limits]\n{limits}\n{real}");
    let mut limits = String::new();
    for limit in ["order_size_max = '10'", "notional_max = '1000'", "open_orders_max = 3"] {
        let name = limit.split(' ').next().unwrap();
        assert!(refused(&with(&limits)).contains(name));
        limits = format!("{limits}{limit}\n");
    }
    assert!(GatewayConfig::parse("g.toml", &with(&limits)).is_ok());
    assert!(refused(&with(&limits).replace("wss:", "ws:")).contains("wss://"));
    // A FIX endpoint for orders without TLS, or a production one beside a test WebSocket.
    let fix = |uri: &str, text: &str| text.replace("[venue]", &format!("[venue]\nfix_uri = '{uri}'"));
    assert!(refused(&fix("tcp://fix.deribit.com:9881", &with(&limits))).contains("tls://"));
    assert!(refused(&fix("tls://fix.deribit.com:9883", BASE)).contains("production = true"));
    assert!(GatewayConfig::parse("g.toml", &fix("tcp://fix-test.deribit.com:9881", BASE)).is_ok());
    // Deliberate failures are only for a venue on this machine.
    assert!(refused(&format!("{}[test]\ndisconnect_after = '1s'\n", with(&limits))).contains("[test]"));
    assert!(GatewayConfig::parse("g.toml", &format!("{BASE}[test]\ndisconnect_after = '1s'\n")).is_ok());
}

#[test]
fn flags_take_the_place_of_keys() {
    let flags = Overrides::parse(
        "flags",
        "# a comment\n\n--name=other\n--client_listen_address=/run/g.sock\n--metrics_listen_address=7800\n\
         --ws_uri=ws://127.0.0.1:1/\n--fix_uri=tcp://127.0.0.1:2\n--loop_sleep=0ns\n--loop_timer_freq=1us\n\
         --loop-cpu-affinity=3\n--config_file=\"deribit.toml\"\n--dry_run\n",
    )
    .unwrap();
    let mut config = base();
    flags.apply(&mut config);
    config.check().unwrap();
    assert_eq!(config.name, "other");
    assert_eq!(config.client_socket().to_str(), Some("/run/g.sock"));
    assert_eq!(config.metrics_listen_address.unwrap().to_string(), "127.0.0.1:7800");
    assert_eq!(config.venue.ws_uri, "ws://127.0.0.1:1/");
    assert_eq!(config.venue.fix_uri.as_ref().unwrap().port, 2);
    assert_eq!((config.duty_cycle.idle, config.duty_cycle.core), (IdleStrategy::Spin, Some(3)));
    assert_eq!(config.duty_cycle.timer_interval.to_string(), "1us");
    assert!(config.dry_run);
    assert_eq!(flags.config_file.as_deref(), Some(Path::new("deribit.toml")));
    for (sleep, idle) in
        [("500ns", IdleStrategy::Yield), ("49us", IdleStrategy::Yield), ("50us", IdleStrategy::Park)]
    {
        Overrides::parse("flags", &format!("--loop_sleep={sleep}")).unwrap().apply(&mut config);
        assert_eq!(config.duty_cycle.idle, idle, "{sleep}");
    }

    let nearer = Overrides { name: Some("nearest".to_owned()), ..Overrides::default() }.or(flags);
    assert_eq!((nearer.name.as_deref(), nearer.loop_cpu_affinity), (Some("nearest"), Some(3)));
    for (line, words) in [
        ("name=x", &["flags:1", "--name=value"][..]),
        ("--nmae=x", &["no flag --nmae"]),
        ("--name=", &["--name has no value"]),
        ("--loop_sleep=5", &["not a duration"]),
        ("--loop_cpu_affinity=a", &["no core"]),
        ("--metrics_listen_address=x", &["127.0.0.1:PORT"]),
    ] {
        let error = Overrides::parse("flags", line).unwrap_err().to_string();
        assert!(words.iter().all(|word| error.contains(word)), "{error}");
    }
}

#[test]
fn an_account_says_how_it_logs_in_and_for_what() {
    let account = &base().accounts["A1"];
    assert_eq!((account.grant, &account.scope), (Grant::ClientSignature, &None));
    let scope = "connection account:read trade:read_write expires:3600 ip:10.0.0.1 wallet:none";
    let text = BASE.replace(
        "[accounts.A1]\n",
        &format!("[accounts.A1]\ngrant = 'client_credentials'\nscope = '{scope}'\n"),
    );
    let config = GatewayConfig::parse("g.toml", &text).unwrap();
    let again = GatewayConfig::parse("again.toml", &to_toml(&config)).unwrap();
    let account = &again.accounts["A1"];
    assert_eq!((account.grant, account.scope.as_deref()), (Grant::ClientCredentials, Some(scope)));
}

#[test]
fn paths_of_a_file_begin_at_its_folder_and_those_of_flags_do_not() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("g.toml");
    let text =
        BASE.replace("[accounts.A1]", "ca_file = 'ca.pem'\n[event_log]\nfolder = 'logs'\n[accounts.A1]");
    let text = text.replace("secret = 'test'", "secret = 'file:kept/key'");
    std::fs::write(&file, format!("name = 'g'\nstate_folder = 'state'\n{text}")).unwrap();
    let config = GatewayConfig::load(&file).unwrap();
    let within = |name: &str| folder.path().join(name);
    assert_eq!((config.client_socket(), config.admin_socket()), (within("g.sock"), within("g.admin.sock")));
    assert_eq!((config.state_folder(), config.event_log.folder), (within("state"), Some(within("logs"))));
    assert_eq!(config.venue.ca_file, Some(within("ca.pem")));
    let error = config.accounts["A1"].secret.resolve(Some(&file)).unwrap_err().to_string();
    assert!(error.contains(within("kept/key").to_str().unwrap()), "{error}");

    let named = "name = 'g'\nclient_listen_address = 'run/c.sock'\nadmin_listen_address = '/run/a.sock'\n";
    std::fs::write(&file, format!("{named}{BASE}")).unwrap();
    let config = GatewayConfig::load(&file).unwrap();
    assert_eq!(config.client_socket(), within("run/c.sock"));
    assert_eq!(config.admin_socket(), Path::new("/run/a.sock"));
    let flags = Overrides { client_listen_address: Some("c.sock".into()), ..Overrides::default() };
    let config = GatewayConfig::load_with(&file, &flags).unwrap();
    assert_eq!(config.client_socket(), Path::new("c.sock"));
}
