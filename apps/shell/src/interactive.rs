//! A person at a terminal: line editing, completion, history, order forms, and a pane of what comes.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;

use rustyline::completion::{Completer, Pair};
use rustyline::error::ReadlineError;
use rustyline::highlight::Highlighter;
use rustyline::hint::Hinter;
use rustyline::history::FileHistory;
use rustyline::validate::Validator;
use rustyline::{Context, Editor, ExternalPrinter, Helper};
use tickpath_config::{say, tell};

use crate::commands::{self, ENTRIES, Verb};
use crate::execute::{CURRENCIES, KINDS, LOOK};
use crate::link::{Link, Standing, wait_for};
use crate::order::{FLAGS, TIMES, TRIGGERS, TYPES, has_limit, name_of};
use crate::pane::Pane;
use crate::run::{RunOptions, Runner};
use crate::shell::{Interrupt, Shell};

/// Lines that are remembered.
const HISTORY_LINES: usize = 1_000;

/// Runs a shell for the person at the terminal.
pub(crate) fn run(shell: &mut Shell, runner: &mut Runner<'_>, options: &RunOptions) -> anyhow::Result<()> {
    let config =
        rustyline::Config::builder().max_history_size(HISTORY_LINES)?.history_ignore_space(true).build();
    let mut editor: Editor<Words, FileHistory> = Editor::with_config(config)?;
    editor.set_helper(Some(Words { link: shell.shared_link() }));
    let history = history_file();
    if let Some(path) = &history {
        // There is none before the first time.
        let _ = editor.load_history(path);
    }
    shell.is_watched = true;
    shell.link().want_news(false);
    let pane = if options.has_no_pane { None } else { Pane::new() };
    let printer = editor.create_external_printer().ok();
    let keeper = Keeper::start(shell.shared_link(), printer, pane, shell.interrupt.clone())?;
    say("tickpath shell: help lists the commands, Tab completes, Ctrl-D ends")?;
    let result = read_lines(shell, runner, &mut editor);
    keeper.stop();
    if let Some(path) = &history
        && let Err(error) = editor.save_history(path)
    {
        tell(format_args!("tickpath: the history of commands is not kept: {}: {error}", path.display()));
    }
    result
}

/// In the home folder; passwords and keys are never part of a command.
fn history_file() -> Option<PathBuf> {
    std::env::var_os("HOME").map(|home| PathBuf::from(home).join(".tickpath_shell_history"))
}

fn read_lines(
    shell: &mut Shell,
    runner: &mut Runner<'_>,
    editor: &mut Editor<Words, FileHistory>,
) -> anyhow::Result<()> {
    while !shell.interrupt.shell.load(Ordering::Relaxed) {
        // The link is let go before the person types: whoever keeps it needs it.
        let prompt = prompt(&shell.link());
        let line = match editor.readline(&prompt) {
            Ok(line) => line,
            Err(ReadlineError::Interrupted | ReadlineError::Signal(_)) => continue,
            Err(ReadlineError::Eof) => return Ok(()),
            Err(error) => return Err(error.into()),
        };
        if line.trim().is_empty() {
            continue;
        }
        editor.add_history_entry(line.as_str())?;
        for command in crate::words::commands(&line) {
            let Some(command) = filled_in(shell, editor, command)? else { continue };
            shell.interrupt.command.store(false, Ordering::Relaxed);
            if runner.run_one(shell, &command)? {
                return Ok(());
            }
        }
        // Ctrl-C ended the command; the shell goes on.
        shell.interrupt.command.store(false, Ordering::Relaxed);
    }
    Ok(())
}

/// The venue's name and whether it is there.
fn prompt(link: &Link) -> String {
    let sign = match link.standing() {
        Standing::Off => "off",
        Standing::Connecting => "...",
        Standing::Ready => "ok",
    };
    format!("{} {sign}> ", link.url().host())
}

/// An order command without arguments, asked for field by field; any other command as it is. None when the person
/// gave up.
fn filled_in(
    shell: &mut Shell,
    editor: &mut Editor<Words, FileHistory>,
    command: String,
) -> anyhow::Result<Option<String>> {
    let verb = commands::find(&command).map(|entry| entry.verb);
    let form = match verb {
        Some(Verb::Buy | Verb::Sell) => order_form(shell, editor),
        Some(Verb::Edit) => change_form(editor),
        _ => return Ok(Some(command)),
    };
    match form {
        Ok(fields) => Ok(Some(format!("{command}{fields}"))),
        Err(ReadlineError::Interrupted | ReadlineError::Eof) => {
            tell("given up: nothing was sent");
            Ok(None)
        }
        Err(error) => Err(error.into()),
    }
}

type Fields = Result<String, ReadlineError>;

fn order_form(shell: &mut Shell, editor: &mut Editor<Words, FileHistory>) -> Fields {
    let mut form = Form { editor, fields: String::new() };
    let instrument = form.needed("instrument", "", |text| {
        shell.instrument(text).map(drop).map_err(|error| error.to_string())
    })?;
    let json = shell.instrument(&instrument).unwrap_or_default();
    let known = crate::trade::read::<tickpath_deribit::messages::Instrument<'_>>(&json).ok();
    let step = known.as_ref().map(|instrument| instrument.min_trade_amount);
    let hint = step.map(|step| format!(" (a multiple of {step})")).unwrap_or_default();
    let is_amount = |text: &str| {
        number(text, |value| {
            let fits = step.is_none_or(|step| value >= step && crate::order::is_multiple(value, step));
            if fits {
                Ok(())
            } else {
                Err(format!("it has to be a multiple of {}", step.unwrap_or_default()))
            }
        })
    };
    let amount = form.maybe("amount", &hint, is_amount)?;
    let check = |text: &str| number(text, |_| Ok(()));
    if amount.is_none() {
        form.needed("contracts", "", check)?;
    }
    let order_type = form.one_of("type", "limit", &TYPES)?;
    let order_type = order_type.unwrap_or(TYPES[0].1);
    if has_limit(order_type) {
        form.needed("price", "", |text| {
            number(text, |price| match &known {
                Some(known) if !crate::order::is_multiple(price, known.tick_at(price)) => {
                    Err(format!("it has to be a multiple of {}", known.tick_at(price)))
                }
                _ => Ok(()),
            })
        })?;
        form.one_of("time_in_force", "good_til_cancelled", &TIMES)?;
    }
    let name = name_of(&TYPES, order_type);
    if name.starts_with("stop_") || name.starts_with("take_") || name == "trailing_stop" {
        form.one_of("trigger", "needed", &TRIGGERS)?;
        let field = if name == "trailing_stop" { "trigger_offset" } else { "trigger_price" };
        form.needed(field, "", check)?;
    }
    form.maybe("label", "", |text| {
        if text.chars().count() <= 64 { Ok(()) } else { Err("at most 64 characters".to_owned()) }
    })?;
    Ok(form.fields)
}

fn change_form(editor: &mut Editor<Words, FileHistory>) -> Fields {
    let mut form = Form { editor, fields: String::new() };
    form.needed("order_id", "", |_| Ok(()))?;
    for name in ["amount", "price", "trigger_price"] {
        form.maybe(name, " (as it is)", |text| number(text, |_| Ok(())))?;
    }
    Ok(form.fields)
}

fn number(
    text: &str,
    check: impl FnOnce(tickpath_deribit::number::Decimal) -> Result<(), String>,
) -> Result<(), String> {
    text.parse().map_err(|error: tickpath_deribit::number::NumberError| error.to_string()).and_then(check)
}

/// Fields that are asked for one by one, as arguments.
struct Form<'e> {
    editor: &'e mut Editor<Words, FileHistory>,
    fields: String,
}

impl Form<'_> {
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
                tell("  without quotes");
                continue;
            }
            match check(text) {
                Ok(()) => {
                    self.fields.push_str(&format!(" \"{name}={text}\""));
                    return Ok(Some(text.to_owned()));
                }
                Err(why) => tell(format_args!("  {text}: {why}")),
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
                None => tell(format_args!("  {name} is needed; Ctrl-C gives up")),
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
        let text = self.maybe(name, &format!(" ({default})"), |text| {
            find(text).map(drop).ok_or_else(|| format!("one of {known}"))
        })?;
        Ok(text.and_then(|text| find(&text)))
    }
}

/// Completes commands, their arguments, instruments and channels.
struct Words {
    link: Arc<Mutex<Link>>,
}

impl Words {
    /// Names of instruments, where they are known without asking.
    fn instruments(&self) -> Vec<String> {
        self.link.try_lock().map(|link| link.instrument_names()).unwrap_or_default()
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
                let mut all = if verb == Verb::Edit { Vec::new() } else { self.instruments() };
                all.extend(named("type", &TYPES.map(|(name, _)| name)));
                all.extend(named("time_in_force", &TIMES.map(|(name, _)| name)));
                all.extend(named("trigger", &TRIGGERS.map(|(name, _)| name)));
                all.extend(
                    ["label=", "contracts=", "price=", "amount=", "trigger_price="].map(str::to_owned),
                );
                all.extend(owned(&FLAGS));
                all
            }
            Some(Verb::Instruments | Verb::Positions | Verb::Orders | Verb::Account | Verb::CancelAll) => {
                let mut all = owned(&CURRENCIES);
                all.extend(KINDS.iter().map(ToString::to_string));
                all.extend(self.instruments());
                all
            }
            Some(Verb::Unsubscribe | Verb::Wait) => match self.link.try_lock() {
                Ok(link) => link.channels().iter().cloned().collect(),
                Err(_) => Vec::new(),
            },
            Some(Verb::Subscribe) => owned(&[
                "ticker.",
                "quote.",
                "book.",
                "trades.",
                "user.orders.",
                "user.trades.",
                "user.changes.",
                "user.portfolio.",
                "deribit_price_index.",
            ]),
            _ => Vec::new(),
        }
    }
}

impl Completer for Words {
    type Candidate = Pair;

    fn complete(&self, line: &str, place: usize, _: &Context<'_>) -> rustyline::Result<(usize, Vec<Pair>)> {
        let before = &line[..place];
        let command = before.rsplit(';').next().unwrap_or_default().trim_start();
        let start = place - (command.len() - command.rfind(char::is_whitespace).map_or(0, |at| at + 1));
        let typed = &before[start..];
        let found = self.candidates(command).into_iter().filter(|word| word.starts_with(typed));
        Ok((start, found.map(|word| Pair { display: word.clone(), replacement: word }).collect()))
    }
}

impl Hinter for Words {
    type Hint = String;
}
impl Highlighter for Words {}
impl Validator for Words {}
impl Helper for Words {}

/// Keeps the link while nobody runs a command: heartbeats, reconnection, subscriptions and the pane.
struct Keeper {
    is_stopped: Arc<AtomicBool>,
    thread: thread::JoinHandle<()>,
}

impl Keeper {
    fn start(
        link: Arc<Mutex<Link>>,
        mut printer: Option<impl ExternalPrinter + Send + 'static>,
        mut pane: Option<Pane>,
        interrupt: Interrupt,
    ) -> std::io::Result<Keeper> {
        let is_stopped = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&is_stopped);
        let thread = thread::Builder::new().name("link".to_owned()).spawn(move || {
            while !stopped.load(Ordering::Relaxed) {
                if interrupt.shell.load(Ordering::Relaxed) {
                    // Who waits for a line hears of Ctrl-C alone. Where that cannot be raised, a key ends the shell.
                    let _ = signal_hook::low_level::raise(signal_hook::consts::SIGINT);
                }
                let waiter = {
                    let mut link = link.lock().expect("who holds the link does not panic");
                    link.poll();
                    while let Some(note) = link.next_note() {
                        match &mut printer {
                            // A terminal that is gone ends the shell soon.
                            Some(printer) => drop(printer.print(format!("tickpath: {note}\n"))),
                            None => tell(format_args!("tickpath: {note}")),
                        }
                    }
                    if let Some(pane) = &mut pane {
                        pane.draw(&link);
                    }
                    link.waiter()
                };
                match waiter {
                    Some(fd) => wait_for(&fd, LOOK),
                    None => thread::sleep(LOOK),
                }
            }
        })?;
        Ok(Keeper { is_stopped, thread })
    }

    fn stop(self) {
        self.is_stopped.store(true, Ordering::Relaxed);
        // It ends within a tenth of a second; that it panicked was printed.
        let _ = self.thread.join();
    }
}
