//! The I/O thread of the connection: heartbeats, reconnection, subscriptions.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;

use crate::execute::LOOK;
use crate::link::{Link, wait_for};

/// Services the link independently of the command thread. It prints nothing: a stopped terminal or a full
/// pipe does not affect the connection.
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
        // It ends within a tenth of a second; a panic was already printed.
        let _ = self.thread.join();
    }
}
