//! Counters and states of a venue, readable while it runs.

use std::sync::{Arc, Mutex};

use tickpath_lockfree::Counter;
use tickpath_types::InstrumentId;

use crate::counters::{
    DropCopyCounters, JournalCounters, OrderServerCounters, PublisherCounters, TradeTotals,
};
use crate::market_recovery::RecoveryCounters;
use crate::matcher::{FinalEngine, MatcherCounters};
use crate::replica::Replica;
use crate::user_registry::UserRegistry;

/// Counters and states of a venue, readable while it runs and afterwards.
#[derive(Clone, Default)]
pub struct VenueView {
    /// Counters of the order server.
    pub order_server: Arc<OrderServerCounters>,
    /// Counters of the matcher.
    pub matcher: Arc<MatcherCounters>,
    /// Counters of the publisher.
    pub publisher: Arc<PublisherCounters>,
    /// The users, in the order of their sessions.
    pub users: UserRegistry,
    /// Code of each instrument's [`TradingState`](tickpath_types::TradingState), indexed by instrument id.
    pub states: Arc<[Counter]>,
    /// Trade totals of each instrument, indexed by instrument id.
    pub trades: Arc<[TradeTotals]>,
    /// Counters and state of the journal.
    pub journal: Arc<JournalCounters>,
    /// Counters of the drop copies.
    pub drop_copy: Arc<DropCopyCounters>,
    /// Counters of the market data recovery.
    pub market_recovery: Arc<RecoveryCounters>,
    /// The engine, once the venue has stopped.
    pub engine: FinalEngine,
}

impl VenueView {
    /// The view of a venue with these users.
    #[must_use]
    pub fn new(users: UserRegistry) -> VenueView {
        VenueView { users, engine: Arc::new(Mutex::new(None)), ..VenueView::default() }
    }

    /// Restores counters and states from `replica`; sizes `states` and `trades` by the maximum instrument id.
    pub fn resume(&mut self, replica: &Replica) {
        let max_id = replica.streams.table.max_id();
        self.states = (0..=max_id.0).map(|_| Counter::default()).collect();
        self.trades = (0..=max_id.0).map(|_| TradeTotals::default()).collect();
        let (_, published) = replica.message_counts();
        self.order_server.commands.set(replica.last_command().0);
        self.order_server.is_killed.set(replica.replayed.is_killed.into());
        self.matcher.market_events.set(published);
        self.publisher.messages.set(published);
        self.journal.durable.set(replica.last_command().0);
        for (id, state) in (0..).map(InstrumentId).zip(self.states.iter()) {
            state.set(replica.engine.trading_state(id).map_or(0, |state| state.code().into()));
        }
        for (view, replayed) in self.users.iter().zip(&replica.replayed.users) {
            view.is_killed.set(replayed.is_killed.into());
        }
    }
}
