//! Why a command was not carried out, and what of a user's limits one changes.

use tickpath_types::{AddInstrumentError, InstrumentId, Qty};

use super::AdminCommand;
use crate::{RateLimit, UserLimits};

/// Why a command was not carried out; nothing was changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum AdminRefusal {
    /// End the day first.
    #[error("the day has started already: 'phase all end-of-day' ends it")]
    DayStarted,
    /// Start the day first.
    #[error("no day goes on: 'phase all start' starts one, 'phase all open' lets everything trade at once")]
    DayNotStarted,
    /// There is nothing to open.
    #[error("the instrument trades already: 'phase SYMBOL auction' collects orders for another cross")]
    Trading,
    /// There is nothing to close.
    #[error("the instrument is halted: 'phase SYMBOL pre-close' collects orders for a closing cross")]
    Halted,
    /// Give an instrument that there is.
    #[error("there is no such instrument: 'status' shows those that there are")]
    NoInstrument,
    /// Give the number of an execution of today.
    #[error(
        "no such execution: it is of another day, older than those that are kept, a cross as a whole, or void already"
    )]
    NoExecution,
    /// Give a reference price that orders may have.
    #[error("the reference price lies outside the instrument's collar, where nothing trades")]
    OutsideCollar,
    /// What the error says.
    #[error(transparent)]
    Instrument(#[from] AddInstrumentError),
    /// Look at the definition: sizes, prices and quantities.
    #[error("the venue could not use the instrument: it is in no book")]
    Unusable,
}

impl AdminCommand {
    /// The instrument that must be there for it, if it is about one.
    pub(crate) fn instrument(&self) -> Option<InstrumentId> {
        match *self {
            AdminCommand::SetTradingState { instrument, .. }
            | AdminCommand::SuspendInstrument { instrument }
            | AdminCommand::AllowInstrument { instrument, .. } => Some(instrument),
            AdminCommand::Phase { instrument, .. } | AdminCommand::SetPriceBand { instrument, .. } => {
                instrument
            }
            _ => None,
        }
    }

    /// What it means when what it put into the log changed nothing.
    pub(crate) fn without_effect(&self) -> Option<AdminRefusal> {
        match self {
            AdminCommand::BreakTrade { .. } => Some(AdminRefusal::NoExecution),
            AdminCommand::SetPriceBand { .. } => Some(AdminRefusal::OutsideCollar),
            AdminCommand::AddInstrument(_) => Some(AdminRefusal::Unusable),
            _ => None,
        }
    }
}

/// A change of a user's limits: those that are `None` stay, `Some(None)` is no limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LimitsChange {
    /// Messages a second.
    pub rate: Option<Option<RateLimit>>,
    /// Open orders.
    pub open_orders: Option<Option<u32>>,
    /// Quantity of one order.
    pub order_qty: Option<Option<Qty>>,
    /// Price times quantity of one order, in units of 10^-4.
    pub order_notional: Option<Option<u64>>,
}

impl LimitsChange {
    pub(crate) fn applied_to(&self, limits: UserLimits) -> UserLimits {
        UserLimits {
            rate: self.rate.unwrap_or(limits.rate),
            open_orders: self.open_orders.unwrap_or(limits.open_orders),
            order_qty: self.order_qty.unwrap_or(limits.order_qty),
            order_notional: self.order_notional.unwrap_or(limits.order_notional),
        }
    }
}
