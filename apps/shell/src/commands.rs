//! The commands: names, arguments and help texts.

/// A command of the shell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verb {
    /// Connects, and logs in if there is a key.
    Connect,
    /// Logs in.
    Auth,
    /// Logs out.
    Logout,
    /// Shows the server's time.
    Test,
    /// Shows the status of the shell.
    Status,
    /// Lists instruments.
    Instruments,
    /// Shows best prices and statistics of an instrument.
    Ticker,
    /// Shows the order book.
    Book,
    /// Enters a buy order.
    Buy,
    /// Enters a sell order.
    Sell,
    /// Changes an order.
    Edit,
    /// Cancels an order.
    Cancel,
    /// Cancels all orders.
    CancelAll,
    /// Closes a position.
    Close,
    /// Lists open orders.
    Orders,
    /// Shows an order's state.
    Order,
    /// Lists own trades.
    Trades,
    /// Lists positions.
    Positions,
    /// Shows the account.
    Account,
    /// Subscribes to channels.
    Subscribe,
    /// Unsubscribes from channels.
    Unsubscribe,
    /// Lists channels and the number of their messages.
    Subscriptions,
    /// Waits for messages, and prints them.
    Wait,
    /// Shows the message history.
    Show,
    /// Shows or controls the event log.
    Log,
    /// Shows the stopwatches.
    Stopwatch,
    /// Calls any other method.
    Call,
    /// Shows help.
    Help,
    /// Ends the shell.
    Quit,
}

/// The description of a command.
#[derive(Clone, Copy, Debug)]
pub struct Entry {
    /// The command.
    pub verb: Verb,
    /// The command's name, then its aliases; each also works with the prefix `deribit_`.
    pub names: &'static [&'static str],
    /// The arguments.
    pub usage: &'static str,
    /// A summary in one line.
    pub about: &'static str,
    /// Details with examples; may be empty.
    pub more: &'static str,
}

const ORDER_HELP: &str = "\
INSTRUMENT AMOUNT [PRICE], then by name:
  contracts=N                in place of AMOUNT, or to agree with it
  type=limit|market|stop_limit|stop_market|take_limit|take_market|market_limit|trailing_stop
                             limit where a price is given, else market
  time_in_force=good_til_cancelled|good_til_day|fill_or_kill|immediate_or_cancel, or tif=gtc|gtd|fok|ioc
  label=TEXT                 at most 64 characters; the shell makes one where none is given
  post_only reject_post_only reduce_only mmp display_amount=N
  trigger=index_price|mark_price|last_price trigger_price=N trigger_offset=N
Without arguments on a terminal it asks field by field; an empty answer leaves a field unset.
The venue cancels what is open when the shell's connection ends, -c and scripts too; logout first keeps it,
or cancel_on_disconnect = false.
  buy BTC-PERPETUAL 10 50000 post_only
  sell ETH_USDC-PERPETUAL 0.01 type=stop_market trigger=mark_price trigger_price=2500
A native venue has limit and market orders for the day, ioc and fok; labels of at most 14 characters; no triggers,
no reduce_only, no mmp. A post_only order that would take liquidity is cancelled there.
  buy ALPHA 100 99.50 tif=ioc";

/// All commands.
pub const ENTRIES: &[Entry] = &[
    Entry {
        verb: Verb::Connect,
        names: &["connect"],
        usage: "[URL]",
        about: "connect, and log in where there is a key",
        more: "Commands that need the venue connect by themselves. A URL goes to another venue, with the same checks: wss://,\nws:// or ouch://HOST:PORT.",
    },
    Entry {
        verb: Verb::Auth,
        names: &["auth", "login"],
        usage: "[KEY_FILE]",
        about: "log in with the key of the configuration, of the environment, or of a file",
        more: "That of a file is the key from then on. A key file has mode 0600 and two lines: client_id = \"...\" and client_secret = \"...\".",
    },
    Entry {
        verb: Verb::Logout,
        names: &["logout"],
        usage: "[keep_token]",
        about: "log out; the venue closes the connection, orders stay open",
        more: "Done when the venue has closed the connection. With keep_token the access token stays valid; by default it is invalidated. Orders survive a logout, but not the loss of the connection.",
    },
    Entry {
        verb: Verb::Test,
        names: &["test", "time"],
        usage: "",
        about: "the server's time, and how far the clocks are apart",
        more: "Logins are signed with this machine's time: clocks that are minutes apart are refused.",
    },
    Entry {
        verb: Verb::Status,
        names: &["status"],
        usage: "",
        about: "state of the shell: venue, login, limits, subscriptions",
        more: "The login's scope is in parentheses: an order needs trade:read_write.",
    },
    Entry {
        verb: Verb::Instruments,
        names: &["instruments"],
        usage: "[CURRENCY] [KIND]",
        about: "what can be traded",
        more: "CURRENCY is BTC, ETH, USDC, USDT, EURR or any; KIND is future, option, spot, future_combo or option_combo.",
    },
    Entry {
        verb: Verb::Ticker,
        names: &["ticker"],
        usage: "INSTRUMENT",
        about: "best prices and figures of an instrument",
        more: "  ticker BTC-PERPETUAL",
    },
    Entry {
        verb: Verb::Book,
        names: &["book", "order_book"],
        usage: "INSTRUMENT [DEPTH]",
        about: "the order book",
        more: "DEPTH is 1, 5 (the default), 10, 20, 50, 100, 1000 or 10000.",
    },
    Entry {
        verb: Verb::Buy,
        names: &["buy"],
        usage: "INSTRUMENT AMOUNT [PRICE] [name=value ...]",
        about: "enter a buy order",
        more: ORDER_HELP,
    },
    Entry {
        verb: Verb::Sell,
        names: &["sell"],
        usage: "INSTRUMENT AMOUNT [PRICE] [name=value ...]",
        about: "enter a sell order",
        more: ORDER_HELP,
    },
    Entry {
        verb: Verb::Edit,
        names: &["edit"],
        usage: "ORDER_ID [AMOUNT] [PRICE] [name=value ...]",
        about: "change an order",
        more: "The amount is the whole one, with what is executed. Flags that are not given are not set any more. At a native venue\nan order that only becomes smaller keeps its place in the queue; its id stays, though each replacement has a number.\n  edit 12345 amount=20\n  edit 12345 price=50100 post_only",
    },
    Entry {
        verb: Verb::Cancel,
        names: &["cancel"],
        usage: "ORDER_ID | label=TEXT [currency=C]",
        about: "cancel an order, or all orders of a label",
        more: "  cancel 12345\n  cancel label=grid currency=BTC",
    },
    Entry {
        verb: Verb::CancelAll,
        names: &["cancel_all"],
        usage: "[INSTRUMENT | CURRENCY]",
        about: "cancel all open orders, or those of an instrument or a currency",
        more: "  cancel_all\n  cancel_all BTC-PERPETUAL\n  cancel_all ETH",
    },
    Entry {
        verb: Verb::Close,
        names: &["close", "close_position"],
        usage: "INSTRUMENT [PRICE]",
        about: "close a position, at the market or at a limit",
        more: "The stated limits hold for the order that closes it. Without an answer the position is printed and nothing is repeated.\n  close BTC-PERPETUAL 50000",
    },
    Entry {
        verb: Verb::Orders,
        names: &["orders", "open_orders"],
        usage: "[INSTRUMENT | KIND] [TYPE]",
        about: "open orders",
        more: "TYPE is all, limit, trigger_all, stop_all, stop_limit, stop_market, take_all, take_limit, take_market, trailing_all or trailing_stop.",
    },
    Entry {
        verb: Verb::Order,
        names: &["order", "state"],
        usage: "ORDER_ID | label=TEXT currency=C",
        about: "an order's state, or those of a label",
        more: "  order 12345\n  order label=grid currency=BTC",
    },
    Entry {
        verb: Verb::Trades,
        names: &["trades", "user_trades"],
        usage: "INSTRUMENT [COUNT]",
        about: "own trades, newest first",
        more: "  trades BTC-PERPETUAL 20",
    },
    Entry {
        verb: Verb::Positions,
        names: &["positions"],
        usage: "[CURRENCY] [KIND]",
        about: "positions with their profit",
        more: "At a native venue the profit is the realised one: the venue sends no mark price for open positions.",
    },
    Entry {
        verb: Verb::Account,
        names: &["account", "balance"],
        usage: "CURRENCY",
        about: "balance, equity, margins",
        more: "CURRENCY is BTC, ETH, USDC, USDT or EURR. A native venue keeps no money.",
    },
    Entry {
        verb: Verb::Subscribe,
        names: &["subscribe", "sub"],
        usage: "CHANNEL ...",
        about: "subscribe to channels, now and after each new connection",
        more: "On a terminal a pane above shows their last data; elsewhere wait prints them.\n  subscribe ticker.BTC-PERPETUAL.100ms book.BTC-PERPETUAL.none.10.100ms user.orders.any.any.raw\nAll channels of a command are wanted, or none of them.\nA native venue has quote.X, ticker.X.100ms, book.X.100ms, book.X.none.10.100ms, trades.X.raw, user.orders.X.raw,\nuser.trades.X.raw, and both user channels with any.any for X.",
    },
    Entry {
        verb: Verb::Unsubscribe,
        names: &["unsubscribe", "unsub"],
        usage: "CHANNEL ... | all",
        about: "end subscriptions",
        more: "Done when the venue has said so.\n  unsubscribe ticker.BTC-PERPETUAL.100ms\n  unsubscribe all",
    },
    Entry {
        verb: Verb::Subscriptions,
        names: &["subscriptions", "subs"],
        usage: "",
        about: "the channels, how much came, and the last of it",
        more: "What came stays in the memory of show: of a channel that was quiet for long it may be gone, which is shown as -.",
    },
    Entry {
        verb: Verb::Wait,
        names: &["wait", "sleep"],
        usage: "TIME | CHANNEL [COUNT] [timeout=TIME]",
        about: "wait, and print what comes on the channels, a line each",
        more: "In a script what came since the last wait is printed first.\n  wait 10s\n  wait ticker.BTC-PERPETUAL.100ms 5 timeout=20s    ends after 5 messages; a time-out is an error",
    },
    Entry {
        verb: Verb::Show,
        names: &["show", "history"],
        usage: "[COUNT] [TEXT] [sent|received] [oneline]",
        about: "the last messages, oldest first, without secrets",
        more: "Each has its time since the start in ms, > sent or < received. TEXT shows those that contain it; oneline keeps each on a line.",
    },
    Entry {
        verb: Verb::Log,
        names: &["log"],
        usage: "MODULE ... | all | off",
        about: "from now on print events, a line each: [elapsed ms] module: text",
        more: "MODULE is net (connections), session, auth, orders, market or other. Lines go to standard error.\n  log net auth orders",
    },
    Entry {
        verb: Verb::Stopwatch,
        names: &["stopwatch"],
        usage: "[reset]",
        about: "the stop-watches, as figures and histograms",
        more: "send_request: from the command to the socket. e2e_auth: login. e2e_buy_order: from the command to the acceptance.\nround_trip: each request. A connection that has to be made first is not counted. reset begins again.",
    },
    Entry {
        verb: Verb::Call,
        names: &["call"],
        usage: "METHOD [JSON]",
        about: "any other method that changes no order",
        more: "  call public/get_index_price {\"index_name\":\"btc_usd\"}",
    },
    Entry {
        verb: Verb::Help,
        names: &["help", "?"],
        usage: "[COMMAND]",
        about: "this list, or more about a command",
        more: "",
    },
    Entry {
        verb: Verb::Quit,
        names: &["quit", "exit"],
        usage: "",
        about: "close the connection with \"going away\", and end",
        more: "The venue cancels this connection's orders then, unless cancel_on_disconnect = false; after logout it does not.",
    },
];

/// Finds a command by name or alias, with or without the prefix.
#[must_use]
pub fn find(name: &str) -> Option<&'static Entry> {
    let plain = name.strip_prefix("deribit_").unwrap_or(name);
    ENTRIES.iter().find(|entry| entry.names.contains(&plain))
}

/// The list of commands.
#[must_use]
pub fn list() -> String {
    let width = ENTRIES.iter().map(|entry| entry.names[0].len()).max().unwrap_or_default();
    let mut text = String::new();
    for entry in ENTRIES {
        let others = match &entry.names[1..] {
            [] => String::new(),
            others => format!(" (also {})", others.join(", ")),
        };
        text.push_str(&format!("  {:width$}  {}{others}\n", entry.names[0], entry.about));
    }
    text.push_str(
        "help COMMAND tells more. Each name may have deribit_ before it. Several commands are separated by ;",
    );
    text
}

impl Entry {
    /// The full help text.
    #[must_use]
    pub fn help(&self) -> String {
        let mut text = format!("{} {}\n{}", self.names[0], self.usage, self.about);
        if self.names.len() > 1 {
            text.push_str(&format!("; also {}", self.names[1..].join(", ")));
        }
        if !self.more.is_empty() {
            text.push_str(&format!("\n{}", self.more));
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique_and_those_of_other_clients_are_known() {
        let mut names: Vec<&str> = ENTRIES.iter().flat_map(|entry| entry.names).copied().collect();
        names.sort_unstable();
        let count = names.len();
        names.dedup();
        assert_eq!(names.len(), count);
        for name in [
            "help",
            "deribit_connect",
            "deribit_test",
            "deribit_auth",
            "deribit_show",
            "deribit_order_book",
            "deribit_positions",
            "deribit_buy",
            "deribit_sell",
            "deribit_edit",
            "deribit_cancel",
            "deribit_open_orders",
            "deribit_sub",
            "deribit_unsub",
            "deribit_logout",
            "quit",
        ] {
            assert!(find(name).is_some(), "{name}");
        }
        assert!(find("deribit_deribit_buy").is_none() && find("").is_none());
        assert!(list().lines().count() > ENTRIES.len());
        assert!(ENTRIES.iter().all(|entry| entry.help().contains(entry.about)));
    }
}
