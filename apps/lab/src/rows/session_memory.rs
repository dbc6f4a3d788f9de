//! Memory of a venue for each logged-in session, as the difference of two processes.

use std::ffi::OsString;

use super::idle_venue::{log_in, start_venue};
use super::prelude::*;

pub(super) const MEASUREMENTS: &[Measurement] = &[on_one_core(
    &[row("session_bytes", "bytes").note(
        "resident memory of `tickpath exchange` with 1,000 users, all logged in, minus that of a venue with one user \
         and no session, for each session; without the kernel's socket buffers",
    )],
    open,
)];

/// Number of sessions in a full measurement.
const SESSIONS: usize = 1_000;
/// Number of files that this process needs besides the clients' sockets.
const OTHER_FILES: u64 = 256;

/// Measures once, because the result is nearly the same in each round.
fn open(lab: &Lab<'_>) -> anyhow::Result<Round> {
    let program = lab.sibling_program("exchange")?;
    let sessions = lab.context.effort.count(SESSIONS).max(10);
    let needed = sessions as u64 + OTHER_FILES;
    let files = tickpath_net::raise_open_files(needed)?;
    if files < needed {
        bail!(Missing(format!("the limit of open files is {files}: raise it by ulimit -n {needed}")));
    }
    let without = measure(&program, 1, false)?;
    let with = measure(&program, sessions, true)?;
    let growth = with.after.saturating_sub(with.before) as f64 / sessions as f64;
    let note = format!(
        "{sessions} sessions; {growth:.0} bytes of it only after the login; the venue without sessions has {:.1} MB",
        without.before as f64 / 1e6
    );
    let bytes = with.after.saturating_sub(without.before) as f64 / sessions as f64;
    Ok(once([Sample::with_note(bytes, note)]))
}

/// Resident memory of a venue in bytes, before and after its users logged in.
struct Resident {
    before: u64,
    after: u64,
}

/// Starts a venue with this number of users, who log in if `are_logged_in`.
fn measure(program: &OsString, users: usize, are_logged_in: bool) -> anyhow::Result<Resident> {
    let folder = tempfile::tempdir()?;
    let names: Vec<String> = (0..users).map(|number| format!("U{number}")).collect();
    let order_entry = format!("max_connections = {}\ntest_users = {names:?}", users.max(64));
    let (venue, address) = start_venue(program, folder.path(), &order_entry)?;
    let before = venue.memory_bytes("VmRSS")?;
    let logged_in = if are_logged_in { names.as_slice() } else { &[] };
    // A login fails unless the venue accepts it.
    let clients = logged_in.iter().map(|user| log_in(address, user)).collect::<anyhow::Result<Vec<_>>>()?;
    let after = venue.memory_bytes("VmRSS")?;
    drop(clients);
    Ok(Resident { before, after })
}
