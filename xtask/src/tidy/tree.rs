//! The files to check: those that git tracks or would track.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

/// Folders that are skipped if git cannot list the files of the tree.
const SKIPPED_FOLDERS: [&str; 2] = [".git", "target"];
/// Maximum size of a text file in bytes; larger files are not written by hand.
const TEXT_LEN_MAX: u64 = 5 << 20;

/// A tree of files.
pub struct Tree {
    root: PathBuf,
    /// Paths relative to `root`, with `/`, sorted.
    files: Vec<String>,
    committed: BTreeSet<String>,
}

impl Tree {
    /// Opens the files at `root` that git tracks or would track, or every file without git.
    pub fn open(root: &Path) -> Result<Tree> {
        let listed = |args: &[&str]| git_files(root, args);
        match (listed(&["--cached"]), listed(&["--cached", "--others", "--exclude-standard"])) {
            (Some(committed), Some(all)) => {
                // A file that was deleted and not yet committed is still listed.
                let files = all.into_iter().filter(|path| root.join(path).is_file()).collect();
                Ok(Tree { root: root.to_owned(), files, committed })
            }
            _ => Tree::walk(root),
        }
    }

    /// Opens every file below `root`; all of them count as committed.
    pub fn walk(root: &Path) -> Result<Tree> {
        let mut committed = BTreeSet::new();
        collect(root, "", &mut committed)?;
        Ok(Tree { root: root.to_owned(), files: committed.iter().cloned().collect(), committed })
    }

    /// The folder to which all paths are relative.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Paths of the files relative to the root, sorted.
    pub fn files(&self) -> &[String] {
        &self.files
    }

    /// Whether the file is in the repository, not only in the working tree.
    pub fn is_committed(&self, path: &str) -> bool {
        self.committed.contains(path)
    }

    /// The file's size in bytes.
    pub fn len(&self, path: &str) -> Result<u64> {
        let metadata = fs::metadata(self.root.join(path)).with_context(|| format!("cannot read {path}"))?;
        Ok(metadata.len())
    }

    /// Returns the file's text; `None` if it is not text.
    pub fn read_text(&self, path: &str) -> Result<Option<String>> {
        if self.len(path)? > TEXT_LEN_MAX {
            return Ok(None);
        }
        let bytes = fs::read(self.root.join(path)).with_context(|| format!("cannot read {path}"))?;
        Ok(String::from_utf8(bytes).ok().filter(|text| !text.contains('\0')))
    }
}

/// Returns the output of `git ls-files`; `None` if git fails.
fn git_files(root: &Path, args: &[&str]) -> Option<BTreeSet<String>> {
    let output = Command::new("git").current_dir(root).args(["ls-files", "-z"]).args(args).output().ok()?;
    if !output.status.success() {
        return None;
    }
    let text = String::from_utf8(output.stdout).ok()?;
    Some(text.split('\0').filter(|path| !path.is_empty()).map(str::to_owned).collect())
}

fn collect(root: &Path, below: &str, files: &mut BTreeSet<String>) -> Result<()> {
    let folder = root.join(below);
    for entry in fs::read_dir(&folder).with_context(|| format!("cannot list {}", folder.display()))? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        let path = if below.is_empty() { name.clone() } else { format!("{below}/{name}") };
        let kind = entry.file_type()?;
        if kind.is_dir() && !SKIPPED_FOLDERS.contains(&name.as_str()) {
            collect(root, &path, files)?;
        } else if kind.is_file() {
            files.insert(path);
        }
    }
    Ok(())
}

/// Small trees for the tests of the checks.
#[cfg(test)]
pub mod temp {
    use std::sync::atomic::{AtomicU32, Ordering};

    use super::*;

    /// A tree in the system's folder for temporary files, removed on drop.
    pub struct TempTree(PathBuf);

    impl TempTree {
        /// Creates a tree of `files`, each a path and a text.
        pub fn new(files: &[(&str, &str)]) -> TempTree {
            static COUNT: AtomicU32 = AtomicU32::new(0);
            let unique = format!("xtask-{}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
            let tree = TempTree(std::env::temp_dir().join(unique));
            fs::create_dir_all(&tree.0).unwrap();
            for (path, text) in files {
                tree.write(path, text);
            }
            tree
        }

        pub fn path(&self) -> &Path {
            &self.0
        }

        pub fn write(&self, path: &str, text: &str) {
            let path = self.0.join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }

        /// Returns the tree with all of its files.
        pub fn tree(&self) -> Tree {
            Tree::walk(&self.0).unwrap()
        }
    }

    impl Drop for TempTree {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::temp::TempTree;
    use super::*;

    #[test]
    fn a_walk_finds_files_and_passes_over_build_outputs() {
        let temp = TempTree::new(&[("a/b.rs", "x"), ("target/c.rs", ""), ("d.bin", "\0")]);
        let tree = temp.tree();
        assert_eq!(tree.files(), ["a/b.rs", "d.bin"]);
        assert_eq!(tree.read_text("a/b.rs").unwrap().as_deref(), Some("x"));
        assert_eq!(tree.read_text("d.bin").unwrap(), None);
        assert!(tree.is_committed("d.bin"));
    }

    #[test]
    fn git_lists_the_files_and_the_committed_ones() {
        let temp =
            TempTree::new(&[(".gitignore", "ignored\n"), ("ignored", ""), ("new.rs", ""), ("old.rs", "")]);
        let git = |args: &[&str]| {
            Command::new("git")
                .current_dir(temp.path())
                .args(args)
                .output()
                .is_ok_and(|it| it.status.success())
        };
        if !git(&["init", "-q"]) {
            return; // Without git every file counts, as the test above checks.
        }
        assert!(git(&["add", "old.rs"]));
        let tree = Tree::open(temp.path()).unwrap();
        assert_eq!(tree.files(), [".gitignore", "new.rs", "old.rs"]);
        assert!(tree.is_committed("old.rs") && !tree.is_committed("new.rs"));
        fs::remove_file(temp.path().join("old.rs")).unwrap();
        assert_eq!(Tree::open(temp.path()).unwrap().files(), [".gitignore", "new.rs"]);
    }
}
