//! An output file that is complete or absent.

use std::fs::{self, File};
use std::io::{self, Stdout, Write, stdout};
use std::path::Path;

use tickpath_agent::PartFile;

use crate::folder_of;

/// Maximum number of symbolic links followed to resolve a path.
const LINKS_MAX: usize = 16;

/// An output file that is complete or absent; `-` is standard output.
///
/// A regular file is written as `NAME.part` in the same folder, and renamed by [`OutputFile::finish`] (see
/// [`PartFile`]). Anything else, such as a pipe, a device or `/dev/stdout`, is written directly, because a
/// regular file must not replace it.
pub struct OutputFile(Sink);

enum Sink {
    Part(PartFile),
    Direct(File),
    Standard(Stdout),
}

impl OutputFile {
    /// Opens the file for writing.
    ///
    /// # Errors
    /// The system's error, such as a missing folder or missing permission.
    pub fn create(path: &Path) -> io::Result<OutputFile> {
        if path.as_os_str() == "-" {
            return Ok(OutputFile(Sink::Standard(stdout())));
        }
        if is_special_file(path) {
            // Append: the path may name an open descriptor of a file that already has contents.
            return Ok(OutputFile(Sink::Direct(File::options().append(true).open(path)?)));
        }
        // Resolve a link, so that its target is replaced and the link stays.
        let path = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
        Ok(OutputFile(Sink::Part(PartFile::create(&path)?)))
    }

    /// Flushes the file, and renames a regular file to its final name.
    ///
    /// # Errors
    /// The system's error.
    pub fn finish(mut self) -> io::Result<()> {
        self.flush()?;
        match self.0 {
            Sink::Part(part) => part.finish(),
            Sink::Direct(_) | Sink::Standard(_) => Ok(()),
        }
    }
}

impl Write for OutputFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match &mut self.0 {
            Sink::Part(part) => part.file().write(bytes),
            Sink::Direct(file) => file.write(bytes),
            Sink::Standard(stdout) => stdout.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match &mut self.0 {
            Sink::Part(part) => part.file().flush(),
            Sink::Direct(file) => file.flush(),
            Sink::Standard(stdout) => stdout.flush(),
        }
    }
}

fn is_special_file(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|metadata| !metadata.is_file()) || is_descriptor(path)
}

/// Returns whether a path names an open descriptor of any file type, as `/dev/stdout` and `/dev/fd/3` do.
fn is_descriptor(path: &Path) -> bool {
    let mut path = path.to_owned();
    for _ in 0..LINKS_MAX {
        let Ok(folder) = fs::canonicalize(folder_of(&path)) else { return false };
        if folder.starts_with("/proc") {
            return true;
        }
        let Ok(target) = fs::read_link(&path) else { return false };
        path = folder.join(target);
    }
    false
}

#[cfg(test)]
mod tests {
    use std::io::Read;
    use std::os::fd::AsRawFd;
    use std::os::unix::fs::FileTypeExt;

    use super::*;

    fn write(path: &Path, text: &str) -> io::Result<()> {
        let mut file = OutputFile::create(path)?;
        file.write_all(text.as_bytes())?;
        file.finish()
    }

    fn names(folder: &Path) -> Vec<String> {
        let entries = fs::read_dir(folder).unwrap();
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
    }

    #[test]
    fn a_file_is_complete_or_unchanged() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.json");
        write(&path, "one").unwrap();
        let mut half = OutputFile::create(&path).unwrap();
        half.write_all(b"tw").unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "one");
        drop(half);
        assert_eq!(names(folder.path()), ["a.json"]);
        write(&path, "two").unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "two");
        assert_eq!(names(folder.path()), ["a.json"]);
        assert!(OutputFile::create(&folder.path().join("no/a.json")).is_err());
    }

    #[test]
    fn a_link_still_points_to_the_written_file() {
        let folder = tempfile::tempdir().unwrap();
        let (file, link) = (folder.path().join("file"), folder.path().join("link"));
        fs::write(&file, "before").unwrap();
        std::os::unix::fs::symlink(&file, &link).unwrap();
        write(&link, "after").unwrap();
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        assert_eq!(fs::read_to_string(&file).unwrap(), "after");
    }

    #[test]
    fn special_files_are_written_directly() {
        let folder = tempfile::tempdir().unwrap();
        let pipe = folder.path().join("pipe");
        assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        let reader = {
            let pipe = pipe.clone();
            std::thread::spawn(move || fs::read_to_string(pipe).unwrap())
        };
        write(&pipe, "through").unwrap();
        assert_eq!(reader.join().unwrap(), "through");
        assert!(fs::metadata(&pipe).unwrap().file_type().is_fifo(), "it is still a pipe");
        assert_eq!(names(folder.path()), ["pipe"]);
        let null = fs::symlink_metadata("/dev/null").unwrap();
        assert!(null.file_type().is_char_device());
        write(Path::new("/dev/null"), "gone").unwrap();
        assert!(fs::symlink_metadata("/dev/null").unwrap().file_type().is_char_device());
    }

    #[test]
    fn an_open_descriptor_is_appended_to() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("out");
        let mut open = File::options().create_new(true).read(true).write(true).open(&path).unwrap();
        open.write_all(b"first;").unwrap();
        for name in [format!("/dev/fd/{}", open.as_raw_fd()), format!("/proc/self/fd/{}", open.as_raw_fd())] {
            write(Path::new(&name), "more;").unwrap();
        }
        let link = folder.path().join("link");
        std::os::unix::fs::symlink(format!("/proc/self/fd/{}", open.as_raw_fd()), &link).unwrap();
        write(&link, "last").unwrap();
        let mut text = String::new();
        File::open(&path).unwrap().read_to_string(&mut text).unwrap();
        assert_eq!(text, "first;more;more;last");
        assert_eq!(names(folder.path()).len(), 2, "the descriptor's file and the link");
    }
}
