//! Lookup of a gateway's admin socket by the gateway's name.

use std::io;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use crate::config::usual_state_folder;

/// Path of the admin socket of the gateway `name`: the one in the current folder if it exists, otherwise the
/// one of the gateway of this name that this user started last.
#[must_use]
pub fn admin_socket_of(name: &str) -> PathBuf {
    let here = PathBuf::from(format!("{name}.admin.sock"));
    let link = link_of(&usual_state_folder(), name);
    match std::fs::read_link(link) {
        Ok(socket) if !here.exists() => socket,
        _ => here,
    }
}

fn link_of(folder: &Path, name: &str) -> PathBuf {
    folder.join(format!("{name}.admin"))
}

/// Link from a gateway's name to its admin socket; removed when dropped.
#[derive(Debug)]
pub struct AdminName {
    link: PathBuf,
    socket: PathBuf,
}

impl AdminName {
    /// Links the gateway's name to `socket`; replaces the link of an earlier gateway of this name.
    ///
    /// # Errors
    /// The user's state folder is not writable: commands then need the socket's path or the configuration.
    pub fn publish(name: &str, socket: &Path) -> io::Result<AdminName> {
        AdminName::publish_in(&usual_state_folder(), name, socket)
    }

    fn publish_in(folder: &Path, name: &str, socket: &Path) -> io::Result<AdminName> {
        let socket = std::path::absolute(socket)?;
        std::fs::create_dir_all(folder)?;
        let link = link_of(folder, name);
        // The rename is atomic: a concurrent reader finds either the old link or the new one.
        let new = folder.join(format!("{name}.admin.{}", std::process::id()));
        let _ = std::fs::remove_file(&new);
        symlink(&socket, &new)?;
        std::fs::rename(&new, &link)?;
        Ok(AdminName { link, socket })
    }
}

impl Drop for AdminName {
    fn drop(&mut self) {
        if std::fs::read_link(&self.link).is_ok_and(|socket| socket == self.socket) {
            // If removal fails, the link leads to a socket without a listener, and callers get that error.
            let _ = std::fs::remove_file(&self.link);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_one_of_a_name_is_found_and_only_its_own_end_is_its_end() {
        let place = tempfile::tempdir().unwrap();
        let folder = place.path().join("state");
        let found = || std::fs::read_link(link_of(&folder, "g")).ok();
        let first = AdminName::publish_in(&folder, "g", Path::new("/run/first.sock")).unwrap();
        assert_eq!(found().as_deref(), Some(Path::new("/run/first.sock")));
        let second = AdminName::publish_in(&folder, "g", Path::new("/run/second.sock")).unwrap();
        drop(first);
        assert_eq!(found().as_deref(), Some(Path::new("/run/second.sock")));
        drop(second);
        assert_eq!((found(), std::fs::read_dir(&folder).unwrap().count()), (None, 0));
    }
}
