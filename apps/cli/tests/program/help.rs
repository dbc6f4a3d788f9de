//! Tests of the help, and of the errors for wrong command lines.

use std::collections::HashMap;

use crate::support::{Site, assert_refused, repository, run};

/// Returns the commands listed in a help text, without `help` itself.
fn listed(help: &str) -> Vec<String> {
    help.lines()
        .skip_while(|line| !line.starts_with("Commands:"))
        .skip(1)
        .take_while(|line| line.starts_with("  "))
        .filter_map(|line| line.strip_prefix("  ")?.split(' ').next())
        // Further lines of a command's description are indented deeper.
        .filter(|name| !name.is_empty() && *name != "help")
        .map(str::to_owned)
        .collect()
}

/// Requests the help of the command at `path` and of every command below it.
fn visit(path: &[String], visited: &mut Vec<String>) {
    let mut args: Vec<&str> = path.iter().map(String::as_str).collect();
    args.push("--help");
    let printed = run(&args);
    assert_eq!((printed.code, printed.err.as_str()), (Some(0), ""), "{args:?}");
    assert!(printed.out.contains("Usage: tickpath"), "{args:?}: {}", printed.out);
    let widest = printed.out.lines().max_by_key(|line| line.chars().count()).unwrap();
    assert!(widest.chars().count() <= 100, "{args:?}: {widest}");
    visited.push(path.join(" "));
    for name in listed(&printed.out) {
        visit(&[path, &[name]].concat(), visited);
    }
}

/// Returns every command, and every group of commands.
pub fn commands() -> Vec<String> {
    let mut visited = Vec::new();
    visit(&[], &mut visited);
    visited
}

#[test]
fn every_command_has_its_help() {
    let visited = commands();
    for command in [
        "demo",
        "exchange",
        "trader",
        "admin kill",
        "admin hash-password",
        "config check",
        "config show",
        "lab bench",
    ] {
        assert!(visited.iter().any(|name| name == command), "{command} is not among {visited:?}");
    }
}

#[test]
fn help_names_the_flags() {
    for (command, flags) in [
        (
            &["demo"][..],
            &[
                "--rate",
                "--seed",
                "--seconds",
                "--forever",
                "--loss",
                "--flow",
                "--speed",
                "--journal",
                "--config",
                "--plain",
                "--json",
            ][..],
        ),
        (&["exchange"], &["--config", "--port", "--new-session", "--accept-loss"]),
        (&["journal", "verify"], &["<FOLDER>", "--json"]),
        (&["journal", "dump"], &["--from", "--limit", "--json"]),
        (&["journal", "replay"], &["--from", "--limit", "--json"]),
        (&["trader"], &["--config"]),
        (&["sim"], &["--seed", "--seeds", "--minutes", "--calm", "--json"]),
        (&["lab", "bench"], &["--filter", "--json", "--rounds", "--quick", "--list"]),
    ] {
        let help = run(&[command, &["--help"]].concat()).out;
        for flag in flags {
            assert!(help.contains(flag), "{command:?} does not name {flag}:\n{help}");
        }
    }
}

/// Returns the words after `tickpath` in each command on a page: at the start of a line, or after a backtick.
fn commands_in(page: &str) -> Vec<Vec<String>> {
    let mut commands = Vec::new();
    for line in page.lines() {
        for (at, _) in line.match_indices("tickpath ") {
            if at > 0 && !line[..at].ends_with('`') {
                continue;
            }
            let rest = &line[at + "tickpath ".len()..];
            // Code in a table escapes a bar. Two spaces separate a command from its description.
            let code = rest.split('`').next().unwrap().split("  ").next().unwrap().replace("\\|", "|");
            let words: Vec<Vec<&str>> =
                code.split_whitespace().map(|word| word.split('|').collect()).collect();
            let alternatives = words.iter().map(Vec::len).max().unwrap_or(0);
            commands.extend((0..alternatives).map(|place| {
                words.iter().map(|word| (*word.get(place).unwrap_or(&word[0])).to_owned()).collect()
            }));
        }
    }
    commands
}

#[test]
fn the_documents_name_existing_commands_and_options() {
    let pages = ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md"]
        .map(|name| repository().join(name));
    let docs = std::fs::read_dir(repository().join("docs")).unwrap().map(|entry| entry.unwrap().path());
    let pages: Vec<_> =
        pages.into_iter().chain(docs.filter(|path| path.extension().is_some_and(|it| it == "md"))).collect();
    let mut helps: HashMap<Vec<String>, String> = HashMap::new();
    let mut help = |path: &[String]| {
        let args: Vec<&str> = path.iter().map(String::as_str).chain(["--help"]).collect();
        helps.entry(path.to_vec()).or_insert_with(|| run(&args).out).clone()
    };
    let mut count = 0;
    for page in &pages {
        for words in commands_in(&std::fs::read_to_string(page).unwrap()) {
            let (mut path, mut help_text) = (Vec::new(), help(&[]));
            for word in words.iter().filter(|word| !word.contains("--")) {
                if listed(&help_text).contains(word) {
                    path.push(word.clone());
                    help_text = help(&path);
                }
            }
            assert!(!path.is_empty(), "{}: there is no command '{}'", page.display(), words.join(" "));
            for option in words.iter().filter(|word| word.contains("--")) {
                let option = option.trim_matches(|c: char| c != '-' && !c.is_ascii_alphanumeric());
                assert!(help_text.contains(option), "{}: {path:?} has no option {option}", page.display());
                count += 1;
            }
        }
    }
    assert!(count > 20, "{count} options are not all that the documents name");
}

#[test]
fn the_version_is_printed() {
    let printed = run(&["--version"]);
    assert_eq!(printed.code, Some(0));
    let commit = printed.out.trim().strip_prefix(concat!("tickpath ", env!("CARGO_PKG_VERSION"))).unwrap();
    let log = std::process::Command::new("git")
        .args(["log", "-1", "--format=%h"])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output();
    match log.ok().filter(|log| log.status.success()) {
        Some(log) => {
            let hash = String::from_utf8(log.stdout).unwrap();
            assert!(commit.starts_with(&format!(" ({}", hash.trim())) && commit.ends_with(')'), "{commit}");
        }
        None => assert_eq!(commit, "", "there is no repository to name a commit of"),
    }
}

#[test]
fn the_list_of_commands_matches_their_help() {
    let list = run(&["--help"]).out;
    for name in ["replay", "convert", "generate", "ticks", "shell", "gateway", "sim", "lab"] {
        let help = run(&[name, "--help"]).out;
        let about = help.lines().next().unwrap();
        let beginning: String = about.chars().take(60).collect();
        assert!(list.contains(&beginning), "{name}: {about}");
        assert!(help.contains(&format!("Usage: tickpath {name}")), "{help}");
    }
}

#[test]
fn completions_and_manual_pages_have_the_options_of_every_program() {
    for shell in ["bash", "zsh", "fish"] {
        let script = run(&["completions", shell]);
        assert_eq!((script.code, script.err.as_str()), (Some(0), ""));
        for option in ["accept-loss", "key-file", "check-every"] {
            assert!(script.out.contains(option), "{shell} does not complete --{option}");
        }
    }
    let site = Site::new();
    let folder = site.path("man");
    assert_eq!(run(&["man", "--folder", &folder]).code, Some(0));
    let page = std::fs::read_to_string(format!("{folder}/tickpath-shell.1")).unwrap();
    assert!(page.contains("key\\-file"), "{page}");
}

#[test]
fn a_missing_program_is_named_with_its_build_command() {
    let site = Site::new();
    let alone = site.path("tickpath");
    std::fs::copy(env!("CARGO_BIN_EXE_tickpath"), &alone).unwrap();
    let run = |args: &[&str]| std::process::Command::new(&alone).args(args).output().unwrap();
    for (args, program, feature) in [
        (&["shell"][..], "tickpath-shell", "--features shell"),
        (&["help", "replay"], "tickpath-replay", "--features data"),
        (&["demo", "--flow", "day.itch"], "tickpath-demo", "--features data"),
    ] {
        let output = run(args);
        let error = String::from_utf8(output.stderr).unwrap();
        assert_eq!((output.status.code(), error.lines().count()), (Some(1), 1), "{error}");
        assert!(error.contains(program) && error.contains(feature), "{error}");
    }
    assert!(run(&["config", "check", "--help"]).status.success());
}

#[test]
fn without_a_command_the_commands_are_listed() {
    let printed = run(&[]);
    assert_eq!(printed.code, Some(2));
    assert!(listed(&printed.err).contains(&"demo".to_owned()), "{}", printed.err);
}

#[test]
fn a_wrong_command_line_is_one_error_line_with_a_remedy() {
    for (args, words) in [
        (&["demo", "--wat"][..], &["--wat", "tickpath demo --help"][..]),
        (&["demo", "--secnods", "3"], &["--secnods", "--seconds", "tickpath demo --help"]),
        (&["wat"], &["wat", "tickpath --help"]),
        (&["exchange"], &["--config", "tickpath exchange --help"]),
        (&["config", "check"], &["<FILE>", "tickpath config check --help"]),
        (&["demo", "--seconds", "many"], &["many", "--seconds"]),
        (&["demo", "--seconds", "0"], &["seconds must be at least 1"]),
        (&["demo", "--seconds", "18446744074"], &["seconds must be at least 1 and at most 31536000"]),
        (&["demo", "--rate", "0"], &["rate must be at least 1"]),
        (&["demo", "--flow", "x", "--rate", "5"], &["--rate", "cannot be used with", "--flow"]),
        (&["demo", "--loss", "1"], &["not a share", "0.1%"]),
        (&["demo", "--seconds", "1", "--forever"], &["--forever", "cannot be used with"]),
        (&["demo", "--flow", "x", "--speed", "fast"], &["write max, 1x, 10x or 0.5x"]),
        (&["demo", "--speed", "1x"], &["--flow"]),
        (&["demo", "--flow", "/dev/null"], &["/dev/null is not a file", "read twice"]),
    ] {
        assert_refused(args, words);
    }
}

#[test]
fn a_missing_file_is_named() {
    let site = Site::new();
    let missing = site.path("missing");
    for args in [
        &["demo", "--config", &missing][..],
        &["demo", "--flow", &missing],
        &["exchange", "--config", &missing],
        &["trader", "--config", &missing],
        &["config", "check", &missing],
        &["config", "show", &missing],
    ] {
        assert_refused(args, &[&missing]);
    }
}

#[test]
fn a_missing_argument_ends_with_exit_code_2() {
    for (args, says) in [
        (&["exchange"][..], "configs/exchange.toml"),
        (&["feed"], "configs/feed.toml"),
        (&["admin", "status"], "--socket PATH"),
        (&["gateway"], "--config FILE"),
        (&["gateway", "status"], "--config FILE or --socket PATH"),
    ] {
        let printed = run(args);
        assert_eq!((printed.code, printed.out.as_str()), (Some(2), ""), "{args:?}: {}", printed.err);
        assert!(printed.err.contains(says), "{args:?}: {}", printed.err);
    }
}
