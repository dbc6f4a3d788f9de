//! Execution of a command line.

use std::time::Duration;

use anyhow::Context;
use tickpath_deribit::codes::{Kind, OrderFilter, Sorting};
use tickpath_deribit::field::{Field, List};
use tickpath_deribit::messages::{
    CancelAll, CancelAllByCurrency, CancelAllByInstrument, CancelByLabel, GetAccountSummary, GetInstruments,
    GetOpenOrders, GetOpenOrdersByInstrument, GetOrderBook, GetOrderState, GetOrderStateByLabel,
    GetPositions, GetTicker, GetUserTradesByInstrument, Instrument, Logout, NoParams, Order,
};
use tickpath_deribit::method::Method;
use tickpath_deribit::scan::check;
use tickpath_deribit::text::Text;
use tickpath_types::{Nanos, Side};

use crate::commands::{self, Verb};
use crate::config::{DecimalText, VenueUrl};
use crate::link::{Clock, Link, Standing};
use crate::order::{Change, FLAGS, NewOrder, decimal, list};
use crate::print;
use crate::shell::{Failure, Reply, Shell};
use crate::stopwatch::{Readable, Span};
use crate::trade::{Checked, read};
use crate::words::{Arguments, counted, words};

/// Book depths that the venue offers.
const DEPTHS: [u32; 8] = [1, 5, 10, 20, 50, 100, 1_000, 10_000];
/// Currencies by which lists can be requested.
pub const CURRENCIES: [&str; 6] = ["BTC", "ETH", "USDC", "USDT", "EURR", "any"];
/// Kinds of instruments.
pub const KINDS: [Kind; 5] = [Kind::Future, Kind::Option, Kind::Spot, Kind::FutureCombo, Kind::OptionCombo];
/// Length of the longest bar of a histogram, in characters.
const BAR: u64 = 40;

/// The result of a command.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Done {
    /// The text for people; may be empty.
    pub text: String,
    /// The venue's unchanged result, or statistics, as JSON.
    pub json: Option<String>,
    /// Times from the command to the send and to the answer, if the venue was queried.
    pub times: Option<(Nanos, Nanos)>,
    /// A remark on the result.
    pub note: Option<String>,
    /// True if the shell must end.
    pub is_end: bool,
}

impl Done {
    pub(crate) fn text(text: impl Into<String>) -> Done {
        Done { text: text.into(), ..Done::default() }
    }

    /// Formats an answer by its method.
    fn answer(method: Method, reply: Reply) -> Done {
        let is_dry = reply.json.starts_with("{\"dry_run\"");
        let text =
            if is_dry { format!("dry run: {}", reply.json) } else { print::result(method, &reply.json) };
        let times = (reply.total > Nanos::ZERO).then_some((reply.send, reply.total));
        Done { text, json: Some(reply.json), times, ..Done::default() }
    }
}

impl Shell {
    /// Executes a command line.
    ///
    /// # Errors
    /// [`Failure`].
    pub fn execute(&mut self, line: &str) -> Result<Done, Failure> {
        (self.began, self.has_asked) = (Some(self.link().clock().now()), false);
        let result = self.carry_out(line);
        self.began = None;
        result
    }

    fn carry_out(&mut self, line: &str) -> Result<Done, Failure> {
        let words = words(line)?;
        let Some((name, rest)) = words.split_first() else { return Ok(Done::default()) };
        let entry = commands::find(name)
            .ok_or_else(|| Failure::Invalid(format!("there is no command {name:?}: help lists them")))?;
        match entry.verb {
            Verb::Call => return self.call(line),
            Verb::Help => return help(rest),
            _ => {}
        }
        let arguments = Arguments::new(rest, &FLAGS)?;
        match entry.verb {
            Verb::Connect => self.connect(arguments),
            Verb::Auth => self.log_in(arguments),
            Verb::Logout => self.log_out(arguments),
            Verb::Test => self.test(arguments),
            Verb::Status => self.status(arguments),
            Verb::Buy => Ok(Done::answer(Method::Buy, self.enter(Side::Buy, NewOrder::parse(arguments)?)?)),
            Verb::Sell => {
                Ok(Done::answer(Method::Sell, self.enter(Side::Sell, NewOrder::parse(arguments)?)?))
            }
            Verb::Edit => Ok(Done::answer(Method::Edit, self.edit(&Change::parse(arguments)?)?)),
            Verb::Cancel => self.cancel_one(arguments),
            Verb::CancelAll => self.cancel_many(arguments),
            Verb::Close => self.close_position(arguments),
            Verb::Subscribe => self.subscribe(arguments),
            Verb::Unsubscribe => self.unsubscribe(arguments),
            Verb::Subscriptions => self.subscriptions(arguments),
            Verb::Wait => self.wait(arguments),
            Verb::Show => self.show(arguments),
            Verb::Log => self.log(arguments),
            Verb::Stopwatch => self.stopwatch(arguments),
            Verb::Quit => Ok(Done { is_end: true, ..Done::default() }),
            _ => self.ask_for(entry.verb, arguments),
        }
    }

    /// Executes the commands that query the venue and show its answer.
    fn ask_for(&mut self, verb: Verb, arguments: Arguments) -> Result<Done, Failure> {
        match verb {
            Verb::Instruments => self.instruments_of(arguments),
            Verb::Ticker => self.ticker(arguments),
            Verb::Book => self.book(arguments),
            Verb::Orders => self.orders(arguments),
            Verb::Order => self.order_state(arguments),
            Verb::Trades => self.trades(arguments),
            Verb::Positions => self.positions(arguments),
            _ => self.account(arguments),
        }
    }

    fn answer<'a>(&mut self, method: Method, params: &impl Field<'a>) -> Result<Done, Failure> {
        Ok(Done::answer(method, self.ask(method, params)?))
    }

    fn connect(&mut self, mut arguments: Arguments) -> Result<Done, Failure> {
        let url = arguments.next("url");
        arguments.finish()?;
        if let Some(url) = url {
            let config = self.home.with_url(&url);
            let url = config.checked_venue()?;
            let parting = self.parting_word();
            let mut link = self.link();
            // A key is for one host only: another one would see the secret, or could forward a signature.
            let key = self.key.clone().filter(|_| self.key_of == key_of(&url));
            link.set_venue(config, url, key)?;
            drop(link);
            if let Some(word) = parting {
                tickpath_config::print_stderr(format_args!("tickpath: {word}"));
            }
            self.rests = None;
            self.instruments.clear();
            self.begin_anew();
        }
        self.ensure_ready()?;
        let link = self.link();
        let login =
            if link.has_key() { as_whom(&link) } else { "public data only, see help auth".to_owned() };
        Ok(Done::text(format!("connected to {}, {login}", link.url())))
    }

    fn log_in(&mut self, mut arguments: Arguments) -> Result<Done, Failure> {
        let file = arguments.next("key_file");
        arguments.finish()?;
        if let Some(path) = file {
            // Kept for further logins, so that a later login or venue does not use another identity.
            let key = self.link().config().key(None, Some(path.as_ref()))?;
            (self.key, self.key_place) = (key, path);
        }
        let key = self.key.clone();
        if key.is_none() {
            return Err(Failure::Invalid(
                "no key: set TICKPATH_CLIENT_ID and TICKPATH_CLIENT_SECRET, or name a key file (mode 0600)"
                    .to_owned(),
            ));
        }
        let key_of = key_of(self.link().url());
        self.key_of = key_of;
        self.link().set_key(key);
        self.begin_anew();
        self.ensure_ready()?;
        Ok(Done::text(as_whom(&self.link())))
    }

    fn log_out(&mut self, mut arguments: Arguments) -> Result<Done, Failure> {
        let keeps = match arguments.next("token").as_deref() {
            None | Some("invalidate") => false,
            Some("keep_token") => true,
            Some(other) => {
                return Err(Failure::Invalid(format!(
                    "no {other}: it takes keep_token, invalidate, or nothing"
                )));
            }
        };
        arguments.finish()?;
        let is_told = {
            let mut link = self.link();
            let is_told = link.standing() == Standing::Ready && link.has_key() && !link.url().is_native();
            if is_told {
                let params = Logout { invalidate_token: Some(!keeps) };
                link.request(Method::Logout, &params).map_err(|error| Failure::Invalid(error.to_string()))?;
            }
            is_told
        };
        // The venue confirms by closing the connection.
        let answered =
            if is_told { self.pump(Nanos::MAX, |link| link.standing() == Standing::Off) } else { Ok(true) };
        let mut link = self.link();
        link.disconnect();
        link.set_key(None);
        answered?;
        if is_told && !link.has_logged_out() {
            return Err(Failure::Late(Method::Logout.name()));
        }
        drop(link);
        self.rests = None;
        Ok(Done::text("logged out; the connection is closed"))
    }

    fn test(&mut self, arguments: Arguments) -> Result<Done, Failure> {
        arguments.finish()?;
        // Connects first, so that the measurement excludes the time to connect.
        self.begin_ready()?;
        let before = Clock::unix_ms();
        let reply = self.ask(Method::GetTime, &NoParams {})?;
        let after = Clock::unix_ms();
        let server: u64 =
            reply.json.parse().map_err(|_| Failure::Invalid("the time cannot be read".to_owned()))?;
        // Our time is taken as the middle between request and reply.
        let ours = before.midpoint(after);
        let apart = if server >= ours {
            format!("{} ms ahead of", server - ours)
        } else {
            format!("{} ms behind", ours - server)
        };
        let text = format!(
            "server time {server} ms since 1970, {apart} this machine, round trip {}",
            Readable(reply.total)
        );
        Ok(Done { text, times: Some((reply.send, reply.total)), json: Some(reply.json), ..Done::default() })
    }

    fn status(&mut self, arguments: Arguments) -> Result<Done, Failure> {
        arguments.finish()?;
        let link = self.link();
        let standing = match link.standing() {
            Standing::Off => "not connected",
            Standing::Connecting => "connecting",
            Standing::Ready => "connected",
        };
        let login = match (link.standing(), link.client_id()) {
            (_, None) => "public data only".to_owned(),
            (Standing::Ready, Some(_)) => as_whom(&link),
            (_, Some(id)) => format!("with the key {id}"),
        };
        let config = link.config();
        let limits = config.limits;
        let text_of = |limit: Option<DecimalText>| limit.map(|max| max.to_string());
        let (size, notional) = (text_of(limits.order_size_max), text_of(limits.notional_max));
        let orders = limits.open_orders_max.map(|max| max.to_string());
        let or_none = |limit: &Option<String>| limit.clone().unwrap_or_else(|| "none".to_owned());
        let (active, wanted) = (link.active_channels(), link.channels().len());
        let mut text = format!(
            "{} {standing}, {login}\n{active} of {} subscribed; {} lost, {} unreadable\n\
             limits: order size {}, notional {}, open orders {}",
            link.url(),
            counted(wanted, "channel"),
            counted(link.losses(), "connection"),
            counted(link.unreadable(), "message"),
            or_none(&size),
            or_none(&notional),
            or_none(&orders),
        );
        if config.cancel_on_disconnect && link.has_key() && !link.url().is_native() {
            text.push_str("\nthe venue cancels this connection's orders when it ends");
        }
        if self.is_dry_run {
            text.push_str("\ndry run: no order is sent");
        }
        let json = serde_json::json!({
            "url": link.url().to_string(),
            "standing": standing,
            "client_id": link.client_id(),
            "scope": link.scope(),
            "shortcoming": link.shortcoming().filter(|_| link.standing() == Standing::Ready),
            "channels_subscribed": active,
            "channels_wanted": wanted,
            "connections_lost": link.losses(),
            "messages_unreadable": link.unreadable(),
            "order_size_max": size,
            "notional_max": notional,
            "open_orders_max": limits.open_orders_max,
            "dry_run": self.is_dry_run,
        });
        Ok(Done { text, json: Some(json.to_string()), ..Done::default() })
    }

    fn instruments_of(&mut self, mut arguments: Arguments) -> Result<Done, Failure> {
        let currency = currency(arguments.next("currency"))?.unwrap_or_else(|| "any".to_owned());
        let kind = kind(arguments.next("kind"))?;
        arguments.finish()?;
        let params = GetInstruments { currency: Text::new(&currency), kind, expired: false };
        let done = self.answer(Method::GetInstruments, &params)?;
        if let (true, Some(json)) = (self.is_watched, &done.json) {
            let list: List<'_, Instrument<'_>> = read(json)?;
            let names = list.iter().map_while(Result::ok);
            self.link().learn(names.map(|instrument| instrument.instrument_name.to_cow().into_owned()));
        }
        Ok(done)
    }

    fn ticker(&mut self, mut arguments: Arguments) -> Result<Done, Failure> {
        let instrument = arguments.next("instrument").context("which instrument?")?;
        arguments.finish()?;
        let done = self.answer(Method::Ticker, &GetTicker { instrument_name: Text::new(&instrument) })?;
        self.link().learn([instrument]);
        Ok(done)
    }

    fn book(&mut self, mut arguments: Arguments) -> Result<Done, Failure> {
        let instrument = arguments.next("instrument").context("which instrument?")?;
        let depth = arguments.next("depth").unwrap_or_else(|| "5".to_owned());
        arguments.finish()?;
        let depth = depth.parse().ok().filter(|depth| DEPTHS.contains(depth));
        let depth = depth.with_context(|| format!("depth is one of {}", list(DEPTHS.iter())))?;
        let params = GetOrderBook { instrument_name: Text::new(&instrument), depth: Some(depth) };
        self.answer(Method::GetOrderBook, &params)
    }

    fn orders(&mut self, mut arguments: Arguments) -> Result<Done, Failure> {
        let first = arguments.named("instrument").or_else(|| arguments.next("kind"));
        let (instrument, kind) = match first {
            Some(name) if self.link().is_instrument(&name) && kind(Some(name.clone())).is_err() => {
                (Some(name), None)
            }
            other => (None, kind(other)?),
        };
        let order_type = match arguments.next("type") {
            None => None,
            Some(name) => match OrderFilter::from_text(&name) {
                OrderFilter::Other => {
                    let known = list(OrderFilter::ALL.iter());
                    return Err(Failure::Invalid(format!("type {name}: one of {known}")));
                }
                filter => Some(filter),
            },
        };
        arguments.finish()?;
        let done = match instrument {
            Some(name) => {
                let params = GetOpenOrdersByInstrument { instrument_name: Text::new(&name), order_type };
                self.answer(Method::GetOpenOrdersByInstrument, &params)
            }
            None => self.answer(Method::GetOpenOrders, &GetOpenOrders { kind, order_type }),
        }?;
        if let (true, Some(json)) = (self.is_watched, &done.json) {
            let list: List<'_, Order<'_>> = read(json)?;
            let mut link = self.link();
            for order in list.iter().map_while(Result::ok) {
                link.learn_order(order.order_id.to_cow().into_owned());
            }
        }
        Ok(done)
    }

    /// Fetches names for completion, silently and untimed: futures only, which are few. Returns success.
    pub(crate) fn fetch_names(&mut self) -> bool {
        let params = GetInstruments { currency: Text::new("any"), kind: Some(Kind::Future), expired: false };
        self.is_quiet = true;
        let answer = self.ask(Method::GetInstruments, &params);
        self.is_quiet = false;
        // Without the list, names are completed after their first use.
        let Ok(reply) = answer else { return false };
        let Ok(list) = read::<List<'_, Instrument<'_>>>(&reply.json) else { return false };
        let names = list.iter().map_while(Result::ok);
        self.link().learn(names.map(|instrument| instrument.instrument_name.to_cow().into_owned()));
        true
    }

    fn order_state(&mut self, mut arguments: Arguments) -> Result<Done, Failure> {
        if let Some(label) = arguments.named("label") {
            let currency = currency(arguments.next("currency"))?;
            let currency = match currency.filter(|_| !self.link().url().is_native()) {
                None if self.link().url().is_native() => "any".to_owned(),
                currency => currency.context("which currency? currency=BTC, ...")?,
            };
            arguments.finish()?;
            let params =
                GetOrderStateByLabel { currency: Text::new(&currency), label: Some(Text::new(&label)) };
            return self.answer(Method::GetOrderStateByLabel, &params);
        }
        let order_id = arguments.next("order_id").context("which order? its id is shown by orders")?;
        arguments.finish()?;
        self.answer(Method::GetOrderState, &GetOrderState { order_id: Text::new(&order_id) })
    }

    fn trades(&mut self, mut arguments: Arguments) -> Result<Done, Failure> {
        let instrument = arguments.next("instrument").context("which instrument?")?;
        let count = arguments.next("count").map(|count| count.parse()).transpose();
        arguments.finish()?;
        let count = count.context("how many? a number up to 1000")?;
        let params = GetUserTradesByInstrument {
            instrument_name: Text::new(&instrument),
            start_seq: None,
            end_seq: None,
            start_timestamp: None,
            end_timestamp: None,
            count,
            historical: None,
            sorting: Some(Sorting::Descending),
        };
        self.answer(Method::GetUserTradesByInstrument, &params)
    }

    fn positions(&mut self, mut arguments: Arguments) -> Result<Done, Failure> {
        let currency = currency(arguments.next("currency"))?.unwrap_or_else(|| "any".to_owned());
        let kind = kind(arguments.next("kind"))?;
        arguments.finish()?;
        let params = GetPositions { currency: Some(Text::new(&currency)), kind, subaccount_id: None };
        self.answer(Method::GetPositions, &params)
    }

    fn account(&mut self, mut arguments: Arguments) -> Result<Done, Failure> {
        let currency = currency(arguments.next("currency"))?.context("which currency?")?;
        arguments.finish()?;
        let params =
            GetAccountSummary { currency: Text::new(&currency), subaccount_id: None, extended: None };
        self.answer(Method::GetAccountSummary, &params)
    }

    fn cancel_one(&mut self, mut arguments: Arguments) -> Result<Done, Failure> {
        if let Some(label) = arguments.named("label") {
            let currency = currency(arguments.next("currency"))?;
            arguments.finish()?;
            let params =
                CancelByLabel { label: Text::new(&label), currency: currency.as_deref().map(Text::new) };
            return self.unless_dry(Method::CancelByLabel, &params);
        }
        let order_id = arguments.next("order_id").context("which order? its id is shown by orders")?;
        arguments.finish()?;
        Ok(Done::answer(Method::Cancel, self.cancel(&order_id)?))
    }

    fn cancel_many(&mut self, mut arguments: Arguments) -> Result<Done, Failure> {
        let of = arguments.next("of");
        arguments.finish()?;
        match of.as_deref() {
            None | Some("any") => {
                self.unless_dry(Method::CancelAll, &CancelAll { detailed: false, freeze_quotes: false })
            }
            Some(name) if CURRENCIES.contains(&name) => {
                let params = CancelAllByCurrency {
                    currency: Text::new(name),
                    kind: None,
                    order_type: None,
                    detailed: false,
                    freeze_quotes: false,
                };
                self.unless_dry(Method::CancelAllByCurrency, &params)
            }
            Some(name) => {
                let params = CancelAllByInstrument {
                    instrument_name: Text::new(name),
                    order_type: None,
                    include_combos: false,
                    detailed: false,
                    freeze_quotes: false,
                };
                self.unless_dry(Method::CancelAllByInstrument, &params)
            }
        }
    }

    /// Repeats a request whose answer was lost: it is idempotent, and the second count is shown.
    fn unless_dry<'a>(&mut self, method: Method, params: &impl Field<'a>) -> Result<Done, Failure> {
        if self.is_dry_run {
            return Ok(Done::answer(method, self.dry_run(method, params, &Checked::default())?));
        }
        match self.answer(method, params) {
            Err(failure) if failure.is_unsure() => match self.answer(method, params) {
                Ok(mut done) => {
                    let note = format!(
                        "{failure}; it was requested once more, and the first cancels are not counted"
                    );
                    done.text.push_str(&format!("\n{note}"));
                    done.note = Some(note);
                    Ok(done)
                }
                Err(Failure::Interrupted) => Err(Failure::Unanswered(method.name())),
                Err(again) => Err(Failure::Unknown(format!(
                    "{failure}; it was requested once more ({again}): look at orders"
                ))),
            },
            result => result,
        }
    }

    fn close_position(&mut self, mut arguments: Arguments) -> Result<Done, Failure> {
        let instrument = arguments.next("instrument").context("which instrument?")?;
        let price = decimal(arguments.next("price"), "price")?;
        arguments.finish()?;
        Ok(Done::answer(Method::ClosePosition, self.close(&instrument, price)?))
    }

    fn stopwatch(&mut self, mut arguments: Arguments) -> Result<Done, Failure> {
        let word = arguments.next("do");
        arguments.finish()?;
        let mut link = self.link();
        match word.as_deref() {
            None => {}
            Some("reset") => {
                link.watches.reset();
                return Ok(Done::text("stop-watches are reset"));
            }
            Some(other) => return Err(Failure::Invalid(format!("no {other}: it takes reset, or nothing"))),
        }
        let figures: Vec<_> = link.watches.figures().collect();
        let mut text = Vec::new();
        for figure in &figures {
            text.push(format!(
                "{:14} {:6} times  min {}  p50 {}  p99 {}  max {}",
                figure.name,
                figure.count,
                Readable(Nanos(figure.min_ns)),
                Readable(Nanos(figure.p50_ns)),
                Readable(Nanos(figure.p99_ns)),
                Readable(Nanos(figure.max_ns))
            ));
            let Some(span) = Span::ALL.into_iter().find(|span| span.name() == figure.name) else { continue };
            for (end, count) in link.watches.buckets(span) {
                let bar =
                    "#".repeat(usize::try_from((count * BAR).div_ceil(figure.count)).unwrap_or_default());
                text.push(format!("  < {:>10}  {count:6}  {bar}", Readable(end).to_string()));
            }
        }
        if text.is_empty() {
            text.push("nothing was timed yet".to_owned());
        }
        let buckets = |name| {
            let span = Span::ALL.into_iter().find(|span| span.name() == name);
            let list = span.map(|span| link.watches.buckets(span)).unwrap_or_default();
            list.into_iter().map(|(end, count)| [end.0, count]).collect::<Vec<_>>()
        };
        let whole = figures.iter().map(|figure| {
            let mut json = serde_json::to_value(figure).expect("names and numbers");
            json["below_ns_and_count"] = serde_json::json!(buckets(figure.name));
            json
        });
        let json = serde_json::Value::Array(whole.collect()).to_string();
        Ok(Done { text: text.join("\n"), json: Some(json), ..Done::default() })
    }

    /// Calls any method that changes no order and no session; those have their own commands with checks.
    fn call(&mut self, line: &str) -> Result<Done, Failure> {
        // JSON contains quotes: the text after the method is taken whole, with or without surrounding quotes.
        let rest = line.trim().split_once(char::is_whitespace).map_or("", |(_, rest)| rest.trim());
        let (name, params) = rest.split_once(char::is_whitespace).unwrap_or((rest, "{}"));
        let params = params.trim();
        let unquoted =
            ['\'', '"'].into_iter().find_map(|quote| params.strip_prefix(quote)?.strip_suffix(quote));
        let params = unquoted.unwrap_or(params);
        if name.is_empty() {
            return Err(Failure::Invalid("call METHOD [JSON]".to_owned()));
        }
        let method = Method::from_name(name)
            .ok_or_else(|| Failure::Invalid(format!("there is no method {name:?}")))?;
        if method.is_matching() || !is_question(method) {
            return Err(Failure::Invalid(format!("{method} has its own command: see help")));
        }
        let params =
            check(params.as_bytes()).map_err(|error| Failure::Invalid(format!("params: {error}")))?;
        self.answer(method, &params)
    }
}

/// The scope of a key: a host, and the kind of venue there.
pub(crate) fn key_of(url: &VenueUrl) -> (String, bool) {
    (url.host().to_owned(), url.is_native())
}

/// Returns `logged in as anna (trade:read_write)`, with missing permissions in a second line.
fn as_whom(link: &Link) -> String {
    let scope = match link.scope() {
        "" => String::new(),
        scope => format!(" ({scope})"),
    };
    let short = link.shortcoming().map(|line| format!("\n{line}")).unwrap_or_default();
    format!("logged in as {}{scope}{short}", link.client_id().unwrap_or_default())
}

/// Whether a method is a query, which does not change the session.
fn is_question(method: Method) -> bool {
    let name = method.name();
    ["public/get_", "private/get_", "public/ticker", "public/status", "public/test"]
        .iter()
        .any(|start| name.starts_with(start))
}

fn help(rest: &[String]) -> Result<Done, Failure> {
    match rest {
        [] => Ok(Done::text(commands::list())),
        [name] => match commands::find(name) {
            Some(entry) => Ok(Done::text(entry.help())),
            None => Err(Failure::Invalid(format!("there is no command {name:?}: help lists them"))),
        },
        _ => Err(Failure::Invalid("help of one command at a time".to_owned())),
    }
}

fn currency(name: Option<String>) -> Result<Option<String>, Failure> {
    match name {
        Some(name) if !CURRENCIES.contains(&name.as_str()) => {
            Err(Failure::Invalid(format!("currency {name}: one of {}", list(CURRENCIES.iter()))))
        }
        name => Ok(name),
    }
}

fn kind(name: Option<String>) -> Result<Option<Kind>, Failure> {
    match name.as_deref().map(Kind::from_text) {
        None | Some(Kind::Any) => Ok(None),
        Some(kind) if KINDS.contains(&kind) => Ok(Some(kind)),
        Some(_) => {
            let name = name.unwrap_or_default();
            Err(Failure::Invalid(format!("kind {name}: one of {}", list(KINDS.iter()))))
        }
    }
}

/// A pause that people do not notice, such as between two polls of the network.
pub(crate) const LOOK: Duration = Duration::from_millis(100);
