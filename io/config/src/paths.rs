//! Paths in a configuration, and the folders of files.

use std::path::{Path, PathBuf};

/// Resolves a path named in the file `config`: a relative path begins at that file's folder.
#[must_use]
pub fn beside(config: &Path, named: &Path) -> PathBuf {
    config.parent().unwrap_or(Path::new("")).join(named)
}

/// Returns the folder of a file: `.` for a bare name, not the empty path of [`Path::parent`].
#[must_use]
pub fn folder_of(file: &Path) -> &Path {
    file.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Returns an absolute path, or the path unchanged when the current folder is unknown.
#[must_use]
pub fn absolute(path: &Path) -> PathBuf {
    std::path::absolute(path).unwrap_or_else(|_| path.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_folder_of_every_file_can_be_opened() {
        for (file, folder) in [("deribit.toml", "."), ("./a", "."), ("a/b", "a"), ("/a", "/")] {
            assert_eq!(folder_of(Path::new(file)), Path::new(folder));
        }
    }

    #[test]
    fn a_path_is_relative_to_the_file_that_names_it() {
        for (config, named, leads_to) in [
            ("configs/x.toml", "logs", "configs/logs"),
            ("configs/x.toml", "../logs", "configs/../logs"),
            ("x.toml", "logs", "logs"),
            ("/etc/x.toml", "logs", "/etc/logs"),
            ("/etc/x.toml", "/var/logs", "/var/logs"),
        ] {
            assert_eq!(beside(Path::new(config), Path::new(named)), Path::new(leads_to));
        }
    }
}
