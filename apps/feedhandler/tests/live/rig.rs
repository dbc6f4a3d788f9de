//! A live handler whose duty cycles the test runs.

use std::net::{Ipv4Addr, SocketAddrV4};
use std::sync::mpsc::{SyncSender, sync_channel};

use tickpath_agent::Invoker;
use tickpath_feedhandler::live::{
    BookStatus, ChannelSection, ChannelStatus, LiveCommand, LiveConfig, LiveHandler, LiveReport, LiveView,
    ProtocolName, ResyncOutcome,
};
use tickpath_net::{Kernel, MulticastSender, SendStatus, free_multicast_group};
use tickpath_test_support::Deadline;
use tickpath_types::{Nanos, Symbol};

/// Simulated duration of one duty cycle of the handler.
const CYCLE: Nanos = Nanos::from_micros(20);

/// A handler of one channel, and its lines.
pub struct Rig {
    invoker: Option<Invoker>,
    pub now: Nanos,
    pub view: LiveView,
    pub commands: SyncSender<LiveCommand>,
    lines: Vec<MulticastSender>,
}

impl Rig {
    pub fn open(protocol: ProtocolName, change: impl FnOnce(&mut ChannelSection)) -> Rig {
        Rig::with(protocol, LiveConfig::default(), change)
    }

    pub fn with(
        protocol: ProtocolName,
        mut config: LiveConfig,
        change: impl FnOnce(&mut ChannelSection),
    ) -> Rig {
        let mut section = ChannelSection::new("test", protocol);
        section.line_a = Some(free_multicast_group().unwrap());
        section.line_b = Some(free_multicast_group().unwrap());
        (section.max_instruments, section.max_orders) = (16, 4_096);
        change(&mut section);
        let groups: Vec<SocketAddrV4> = [section.line_a, section.line_b].into_iter().flatten().collect();
        config.channels.push(section);
        config.finish().unwrap();
        let (sender, commands) = sync_channel(4);
        let now = Nanos::from_secs(1_700_000_000);
        let (handler, view) = LiveHandler::open(&Kernel, &config, None, now, commands).unwrap();
        let mut invoker = Invoker::new("feed", vec![Box::new(handler)], &[]).unwrap();
        invoker.start().unwrap();
        let sender_of = |group| MulticastSender::new(group, Ipv4Addr::LOCALHOST).unwrap();
        let lines = groups.into_iter().map(sender_of).collect();
        Rig { invoker: Some(invoker), now, view, commands: sender, lines }
    }

    pub fn run_cycle(&mut self) {
        self.now = self.now + CYCLE;
        self.invoker.as_mut().unwrap().run_once(self.now).unwrap();
    }

    /// Sends a packet on one line, without a cycle that reads it.
    pub fn send_unread(&mut self, line: usize, packet: &[u8]) {
        assert_eq!(self.lines[line].send(packet).unwrap(), SendStatus::Sent);
    }

    pub fn send(&mut self, line: usize, packet: &[u8]) {
        self.send_unread(line, packet);
        // The handler reads the packet at once, so that no receive buffer fills.
        self.run_cycle();
        self.run_cycle();
    }

    /// Sends a packet on every line.
    pub fn send_both(&mut self, packet: &[u8]) {
        (0..self.lines.len()).for_each(|line| self.send(line, packet));
    }

    /// Runs cycles, and `serve` after each, until the answer to a status command satisfies the condition.
    pub fn until(
        &mut self,
        what: &str,
        mut serve: impl FnMut(),
        is_done: impl Fn(&ChannelStatus) -> bool,
    ) -> ChannelStatus {
        let deadline = Deadline::start();
        loop {
            let status = self.status(&mut serve).channels[0].status;
            if is_done(&status) {
                return status;
            }
            assert!(!deadline.is_over(), "{what}: {status:#?}");
        }
    }

    /// Requests the status by command, and runs cycles and `serve` until the answer arrives.
    pub fn status(&mut self, serve: &mut impl FnMut()) -> LiveReport {
        let (sender, answer) = sync_channel(1);
        self.commands.try_send(LiveCommand::Status(sender)).unwrap();
        loop {
            self.run_cycle();
            serve();
            if let Ok(status) = answer.try_recv() {
                return status;
            }
        }
    }

    /// Runs cycles until there are messages about suspect books, and returns them.
    pub fn take_suspects(&mut self) -> Vec<String> {
        let deadline = Deadline::start();
        loop {
            self.run_cycle();
            let (lines, more) = self.view.take_suspects();
            if !lines.is_empty() {
                assert_eq!(more, 0);
                return lines;
            }
            assert!(!deadline.is_over(), "no line comes");
        }
    }

    pub fn resync(&mut self, symbol: &str) -> ResyncOutcome {
        let (sender, answer) = sync_channel(1);
        self.commands.try_send(LiveCommand::Resync(Symbol::new(symbol).unwrap(), sender)).unwrap();
        loop {
            self.run_cycle();
            if let Ok(outcomes) = answer.try_recv() {
                return outcomes[0].1;
            }
        }
    }

    /// Closes the handler. Returns the final status of its channel, and the books that it lists.
    pub fn close(mut self) -> (ChannelStatus, Vec<BookStatus>) {
        self.invoker.take().unwrap().close();
        let books = self.view.books().into_iter().map(|(_, book)| book).collect();
        (self.view.channels()[0].status, books)
    }
}

/// Returns whether instruments are known and all their books are live.
pub fn all_live(status: &ChannelStatus) -> bool {
    status.instruments > 0 && status.is_consistent()
}
