//! The syntax of the admin socket's commands, and the parser of a command line.

use std::str::{FromStr, SplitAsciiWhitespace};

use tickpath_config::{Fraction, InstrumentConfig, PriceText};
use tickpath_types::{
    BrokenReason, InstrumentId, InstrumentTable, MatchId, Price, Qty, SessionId, Symbol, TradingState,
};
use tickpath_venue::day::{BandWidth, Phase};
use tickpath_venue::{AdminCommand, LimitsChange, RateLimit, VenueView};

use crate::config::{OPEN_ORDERS_MAX, RATE_MAX};

/// A parsed command line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Request {
    Status,
    Users,
    ReloadUsers,
    Command(AdminCommand),
}

/// Kind of a command's arguments, with the request or a function that creates the command from them.
enum Arguments {
    /// No arguments.
    None(Request),
    /// The name of a user.
    User(fn(SessionId) -> AdminCommand),
    /// The symbol of an instrument.
    Instrument(fn(InstrumentId) -> AdminCommand),
    /// Other arguments, with the function that parses them.
    Custom(fn(&mut Line<'_>) -> Result<AdminCommand, String>),
}

const END_OF_DAY: AdminCommand = AdminCommand::Phase { phase: Phase::EndOfDay, instrument: None };

/// Syntax of each command, beginning with its name, and the kind of its arguments.
const COMMANDS: [(&str, Arguments); 21] = {
    use AdminCommand::{Disconnect, Drain, Kill, Unkill, Unlock};
    use Arguments::{Custom, Instrument, None as NoArguments, User};
    use TradingState::{Halted, Trading};
    [
        ("status", NoArguments(Request::Status)),
        ("users", NoArguments(Request::Users)),
        ("reload-users", NoArguments(Request::ReloadUsers)),
        ("phase SYMBOL|all PHASE", Custom(|line| line.phase())),
        ("halt SYMBOL", Instrument(|instrument| trading_state(instrument, Halted))),
        ("resume SYMBOL", Instrument(|instrument| trading_state(instrument, Trading))),
        ("price-band SYMBOL|all WIDTH|off [REFERENCE]", Custom(|line| line.price_band())),
        ("break MATCH [REASON]", Custom(|line| line.break_trade())),
        ("instrument add SYMBOL PRICE [FIELD=VALUE ...]", Custom(|line| line.instrument_command())),
        ("instrument suspend SYMBOL", Custom(|line| line.instrument_command())),
        ("limits USER LIMIT=VALUE ...", Custom(|line| line.limits())),
        ("allow USER SYMBOL", Custom(|line| line.allow(true))),
        ("disallow USER SYMBOL", Custom(|line| line.allow(false))),
        ("kill USER", User(|user| Kill(Some(user)))),
        ("unkill USER", User(|user| Unkill(Some(user)))),
        ("kill-all", NoArguments(Request::Command(Kill(None)))),
        ("unkill-all", NoArguments(Request::Command(Unkill(None)))),
        ("disconnect USER", User(Disconnect)),
        ("unlock USER", User(Unlock)),
        ("end-of-day", NoArguments(Request::Command(END_OF_DAY))),
        ("drain", NoArguments(Request::Command(Drain))),
    ]
};

fn trading_state(instrument: InstrumentId, state: TradingState) -> AdminCommand {
    AdminCommand::SetTradingState { instrument, state }
}

/// Parses a command line.
///
/// # Errors
/// A message of one line that names the mistake and the valid alternatives.
pub(super) fn parse(line: &str, instruments: &InstrumentTable, view: &VenueView) -> Result<Request, String> {
    let mut words = line.split_ascii_whitespace();
    let name = words.next().unwrap_or("");
    let mut line = Line { name, words, instruments, view };
    let named = COMMANDS.into_iter().find(|(usage, _)| usage.split(' ').next() == Some(name));
    if let Some((_, Arguments::Custom(read))) = named {
        let command = read(&mut line)?;
        line.end()?;
        return Ok(Request::Command(command));
    }
    let argument = line.words.next();
    if line.words.next().is_some() {
        return Err(format!("'{name}' takes one word at most"));
    }
    let command = match named {
        Some((_, Arguments::User(command))) => {
            let user = argument.ok_or_else(|| format!("'{name}' needs the name of a user: see users"))?;
            command(line.user(user)?)
        }
        Some((_, Arguments::Instrument(command))) => {
            let symbol = argument.ok_or_else(|| format!("'{name}' needs the symbol of an instrument"))?;
            command(line.instrument(symbol)?)
        }
        Some((_, Arguments::None(request))) => {
            return match argument {
                None => Ok(request),
                Some(argument) => Err(format!("'{name}' takes no argument: leave '{argument}' out")),
            };
        }
        _ => {
            let usages = COMMANDS.map(|(usage, _)| usage).join(", ");
            return Err(format!("no command '{name}': use one of {usages}"));
        }
    };
    Ok(Request::Command(command))
}

struct Line<'a> {
    name: &'a str,
    words: SplitAsciiWhitespace<'a>,
    instruments: &'a InstrumentTable,
    view: &'a VenueView,
}

impl<'a> Line<'a> {
    fn phase(&mut self) -> Result<AdminCommand, String> {
        let instrument = self.instrument_or_all()?;
        let word = self.word("a phase")?;
        let phase = Phase::from_name(&word.to_ascii_lowercase()).ok_or_else(|| {
            let names = Phase::ALL.map(Phase::name).join(", ");
            format!("no phase '{word}': use one of {names}")
        })?;
        if phase.is_of_venue() && instrument.is_some() {
            return Err(format!("'{word}' is for the whole venue: phase all {word}"));
        }
        Ok(AdminCommand::Phase { phase, instrument })
    }

    fn price_band(&mut self) -> Result<AdminCommand, String> {
        let instrument = self.instrument_or_all()?;
        let width = match self.word("a width, such as 5%, 2.50 or off")? {
            "off" => BandWidth::Off,
            share if share.ends_with('%') || share.ends_with("ppm") => {
                BandWidth::Ppm(text::<Fraction>(share)?.ppm)
            }
            width => BandWidth::Price(positive_price(width)?),
        };
        if width == BandWidth::Ppm(0) {
            return Err("a width of 0 pauses every trade: write 'off' for no band".to_owned());
        }
        let reference = self.words.next().map(positive_price).transpose()?;
        if reference.is_some() && instrument.is_none() {
            return Err("a reference price applies to one instrument: replace 'all' by its symbol".into());
        }
        Ok(AdminCommand::SetPriceBand { instrument, width, reference })
    }

    fn break_trade(&mut self) -> Result<AdminCommand, String> {
        let word = self.word("the match number of an execution")?;
        let match_id =
            word.parse().map_err(|_| format!("'{word}' is not a match number: write e.g. 1234"))?;
        let reason = match self.words.next() {
            None | Some("supervisory") => BrokenReason::Supervisory,
            Some("erroneous") => BrokenReason::Erroneous,
            Some("consent") => BrokenReason::Consent,
            Some("external") => BrokenReason::External,
            Some(word) => {
                return Err(format!(
                    "no reason '{word}': use one of erroneous, consent, supervisory, external"
                ));
            }
        };
        Ok(AdminCommand::BreakTrade { match_id: MatchId(match_id), reason })
    }

    fn instrument_command(&mut self) -> Result<AdminCommand, String> {
        match self.word("add or suspend")? {
            "add" => self.add_instrument(),
            "suspend" => {
                let symbol = self.word("the symbol of an instrument")?;
                Ok(AdminCommand::SuspendInstrument { instrument: self.instrument(symbol)? })
            }
            word => Err(format!("no 'instrument {word}': use instrument add or instrument suspend")),
        }
    }

    fn add_instrument(&mut self) -> Result<AdminCommand, String> {
        let symbol = self.word("a symbol and a reference price")?.to_ascii_uppercase();
        let mut config =
            InstrumentConfig::new(&symbol, text(self.word("a reference price, such as 100.00")?)?);
        for word in self.words.by_ref() {
            match field(word)? {
                ("tick", value) => config.tick_size = text(value)?,
                ("lot", value) => config.lot_size = number(value)?,
                ("max", value) => config.max_qty = number(value)?,
                ("collar", value) => config.collar = text(value)?,
                (name, _) => return Err(format!("no field '{name}': use one of tick, lot, max, collar")),
            }
        }
        // The venue assigns the id.
        let definition = config.definition(InstrumentId(0)).map_err(|error| error.to_string())?;
        Ok(AdminCommand::AddInstrument(definition))
    }

    fn allow(&mut self, is_allowed: bool) -> Result<AdminCommand, String> {
        let user = self.word("the name of a user: see users")?;
        let session = self.user(user)?;
        let symbol = self.word("the symbol of an instrument")?;
        Ok(AdminCommand::AllowInstrument { session, instrument: self.instrument(symbol)?, is_allowed })
    }

    fn limits(&mut self) -> Result<AdminCommand, String> {
        let user = self.word("the name of a user: see users")?;
        let session = self.user(user)?;
        let mut change = LimitsChange::default();
        for word in self.words.by_ref() {
            match field(word)? {
                ("messages", value) => change.rate = Some(limit(value, rate)?),
                ("open-orders", value) => {
                    change.open_orders = Some(limit(value, |value| up_to(OPEN_ORDERS_MAX, value))?);
                }
                ("qty", value) => change.order_qty = Some(limit(value, number)?.map(Qty)),
                ("notional", value) => {
                    let notional = |value: &str| positive_price(value).map(|price| price.0.cast_unsigned());
                    change.order_notional = Some(limit(value, notional)?);
                }
                (name, _) => {
                    return Err(format!(
                        "no limit '{name}': use one of messages, open-orders, qty, notional"
                    ));
                }
            }
        }
        if change == LimitsChange::default() {
            return Err("'limits' needs a limit, such as open-orders=100 or notional=none".to_owned());
        }
        Ok(AdminCommand::SetLimits { session, change })
    }

    fn word(&mut self, what: &str) -> Result<&'a str, String> {
        self.words.next().ok_or_else(|| format!("'{}' needs {what}", self.name))
    }

    fn end(&mut self) -> Result<(), String> {
        let refusal = |word| Err(format!("'{}' does not take '{word}' there", self.name));
        self.words.next().map_or(Ok(()), refusal)
    }

    fn user(&self, user: &str) -> Result<SessionId, String> {
        let place = self.view.users.find(user);
        place.map(|place| SessionId(place as u16 + 1)).ok_or_else(|| format!("no user '{user}': see users"))
    }

    fn instrument(&self, symbol: &str) -> Result<InstrumentId, String> {
        let found = Symbol::new(&symbol.to_ascii_uppercase()).ok().and_then(|it| self.instruments.find(it));
        found.ok_or_else(|| format!("no instrument '{symbol}'"))
    }

    /// Parses the symbol of an instrument; `all` gives `None`.
    fn instrument_or_all(&mut self) -> Result<Option<InstrumentId>, String> {
        match self.word("the symbol of an instrument, or all")? {
            "all" => Ok(None),
            symbol => self.instrument(symbol).map(Some),
        }
    }
}

fn field(word: &str) -> Result<(&str, &str), String> {
    word.split_once('=').ok_or_else(|| format!("'{word}' is not FIELD=VALUE"))
}

fn text<T: FromStr<Err: std::fmt::Display>>(word: &str) -> Result<T, String> {
    word.parse().map_err(|error: T::Err| error.to_string())
}

fn positive_price(word: &str) -> Result<Price, String> {
    let PriceText(price) = text(word)?;
    if price > Price(0) { Ok(price) } else { Err(format!("'{word}' must be above 0")) }
}

fn number<T: FromStr + PartialEq + Default>(word: &str) -> Result<T, String> {
    let number = word.parse().ok().filter(|number| *number != T::default());
    number.ok_or_else(|| format!("'{word}' is not a number above 0"))
}

/// Parses a rate: messages per second, and after an optional slash the burst, by default the same number.
fn rate(word: &str) -> Result<RateLimit, String> {
    let (per_second, burst) = word.split_once('/').unwrap_or((word, word));
    Ok(RateLimit { per_second: up_to(RATE_MAX, per_second)?, burst: up_to(RATE_MAX, burst)? })
}

/// Parses a number up to `max`, the maximum of the same limit in a configuration.
fn up_to(max: u32, word: &str) -> Result<u32, String> {
    let number = number(word)?;
    if number <= max { Ok(number) } else { Err(format!("'{word}' is above {max}: write none for no limit")) }
}

fn limit<T>(word: &str, read: impl FnOnce(&str) -> Result<T, String>) -> Result<Option<T>, String> {
    if word == "none" { Ok(None) } else { read(word).map(Some) }
}
