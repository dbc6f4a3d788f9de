//! A thread for one agent whose work is not urgent.

use std::io;
use std::thread;

use tickpath_agent::{Agent, BackgroundThread, FINISH_TIMEOUT, Rest, TscClock};
use tickpath_types::Nanos;

/// Sleep of the thread after its latest work.
const REST: Nanos = Nanos::from_millis(1);

/// Starts a thread named after the agent's role, which sleeps between its duty cycles. At shutdown the agent
/// finishes within [`FINISH_TIMEOUT`] and is closed. A failure of the agent ends the thread and shows in its
/// counters.
///
/// # Errors
/// The system refused the thread.
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
