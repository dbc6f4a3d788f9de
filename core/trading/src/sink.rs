//! The interface through which an engine sends requests.

use tickpath_timing::{Function, Tracer};
use tickpath_types::{OrderRequest, Sequence};

/// The queue to the venue is full; the request was not accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the queue to the order gateway is full")]
pub struct QueueFull;

/// Accepts requests on their way to the venue, one at a time, as the strategy makes them.
pub trait RequestSink<T: Tracer> {
    /// Sends a request, or refuses it.
    ///
    /// The sink records in `tracer` the time when the request leaves the engine.
    ///
    /// # Errors
    /// [`QueueFull`] when the queue has no capacity; the engine then acts as if there had been no request.
    fn send(&mut self, request: &OrderRequest, tracer: &mut T) -> Result<(), QueueFull>;

    /// Names the market message that triggers the following requests: the latest message about the evaluated
    /// instrument in its packet. `None` if no market message does.
    fn set_trigger(&mut self, message: Option<Sequence>) {
        let _ = message;
    }
}

/// Collects requests without a limit, for tests and examples.
impl<T: Tracer> RequestSink<T> for Vec<OrderRequest> {
    fn send(&mut self, request: &OrderRequest, _: &mut T) -> Result<(), QueueFull> {
        self.push(*request);
        Ok(())
    }
}

/// A sink and a tracer behind one trait object, so that strategies need no type parameters for them.
pub(crate) trait RequestPort {
    fn send(&mut self, request: &OrderRequest) -> Result<(), QueueFull>;
    fn ticks(&self) -> u64;
    fn time(&mut self, function: Function, ticks: u64);
}

pub(crate) struct Port<'a, K, T> {
    pub sink: &'a mut K,
    pub tracer: &'a mut T,
}

impl<K: RequestSink<T>, T: Tracer> RequestPort for Port<'_, K, T> {
    fn send(&mut self, request: &OrderRequest) -> Result<(), QueueFull> {
        self.sink.send(request, self.tracer)
    }

    fn ticks(&self) -> u64 {
        self.tracer.now()
    }

    fn time(&mut self, function: Function, ticks: u64) {
        self.tracer.time(function, ticks);
    }
}
