//! Runs agents without urgent work on separate threads, which sleep while there is no work.

use std::io;
use std::thread;

use tickpath_agent::{Agent, BackgroundThread, FINISH_TIMEOUT, Rest, TscClock};
use tickpath_types::Nanos;

/// Time for which the thread sleeps after work, before it checks for more.
const REST: Nanos = Nanos::from_millis(1);

/// Starts a thread named after the agent's role; it sleeps while the agent has no work. At shutdown the agent
/// has [`FINISH_TIMEOUT`] to finish and is then closed. A failure of the agent ends the thread, and the
/// agent's counters show it.
///
/// # Errors
/// The system could not start a thread.
pub fn start_background_agent(mut agent: Box<dyn Agent>, clock: TscClock) -> io::Result<BackgroundThread> {
    let mut rest = Rest::new(clock, REST)?;
    agent.wake_by(rest.waker());
    let name = agent.role_name().to_owned();
    BackgroundThread::start(&name, move |stop| {
        stop.wake(rest.waker());
        while !stop.is_stopped() {
            match agent.do_work(clock.now()) {
                Ok(0) => rest.rest(|now, wait| agent.wait_for(now, wait)),
                Ok(_) => rest.note_work(),
                Err(_) => return,
            }
        }
        let deadline = clock.now() + FINISH_TIMEOUT;
        while clock.now() < deadline && matches!(agent.finish(clock.now()), Ok(false)) {
            thread::yield_now();
        }
        agent.on_close();
    })
}
