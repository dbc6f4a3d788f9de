//! Checks which crates of the project may depend on each other: [`LAYERS`] and [`CRATES`] are the complete
//! rule.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use super::Problem;
use super::tree::Tree;

/// The rule for the crates below a top folder: the folders and crates that they may depend on.
struct Layer {
    folder: &'static str,
    may_use: &'static [&'static str],
    /// Folders and crates that the tests and benches of these crates may depend on.
    tests_may_use: &'static [&'static str],
}

/// Support code of tests; only tests and benches use it.
const TEST_SUPPORT: &str = "test-support/base";

const LAYERS: [Layer; 9] = [
    Layer {
        folder: "core",
        may_use: &["core", "protocols"],
        tests_may_use: &["core", "protocols", TEST_SUPPORT],
    },
    Layer { folder: "protocols", may_use: &SMALL, tests_may_use: &["core", "protocols", TEST_SUPPORT] },
    Layer {
        folder: "io",
        may_use: &["protocols", SMALL[0], SMALL[1], SMALL[2], SMALL[3], SMALL[4]],
        tests_may_use: &["core", "protocols", "io", TEST_SUPPORT],
    },
    Layer {
        folder: "apps",
        may_use: &["core", "protocols", "io"],
        tests_may_use: &["core", "protocols", "io", "apps", "test-support"],
    },
    Layer {
        folder: "bindings",
        may_use: &["core", "protocols", "io"],
        tests_may_use: &["core", "protocols", "io", TEST_SUPPORT],
    },
    Layer {
        folder: "examples",
        may_use: BELOW_EXAMPLES,
        tests_may_use: &["core", "protocols", "io", "apps", TEST_SUPPORT],
    },
    Layer { folder: "fuzz", may_use: BELOW_EXAMPLES, tests_may_use: BELOW_EXAMPLES },
    Layer { folder: "test-support", may_use: &["core/types"], tests_may_use: &[] },
    Layer { folder: "xtask", may_use: &[], tests_may_use: &[] },
];

/// Small crates that every layer may use: quantities, rings, stamps, failpoints, admission control, and the
/// fields of binary messages.
const SMALL: [&str; 6] =
    ["core/types", "core/timing", "core/lockfree", "core/faults", "core/admission", "protocols/wire"];
const BELOW_EXAMPLES: &[&str] = &["core", "protocols", "io", "apps"];

/// Further dependencies of a crate, beyond those of its layer. Remove a line that no dependency needs.
const CRATES: &[(&str, &[&str])] = &[
    ("io/admin", &["io/agent"]),
    ("io/capture", &["io/agent", "core/recording"]),
    ("io/config", &["io/agent"]),
    ("io/gateway", &["io/shm"]),
    ("io/journal", &["io/agent"]),
    ("io/venue-log", &["core/matching", "core/venue", "io/admin", "io/journal"]),
    ("io/shm", &["io/agent"]),
    ("io/web", &["io/net"]),
    ("apps/backtest", &["apps/replay"]),
    ("apps/cli", &["apps"]),
    ("apps/demo", &["apps/exchange", "apps/feedhandler", "apps/monitor", "apps/trader"]),
    ("apps/deribit-front", &["apps/exchange"]),
    ("apps/gateway", &["apps/deribit-link"]),
    (
        "apps/lab",
        &[
            "apps/deribit-link",
            "apps/exchange",
            "apps/feedhandler",
            "apps/gateway",
            "apps/replay",
            "apps/shell",
            "apps/ticks",
            "apps/trader",
        ],
    ),
    ("apps/publisher", &["apps/exchange"]),
    ("apps/shell", &["apps/deribit-link", "apps/feedhandler", "apps/trader"]),
    ("apps/simulator", &["apps/exchange", "apps/feedhandler", "apps/trader"]),
    ("apps/ticks", &["apps/monitor"]),
    ("apps/trader", &["apps/feedhandler"]),
    ("test-support/venue", &["core", "protocols", "io", "apps/exchange", TEST_SUPPORT]),
];

/// A dependency between two crates of the project, by their folders.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Dependency {
    from: String,
    to: String,
    /// True for a dependency of tests and benches only.
    is_dev: bool,
}

/// Checks the dependencies of every crate of the workspace.
pub fn check(tree: &Tree) -> Result<Vec<Problem>> {
    if !tree.files().iter().any(|path| path == "Cargo.toml") {
        return Ok(Vec::new());
    }
    let (crates, dependencies) = read(&metadata(tree.root())?)?;
    let mut problems: Vec<Problem> = crates.iter().filter_map(|folder| check_folder(folder)).collect();
    problems.extend(dependencies.iter().filter_map(check_dependency));
    problems.extend(unneeded(&dependencies));
    Ok(problems)
}

/// The output of `cargo metadata` for the workspace.
fn metadata(root: &Path) -> Result<Value> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let args = ["metadata", "--no-deps", "--format-version", "1", "--offline"];
    let output =
        Command::new(cargo).args(args).current_dir(root).output().context("cannot run cargo metadata")?;
    ensure!(output.status.success(), "cargo metadata: {}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).context("cargo metadata printed no JSON")
}

/// A crate of the workspace.
pub struct Crate {
    /// The description in the crate's manifest.
    pub description: String,
    /// Folders of the crates of the workspace that the crate uses outside its tests.
    pub uses: BTreeSet<String>,
}

/// The crates of the workspace by their folders.
pub fn crates(root: &Path) -> Result<BTreeMap<String, Crate>> {
    let metadata = metadata(root)?;
    let (folders, dependencies) = read(&metadata)?;
    let of = |folder: String| {
        let is_own = |package: &&Value| {
            package["manifest_path"]
                .as_str()
                .is_some_and(|path| path.ends_with(&format!("/{}", manifest(&folder))))
        };
        let package = metadata["packages"].as_array().into_iter().flatten().find(is_own);
        let description = package.and_then(|package| package["description"].as_str()).unwrap_or_default();
        let uses = dependencies.iter().filter(|it| !it.is_dev && it.from == folder).map(|it| it.to.clone());
        (folder.clone(), Crate { description: description.to_owned(), uses: uses.collect() })
    };
    Ok(folders.into_iter().map(of).collect())
}

/// Returns the folders of the crates, and the dependencies between them.
fn read(metadata: &Value) -> Result<(BTreeSet<String>, Vec<Dependency>)> {
    let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
    let root = metadata["workspace_root"].as_str().context("cargo metadata names no workspace")?;
    let folder = |path: &str| {
        let inside = path.strip_prefix(root)?.strip_prefix('/')?;
        Some(inside.strip_suffix("/Cargo.toml").unwrap_or(inside).to_owned())
    };
    let (mut crates, mut dependencies) = (BTreeSet::new(), Vec::new());
    for package in list(&metadata["packages"]) {
        let Some(from) = package["manifest_path"].as_str().and_then(folder) else { continue };
        for dependency in list(&package["dependencies"]) {
            // Only crates of the project have a path.
            let Some(to) = dependency["path"].as_str().and_then(folder) else { continue };
            let is_dev = dependency["kind"] == "dev";
            dependencies.push(Dependency { from: from.clone(), to, is_dev });
        }
        crates.insert(from);
    }
    Ok((crates, dependencies))
}

fn check_folder(folder: &str) -> Option<Problem> {
    let known: Vec<&str> = LAYERS.iter().map(|layer| layer.folder).collect();
    let text = || format!("{folder} is in no layer: a crate belongs in one of {}", known.join(", "));
    layer_of(folder).is_none().then(|| Problem::in_file(&manifest(folder), text()))
}

fn check_dependency(dependency: &Dependency) -> Option<Problem> {
    let Dependency { from, to, is_dev } = dependency;
    let layer = layer_of(from)?;
    let is_allowed = if *is_dev { allows(layer.tests_may_use, to) } else { allows(layer.may_use, to) };
    let text = || format!("{from} may not depend on {to}: see LAYERS and CRATES in xtask/src/tidy/layers.rs");
    (!is_allowed && !allows(extra_dependencies(from), to)).then(|| Problem::in_file(&manifest(from), text()))
}

/// Reports the lines of [`CRATES`] that no dependency needs.
fn unneeded(dependencies: &[Dependency]) -> Vec<Problem> {
    let is_needed = |from: &str, to: &str| {
        dependencies.iter().any(|it| !it.is_dev && it.from == from && allows(&[to], &it.to))
    };
    let lines = CRATES.iter().flat_map(|(from, list)| list.iter().map(move |to| (from, to)));
    let unneeded = lines.filter(|(from, to)| !is_needed(from, to));
    let problem = |(from, to)| {
        Problem::in_file("xtask/src/tidy/layers.rs", format!("{from} does not use {to}: remove it"))
    };
    unneeded.map(problem).collect()
}

fn manifest(folder: &str) -> String {
    format!("{folder}/Cargo.toml")
}

fn layer_of(folder: &str) -> Option<&'static Layer> {
    let first = folder.split('/').next();
    LAYERS.iter().find(|layer| Some(layer.folder) == first)
}

fn extra_dependencies(folder: &str) -> &'static [&'static str] {
    CRATES.iter().find(|(from, _)| *from == folder).map_or(&[], |(_, list)| list)
}

/// Whether `list` contains the crate `to` or a folder above it.
fn allows(list: &[&str], to: &str) -> bool {
    list.iter()
        .any(|allowed| to.strip_prefix(allowed).is_some_and(|rest| rest.is_empty() || rest.starts_with('/')))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn is_refused(from: &str, to: &str, is_dev: bool) -> bool {
        check_dependency(&Dependency { from: from.to_owned(), to: to.to_owned(), is_dev }).is_some()
    }

    #[test]
    fn dependencies_point_down() {
        for from in ["core/feed", "io/capture", "apps/trader", "bindings/c", "examples/own", "fuzz"] {
            assert!(!is_refused(from, "protocols/nasdaq", false), "{from}");
        }
        for (from, to) in [("core/feed", "io/net"), ("protocols/nyse", "io/net"), ("xtask", "core/types")] {
            assert!(is_refused(from, to, false) && is_refused(from, to, true), "{from}");
        }
        assert!(is_refused("io/shm", "apps/exchange", true));
    }

    #[test]
    fn codecs_and_io_use_only_small_crates_of_core_except_in_tests() {
        for from in ["protocols/new", "io/new"] {
            assert!(is_refused(from, "core/book", false) && !is_refused(from, "core/book", true), "{from}");
            assert!(
                !is_refused(from, "core/types", false) && !is_refused(from, "protocols/wire", false),
                "{from}"
            );
        }
        assert!(is_refused("protocols/nyse", "protocols/nasdaq", false));
    }

    #[test]
    fn parts_of_tests_are_used_by_tests_alone() {
        for from in ["core/feed", "protocols/nyse", "io/net", "apps/trader", "examples/own", "bindings/c"] {
            assert!(is_refused(from, TEST_SUPPORT, false) && !is_refused(from, TEST_SUPPORT, true), "{from}");
        }
        assert!(is_refused("core/venue", "test-support/venue", true));
        assert!(!is_refused("apps/trader", "test-support/venue", true));
    }

    #[test]
    fn programs_use_only_the_programs_in_the_table() {
        assert!(
            is_refused("apps/replay", "apps/exchange", false)
                && !is_refused("apps/replay", "apps/exchange", true)
        );
        assert!(
            !is_refused("apps/publisher", "apps/exchange", false)
                && !is_refused("apps/replay", "io/config", false)
        );
        assert!(is_refused("apps/publisher", "apps/exchange-more", false), "a name, not a beginning");
    }

    #[test]
    fn unneeded_lines_and_unknown_layers_are_found() {
        let unneeded = unneeded(&[]);
        assert_eq!(unneeded.len(), CRATES.iter().map(|(_, list)| list.len()).sum::<usize>());
        assert!(check_folder("tools/new").is_some() && check_folder("core/new").is_none());
    }

    #[test]
    fn folders_come_from_what_cargo_prints() {
        let dependency =
            |name: &str, kind: Value| json!({ "name": name, "kind": kind, "path": format!("/x/{name}") });
        let packages = json!([
            {
                "manifest_path": "/x/apps/demo/Cargo.toml",
                "dependencies": [
                    dependency("io/net", Value::Null),
                    dependency("core/simnet", json!("dev")),
                    { "name": "serde", "kind": null },
                ],
            },
            { "manifest_path": "/x/fuzz/Cargo.toml", "dependencies": [] },
        ]);
        let (crates, dependencies) = read(&json!({ "workspace_root": "/x", "packages": packages })).unwrap();
        assert_eq!(crates.into_iter().collect::<Vec<_>>(), ["apps/demo", "fuzz"]);
        let to = |to: &str, is_dev| Dependency { from: "apps/demo".to_owned(), to: to.to_owned(), is_dev };
        assert_eq!(dependencies, [to("io/net", false), to("core/simnet", true)]);
    }
}
