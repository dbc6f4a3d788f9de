//! Checks of output paths, before anything is read or written.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, ensure};
use tickpath_config::folder_of;

/// Rejects output paths that equal an input or another output, or at which no file can be created.
pub fn check(outputs: &[(&str, &Path)], inputs: &[&Path]) -> anyhow::Result<()> {
    for (index, (option, path)) in outputs.iter().enumerate() {
        check_place(option, path)?;
        let written = [path.to_path_buf(), sibling_path(path)];
        for input in inputs {
            let is_read = written.iter().any(|output| is_same(output, input));
            ensure!(
                !is_read,
                "{option} {} would overwrite a file that is read: choose another name",
                path.display()
            );
        }
        if let Some((other, _)) = outputs[..index].iter().find(|(_, other)| is_same(other, path)) {
            anyhow::bail!(
                "{other} and {option} name the same file, {}: choose another for one",
                path.display()
            );
        }
    }
    Ok(())
}

/// Checks that a file can be created at `path`: its folder exists, and the path is not a folder.
fn check_place(option: &str, path: &Path) -> anyhow::Result<()> {
    if let Ok(metadata) = fs::metadata(path) {
        ensure!(!metadata.is_dir(), "{option} {} is a directory: name a file in it", path.display());
        return Ok(());
    }
    let folder = folder_of(path);
    let metadata = fs::metadata(folder)
        .with_context(|| format!("cannot write {option} {}: its folder cannot be used", path.display()))?;
    ensure!(
        metadata.is_dir(),
        "cannot write {option} {}: {} is not a folder",
        path.display(),
        folder.display()
    );
    Ok(())
}

/// Returns the path under which an output is written before it is complete.
fn sibling_path(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".part");
    PathBuf::from(name)
}

/// Returns whether both paths name the same file, existing or not.
fn is_same(a: &Path, b: &Path) -> bool {
    a == b || whole(a).is_some_and(|a| whole(b).is_some_and(|b| a == b))
}

/// Returns the canonical path; for a missing file, the canonical folder joined with the file's name.
fn whole(path: &Path) -> Option<PathBuf> {
    fs::canonicalize(path)
        .ok()
        .or_else(|| Some(fs::canonicalize(folder_of(path)).ok()?.join(path.file_name()?)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(outputs: &[(&str, &Path)], inputs: &[&Path]) -> String {
        check(outputs, inputs).err().map_or_else(String::new, |error| format!("{error:#}"))
    }

    #[test]
    fn an_output_may_not_be_an_input() {
        let folder = tempfile::tempdir().unwrap();
        let input = folder.path().join("day.csv");
        fs::write(&input, "1").unwrap();
        let detour = folder.path().join("../").join(folder.path().file_name().unwrap()).join("day.csv");
        let link = folder.path().join("link.csv");
        std::os::unix::fs::symlink(&input, &link).unwrap();
        for output in [&input, &detour, &link] {
            assert!(
                refusal(&[("--bbo", output)], &[&input]).contains("would overwrite"),
                "{}",
                output.display()
            );
        }
        let part = folder.path().join("x.csv.part");
        fs::write(&part, "1").unwrap();
        assert!(refusal(&[("--bbo", &folder.path().join("x.csv"))], &[&part]).contains("would overwrite"));
        assert_eq!(refusal(&[("--bbo", &folder.path().join("y.csv"))], &[&input, &part]), "");
    }

    #[test]
    fn outputs_differ_and_can_be_written() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("a.csv");
        let detour = folder.path().join("./a.csv");
        assert!(
            refusal(&[("--bbo", &file), ("--trades", &detour)], &[])
                .contains("--bbo and --trades name the same")
        );
        assert!(refusal(&[("--json", folder.path())], &[]).contains("is a directory"));
        assert!(
            refusal(&[("--json", &folder.path().join("no/x.json"))], &[])
                .contains("its folder cannot be used")
        );
    }
}
