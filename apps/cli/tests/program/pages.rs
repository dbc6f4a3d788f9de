//! Tests of the pages docs/help.md and docs/configuration.md, which are generated from the program's output.
//!
//! The tests compare the pages with the program. To write the pages:
//! `TICKPATH_WRITE_PAGES=1 cargo test -p tickpath --features full pages`.

use std::fmt::Write;

use crate::help::commands;
use crate::support::{repository, run};

const HELP_HEAD: &str = "# Help of every command

The text of `--help` of every command, for reading without the program. [commands.md](commands.md) introduces the
commands. A test of the program writes this page.
";

const CONFIGURATION_HEAD: &str = "# Configuration: the samples with all defaults

This page shows the sample configurations in [configs](../configs), except those of the Deribit front, with every
default filled in, as `tickpath config
show FILE` prints them. The samples have comments about their keys. [commands.md](commands.md#configuration-files) links
the page that explains each kind of file. A test of the program writes this page.
";

const SAMPLES: [&str; 9] =
    ["exchange", "exchange-day", "trader", "feed", "demo", "instruments", "shell", "shell-native", "gateway"];

/// Compares a page in docs with `text`; if `TICKPATH_WRITE_PAGES` is set, writes the page first.
fn check(name: &str, text: &str) {
    let path = repository().join("docs").join(name);
    if std::env::var_os("TICKPATH_WRITE_PAGES").is_some() {
        std::fs::write(&path, text).unwrap();
    }
    let page = std::fs::read_to_string(&path).unwrap();
    assert!(page == text, "docs/{name} differs from the program: see the head of this file");
}

#[test]
#[cfg_attr(feature = "peers", ignore = "the page is that of the program without the rows of peers")]
fn the_help_page_is_that_of_the_program() {
    let mut page = HELP_HEAD.to_owned();
    for command in commands() {
        let args: Vec<&str> = command.split_whitespace().chain(["--help"]).collect();
        let title = if command.is_empty() { "tickpath".to_owned() } else { command.clone() };
        write!(page, "\n## {title}\n\n```text\n{}\n```\n", run(&args).out.trim_end()).unwrap();
    }
    check("help.md", &page);
}

#[test]
fn the_configuration_page_is_that_of_the_samples() {
    let mut page = CONFIGURATION_HEAD.to_owned();
    for sample in SAMPLES {
        let path = repository().canonicalize().unwrap().join(format!("configs/{sample}.toml"));
        let shown = run(&["config", "show", &path.to_string_lossy()]);
        assert_eq!(shown.code, Some(0), "{}", shown.err);
        let folder = path.parent().unwrap().parent().unwrap();
        let text = shown.out.replace(&format!("{}/", folder.display()), "");
        write!(page, "\n## configs/{sample}.toml\n\n```toml\n{}\n```\n", text.trim_end()).unwrap();
    }
    check("configuration.md", &page);
}
