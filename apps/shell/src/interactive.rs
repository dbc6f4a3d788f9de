//! The interactive terminal: line editing, completion, history, order forms, and a pane of live data.

use std::borrow::Cow;
use std::collections::VecDeque;
use std::io::{IsTerminal, stdin};
use std::os::fd::AsFd;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread;
use std::time::Duration;

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use rustyline::completion::{Completer, Pair};
use rustyline::error::ReadlineError;
use rustyline::highlight::Highlighter;
use rustyline::hint::Hinter;
use rustyline::history::FileHistory;
use rustyline::validate::Validator;
use rustyline::{Context, Editor, ExternalPrinter, Helper};
use tickpath_config::{print_stderr, print_stdout};
use tickpath_deribit::codes::OrderFilter;
use tickpath_deribit::messages::{Instrument, Order, OrderPrice};
use tickpath_deribit::number::Decimal;

use crate::commands::{self, ENTRIES, Verb};
use crate::execute::{CURRENCIES, KINDS, LOOK};
use crate::json_text::SECRETS;
use crate::link::{Link, Standing};
use crate::order::{FLAGS, TIMES, TRIGGERS, TYPES, has_limit, name_of};
use crate::pane::Pane;
use crate::run::{Flow, RunOptions, Runner, visible};
use crate::shell::{Interrupt, Shell};

/// Number of known names below which the shell requests more from the venue.
const NAMES_FEW: usize = 8;
/// Upper bound of lines typed ahead; further ones wait in the terminal.
const LINES_AHEAD_MAX: usize = 64;
/// Interval at which the screen thread retries while a command holds the link.
const LINK_LOOK: Duration = Duration::from_millis(10);
/// Number of remembered lines.
const HISTORY_LINES: usize = 1_000;

/// Channels, or their prefixes.
const CHANNELS: [&str; 11] = [
    "ticker.",
    "quote.",
    "book.",
    "trades.",
    "user.orders.any.any.raw",
    "user.trades.any.any.raw",
    "user.changes.any.any.raw",
    "user.portfolio.any",
    "deribit_price_index.",
    "perpetual.",
    "platform_state",
];
/// Channels of an instrument: the text before and after its name.
const CHANNELS_OF_ONE: [(&str, &str); 9] = [
    ("ticker.", ".100ms"),
    ("quote.", ""),
    ("book.", ".none.10.100ms"),
    ("book.", ".100ms"),
    ("trades.", ".100ms"),
    ("trades.", ".raw"),
    ("user.orders.", ".raw"),
    ("user.trades.", ".raw"),
    ("user.changes.", ".raw"),
];

/// Runs a shell at the terminal.
pub(crate) fn run(shell: &mut Shell, runner: &mut Runner<'_>, options: &RunOptions) -> anyhow::Result<()> {
    let config =
        rustyline::Config::builder().max_history_size(HISTORY_LINES)?.history_ignore_space(true).build();
    let mut editor: Editor<Words, FileHistory> = Editor::with_config(config)?;
    let (shown, keys) = (Shown::default(), Arc::new(Keys::default()));
    editor.set_helper(Some(Words { link: shell.shared_link(), field: None, shown: shown.clone() }));
    let mut history = history_file();
    if let Some(path) = &history {
        // The file does not exist before the first use.
        let _ = editor.load_history(path);
    }
    shell.is_watched = true;
    // A closed terminal ends the shell with a proper close of the connection, like SIGTERM.
    signal_hook::flag::register(signal_hook::consts::SIGHUP, Arc::clone(&shell.interrupt.shell))?;
    shell.link().want_news(false);
    let pane = if options.has_no_pane { None } else { Pane::new() };
    let printer = editor.create_external_printer().ok();
    let looks = Looks { shown: shown.clone(), keys: Arc::clone(&keys), interrupt: shell.interrupt.clone() };
    let screen = Screen::start(shell.shared_link(), printer, pane, looks)?;
    print_stdout("tickpath shell: help lists the commands, Tab completes, Ctrl-D ends")?;
    let result = read_lines(shell, runner, &mut editor, &mut history, (&shown, &keys));
    screen.stop();
    // In interactive use Ctrl-C ends a command, and does not determine how the shell ended.
    shell.interrupt.command.store(false, Ordering::Relaxed);
    result
}

/// The history file in the home folder; commands never contain passwords or keys.
fn history_file() -> Option<PathBuf> {
    std::env::var_os("HOME").map(|home| PathBuf::from(home).join(".tickpath_shell_history"))
}

fn read_lines(
    shell: &mut Shell,
    runner: &mut Runner<'_>,
    editor: &mut Editor<Words, FileHistory>,
    history: &mut Option<PathBuf>,
    (shown, keys): (&Shown, &Keys),
) -> anyhow::Result<()> {
    // The venue whose instruments were requested.
    let mut named = None;
    while !shell.interrupt.shell.load(Ordering::Relaxed) {
        let is_ready = shell.link().standing() == Standing::Ready;
        let url = shell.link().url().to_string();
        if is_ready && named.as_ref() != Some(&url) && shell.link().instrument_names().len() < NAMES_FEW {
            // Repeated if the request failed.
            named = shell.fetch_names().then_some(url);
        }
        // Releases the link before the person types: the I/O thread needs it.
        let prompt = prompt(&shell.link());
        shown.set(shell.link().standing());
        let read = keys.take_line().map_or_else(|| editor.readline(&prompt), Ok);
        let line = match read {
            Ok(line) => line,
            Err(ReadlineError::Interrupted | ReadlineError::Signal(_)) => continue,
            Err(ReadlineError::Eof) => return Ok(()),
            // A closed terminal cannot be read.
            Err(_) if shell.interrupt.shell.load(Ordering::Relaxed) => return Ok(()),
            Err(error) => return Err(error.into()),
        };
        if line.trim().is_empty() {
            continue;
        }
        remember(editor, &line, history);
        let lines = crate::words::commands(&line);
        let count = lines.len();
        for (place, command) in (1..).zip(lines) {
            let Some(command) = filled_in(shell, editor, command, history)? else { break };
            // Ctrl-C during the lookup of a field does not apply to the command.
            shell.interrupt.command.store(false, Ordering::Relaxed);
            keys.watch(true);
            let flow = runner.run_one(shell, &command);
            keys.watch(false);
            let flow = flow?;
            if flow == Flow::End || keys.has_ended() {
                return Ok(());
            }
            // The commands of a line such as `buy ...; sell ...` depend on the earlier ones.
            let is_interrupted = shell.interrupt.is_raised();
            if is_interrupted || (flow == Flow::Failed && !runner.keeps_going()) {
                if place < count {
                    print_stderr(format_args!(
                        "tickpath: {} more of this line not carried out",
                        count - place
                    ));
                }
                break;
            }
        }
        // Ctrl-C ended the command; the shell continues.
        shell.interrupt.command.store(false, Ordering::Relaxed);
    }
    Ok(())
}

/// Saves a line to the history file at once, because a closed terminal ends the shell without notice.
fn remember(editor: &mut Editor<Words, FileHistory>, line: &str, history: &mut Option<PathBuf>) {
    // A secret in a command's JSON is never written to a file.
    if SECRETS.iter().any(|name| line.contains(name)) {
        return;
    }
    let kept = editor.add_history_entry(line).and_then(|is_new| match history {
        Some(path) if is_new => editor.append_history(path),
        _ => Ok(()),
    });
    if let (Err(error), Some(path)) = (kept, history.as_ref()) {
        print_stderr(format_args!(
            "tickpath: the history of commands is not kept: {}: {error}",
            path.display()
        ));
        *history = None;
    }
}

/// The prompt: the venue's name and the link state.
fn prompt(link: &Link) -> String {
    format!("{} {}> ", link.url().host(), sign_of(link.standing()))
}

/// The link state as the prompt shows it.
const SIGNS: [(Standing, &str); 3] =
    [(Standing::Off, "off"), (Standing::Connecting, "..."), (Standing::Ready, "ok")];

fn sign_of(standing: Standing) -> &'static str {
    SIGNS.iter().find(|(other, _)| *other == standing).map_or("", |(_, sign)| sign)
}

/// The link state for the prompt, shared by clones.
#[derive(Clone, Default)]
struct Shown(Arc<AtomicU8>);

impl Shown {
    fn set(&self, standing: Standing) {
        let place = SIGNS.iter().position(|(other, _)| *other == standing).unwrap_or(0);
        self.0.store(place as u8, Ordering::Relaxed);
    }

    fn get(&self) -> Standing {
        SIGNS[usize::from(self.0.load(Ordering::Relaxed)) % SIGNS.len()].0
    }
}

/// Completes an order command without arguments field by field; returns any other command unchanged. `None`
/// if the person cancels.
fn filled_in(
    shell: &mut Shell,
    editor: &mut Editor<Words, FileHistory>,
    command: String,
    history: &mut Option<PathBuf>,
) -> anyhow::Result<Option<String>> {
    let verb = commands::find(&command).map(|entry| entry.verb);
    let form = match verb {
        Some(Verb::Buy | Verb::Sell) => order_form(shell, editor),
        Some(Verb::Edit) => change_form(shell, editor),
        _ => return Ok(Some(command)),
    };
    let whole = form.and_then(|fields| {
        let whole = format!("{command}{fields}");
        let send =
            editor.readline(&format!("  {whole}\n  send it? yes sends it, anything else gives up: "))?;
        // An empty line is no confirmation.
        Ok(["y", "yes"].contains(&send.trim()).then_some(whole))
    });
    if let Some(words) = editor.helper_mut() {
        words.field = None;
    }
    match whole {
        Ok(Some(whole)) => {
            remember(editor, &whole, history);
            Ok(Some(whole))
        }
        Ok(None) | Err(ReadlineError::Interrupted | ReadlineError::Eof) => {
            print_stderr("given up: nothing was sent");
            Ok(None)
        }
        Err(error) => Err(error.into()),
    }
}

type Fields = Result<String, ReadlineError>;

fn order_form(shell: &mut Shell, editor: &mut Editor<Words, FileHistory>) -> Fields {
    let names = shell.link().instrument_names();
    let mut form = Form::new(editor, shell);
    form.offer(names);
    let instrument = form.needed("instrument", "", |text| {
        shell.instrument(text).map(drop).map_err(|error| error.to_string())
    })?;
    let json = shell.instrument(&instrument).unwrap_or_default();
    let known = crate::trade::read::<Instrument<'_>>(&json).ok();
    let step = known.as_ref().map(|known| known.min_trade_amount);
    let hint = step.map(|step| format!(" (a multiple of {step})")).unwrap_or_default();
    let amount = form.maybe("amount", &hint, |text| number(text, |value| positive(value, step)))?;
    let size = known.as_ref().and_then(|known| known.contract_size);
    let amount: Option<Decimal> = amount.and_then(|text| text.parse().ok());
    form.contracts(amount, size, amount.is_none())?;
    let order_type = form.one_of("type", "limit", &TYPES)?.unwrap_or(TYPES[0].1);
    let is_tick = |text: &str| {
        number(text, |price| multiple(price, known.as_ref().map(|instrument| instrument.tick_at(price))))
    };
    if has_limit(order_type) {
        form.needed("price", "", is_tick)?;
        form.one_of("time_in_force", "good_til_cancelled", &TIMES)?;
    }
    let name = name_of(&TYPES, order_type);
    if name.starts_with("stop_") || name.starts_with("take_") || name == "trailing_stop" {
        form.needed_one_of("trigger", &TRIGGERS)?;
        let field = if name == "trailing_stop" { "trigger_offset" } else { "trigger_price" };
        form.needed(field, "", is_tick)?;
    }
    form.maybe("label", "", |text| {
        if text.chars().count() <= 64 { Ok(()) } else { Err("at most 64 characters".to_owned()) }
    })?;
    form.flags("none", &[])?;
    Ok(form.fields)
}

fn change_form(shell: &mut Shell, editor: &mut Editor<Words, FileHistory>) -> Fields {
    let mut form = Form::new(editor, shell);
    let mut json = String::new();
    form.needed("order_id", "", |text| {
        json = shell.order_json(text).map_err(|error| error.to_string())?;
        Ok(())
    })?;
    let Ok(order) = crate::trade::read::<Order<'_>>(&json) else { return Ok(form.fields) };
    print_stderr(format_args!("  {}", visible(&crate::print::order(&order))));
    let instrument = shell.instrument(&order.instrument_name.to_cow()).unwrap_or_default();
    let known = crate::trade::read::<Instrument<'_>>(&instrument).ok();
    let step = known.as_ref().map(|known| known.min_trade_amount);
    let is_tick = |text: &str| {
        number(text, |price| multiple(price, known.as_ref().map(|instrument| instrument.tick_at(price))))
    };
    loop {
        let before = form.fields.len();
        let is_amount = |text: &str| number(text, |value| positive(value, step));
        let amount = form.maybe("amount", &format!(" ({})", order.amount), is_amount)?;
        if amount.is_none() {
            let size = known.as_ref().and_then(|known| known.contract_size);
            form.contracts(None, size, false)?;
        }
        if let Some(price) = order.price.and_then(OrderPrice::limit) {
            form.maybe("price", &format!(" ({price})"), is_tick)?;
        }
        if let Some(price) = order.trigger_price {
            form.maybe("trigger_price", &format!(" ({price})"), is_tick)?;
        }
        if let Some(offset) = order.trigger_offset {
            form.maybe("trigger_offset", &format!(" ({offset})"), is_tick)?;
        }
        if form.fields.len() > before {
            break;
        }
        print_stderr("  what is to change? Ctrl-C gives up");
    }
    // An edit clears flags that it does not repeat, so the order's flags are the default.
    let has = [
        (FLAGS[0], order.post_only),
        (FLAGS[1], order.reject_post_only == Some(true)),
        (FLAGS[2], order.reduce_only),
        (FLAGS[3], order.mmp),
    ];
    let kept: Vec<&str> = has.iter().filter(|(_, is_set)| *is_set).map(|(name, _)| *name).collect();
    let hint = if kept.is_empty() { "none".to_owned() } else { kept.join(" ") };
    form.flags(&hint, &kept)?;
    Ok(form.fields)
}

/// Checks that a number is a multiple of a step, if the step is known.
fn multiple(value: Decimal, step: Option<Decimal>) -> Result<(), String> {
    match step.filter(|step| !crate::order::is_multiple(value, *step)) {
        Some(step) => Err(format!("it has to be a multiple of {step}")),
        None => Ok(()),
    }
}

/// Checks that an amount is above zero and a multiple of a step, if the step is known.
fn positive(value: Decimal, step: Option<Decimal>) -> Result<(), String> {
    if value > Decimal::ZERO { multiple(value, step) } else { Err("it has to be above 0".to_owned()) }
}

fn number(text: &str, check: impl FnOnce(Decimal) -> Result<(), String>) -> Result<(), String> {
    text.parse().map_err(|error: tickpath_deribit::number::NumberError| error.to_string()).and_then(check)
}

/// A form that reads fields one by one and collects them as arguments.
struct Form<'e> {
    editor: &'e mut Editor<Words, FileHistory>,
    /// The flag that Ctrl-C sets.
    interrupt: Arc<AtomicBool>,
    fields: String,
}

impl<'e> Form<'e> {
    fn new(editor: &'e mut Editor<Words, FileHistory>, shell: &Shell) -> Form<'e> {
        let interrupt = Arc::clone(&shell.interrupt.command);
        let mut form = Form { editor, interrupt, fields: String::new() };
        form.offer(Vec::new());
        form
    }

    /// Sets the completions of the next field.
    fn offer(&mut self, words: Vec<String>) {
        if let Some(helper) = self.editor.helper_mut() {
            helper.field = Some(words);
        }
    }

    /// Reads the contracts: in addition to an amount, with which they must agree, or in its place.
    fn contracts(
        &mut self,
        amount: Option<Decimal>,
        size: Option<Decimal>,
        is_needed: bool,
    ) -> Result<(), ReadlineError> {
        let hint = size.map(|size| format!(" (of {size})")).unwrap_or_default();
        let check = |text: &str| {
            number(text, |contracts| {
                positive(contracts, None)?;
                match amount.zip(size) {
                    Some((amount, size)) if !crate::order::agree(amount, contracts, size) => {
                        Err(format!("an amount of {amount} is something else: a contract is {size}"))
                    }
                    _ => Ok(()),
                }
            })
        };
        match is_needed {
            true => self.needed("contracts", &hint, check).map(drop),
            false => self.maybe("contracts", &hint, check).map(drop),
        }
    }

    /// Reads flags, several on a line; an empty answer selects the default, `none` clears all.
    fn flags(&mut self, hint: &str, default: &[&str]) -> Result<(), ReadlineError> {
        self.offer(FLAGS.map(str::to_owned).to_vec());
        loop {
            let text = self.editor.readline(&format!("  flags ({hint}): "))?;
            let words: Vec<&str> = match text.trim() {
                "" => default.to_vec(),
                "none" => Vec::new(),
                text => text.split_whitespace().collect(),
            };
            match words.iter().find(|word| !FLAGS.contains(word)) {
                None => {
                    words.iter().for_each(|word| self.fields.push_str(&format!(" {word}")));
                    self.offer(Vec::new());
                    return Ok(());
                }
                Some(other) => print_stderr(format_args!("  {other}: some of {}, or none", FLAGS.join(" "))),
            }
        }
    }

    fn needed_one_of<T: Copy>(&mut self, name: &str, names: &[(&str, T)]) -> Result<T, ReadlineError> {
        loop {
            match self.one_of(name, "needed", names)? {
                Some(value) => return Ok(value),
                None => print_stderr(format_args!("  {name} is needed; Ctrl-C gives up")),
            }
        }
    }

    fn ask(
        &mut self,
        name: &str,
        hint: &str,
        check: &mut dyn FnMut(&str) -> Result<(), String>,
    ) -> Result<Option<String>, ReadlineError> {
        loop {
            let text = self.editor.readline(&format!("  {name}{hint}: "))?;
            let text = text.trim();
            if text.is_empty() {
                return Ok(None);
            }
            if text.contains(['"', '\'']) {
                print_stderr("  without quotes");
                continue;
            }
            // Ctrl-C during the lookup of the previous field does not apply to this one.
            self.interrupt.store(false, Ordering::Relaxed);
            match check(text) {
                Ok(()) => {
                    let is_one_word = !text.contains(|one: char| one.is_whitespace() || ";#".contains(one));
                    let quote = if is_one_word { "" } else { "\"" };
                    self.fields.push_str(&format!(" {quote}{name}={text}{quote}"));
                    return Ok(Some(text.to_owned()));
                }
                Err(why) => print_stderr(format_args!("  {text}: {why}")),
            }
        }
    }

    fn maybe(
        &mut self,
        name: &str,
        hint: &str,
        mut check: impl FnMut(&str) -> Result<(), String>,
    ) -> Result<Option<String>, ReadlineError> {
        self.ask(name, hint, &mut check)
    }

    fn needed(
        &mut self,
        name: &str,
        hint: &str,
        mut check: impl FnMut(&str) -> Result<(), String>,
    ) -> Result<String, ReadlineError> {
        loop {
            match self.ask(name, hint, &mut check)? {
                Some(text) => return Ok(text),
                None => print_stderr(format_args!("  {name} is needed; Ctrl-C gives up")),
            }
        }
    }

    fn one_of<T: Copy>(
        &mut self,
        name: &str,
        default: &str,
        names: &[(&str, T)],
    ) -> Result<Option<T>, ReadlineError> {
        let known = crate::order::list(names.iter().map(|(name, _)| name));
        let find = |text: &str| names.iter().find(|(name, _)| *name == text).map(|(_, value)| *value);
        self.offer(names.iter().map(|(name, _)| (*name).to_owned()).collect());
        let text = self.maybe(name, &format!(" ({default})"), |text| {
            find(text).map(drop).ok_or_else(|| format!("one of {known}"))
        })?;
        self.offer(Vec::new());
        Ok(text.and_then(|text| find(&text)))
    }
}

/// Completes commands, their arguments, instruments and channels.
struct Words {
    link: Arc<Mutex<Link>>,
    /// The values of a form's current field; `None` while commands are typed.
    field: Option<Vec<String>>,
    shown: Shown,
}

impl Words {
    /// Names of instruments that are known without a request.
    fn instruments(&self) -> Vec<String> {
        self.link.try_lock().map(|link| link.instrument_names()).unwrap_or_default()
    }

    /// Ids of the most recently reported orders.
    fn order_ids(&self) -> Vec<String> {
        self.link.try_lock().map(|link| link.order_ids().cloned().collect()).unwrap_or_default()
    }

    /// Channels of the known instruments, and prefixes of other channels.
    fn channels(&self) -> Vec<String> {
        let mut all: Vec<String> = CHANNELS.iter().map(|start| (*start).to_owned()).collect();
        let names = self.instruments();
        all.extend(names.iter().flat_map(|name| {
            CHANNELS_OF_ONE.iter().map(move |(before, behind)| format!("{before}{name}{behind}"))
        }));
        all
    }

    fn candidates(&self, line: &str) -> Vec<String> {
        let mut words = line.split_whitespace();
        let first = words.next().unwrap_or_default();
        let is_first = !line.contains(char::is_whitespace);
        if is_first {
            let names = ENTRIES.iter().flat_map(|entry| entry.names.iter().copied());
            return match first.strip_prefix("deribit_") {
                Some(_) => names.map(|name| format!("deribit_{name}")).collect(),
                None => names.map(str::to_owned).collect(),
            };
        }
        let owned = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
        let named = |prefix: &str, names: &[&str]| {
            names.iter().map(|name| format!("{prefix}={name}")).collect::<Vec<_>>()
        };
        match commands::find(first).map(|entry| entry.verb) {
            Some(Verb::Help) => ENTRIES.iter().map(|entry| entry.names[0].to_owned()).collect(),
            Some(Verb::Ticker | Verb::Book | Verb::Trades | Verb::Close) => self.instruments(),
            Some(verb @ (Verb::Buy | Verb::Sell | Verb::Edit)) => {
                let mut all = if verb == Verb::Edit { self.order_ids() } else { self.instruments() };
                all.extend(named("type", &TYPES.map(|(name, _)| name)));
                all.extend(named("time_in_force", &TIMES.map(|(name, _)| name)));
                all.extend(named("trigger", &TRIGGERS.map(|(name, _)| name)));
                all.extend(
                    ["label=", "contracts=", "price=", "amount=", "trigger_price="].map(str::to_owned),
                );
                all.extend(owned(&FLAGS));
                all
            }
            Some(Verb::Instruments | Verb::Positions | Verb::Account) => {
                let mut all = owned(&CURRENCIES);
                all.extend(KINDS.iter().map(ToString::to_string));
                all
            }
            Some(Verb::CancelAll) => {
                let mut all = owned(&CURRENCIES);
                all.extend(self.instruments());
                all
            }
            Some(Verb::Orders) => {
                let mut all = self.instruments();
                all.extend(KINDS.iter().map(ToString::to_string));
                all.extend(OrderFilter::ALL.iter().map(ToString::to_string));
                all
            }
            Some(Verb::Log) => {
                let names = crate::log::Module::ALL.map(crate::log::Module::name);
                names.into_iter().chain(["all", "off"]).map(str::to_owned).collect()
            }
            Some(Verb::Show) => owned(&["sent", "received", "oneline"]),
            Some(Verb::Logout) => owned(&["keep_token", "invalidate"]),
            Some(Verb::Stopwatch) => owned(&["reset"]),
            Some(Verb::Cancel | Verb::Order) => {
                let mut all = self.order_ids();
                all.push("label=".to_owned());
                all
            }
            Some(Verb::Unsubscribe | Verb::Wait) => match self.link.try_lock() {
                Ok(link) => link.channels().iter().cloned().collect(),
                Err(_) => Vec::new(),
            },
            Some(Verb::Subscribe) => self.channels(),
            _ => Vec::new(),
        }
    }
}

impl Completer for Words {
    type Candidate = Pair;

    fn complete(&self, line: &str, place: usize, _: &Context<'_>) -> rustyline::Result<(usize, Vec<Pair>)> {
        let before = &line[..place];
        if let Some(words) = &self.field {
            let start = last_word(before);
            let found = words.iter().filter(|word| word.starts_with(&before[start..]));
            return Ok((start, found.cloned().map(completed).collect()));
        }
        let command = before.rsplit(';').next().unwrap_or_default().trim_start();
        let start = place - (command.len() - last_word(command));
        let typed = &before[start..];
        let found = self.candidates(command).into_iter().filter(|word| word.starts_with(typed));
        Ok((start, found.map(completed).collect()))
    }
}

/// A completion, followed by a blank for the next word unless the word is a prefix.
fn completed(word: String) -> Pair {
    let goes_on = word.ends_with(['=', '.']);
    Pair { replacement: if goes_on { word.clone() } else { format!("{word} ") }, display: word }
}

/// Position of the start of the last word of a line.
fn last_word(line: &str) -> usize {
    let blank = line.char_indices().rev().find(|(_, character)| character.is_whitespace());
    blank.map_or(0, |(at, character)| at + character.len_utf8())
}

impl Hinter for Words {
    type Hint = String;
}
impl Highlighter for Words {
    /// The current prompt, padded to the width of the one at the start of the line: the link state may change
    /// while a line is typed.
    fn highlight_prompt<'b, 's: 'b, 'p: 'b>(&'s self, prompt: &'p str, _: bool) -> Cow<'b, str> {
        let signs = SIGNS.map(|(_, sign)| format!(" {sign}> "));
        let Some(host) = signs.iter().find_map(|sign| prompt.strip_suffix(sign.as_str())) else {
            return Cow::Borrowed(prompt);
        };
        let sign = sign_of(self.shown.get());
        Cow::Owned(format!("{:<width$.width$}", format!("{host} {sign}> "), width = prompt.chars().count()))
    }
}
impl Validator for Words {}
impl Helper for Words {}

/// The next line to print: from the log, or a note.
fn next_line(link: &mut Link) -> Option<String> {
    let line = link.next_log().or_else(|| Some(format!("tickpath: {}", link.next_note()?)));
    line.map(|line| visible(&line))
}

/// Keyboard input while a command runs and no line is read: Ctrl-D ends the command and the shell, and lines
/// typed ahead are queued.
#[derive(Default)]
struct Keys {
    /// Held while the terminal is read, so that the next line loses no key.
    is_watched: Mutex<bool>,
    lines: Mutex<VecDeque<String>>,
    has_ended: AtomicBool,
}

impl Keys {
    fn watch(&self, is_watched: bool) {
        *lock(&self.is_watched) = is_watched && stdin().is_terminal();
    }

    fn take_line(&self) -> Option<String> {
        lock(&self.lines).pop_front()
    }

    fn has_ended(&self) -> bool {
        self.has_ended.load(Ordering::Relaxed)
    }

    /// Reads typed input: the terminal delivers whole lines, and an empty read for Ctrl-D.
    fn look(&self, interrupt: &Interrupt) {
        let is_watched = lock(&self.is_watched);
        if !*is_watched || self.has_ended() || lock(&self.lines).len() >= LINES_AHEAD_MAX {
            return;
        }
        let keys = stdin();
        let mut polled = [PollFd::new(keys.as_fd(), PollFlags::POLLIN)];
        if !poll(&mut polled, PollTimeout::ZERO).is_ok_and(|count| count > 0) {
            return;
        }
        let mut bytes = [0; 4_096];
        match nix::unistd::read(&keys, &mut bytes) {
            Ok(0) => {
                self.has_ended.store(true, Ordering::Relaxed);
                interrupt.command.store(true, Ordering::Relaxed);
            }
            Ok(count) => {
                let text = String::from_utf8_lossy(&bytes[..count]).trim_end().to_owned();
                lock(&self.lines).push_back(text);
            }
            // A closed terminal ends the shell by its signal.
            Err(_) => {}
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().expect("who holds it does not panic")
}

/// State that the screen thread services in addition to the link.
struct Looks {
    shown: Shown,
    keys: Arc<Keys>,
    interrupt: Interrupt,
}

/// Prints live output while no command runs: notes, log, pane. It never prints with the link locked.
struct Screen {
    is_stopped: Arc<AtomicBool>,
    thread: thread::JoinHandle<()>,
}

impl Screen {
    fn start(
        link: Arc<Mutex<Link>>,
        mut printer: Option<impl ExternalPrinter + Send + 'static>,
        mut pane: Option<Pane>,
        Looks { shown, keys, interrupt }: Looks,
    ) -> std::io::Result<Screen> {
        let is_stopped = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&is_stopped);
        let thread = thread::Builder::new().name("screen".to_owned()).spawn(move || {
            while !stopped.load(Ordering::Relaxed) {
                if interrupt.shell.load(Ordering::Relaxed) {
                    // A pending line read reacts only to Ctrl-C. If raising it fails, the next key ends the
                    // shell.
                    let _ = signal_hook::low_level::raise(signal_hook::consts::SIGINT);
                }
                keys.look(&interrupt);
                // A command holds the link while it waits for a connection; the keyboard is read anyway.
                let Ok(mut held) = link.try_lock() else {
                    thread::sleep(LINK_LOOK);
                    continue;
                };
                let lines: Vec<String> = std::iter::from_fn(|| next_line(&mut held)).collect();
                let drawing = pane.as_mut().and_then(|pane| pane.draw(&held));
                shown.set(held.standing());
                drop(held);
                for line in lines {
                    match &mut printer {
                        // A closed terminal ends the shell soon.
                        Some(printer) => drop(printer.print(format!("{line}\n"))),
                        None => print_stderr(line),
                    }
                }
                drawing.iter().for_each(|drawing| crate::pane::write(drawing));
                thread::sleep(LOOK);
            }
        })?;
        Ok(Screen { is_stopped, thread })
    }

    fn stop(self) {
        self.is_stopped.store(true, Ordering::Relaxed);
        // It ends within a tenth of a second; a panic was already printed.
        let _ = self.thread.join();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_that_is_completed_is_at_its_end() {
        for (word, text) in [("ALPHA", "ALPHA "), ("label=", "label="), ("ticker.", "ticker.")] {
            assert_eq!(completed(word.to_owned()).replacement, text);
        }
    }

    #[test]
    fn the_prompt_shows_the_connection_of_this_moment_in_its_width() {
        let config = tickpath_config::parse("shell.toml", "url = 'ws://127.0.0.1:1/'").unwrap();
        let url = crate::config::ShellConfig::checked_venue(&config).unwrap();
        let link = Arc::new(Mutex::new(Link::open(config, url, None).unwrap()));
        let words = Words { link, field: None, shown: Shown::default() };
        for (begun_with, standing, shows) in [
            ("host ok> ", Standing::Ready, "host ok> "),
            ("host ok> ", Standing::Off, "host off>"),
            ("host ok> ", Standing::Connecting, "host ...>"),
            ("host off> ", Standing::Ready, "host ok>  "),
            ("amount (a multiple of 10): ", Standing::Off, "amount (a multiple of 10): "),
        ] {
            words.shown.set(standing);
            assert_eq!(words.highlight_prompt(begun_with, true), shows);
        }
    }

    #[test]
    fn the_last_word_begins_behind_a_blank_of_any_width() {
        for (line, word) in
            [("buy BTC", "BTC"), ("buy\u{a0}B\u{e9}", "B\u{e9}"), ("buy\u{2003}", ""), ("", ""), ("x", "x")]
        {
            assert_eq!(&line[last_word(line)..], word, "{line:?}");
        }
    }
}
