//! Requests of a recorded flow that wait for the venue's answers.

use std::collections::VecDeque;

use tickpath_timing::Token;
use tickpath_types::{Nanos, OrderEventKind, OrderRequest, SessionId, UserRefNum};

/// Maximum number of requests of one session that wait for their answers.
pub(super) const WINDOW: usize = 256;
/// Time without requests and answers after which waiting requests expire, because the venue does not answer a
/// request that names a removed order.
const ANSWER_TIMEOUT: Nanos = Nanos::from_millis(200);

/// Requests of one session that wait for their answer, oldest first.
///
/// The venue answers a session's requests in order: an answer to one shows that those before it were ignored.
/// An answer to a request that no longer waits changes nothing.
pub(super) struct Outstanding {
    requests: VecDeque<PendingRequest>,
    /// Time of the latest request or answer.
    since: Nanos,
}

/// UserRefNums of the request's order and of the order that it replaces; equal if it replaces none. The
/// venue's answer names one of them.
#[derive(Clone, Copy)]
struct PendingRequest(UserRefNum, UserRefNum);

impl Outstanding {
    pub(super) fn new() -> Outstanding {
        Outstanding { requests: VecDeque::with_capacity(WINDOW), since: Nanos::ZERO }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.requests.is_empty()
    }

    pub(super) fn is_full(&self) -> bool {
        self.requests.len() >= WINDOW
    }

    pub(super) fn sent(&mut self, request: &OrderRequest, now: Nanos) {
        let user_ref = request.user_ref();
        let replaced = match request {
            OrderRequest::Replace(replace) => replace.orig_user_ref,
            _ => user_ref,
        };
        self.requests.push_back(PendingRequest(user_ref, replaced));
        self.since = now;
    }

    pub(super) fn on_answer(&mut self, answer: &OrderEventKind, now: Nanos) {
        if Token::of_reply(SessionId::default(), answer).is_none() {
            return;
        }
        let named = answer.user_ref();
        let found = self.requests.iter().position(|waiting| waiting.0 == named || waiting.1 == named);
        if let Some(index) = found {
            self.requests.drain(..=index);
            self.since = now;
        }
    }

    /// Removes all requests if the latest request or answer was at least [`ANSWER_TIMEOUT`] ago.
    pub(super) fn expire(&mut self, now: Nanos) {
        if !self.is_empty() && now.since(self.since) >= ANSWER_TIMEOUT {
            self.requests.clear();
        }
    }
}

#[cfg(test)]
mod tests {
    use tickpath_types::{CancelOrder, CancelReason, Qty};

    use super::*;

    fn cancel(user_ref: u32) -> OrderRequest {
        OrderRequest::Cancel(CancelOrder { user_ref: UserRefNum(user_ref), qty: Qty::ZERO })
    }

    fn canceled(user_ref: u32) -> OrderEventKind {
        let reason = CancelReason::User;
        OrderEventKind::Canceled { user_ref: UserRefNum(user_ref), decrement: Qty(1), reason }
    }

    #[test]
    fn the_time_counts_from_the_latest_request() {
        let mut outstanding = Outstanding::new();
        let late = Nanos::from_secs(5);
        outstanding.sent(&cancel(1), late);
        outstanding.expire(late);
        assert!(!outstanding.is_empty(), "however long nothing was sent before");
        outstanding.sent(&cancel(2), late + Nanos::from_millis(150));
        outstanding.expire(late + Nanos::from_millis(349));
        assert!(!outstanding.is_empty());
        outstanding.expire(late + Nanos::from_millis(350));
        assert!(outstanding.is_empty());
    }

    #[test]
    fn a_late_answer_is_ignored() {
        let mut outstanding = Outstanding::new();
        outstanding.sent(&cancel(1), Nanos::ZERO);
        outstanding.expire(ANSWER_TIMEOUT);
        outstanding.on_answer(&canceled(1), ANSWER_TIMEOUT);
        assert!(outstanding.is_empty());
        outstanding.sent(&cancel(2), ANSWER_TIMEOUT);
        outstanding.on_answer(&canceled(1), ANSWER_TIMEOUT);
        assert!(!outstanding.is_empty(), "the second still waits");
        outstanding.on_answer(&canceled(2), ANSWER_TIMEOUT);
        assert!(outstanding.is_empty());
    }

    #[test]
    fn an_answer_completes_earlier_requests() {
        let mut outstanding = Outstanding::new();
        for user_ref in 1..=WINDOW as u32 {
            assert!(!outstanding.is_full());
            outstanding.sent(&cancel(user_ref), Nanos::ZERO);
        }
        assert!(outstanding.is_full());
        outstanding.on_answer(&canceled(WINDOW as u32 - 1), Nanos::ZERO);
        assert!(!outstanding.is_full() && !outstanding.is_empty());
        outstanding.on_answer(&canceled(WINDOW as u32), Nanos::ZERO);
        assert!(outstanding.is_empty());
    }
}
