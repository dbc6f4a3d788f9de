//! The venue's machine: its disk and clock, and the venue's instances on it.

use std::collections::BTreeMap;
use std::io;

use tickpath_agent::{Agent, TscClock};
use tickpath_book::{Order, OrderBooks};
use tickpath_exchange::{
    AdminClient, AdminCommand, JournalSettings, LogCommand, Venue, VenueJournal, VenueSettings, VenueTracers,
    VenueView,
};
use tickpath_journal::{
    FaultyDisk, InspectOptions, OpenError, Reader, SessionName, Snapshot, Snapshots, inspect,
};
use tickpath_simnet::HostFailure;
use tickpath_timing::NoTrace;
use tickpath_types::{InstrumentTable, Nanos, Sequence, SessionId, Side, TradingState, UserRefNum};

use crate::hosts::VENUE;
use crate::net::SimNetwork;
use crate::{FinalVenue, Log, Timed, VenueEvent};

/// Timeout of a venue's stop.
const FINISH_TIMEOUT: Nanos = Nanos::from_secs(2);
/// Duration of a cycle during a stop.
const FINISH_TURN: Nanos = Nanos::from_micros(100);

/// Index of the order server among the agents, and the index after the last of them.
pub(crate) const ORDER_SERVER: usize = 0;
pub(crate) const AGENTS: usize = 4;

pub(crate) struct Site {
    pub(crate) settings: VenueSettings,
    pub(crate) journal: JournalSettings,
    pub(crate) disk: FaultyDisk,
    network: SimNetwork,
    life: Option<Life>,
    /// Its commands are as read during the run; it has no snapshots before the end.
    pub(crate) log: Log,
    pub(crate) events: Vec<Timed<VenueEvent>>,
    /// Times of drop copy failures, with the reason.
    pub(crate) copy_failures: Vec<Timed<String>>,
    /// Power losses of the disk so far.
    power_losses: u64,
}

struct Life {
    agents: Vec<Box<dyn Agent>>,
    view: VenueView,
    admin: AdminClient,
    journal: VenueJournal,
    /// The traded instruments, including added ones.
    instruments: InstrumentTable,
    reader: Option<Reader<FaultyDisk>>,
    has_follower: bool,
    /// Requests so far that were refused without a record.
    unlogged: u64,
    /// Offset of the machine's clock from the time at the venue's start; the venue's clock keeps it.
    ahead: u64,
}

impl Life {
    fn has_copies(&self) -> bool {
        self.view.drop_copy.has_failed.read() == 0
    }
}

impl Site {
    pub(crate) fn new(
        settings: VenueSettings,
        journal: JournalSettings,
        disk: FaultyDisk,
        network: SimNetwork,
    ) -> Site {
        Site {
            settings,
            journal,
            disk,
            network,
            life: None,
            log: Log::default(),
            events: Vec::new(),
            copy_failures: Vec::new(),
            power_losses: 0,
        }
    }

    pub(crate) fn is_alive(&self) -> bool {
        self.life.is_some()
    }

    /// Returns the time of day by the machine's clock.
    pub(crate) fn time_of_day(&self) -> Nanos {
        self.network.wires().network.clock(VENUE).time_of_day()
    }

    /// Starts the venue from the disk; returns false when it refuses or crashes.
    pub(crate) fn start(&mut self, now: Nanos) -> bool {
        let clock = self.network.wires().network.clock(VENUE);
        TscClock::simulate(clock);
        let tracers = VenueTracers { order_server: NoTrace, matcher: NoTrace, publisher: NoTrace };
        let (settings, journal) = (&self.settings, &self.journal);
        let clock_of_life = TscClock::simulated();
        let refusals_before = refusals(&self.disk);
        let built = Venue::build_in(settings, journal, &self.disk, &self.network, clock_of_life, tracers);
        if self.is_power_lost() {
            self.note(now, VenueEvent::CutAtStart);
            self.end_life(HostFailure::Power);
            return false;
        }
        let venue = match built {
            Ok(venue) => venue,
            Err(error) => {
                // A refusal because of a failing or full disk is not a defect of the venue.
                if refusals(&self.disk) == refusals_before {
                    self.note(now, VenueEvent::Refused(format!("{error:#}")));
                }
                self.disk.kill();
                return false;
            }
        };
        let begun = self.begin(now, venue, clock);
        if let Err(error) = &begun {
            self.note(now, VenueEvent::Refused(format!("{error:#}")));
        }
        begun.is_ok()
    }

    fn begin(&mut self, now: Nanos, venue: Venue, clock: Nanos) -> anyhow::Result<()> {
        let Venue { mut agents, view, admin, instruments, journal, market_recovery, .. } = venue;
        let journal = journal.ok_or_else(|| anyhow::anyhow!("a venue without its journal"))?;
        let found = self.read_log(journal.recovery.session)?;
        let (last, state_hash) = (journal.recovery.last, journal.recovery.state_hash);
        // Commands that were read during the run and are no longer on the disk were lost.
        let records = &mut self.log.commands;
        let lost = records.split_off(records.len().min(last.0 as usize));
        if !lost.is_empty() {
            self.log.lost.push(Timed { at: now, what: lost });
        }
        let known = records.len() as u64;
        records.extend(found.iter().filter(|command| command.sequence().0 > known).cloned());
        self.note(now, VenueEvent::Started { last, state_hash, journal: found });
        agents.extend(market_recovery.map(|recovery| Box::new(recovery) as Box<dyn Agent>));
        for agent in &mut agents {
            agent.on_start()?;
        }
        let ahead = clock.0 - now.0;
        let life = Life {
            agents,
            view,
            admin,
            journal,
            instruments,
            reader: None,
            has_follower: true,
            unlogged: 0,
            ahead,
        };
        self.life = Some(life);
        self.note_sequenced(now);
        Ok(())
    }

    fn read_log(&self, session: SessionName) -> Result<Vec<LogCommand>, OpenError> {
        let accept_loss = self.journal.accept_loss;
        let options = InspectOptions { session: Some(session), from: Sequence(0), accept_loss };
        let found = inspect(&self.disk, &options)?;
        let mut records = Vec::new();
        if found.first_sequence().0 > 0 {
            let mut reader = Reader::open(&self.disk, session, found.first_sequence())?;
            read_on(&mut reader, found.last_sequence(), &mut records)?;
        }
        Ok(records)
    }

    /// Returns true if the venue started with fewer commands than the previous instance had sequenced.
    pub(crate) fn has_lost_commands(&self) -> bool {
        matches!(&self.log.sequenced[..], [.., before, begin] if begin.what < before.what)
    }

    /// Runs one duty cycle of an agent; returns its work, or `None` (like other steps) if the venue crashed.
    pub(crate) fn step_agent(&mut self, now: Nanos, agent: usize) -> Option<usize> {
        let Some(life) = &mut self.life else { return Some(0) };
        let clock = Nanos(now.0 + life.ahead);
        TscClock::simulate(clock);
        let result = match life.agents[agent].do_work(clock) {
            Ok(0) => life.agents[agent].do_background_work(clock),
            other => other,
        };
        if self.has_lost_power(now) {
            return None;
        }
        if agent == ORDER_SERVER {
            self.note_sequenced(now);
            self.note_unlogged(now);
        }
        match result {
            Ok(work) => Some(work),
            Err(error) if !error.is_fatal() => Some(0),
            Err(_) => {
                self.fail(now);
                None
            }
        }
    }

    pub(crate) fn step_disk(&mut self, now: Nanos) -> Option<usize> {
        let Some(life) = &mut self.life else { return Some(0) };
        let work = life.journal.work_on_disk();
        (!self.has_lost_power(now)).then_some(work)
    }

    pub(crate) fn step_follower(&mut self, now: Nanos) -> Option<usize> {
        self.keep_records();
        let Some(life) = self.life.as_mut().filter(|life| life.has_follower) else { return Some(0) };
        let followed = life.journal.follow();
        if let Err(error) = &followed {
            life.has_follower = !error.is_final();
        }
        (!self.has_lost_power(now)).then_some(followed.unwrap_or(0))
    }

    pub(crate) fn step_copies(&mut self, now: Nanos) -> Option<usize> {
        let Some(life) = self.life.as_mut().filter(|life| life.has_copies()) else { return Some(0) };
        match life.journal.run_drop_copy(Nanos(now.0 + life.ahead)) {
            Ok(work) => Some(work),
            Err(error) => {
                self.copy_failures.push(Timed { at: now, what: error.to_string() });
                Some(0)
            }
        }
    }

    /// Reads written records before the follower removes them.
    fn keep_records(&mut self) {
        let Some(life) = &mut self.life else { return };
        let reader = match life.reader.take() {
            Some(reader) => Ok(reader),
            None => {
                let next = Sequence(self.log.commands.len() as u64 + 1);
                Reader::open(&self.disk, life.journal.recovery.session, next)
            }
        };
        if let Ok(mut reader) = reader {
            let read = read_on(&mut reader, Sequence(u64::MAX), &mut self.log.commands);
            life.reader = read.is_ok().then_some(reader);
        }
    }

    /// Returns the number of published market data messages, over all instances so far.
    pub(crate) fn published(&self) -> u64 {
        self.life.as_ref().map_or(0, |life| life.view.publisher.messages.read())
    }

    /// Returns true if all sequenced commands are durable, matched, answered and published.
    pub(crate) fn is_settled(&self) -> bool {
        let Some(life) = &self.life else { return false };
        let view = &life.view;
        let commands = view.order_server.commands.read();
        view.journal.durable.read() == commands
            && view.matcher.commands.read() + life.journal.recovery.last.0 == commands
            && view.matcher.market_events.read() == view.publisher.messages.read()
            && (self.journal.drop_copy.is_none() || view.drop_copy.commands.read() == commands)
    }

    /// Returns true while an instrument collects orders for an auction, which publishes repeatedly.
    pub(crate) fn is_in_auction(&self) -> bool {
        let code = u64::from(TradingState::QuotationOnly.code());
        self.life.as_ref().is_some_and(|life| life.view.states.iter().any(|state| state.read() == code))
    }

    /// Returns true if the venue reports that it has no snapshots until a restart.
    pub(crate) fn are_snapshots_behind(&self) -> bool {
        self.life.as_ref().is_some_and(|life| life.view.market_recovery.is_behind.read() > 0)
    }

    /// Returns true if there will be no more drop copies until the venue restarts.
    pub(crate) fn have_copies_failed(&self) -> bool {
        self.life.as_ref().is_some_and(|life| !life.has_copies())
    }

    /// Returns the number of traded instruments, including added ones.
    pub(crate) fn instrument_count(&self) -> u16 {
        let instruments = self.life.as_ref().map_or(&self.settings.instruments, |life| &life.instruments);
        instruments.next_id().0 - 1
    }

    /// Sends a command to the venue; returns false if it is down.
    pub(crate) fn command(&mut self, command: AdminCommand) -> bool {
        let Some(life) = &mut self.life else { return false };
        while life.admin.poll().is_some() {}
        life.admin.submit(command).is_some()
    }

    pub(crate) fn crash(&mut self, now: Nanos, death: HostFailure) {
        if self.life.is_none() {
            return;
        }
        self.note(now, VenueEvent::Crashed(death));
        match death {
            HostFailure::Process => self.disk.kill(),
            HostFailure::Power => {
                self.disk.crash();
                self.power_losses += 1;
            }
        }
        self.end_life(death);
    }

    /// Handles a power loss of the disk in the middle of a change, which is a power loss of the machine.
    fn has_lost_power(&mut self, now: Nanos) -> bool {
        if !self.is_power_lost() {
            return false;
        }
        self.note(now, VenueEvent::Crashed(HostFailure::Power));
        self.end_life(HostFailure::Power);
        true
    }

    fn is_power_lost(&mut self) -> bool {
        let crashes = self.disk.counters().crashes;
        std::mem::replace(&mut self.power_losses, crashes) != crashes
    }

    fn end_life(&mut self, death: HostFailure) {
        // The sockets are removed before the agents, so that no peer sees the agents' end.
        self.network.wires().network.kill(VENUE, death);
        self.life = None;
    }

    pub(crate) fn revive(&mut self) {
        self.network.wires().network.power_on(VENUE);
    }

    /// Handles the failure of an agent: as in production, all are closed and the process ends.
    fn fail(&mut self, now: Nanos) {
        self.note(now, VenueEvent::DiskFailed);
        if let Some(life) = &mut self.life {
            life.agents.iter_mut().for_each(|agent| agent.on_close());
        }
        self.note(now, VenueEvent::Crashed(HostFailure::Process));
        self.disk.kill();
        self.end_life(HostFailure::Process);
    }

    /// Stops the venue, in zero time for other parts. Returns its final state, if the engine remains.
    pub(crate) fn stop(&mut self, now: Nanos, mut advance: impl FnMut(Nanos)) -> Option<FinalVenue> {
        let mut at = now;
        let mut is_done = false;
        while !is_done && at < now + FINISH_TIMEOUT {
            at = at + FINISH_TURN;
            advance(at);
            let life = self.life.as_mut()?;
            let clock = Nanos(at.0 + life.ahead);
            TscClock::simulate(clock);
            while life.journal.work_on_disk() > 0 {}
            is_done = true;
            for agent in &mut life.agents {
                // An agent that fails during the stop is closed as well.
                is_done &= agent.finish(clock).unwrap_or(false);
            }
        }
        self.note_sequenced(at);
        let life = self.life.as_mut()?;
        life.agents.iter_mut().for_each(|agent| agent.on_close());
        while life.journal.work_on_disk() > 0 {}
        self.keep_records();
        self.note(now, VenueEvent::Stopped);
        let last = self.last(Nanos(now.0 + self.life.as_ref()?.ahead));
        self.disk.kill();
        self.end_life(HostFailure::Process);
        last
    }

    /// Returns the venue's final state after its stop.
    fn last(&self, stopped_at: Nanos) -> Option<FinalVenue> {
        let view = &self.life.as_ref()?.view;
        let guard = view.engine.lock().ok()?;
        let engine = guard.as_deref()?;
        let mut displayed = Vec::new();
        for instrument in self.life.as_ref()?.instruments.iter() {
            for side in Side::BOTH {
                let orders = engine.books().orders(instrument.id, side);
                displayed.extend(orders.map(|(_, Order { id, instrument, side, price, qty, .. })| Order {
                    id,
                    instrument,
                    side,
                    price,
                    qty,
                    data: (),
                }));
            }
        }
        let mut open_orders = BTreeMap::new();
        for session in (1..=self.settings.users.len() as u16).map(SessionId) {
            for user_ref in (1..=engine.last_user_ref(session).0).map(UserRefNum) {
                open_orders.extend(engine.open_qty(session, user_ref).map(|qty| ((session, user_ref), qty)));
            }
        }
        let counter = |name: &str, value: u64| (name.to_owned(), value);
        Some(FinalVenue {
            state_hash: engine.state_hash(),
            last_command: engine.last_command(),
            last_market: engine.last_market(),
            stopped_at,
            open_orders,
            displayed,
            counters: vec![
                counter("order_server.commands", view.order_server.commands.read()),
                counter("journal.durable", view.journal.durable.read()),
                counter("matcher.market_events", view.matcher.market_events.read()),
                counter("publisher.messages", view.publisher.messages.read()),
                counter("market_recovery.archive_answers", view.market_recovery.archive_answers.read()),
            ],
        })
    }

    /// Returns the readable snapshots on the disk.
    pub(crate) fn snapshots(&self) -> io::Result<Vec<Snapshot>> {
        let Some(session) = tickpath_journal::session_of(&self.disk).map_err(io::Error::other)? else {
            return Ok(Vec::new());
        };
        let snapshots = Snapshots::new(self.disk.clone(), session);
        let mut found = Vec::new();
        for sequence in snapshots.list().map_err(io::Error::other)? {
            found.extend(snapshots.read(sequence).ok().and_then(Result::ok));
        }
        Ok(found)
    }

    fn note_sequenced(&mut self, now: Nanos) {
        let Some(life) = &self.life else { return };
        let last = Sequence(life.view.order_server.commands.read());
        if self.log.sequenced.last().is_none_or(|sequenced| sequenced.what != last) {
            self.log.sequenced.push(Timed { at: now, what: last });
        }
    }

    fn note_unlogged(&mut self, now: Nanos) {
        let Some(life) = &mut self.life else { return };
        let unlogged = life.view.journal.unlogged_refusals.read();
        let count = unlogged - std::mem::replace(&mut life.unlogged, unlogged);
        if count > 0 {
            self.log.unlogged.push(Timed { at: now, what: count });
        }
    }

    fn note(&mut self, now: Nanos, what: VenueEvent) {
        self.events.push(Timed { at: now, what });
    }
}

/// Returns the number of operations that a disk has refused.
fn refusals(disk: &FaultyDisk) -> u64 {
    let counters = disk.counters();
    counters.failed_writes + counters.failed_syncs + counters.disk_full
}

fn read_on(
    reader: &mut Reader<FaultyDisk>,
    limit: Sequence,
    records: &mut Vec<LogCommand>,
) -> Result<(), OpenError> {
    while let Some(record) = reader.next(limit)? {
        match LogCommand::decode(record.payload) {
            Ok(command) => records.push(command),
            // The venue would not start from it; the checkers report that it is missing.
            Err(_) => return Ok(()),
        }
    }
    Ok(())
}
