//! Waiting without sleeping: asks again until there is an answer or a deadline.

use std::time::{Duration, Instant, SystemTime};

/// Far longer than loopback ever takes; only a defect reaches it.
const DEADLINE: Duration = Duration::from_secs(10);

/// Asks until there is an answer.
#[allow(dead_code)] // not every test file waits
pub fn until<T>(mut ask: impl FnMut() -> Option<T>) -> T {
    let start = Instant::now();
    loop {
        if let Some(answer) = ask() {
            return answer;
        }
        assert!(start.elapsed() < DEADLINE, "no answer before the deadline");
        std::thread::yield_now();
    }
}

/// `CLOCK_REALTIME` in nanoseconds since the Unix epoch.
#[allow(dead_code, clippy::unwrap_used)]
pub fn realtime_ns() -> u64 {
    SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap().as_nanos() as u64
}
