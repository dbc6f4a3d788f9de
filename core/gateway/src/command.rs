//! The commands of a running gateway.

use super::{Control, RiskLimit};

/// A command to a running gateway.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AdminCommand {
    /// Show the status.
    Status,
    /// Turn the kill switch on: no new order leaves, and all open orders are cancelled.
    Kill,
    /// Turn the kill switch off: orders are accepted again.
    Release,
    /// Set the limits of an account, by its index; `None` withdraws them.
    SetLimits(usize, Option<RiskLimit>),
}

impl AdminCommand {
    /// Executes the part that concerns [`Control`]: all but the cancellations that the kill switch causes.
    pub fn carry_out(&self, control: &Control) {
        match self {
            AdminCommand::Status => {}
            AdminCommand::Kill => control.set_killed(true),
            AdminCommand::Release => control.set_killed(false),
            AdminCommand::SetLimits(account, limit) => {
                control.publish(*account, limit.as_ref());
            }
        }
    }
}
