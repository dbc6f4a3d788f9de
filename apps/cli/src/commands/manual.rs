//! `tickpath completions` and `tickpath man`: shell completions and manual pages of all programs.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context;
use clap::Command;
use clap_complete::Shell;
use clap_mangen::Man;
use tickpath_config::print_stdout;

/// Print a shell script that completes commands and options
///
/// For programs that are not built, only the command name is completed.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  tickpath completions bash > ~/.local/share/bash-completion/completions/tickpath
  tickpath completions zsh > ~/.zfunc/_tickpath                  with fpath+=~/.zfunc in ~/.zshrc
  tickpath completions fish > ~/.config/fish/completions/tickpath.fish")]
pub struct CompletionsArgs {
    /// Name of the shell
    #[arg(value_parser = ["bash", "zsh", "fish"])]
    shell: String,
}

/// Print the manual page, or write the pages of all commands into a folder
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  tickpath man | man -l -
  tickpath man --folder ~/.local/share/man/man1                  then: man tickpath-demo")]
pub struct ManArgs {
    /// Write tickpath.1 and a page for each command into this folder, which is created if missing
    #[arg(long, value_name = "FOLDER")]
    folder: Option<PathBuf>,
}

/// Prints the script that completes the commands of `root`.
pub fn completions(args: &CompletionsArgs, mut root: Command) -> anyhow::Result<ExitCode> {
    let shell = match args.shell.as_str() {
        "bash" => Shell::Bash,
        "zsh" => Shell::Zsh,
        _ => Shell::Fish,
    };
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut root, "tickpath", &mut script);
    print_stdout(String::from_utf8(script)?.trim_end())?;
    Ok(ExitCode::SUCCESS)
}

/// Prints or writes the manual of `root`.
pub fn man(args: &ManArgs, root: Command) -> anyhow::Result<ExitCode> {
    let mut root = without_help(root.propagate_version(true));
    root.build();
    let Some(folder) = &args.folder else {
        print_stdout(page(&root, "tickpath")?.trim_end())?;
        return Ok(ExitCode::SUCCESS);
    };
    fs::create_dir_all(folder).with_context(|| format!("cannot make the folder {}", folder.display()))?;
    let mut pages = 0;
    write_pages(&root, "tickpath", folder, &mut pages)?;
    print_stdout(format_args!("{pages} manual pages are in {}", folder.display()))?;
    Ok(ExitCode::SUCCESS)
}

/// Removes the sub-command `help`, which has no page.
fn without_help(command: Command) -> Command {
    command.disable_help_subcommand(true).mut_subcommands(without_help)
}

fn write_pages(command: &Command, name: &str, folder: &Path, pages: &mut usize) -> anyhow::Result<()> {
    let path = folder.join(format!("{name}.1"));
    fs::write(&path, page(command, name)?).with_context(|| format!("cannot write {}", path.display()))?;
    *pages += 1;
    for below in command.get_subcommands().filter(|it| !it.is_hide_set()) {
        write_pages(below, &format!("{name}-{}", below.get_name()), folder, pages)?;
    }
    Ok(())
}

fn page(command: &Command, name: &str) -> anyhow::Result<String> {
    let mut roff = Vec::new();
    Man::new(command.clone().name(name.to_owned())).render(&mut roff)?;
    Ok(String::from_utf8(roff)?)
}
