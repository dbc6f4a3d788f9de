//! The commands of a running gateway.

use tickpath_admin::{CommandReceiver, CommandSender};

use crate::safety::{Control, RiskLimit};

/// Commands that may wait for the duty cycle.
pub(super) const COMMANDS_MAX: usize = 64;

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

/// The duty cycle's end: takes commands and answers each when it is executed and the status after it is shown.
pub type AdminPort = CommandReceiver<AdminCommand, ()>;

/// The socket's end.
pub(super) type AdminClient = CommandSender<AdminCommand, ()>;
