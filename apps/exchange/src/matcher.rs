//! The matching engine as an agent.

use tickpath_agent::{Agent, AgentError, WaitSet, Waker};
use tickpath_timing::Tracer;
use tickpath_types::Nanos;
use tickpath_venue::Matcher;

/// A [`Matcher`] as an agent.
pub(crate) struct MatcherAgent<T>(pub(crate) Matcher<T>);

impl<T: Tracer + Send> Agent for MatcherAgent<T> {
    fn do_work(&mut self, _now: Nanos) -> Result<usize, AgentError> {
        Ok(self.0.poll())
    }

    fn wake_by(&mut self, waker: &Waker) {
        self.0.wake_by(waker);
    }

    fn wait_for(&mut self, _now: Nanos, wait: &mut WaitSet) {
        if self.0.is_blocked() {
            wait.soon();
        }
    }

    fn role_name(&self) -> &'static str {
        "matcher"
    }

    fn finish(&mut self, _now: Nanos) -> Result<bool, AgentError> {
        Ok(self.0.finish())
    }

    fn on_close(&mut self) {
        self.0.close();
    }
}
