//! The first folder of a crate is its layer, and dependencies point down.

use std::collections::BTreeMap;

use anyhow::Result;

use super::Problem;
use super::tree::Tree;

/// What a layer's crates may depend on, in the project.
struct Layer {
    name: &'static str,
    /// Layers below it, and itself where its crates may use each other.
    below: &'static [&'static str],
    /// True when of `core` it may use only [`SMALL_CRATES`], except in tests.
    only_small_core: bool,
}

const LAYERS: [Layer; 8] = [
    Layer { name: "core", below: &["core", "protocols"], only_small_core: false },
    Layer { name: "protocols", below: &["protocols", "core"], only_small_core: true },
    Layer { name: "io", below: &["io", "protocols", "core"], only_small_core: true },
    Layer { name: "apps", below: &["apps", "io", "protocols", "core"], only_small_core: false },
    Layer { name: "bindings", below: &["apps", "io", "protocols", "core"], only_small_core: false },
    Layer { name: "examples", below: &["apps", "io", "protocols", "core"], only_small_core: false },
    Layer { name: "fuzz", below: &["fuzz", "apps", "io", "protocols", "core"], only_small_core: false },
    Layer { name: "xtask", below: &[], only_small_core: false },
];

/// Crates of `core` that every layer may use: words, rings, time, the switch of planted faults, who may connect.
const SMALL_CRATES: [&str; 5] =
    ["core/types", "core/timing", "core/lockfree", "core/faults", "core/admission"];

/// One crate's manifest.
struct Manifest {
    path: String,
    /// The crate's folder, which starts with its layer.
    folder: String,
    name: String,
    dependencies: Vec<Dependency>,
}

/// One line of a manifest that names a package.
#[derive(Debug, PartialEq, Eq)]
struct Dependency {
    line: usize,
    package: String,
    /// True for what only tests and benches use.
    is_dev: bool,
}

/// Checks every manifest below the root.
pub fn check(tree: &Tree) -> Result<Vec<Problem>> {
    let mut manifests = Vec::new();
    for path in tree.files() {
        if let Some(folder) = path.strip_suffix("/Cargo.toml") {
            manifests.push(parse(path, folder, &tree.read_text(path)?.unwrap_or_default()));
        }
    }
    let folders: BTreeMap<&str, &str> =
        manifests.iter().map(|manifest| (manifest.name.as_str(), manifest.folder.as_str())).collect();
    Ok(manifests.iter().flat_map(|manifest| check_manifest(manifest, &folders)).collect())
}

fn check_manifest(manifest: &Manifest, folders: &BTreeMap<&str, &str>) -> Vec<Problem> {
    let first = first_folder(&manifest.folder);
    let Some(layer) = LAYERS.iter().find(|layer| layer.name == first) else {
        let known: Vec<&str> = LAYERS.iter().map(|layer| layer.name).collect();
        let text = format!("'{first}' is not a layer: a crate stands in one of {}", known.join(", "));
        return vec![Problem::in_file(&manifest.path, text)];
    };
    let own = manifest.dependencies.iter().filter_map(|dependency| {
        let folder = *folders.get(dependency.package.as_str())?;
        Some((dependency, folder))
    });
    own.filter_map(|(dependency, folder)| {
        let reason = refusal(layer, folder, dependency.is_dev)?;
        Some(Problem::at(
            &manifest.path,
            dependency.line,
            format!("{} -> {folder}: {reason}", manifest.folder),
        ))
    })
    .collect()
}

/// Why a crate of `layer` may not depend on the crate in `folder`.
fn refusal(layer: &Layer, folder: &str, is_dev: bool) -> Option<String> {
    if !layer.below.contains(&first_folder(folder)) {
        return Some(format!("dependencies of {} point down", layer.name));
    }
    let is_large = first_folder(folder) == "core" && !SMALL_CRATES.contains(&folder);
    (layer.only_small_core && is_large && !is_dev)
        .then(|| format!("{} uses of core only {}", layer.name, SMALL_CRATES.join(", ")))
}

fn first_folder(path: &str) -> &str {
    path.split('/').next().unwrap_or(path)
}

/// Reads the package's name and its dependencies, in the forms that manifests of this project have.
fn parse(path: &str, folder: &str, text: &str) -> Manifest {
    let mut manifest = Manifest {
        path: path.to_owned(),
        folder: folder.to_owned(),
        name: String::new(),
        dependencies: Vec::new(),
    };
    let mut section = Section::Other;
    for (index, line) in text.lines().enumerate() {
        let line = line.trim();
        if let Some(header) = line.strip_prefix('[') {
            section = Section::of(header.trim_start_matches('[').split(']').next().unwrap_or_default());
            if let Section::Dependency { package, is_dev } = &section {
                manifest.dependencies.push(Dependency {
                    line: index + 1,
                    package: package.clone(),
                    is_dev: *is_dev,
                });
            }
            continue;
        }
        let Some((key, value)) = line.split_once('=').filter(|_| !line.starts_with('#')) else { continue };
        let (key, value) = (key.trim(), value.trim());
        match &section {
            Section::Package if key == "name" => manifest.name = unquoted(value).to_owned(),
            Section::Dependencies { is_dev } => {
                let name = unquoted(key.split('.').next().unwrap_or(key));
                let package = renamed(value).unwrap_or(name).to_owned();
                manifest.dependencies.push(Dependency { line: index + 1, package, is_dev: *is_dev });
            }
            Section::Dependency { .. } if key == "package" => {
                if let Some(last) = manifest.dependencies.last_mut() {
                    last.package = unquoted(value).to_owned();
                }
            }
            _ => {}
        }
    }
    manifest
}

enum Section {
    Package,
    /// `[dependencies]` and its kin, also below `[target.'...']`.
    Dependencies {
        is_dev: bool,
    },
    /// `[dependencies.name]`.
    Dependency {
        package: String,
        is_dev: bool,
    },
    Other,
}

impl Section {
    fn of(header: &str) -> Section {
        if header == "package" {
            return Section::Package;
        }
        for (kind, is_dev) in
            [("dev-dependencies", true), ("build-dependencies", false), ("dependencies", false)]
        {
            if header == kind || (header.starts_with("target.") && header.ends_with(&format!(".{kind}"))) {
                return Section::Dependencies { is_dev };
            }
            if let Some(name) = header.strip_prefix(kind).and_then(|rest| rest.strip_prefix('.')) {
                return Section::Dependency { package: unquoted(name).to_owned(), is_dev };
            }
        }
        Section::Other
    }
}

/// `tickpath-types` of `{ package = "tickpath-types", ... }`.
fn renamed(value: &str) -> Option<&str> {
    let after = value.split_once("package")?.1.trim_start().strip_prefix('=')?.trim_start();
    after.strip_prefix('"')?.split('"').next()
}

fn unquoted(text: &str) -> &str {
    text.trim().trim_matches(['"', '\''])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::tree::temp::TempTree;

    fn manifest(name: &str, rest: &str) -> String {
        format!("[package]\nname = \"{name}\"\n{rest}\n")
    }

    /// Checks a tree of types, book, nasdaq, net and exchange in which `folder` is written anew.
    #[track_caller]
    fn check_one(folder: &str, rest: &str, expected: &[&str]) {
        let mut files = vec![
            ("core/types".to_owned(), manifest("tickpath-types", "")),
            ("core/book".to_owned(), manifest("tickpath-book", "")),
            ("protocols/nasdaq".to_owned(), manifest("tickpath-nasdaq", "")),
            ("io/net".to_owned(), manifest("tickpath-net", "")),
            ("apps/exchange".to_owned(), manifest("tickpath-exchange", "")),
        ];
        files.retain(|(other, _)| other != folder);
        files.push((folder.to_owned(), manifest("tickpath-new", rest)));
        let temp = TempTree::new(&[("Cargo.toml", "[workspace]")]);
        for (folder, text) in &files {
            temp.write(&format!("{folder}/Cargo.toml"), text);
        }
        let found: Vec<String> = check(&temp.tree()).unwrap().iter().map(ToString::to_string).collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn arrows_point_down() {
        let all = "[dependencies]\ntickpath-types.workspace = true\ntickpath-nasdaq.workspace = true\nanyhow = \"1\"";
        for folder in
            ["core/feed", "protocols/nyse", "io/capture", "apps/trader", "bindings/c", "examples/own", "fuzz"]
        {
            check_one(folder, all, &[]);
        }
        let net = "[dependencies]\ntickpath-net.workspace = true";
        check_one(
            "core/feed",
            net,
            &["core/feed/Cargo.toml:4: core/feed -> io/net: dependencies of core point down"],
        );
        check_one(
            "protocols/nyse",
            net,
            &["protocols/nyse/Cargo.toml:4: protocols/nyse -> io/net: dependencies of protocols point down"],
        );
        let exchange = "[dev-dependencies]\ntickpath-exchange = { path = \"../../apps/exchange\" }";
        check_one(
            "io/shm",
            exchange,
            &["io/shm/Cargo.toml:4: io/shm -> apps/exchange: dependencies of io point down"],
        );
        check_one("apps/trader", exchange, &[]);
        check_one(
            "xtask",
            "[dependencies]\ntickpath-types.workspace = true",
            &["xtask/Cargo.toml:4: xtask -> core/types: dependencies of xtask point down"],
        );
    }

    #[test]
    fn codecs_and_io_use_only_the_small_crates_of_core_except_in_tests() {
        let reason = "uses of core only core/types, core/timing, core/lockfree, core/faults, core/admission";
        for layer in ["protocols", "io"] {
            let folder = format!("{layer}/new");
            let expected = format!("{folder}/Cargo.toml:4: {folder} -> core/book: {layer} {reason}");
            check_one(&folder, "[dependencies]\ntickpath-book.workspace = true", &[&expected]);
            check_one(&folder, "[dev-dependencies]\ntickpath-book.workspace = true", &[]);
        }
        check_one("core/feed", "[dependencies]\ntickpath-book.workspace = true", &[]);
    }

    #[test]
    fn a_crate_stands_in_a_known_layer() {
        check_one(
            "tools/new",
            "",
            &[
                "tools/new/Cargo.toml: 'tools' is not a layer: a crate stands in one of core, protocols, io, apps, \
             bindings, examples, fuzz, xtask",
            ],
        );
    }

    #[test]
    fn every_form_of_a_dependency_is_read() {
        let text = "[dependencies]\n\"a\" = \"1\"\nb.workspace = true\n# c = \"1\"\nd = { version = \"1\", package = \"e\" }\n\
                    [target.'cfg(loom)'.dependencies]\nf = \"1\"\n[dependencies.g]\nversion = \"1\"\npackage = \"h\"\n\
                    [dev-dependencies.i]\n[lints]\nworkspace = true\n";
        let found = parse("x/Cargo.toml", "x", text).dependencies;
        let found: Vec<_> = found.iter().map(|it| (it.line, it.package.as_str(), it.is_dev)).collect();
        let expected = [(2, "a", false), (3, "b", false), (5, "e", false), (7, "f", false), (8, "h", false)];
        assert_eq!(found, [expected.as_slice(), &[(11, "i", true)]].concat());
    }
}
