//! The Java program: built by Maven, once per run of the tests.

use std::fs::File;
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;

/// Returns the class path of the program in `tests/interop/java`; `None`, with a message, without Java or
/// Maven.
///
/// # Panics
/// If the program cannot be built; the message says what to do.
pub fn classpath() -> Option<&'static str> {
    static CLASSPATH: OnceLock<Option<String>> = OnceLock::new();
    CLASSPATH
        .get_or_init(|| match missing() {
            Some(program) => {
                skip(&format!("there is no '{program}': install a JDK of version 17 or later, and Maven"));
                None
            }
            None => Some(build()),
        })
        .as_deref()
}

/// Runs a main class of the program.
pub fn command(classpath: &str, main_class: &str, args: &[&str]) -> Command {
    let mut command = Command::new("java");
    // The run is short, so disable optimisations that only pay off later.
    command.args(["-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-cp", classpath]);
    command.arg(format!("tickpath.interop.{main_class}")).args(args).stdin(Stdio::null());
    command
}

/// Returns the first of the required programs that is missing.
fn missing() -> Option<&'static str> {
    ["javac", "java", "mvn"].into_iter().find(|program| {
        let started = Command::new(program)
            .arg("-version")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status();
        matches!(started, Err(error) if error.kind() == ErrorKind::NotFound)
    })
}

/// Prints the reason to standard error: output of a test by `println!` is shown only when it fails.
fn skip(reason: &str) {
    let _ = writeln!(std::io::stderr(), "tests/interop is skipped: {reason}");
}

fn build() -> String {
    let project = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/interop/java");
    let target = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("interop");
    std::fs::create_dir_all(&target).unwrap();
    // Two test programs with the same target folder must not build into it at once.
    let lock = File::create(target.join("lock")).unwrap();
    lock.lock().unwrap();
    let output = Command::new("mvn")
        .args(["--batch-mode", "--quiet", "--file"])
        .arg(project.join("pom.xml"))
        .arg(format!("-Dinterop.build={}", target.display()))
        .arg("process-classes")
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let text =
        format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(
        !is_unresolved(&text),
        "Maven cannot fetch what tests/interop/java/pom.xml names: let it reach its repository once, by mvn --file \
         tests/interop/java/pom.xml process-classes; later runs need no network"
    );
    assert!(output.status.success(), "the Java program does not build:\n{text}");
    format!("{0}/classes:{0}/jars/*", target.display())
}

/// Whether Maven reports a missing library or plugin.
fn is_unresolved(text: &str) -> bool {
    ["could not be resolved", "Could not resolve", "Could not transfer", "Could not find artifact"]
        .iter()
        .any(|pattern| text.contains(pattern))
}
