//! Rings that pass commands from an administrator's thread to a duty cycle, and the answers back.

use tickpath_lockfree::spsc;

/// The administrator's end of the rings: sends commands `C` and receives answers `A`.
pub struct CommandSender<C, A> {
    commands: spsc::Producer<(u64, C)>,
    answers: spsc::Consumer<(u64, A)>,
    next_id: u64,
}

/// The duty cycle's end of the rings. Its operations neither block nor allocate.
pub struct CommandReceiver<C, A> {
    commands: spsc::Consumer<(u64, C)>,
    answers: spsc::Producer<(u64, A)>,
}

/// Creates both ends. The rings hold at most `capacity` commands and as many answers.
#[must_use]
pub fn command_rings<C: Copy + Send, A: Copy + Send>(
    capacity: usize,
) -> (CommandSender<C, A>, CommandReceiver<C, A>) {
    let (commands, to_take) = spsc::channel(capacity);
    let (answer, answers) = spsc::channel(capacity);
    let sender = CommandSender { commands, answers, next_id: 1 };
    (sender, CommandReceiver { commands: to_take, answers: answer })
}

impl<C: Copy + Send, A: Copy + Send> CommandSender<C, A> {
    /// Sends a command and returns its id; `None` when the command ring is full.
    pub fn submit(&mut self, command: C) -> Option<u64> {
        let id = self.next_id;
        self.commands.try_push((id, command)).ok()?;
        self.next_id += 1;
        Some(id)
    }

    /// Returns the next answer, if any, with the id of its command.
    pub fn poll(&mut self) -> Option<(u64, A)> {
        self.answers.try_pop()
    }

    /// Number of further commands that the command ring can take now.
    #[must_use]
    pub fn capacity(&mut self) -> usize {
        self.commands.free_slots()
    }
}

impl<C: Copy + Send, A: Copy + Send> CommandReceiver<C, A> {
    /// Returns the next command, if any, without removing it.
    #[inline]
    pub fn peek(&mut self) -> Option<&C> {
        self.commands.peek().map(|(_, command)| command)
    }

    /// Takes the next command, with its id. Each command must be [answered](CommandReceiver::answer).
    #[inline]
    pub fn poll(&mut self) -> Option<(u64, C)> {
        self.commands.try_pop()
    }

    /// True if the answer ring has a free slot.
    #[must_use]
    pub fn may_answer(&mut self) -> bool {
        self.answers.free_slots() > 0
    }

    /// Answers the command `id`. The answer is dropped if the answer ring is full or the sender was dropped.
    pub fn answer(&mut self, id: u64, answer: A) {
        let _ = self.answers.try_push((id, answer));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_and_answers_keep_their_numbers() {
        let (mut sender, mut receiver) = command_rings::<char, u8>(2);
        assert_eq!([sender.submit('a'), sender.submit('b'), sender.submit('c')], [Some(1), Some(2), None]);
        assert_eq!((sender.capacity(), receiver.peek()), (0, Some(&'a')));
        assert_eq!(
            [receiver.poll(), receiver.poll(), receiver.poll()],
            [Some((1, 'a')), Some((2, 'b')), None]
        );
        receiver.answer(1, 10);
        assert!(receiver.may_answer());
        receiver.answer(2, 20);
        assert!(!receiver.may_answer());
        assert_eq!([sender.poll(), sender.poll(), sender.poll()], [Some((1, 10)), Some((2, 20)), None]);
        assert_eq!(sender.submit('d'), Some(3));
    }
}
