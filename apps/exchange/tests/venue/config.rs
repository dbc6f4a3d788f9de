//! Configuration files: defaults, and error messages of one line.

use tickpath_config::ConfigError;
use tickpath_exchange::{
    ExchangeConfig, MarketRecoverySettings, RateLimit, UserLimits, UserPorts, UserSettings, VenueSettings,
    hash_password,
};
use tickpath_nasdaq::moldudp64::Session;
use tickpath_types::{
    Instrument, InstrumentId, InstrumentTable, Nanos, Price, Qty, SelfTradePrevention, Symbol,
};

/// Returns the settings of a file with this text and the instruments `A` and `B`.
fn settings(text: &str) -> Result<VenueSettings, ConfigError> {
    let instrument = |id, symbol| Instrument {
        id: InstrumentId(id),
        symbol: Symbol::new(symbol).unwrap(),
        tick_size: Price(100),
        lot_size: Qty(1),
        max_qty: Qty(1),
        reference_price: Price(100),
        collar_low: Price(100),
        collar_high: Price(100),
    };
    let text = format!("instruments = 'i.toml'\n{text}");
    let config: ExchangeConfig = tickpath_config::parse("venue.toml", &text)?;
    config.settings(InstrumentTable::new(&[instrument(1, "A"), instrument(2, "B")]), None)
}

/// Returns the settings of a file with one user and this text.
fn with_user(text: &str) -> Result<VenueSettings, ConfigError> {
    settings(&format!("order_entry.test_users = ['A']\n{text}"))
}

fn users(order_entry: &str) -> Vec<UserSettings> {
    settings(&format!("[order_entry]\n{order_entry}")).unwrap().users
}

fn recovery(text: &str) -> MarketRecoverySettings {
    with_user(&format!("[market_data]\n{text}")).unwrap().market_recovery
}

/// Asserts that each text is refused with a one-line message that contains the expected string.
fn check_refused(settings: fn(&str) -> Result<VenueSettings, ConfigError>, refused: &[(&str, &str)]) {
    for (text, expected) in refused {
        let error = settings(text).err().unwrap_or_else(|| panic!("{text} was accepted")).to_string();
        assert!(error.contains(expected) && error.lines().count() == 1, "{text}: {error}");
    }
}

#[test]
fn a_minimal_configuration_has_defaults() {
    let settings = settings("order_entry.test_users = ['TEST01', 'TEST02']").unwrap();
    assert_eq!(settings.order_entry.to_string(), "127.0.0.1:26400");
    assert_eq!(settings.limits.max_sessions, 64, "room for more users");
    assert!(settings.interface.is_loopback() && settings.line_a != settings.line_b);
}

#[test]
fn every_start_has_a_new_session_name_unless_configured() {
    let first = with_user("").unwrap().session;
    std::thread::sleep(std::time::Duration::from_millis(2));
    assert_ne!(first, with_user("").unwrap().session);
    for name in ["MONDAY", "Mon-day_01"] {
        let named = with_user(&format!("session = '{name}'")).unwrap();
        assert_eq!(Some(named.session), Session::new(name));
    }
}

#[test]
fn the_deribit_front_needs_its_users_and_the_whole_log() {
    let user = |ports: &str| format!("[[order_entry.user]]\nname = 'ANNA'\nports = [{ports}]\n");
    let text = |journal: &str, ports: &str, rest: &str| {
        let user = user(ports);
        format!("order_entry.cancel_on_disconnect = '1s'\njournal = {{ {journal} }}\n{user}{rest}")
    };
    let journal = "policy = 'async', snapshot_every = 0";
    let anna = settings(&text(journal, "'deribit'", "[deribit]")).unwrap().users[0].clone();
    assert_eq!(anna.ports, UserPorts { order_entry: false, drop_copy: false, deribit: true });
    assert_eq!(anna.cancel_on_disconnect, None, "the front knows who is there");
    let schedule = "[[day.schedule]]\nat = '08:00:00'\nphase = 'start'\n[deribit]";
    check_refused(
        settings,
        &[
            (text(journal, "'deribit'", "").as_str(), "add [deribit]"),
            (text(journal, "'deribit', 'order_entry'", "[deribit]").as_str(), "one endpoint"),
            (text(journal, "'deribit', 'drop_copy'", "[deribit]").as_str(), "needs a password"),
            (text("policy = 'off'", "'deribit'", "[deribit]").as_str(), "journal.policy"),
            (text(journal, "'deribit'", schedule).as_str(), "schedule"),
        ],
    );
}

#[test]
fn invalid_settings_are_refused_in_one_line() {
    check_refused(
        settings,
        &[
            ("", "names no user"),
            ("sesion = 'X'", "venue.toml:2: unknown field `sesion`"),
            ("session = 'ELEVENCHARS'", "1 to 10"),
            ("session = ''", "1 to 10"),
            ("session = 'MONDAY~1'", "letters, digits, - or _"),
            ("session = '..'", "letters, digits, - or _"),
            ("session = '/MONDAY'", "letters, digits, - or _"),
            ("order_entry.test_users = ['SEVENCH']", "1 to 6"),
            ("order_entry.test_users = ['A', 'a']", "twice"),
            ("[order_entry]\ntest_users = ['A']\naddress = '0.0.0.0:1'", "public password"),
            (
                "order_entry.test_users = ['A', 'B']\norder_entry.retained_messages = 67108864",
                "order_entry.retained_messages must be 1 to 33554432",
            ),
        ],
    );
    check_refused(
        with_user,
        &[
            ("market_data.line_a = '10.0.0.1:1'", "not a multicast group"),
            ("market_data.packet_bytes = 10", "packet_bytes"),
            ("market_data.heartbeat = '1'", "not a duration"),
            ("market_data.heartbeat = '0s'", "heartbeat must be at least 1ms"),
            (
                "market_data.retained_messages = 100000000000000",
                "market_data.retained_messages must be 1 to 67108864",
            ),
            ("order_entry.max_connections = 0", "order_entry.max_connections must be 1 to 4096"),
            ("matching.max_open_orders = 4294967295", "matching.max_open_orders must be 1 to 4194304"),
            ("matching.max_open_orders_per_user = 0", "matching.max_open_orders_per_user must be 1 to"),
            ("[[placement.thread]]\nname = 'x'\nagents = ['cook']", "no agent 'cook'"),
            (
                "market_data.packet_bytes = 1401\n[[placement.thread]]\nname = 'x'\nagents = ['order-server', 'matcher', 'publisher', 'line-b']",
                "market_data.packet_bytes must be at most 1400 if a thread runs the agent 'line-b'",
            ),
            ("[market_data]\nrequests.burst = 0", "at least 1"),
            ("[market_data]\nsnapshots.group = '10.0.0.1:1'", "not a multicast group"),
            ("[market_data]\nsnapshots.group = '239.255.26.1:26401'", "a separate group"),
            ("[market_data]\nsnapshots.max_connections = 0", "1 to 1024"),
            ("[market_data]\nsnapshots.max_connections = 1025", "1 to 1024"),
            ("[market_data]\nsnapshots.interval = '999us'", "interval must be at least 1ms"),
            ("[market_data]\nsnapshots.time_max = '0s'", "time_max must be at least 1ms"),
            ("[journal]\npolicy = 'off'\n[drop_copy]", "journal.policy is off"),
            ("[drop_copy]\nmax_connections = 0", "drop_copy.max_connections must be 1 to 256"),
            ("[drop_copy]\nmax_connections = 257", "must be 1 to 256"),
            (
                "[drop_copy]\nretained_messages = 16777217",
                "drop_copy.retained_messages must be 1 to 16777216",
            ),
        ],
    );
}

#[test]
fn invalid_users_are_refused_in_one_line() {
    check_refused(
        |order_entry| settings(&format!("[order_entry]\n{order_entry}")),
        &[
            ("[[order_entry.user]]\nname = 'A'", "a password or a password_hash"),
            ("[[order_entry.user]]\nname = 'A'\npassword = 'x'\npassword_hash = 'y'", "and not both"),
            ("[[order_entry.user]]\nname = 'A'\npassword_hash = 'y'", "tickpath admin hash-password"),
            ("[[order_entry.user]]\nname = 'A'\npassword = 'x'\nports = []", "has no port: name ports"),
            ("[[order_entry.user]]\nname = 'A'\npassword = 'x'\nports = ['back_door']", "unknown variant"),
            ("[[order_entry.user]]\nname = 'A'\npassword = 'x'\ninstruments = ['C']", "no instrument 'C'"),
            ("test_users = ['A']\nlimits.messages_per_second = 0", "must be 1 to 10000000"),
            ("test_users = ['A']\nlimits.burst = 5", "a burst needs messages_per_second"),
            ("test_users = ['A']\nlimits.open_orders = 4194305", "must be 1 to 4194304"),
            ("test_users = ['A']\nlimits.order_qty = 0", "above 0"),
            ("test_users = ['A']\nlimits.order_notional = '-1'", "above 0"),
            ("test_users = ['A']\nlogins.records_max = 0", "records_max"),
            ("test_users = ['A']\nlogins.delay = '501ms'", "delay must be at most"),
            ("test_users = ['A']\nlogins.forgive_after = '25h'", "forgive_after at most"),
            ("test_users = ['A']\ncancel_on_disconnect = 5", "expected a string"),
            (
                "[[order_entry.user]]\nname = 'A'\npassword = 'x'\nself_trade_prevention = 'trade'",
                "unknown variant",
            ),
            (
                "[[order_entry.user]]\nname = 'A'\npassword = 'x'\ncancel_on_disconnect = 'soon'",
                "'soon' is not a duration",
            ),
            (
                "test_users = ['ANNA']\n[[order_entry.user]]\nname = 'DESK'\npassword = 'x'\n\
                 ports = ['drop_copy']\ncopies_of = ['BERT']\n[drop_copy]",
                "no user 'BERT'",
            ),
            (
                "[[order_entry.user]]\nname = 'X'\npassword = 'x'\ncopies_of = []\n[drop_copy]",
                "user 'X' has copies_of and may not log in for them",
            ),
        ],
    );
}

#[test]
fn user_settings_override_those_of_order_entry() {
    let hash = hash_password("secret").unwrap();
    let users = users(&format!(
        "test_users = ['T']
         cancel_on_disconnect = '5s'
         limits = {{ messages_per_second = 100, burst = 7, open_orders = 9 }}
         [[order_entry.user]]
         name = 'ANNA'
         password_hash = '{hash}'
         ports = ['order_entry', 'drop_copy']
         instruments = ['B']
         cancel_on_disconnect = 'never'
         self_trade_prevention = 'cancel-oldest'
         limits = {{ messages_per_second = 50, order_qty = 10, order_notional = '1000.50' }}
         [[order_entry.user]]
         name = 'BERT'
         password = 'secret'
         ports = ['drop_copy']
         cancel_on_disconnect = '0s'"
    ));
    let [test, anna, bert] = users.as_slice() else { panic!("{users:?}") };
    let rate = |per_second, burst| Some(RateLimit { per_second, burst });
    let all = UserLimits { rate: rate(100, 7), open_orders: Some(9), ..UserLimits::default() };
    assert_eq!((test.limits, test.cancel_on_disconnect), (all, Some(Nanos::from_secs(5))));
    let limits = UserLimits {
        rate: rate(50, 50),
        open_orders: Some(9),
        order_qty: Some(Qty(10)),
        order_notional: Some(10_005_000),
    };
    assert_eq!((anna.limits, anna.cancel_on_disconnect), (limits, None));
    assert_eq!(anna.self_trade_prevention, SelfTradePrevention::CancelOldest);
    assert_eq!(bert.self_trade_prevention, SelfTradePrevention::None);
    assert_eq!(anna.ports, UserPorts { order_entry: true, drop_copy: true, deribit: false });
    assert_eq!(anna.instruments, Some(vec![InstrumentId(2)]));
    assert!(anna.password.hash().is_some() && bert.password.hash().is_none());
    assert_eq!(bert.ports, UserPorts { order_entry: false, drop_copy: true, deribit: false });
    assert_eq!((bert.limits, bert.cancel_on_disconnect), (all, Some(Nanos::ZERO)));
}

#[test]
fn snapshots_are_enabled_by_default() {
    let snapshots = recovery("").snapshots.unwrap();
    assert!(snapshots.glimpse.ip().is_loopback() && snapshots.glimpse.port() == 0);
    assert_eq!(snapshots.group.to_string(), "239.255.26.3:26406");
    assert_eq!(recovery("snapshots.enabled = false").snapshots, None);
    assert_eq!(recovery("requests = { per_second = 5, burst = 2 }").requests.per_second, 5);
    let bound = recovery("snapshots = { interval = '1ms', max_connections = 1024 }");
    assert_eq!(bound.snapshots.unwrap().max_connections, 1_024);
}

#[test]
fn drop_copy_is_off_by_default_and_has_the_next_port() {
    let desk =
        "test_users = ['ANNA']\n[[order_entry.user]]\nname = 'DESK'\npassword = 'x'\nports = ['drop_copy']";
    let drop_copy =
        |rest: &str| settings(&format!("[order_entry]\n{desk}\n{rest}")).unwrap().journal.unwrap().drop_copy;
    assert_eq!(drop_copy(""), None);
    let drop_copy = drop_copy("copies_of = ['anna']\n[drop_copy]").unwrap();
    assert_eq!(drop_copy.address.to_string(), "127.0.0.1:26404");
    assert_eq!((drop_copy.max_connections, drop_copy.retained_messages), (8, 1 << 16));
}
