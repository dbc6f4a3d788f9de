//! A program's command line as JSON, so that `tickpath` can complete and document the separate programs.

use clap::builder::PossibleValue;
use clap::{Arg, ArgAction, Command};
use serde::{Deserialize, Serialize};
use tickpath_config::print_stdout;

/// Option that makes a program print its description and exit.
pub const OPTION: &str = "--describe-command-line";

#[derive(Serialize, Deserialize)]
struct CommandDescription {
    name: String,
    about: Option<String>,
    long_about: Option<String>,
    after_help: Option<String>,
    arguments: Vec<ArgumentDescription>,
    commands: Vec<CommandDescription>,
}

#[derive(Serialize, Deserialize)]
struct ArgumentDescription {
    id: String,
    short: Option<char>,
    long: Option<String>,
    help: Option<String>,
    long_help: Option<String>,
    value_names: Vec<String>,
    possible_values: Vec<String>,
    default: Option<String>,
    takes_values: bool,
    is_required: bool,
    is_global: bool,
    is_repeated: bool,
}

/// Prints the description of a command line.
///
/// # Errors
/// Standard output cannot be written.
pub fn print(mut command: Command) -> anyhow::Result<()> {
    command.build();
    Ok(print_stdout(serde_json::to_string(&CommandDescription::of(&command))?)?)
}

/// Parses a description, and returns it as a sub-command called `name`.
pub fn parse(name: &'static str, json: &[u8]) -> Option<Command> {
    let description: CommandDescription = serde_json::from_slice(json).ok()?;
    Some(CommandDescription { name: name.to_owned(), ..description }.into_command())
}

impl CommandDescription {
    fn of(command: &Command) -> CommandDescription {
        let text = |text: Option<&clap::builder::StyledStr>| text.map(ToString::to_string);
        CommandDescription {
            name: command.get_name().to_owned(),
            about: text(command.get_about()),
            long_about: text(command.get_long_about()),
            after_help: text(command.get_after_help()),
            arguments: command
                .get_arguments()
                .filter(|arg| !arg.is_hide_set() && !matches!(arg.get_id().as_str(), "help" | "version"))
                .map(ArgumentDescription::of)
                .collect(),
            commands: command
                .get_subcommands()
                .filter(|command| !command.is_hide_set() && command.get_name() != "help")
                .map(CommandDescription::of)
                .collect(),
        }
    }

    fn into_command(self) -> Command {
        let mut command = Command::new(self.name);
        if let Some(about) = self.about {
            command = command.about(about);
        }
        if let Some(long_about) = self.long_about {
            command = command.long_about(long_about);
        }
        if let Some(after_help) = self.after_help {
            command = command.after_help(after_help);
        }
        command
            .args(self.arguments.into_iter().map(ArgumentDescription::into_arg))
            .subcommands(self.commands.into_iter().map(CommandDescription::into_command))
    }
}

impl ArgumentDescription {
    fn of(arg: &Arg) -> ArgumentDescription {
        let takes_values = arg.get_action().takes_values();
        let names = arg.get_value_names().filter(|_| takes_values).unwrap_or_default();
        let defaults: Vec<_> = arg.get_default_values().iter().map(|value| value.to_string_lossy()).collect();
        ArgumentDescription {
            id: arg.get_id().to_string(),
            short: arg.get_short(),
            long: arg.get_long().map(str::to_owned),
            help: arg.get_help().map(ToString::to_string),
            long_help: arg.get_long_help().map(ToString::to_string),
            value_names: names.iter().map(ToString::to_string).collect(),
            possible_values: arg
                .get_possible_values()
                .iter()
                .filter(|_| takes_values)
                .map(|value| value.get_name().to_owned())
                .collect(),
            default: (takes_values && !defaults.is_empty()).then(|| defaults.join(",")),
            takes_values,
            is_required: arg.is_required_set(),
            is_global: arg.is_global_set(),
            is_repeated: arg.get_num_args().is_some_and(|count| count.max_values() > 1),
        }
    }

    fn into_arg(self) -> Arg {
        let mut arg = Arg::new(self.id).required(self.is_required).global(self.is_global);
        if let Some(short) = self.short {
            arg = arg.short(short);
        }
        let is_positional = self.short.is_none() && self.long.is_none();
        if let Some(long) = self.long {
            arg = arg.long(long);
        }
        if let Some(help) = self.help {
            arg = arg.help(help);
        }
        if let Some(help) = self.long_help {
            arg = arg.long_help(help);
        }
        if !self.takes_values && !is_positional {
            return arg.action(ArgAction::SetTrue);
        }
        if !self.value_names.is_empty() {
            arg = arg.value_names(self.value_names);
        }
        if self.is_repeated {
            arg = arg.num_args(0..).action(ArgAction::Append);
        }
        if let Some(default) = self.default {
            arg = arg.default_value(default);
        }
        if !self.possible_values.is_empty() {
            arg = arg
                .value_parser(self.possible_values.into_iter().map(PossibleValue::new).collect::<Vec<_>>());
        }
        arg
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn described(command: &Command) -> Command {
        let json = serde_json::to_vec(&CommandDescription::of(command)).unwrap();
        parse("shell", &json).unwrap()
    }

    #[test]
    fn a_description_becomes_the_same_help() {
        let command = Command::new("tickpath shell")
            .about("Trade by hand")
            .arg(Arg::new("FILE").required(true).help("The file"))
            .arg(Arg::new("url").long("url").value_name("URL").help("The venue"))
            .arg(Arg::new("grant").long("grant").value_parser(["signature", "credentials"]))
            .arg(Arg::new("keep").short('k').long("keep-going").action(ArgAction::SetTrue))
            .subcommand(Command::new("log").about("Read a log").arg(Arg::new("files").num_args(1..)));
        let help = |command: Command| command.name("x").bin_name("x").render_long_help().to_string();
        assert_eq!(help(described(&command)), help(command.clone()));
        let log = |command: &Command| help(command.find_subcommand("log").unwrap().clone());
        assert_eq!(log(&described(&command)), log(&command));
    }

    #[test]
    fn an_invalid_description_is_none() {
        assert!(parse("shell", b"").is_none());
        assert!(parse("shell", b"{\"name\":1}").is_none());
    }
}
