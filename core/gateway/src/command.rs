//! The commands of a running gateway.

use super::{Control, RiskLimit};

/// A command to a running gateway.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AdminCommand {
    /// Show the status.
    Status,
    /// No new order leaves, and all open ones are cancelled.
    Kill,
    /// Orders are taken again.
    Release,
    /// Limits of an account, by its place; `None` withdraws them.
    SetLimits(usize, Option<RiskLimit>),
}

impl AdminCommand {
    /// Does the part of it that [`Control`] does: all but the cancelling, which follows from the kill switch.
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
