//! The connection kept by a thread of its own: heartbeats, reconnection, subscriptions.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;

use crate::execute::LOOK;
use crate::link::{Link, wait_for};

/// Keeps the link whatever the thread of the commands does. It prints nothing: where a terminal is stopped, or a pipe is
/// full, the connection goes on.
pub(crate) struct Keeper {
    is_stopped: Arc<AtomicBool>,
    thread: thread::JoinHandle<()>,
}

impl Keeper {
    pub(crate) fn start(link: Arc<Mutex<Link>>) -> std::io::Result<Keeper> {
        let is_stopped = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&is_stopped);
        let thread = thread::Builder::new().name("link".to_owned()).spawn(move || {
            while !stopped.load(Ordering::Relaxed) {
                let waiter = {
                    let mut link = link.lock().expect("who holds the link does not panic");
                    link.poll();
                    link.waiter()
                };
                match waiter {
                    Some(fd) => wait_for(&fd, LOOK),
                    None => thread::sleep(LOOK),
                }
            }
        })?;
        Ok(Keeper { is_stopped, thread })
    }

    pub(crate) fn stop(self) {
        self.is_stopped.store(true, Ordering::Relaxed);
        // It ends within a tenth of a second; that it panicked was printed.
        let _ = self.thread.join();
    }
}
