//! What a running gateway can be told, and the two rings that it crosses.

use tickpath_lockfree::spsc;

use crate::safety::{Control, RiskLimit};

/// Commands that may wait for the duty cycle.
const COMMANDS_MAX: usize = 64;

/// What a running gateway can be told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AdminCommand {
    /// How it stands.
    Status,
    /// No new order leaves, and all open ones are cancelled.
    Kill,
    /// Orders are taken again.
    Release,
    /// Limits of an account, by its place; `None` withdraws them.
    SetLimits(usize, Option<RiskLimit>),
}

impl AdminCommand {
    /// Does of it what is done by [`Control`]: all but the cancelling, which follows from the kill switch.
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

#[derive(Clone, Copy)]
struct Numbered {
    id: u64,
    command: AdminCommand,
}

/// The duty cycle's end: takes commands and answers them, without waiting.
pub struct AdminPort {
    commands: spsc::Consumer<Numbered>,
    answers: spsc::Producer<u64>,
}

impl AdminPort {
    /// The next command, with its number. Each is to be [answered](Self::answer).
    #[inline]
    pub fn poll(&mut self) -> Option<(u64, AdminCommand)> {
        self.commands.try_pop().map(|numbered| (numbered.id, numbered.command))
    }

    /// A command was carried out, and how the gateway stands after it is shown.
    pub fn answer(&mut self, id: u64) {
        // As many as may wait fit, so it fails only when nobody listens any more.
        let _ = self.answers.try_push(id);
    }
}

/// The other end.
pub(super) struct AdminClient {
    commands: spsc::Producer<Numbered>,
    answers: spsc::Consumer<u64>,
    next_id: u64,
}

/// Both ends.
pub(super) fn rings() -> (AdminClient, AdminPort) {
    let (commands, to_take) = spsc::channel(COMMANDS_MAX);
    let (answer, answers) = spsc::channel(COMMANDS_MAX);
    (AdminClient { commands, answers, next_id: 1 }, AdminPort { commands: to_take, answers: answer })
}

impl AdminClient {
    /// Sends a command; its number, or `None` when the gateway has not taken many before it.
    pub(super) fn submit(&mut self, command: AdminCommand) -> Option<u64> {
        let id = self.next_id;
        self.commands.try_push(Numbered { id, command }).ok()?;
        self.next_id += 1;
        Some(id)
    }

    /// Whether a command was carried out; answers to those before it that nobody waits for any more are dropped.
    pub(super) fn is_done(&mut self, id: u64) -> bool {
        while let Some(answer) = self.answers.try_pop() {
            if answer == id {
                return true;
            }
        }
        false
    }
}
