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

/// Maximum virtual time that a stop of the venue takes.
const FINISH_TIMEOUT: Nanos = Nanos::from_secs(2);
/// Virtual duration of a duty cycle while the venue stops.
const FINISH_CYCLE: Nanos = Nanos::from_micros(100);

/// Index of the order server among the venue's agents.
pub(crate) const ORDER_SERVER: usize = 0;
pub(crate) const AGENTS: usize = 4;

pub(crate) struct Node {
    pub(crate) settings: VenueSettings,
    pub(crate) journal: JournalSettings,
    pub(crate) disk: FaultyDisk,
    network: SimNetwork,
    instance: Option<Instance>,
    /// The log. Its commands are read during the run, and its snapshots only at the end.
    pub(crate) log: Log,
    pub(crate) events: Vec<Timed<VenueEvent>>,
    /// Times of drop copy failures, with the reason.
    pub(crate) copy_failures: Vec<Timed<String>>,
    /// Number of power losses of the disk so far.
    power_losses: u64,
}

struct Instance {
    agents: Vec<Box<dyn Agent>>,
    view: VenueView,
    admin: AdminClient,
    journal: VenueJournal,
    /// The traded instruments, including added ones.
    instruments: InstrumentTable,
    reader: Option<Reader<FaultyDisk>>,
    has_follower: bool,
    /// Number of requests that this instance has refused so far without a record in the log.
    unlogged: u64,
    /// Machine clock minus virtual time at the start; the venue's clock is virtual time plus this.
    clock_offset: u64,
}

impl Instance {
    fn has_copies(&self) -> bool {
        self.view.drop_copy.has_failed.read() == 0
    }
}

impl Node {
    pub(crate) fn new(
        settings: VenueSettings,
        journal: JournalSettings,
        disk: FaultyDisk,
        network: SimNetwork,
    ) -> Node {
        Node {
            settings,
            journal,
            disk,
            network,
            instance: None,
            log: Log::default(),
            events: Vec::new(),
            copy_failures: Vec::new(),
            power_losses: 0,
        }
    }

    pub(crate) fn is_alive(&self) -> bool {
        self.instance.is_some()
    }

    /// Returns the time of day by the machine's clock.
    pub(crate) fn time_of_day(&self) -> Nanos {
        self.network.wires().network.clock(VENUE).time_of_day()
    }

    /// Starts the venue from the disk; returns false when the venue refuses to start or crashes.
    pub(crate) fn start(&mut self, now: Nanos) -> bool {
        let clock = self.network.wires().network.clock(VENUE);
        TscClock::simulate(clock);
        let tracers = VenueTracers { order_server: NoTrace, matcher: NoTrace, publisher: NoTrace };
        let (settings, journal) = (&self.settings, &self.journal);
        let instance_clock = TscClock::simulated();
        let refusals_before = refusals(&self.disk);
        let built = Venue::build_in(settings, journal, &self.disk, &self.network, instance_clock, tracers);
        if self.is_power_lost() {
            self.record(now, VenueEvent::PowerLostAtStart);
            self.end_instance(HostFailure::Power);
            return false;
        }
        let venue = match built {
            Ok(venue) => venue,
            Err(error) => {
                // A refused start because of a failing or full disk is not a defect of the venue.
                if refusals(&self.disk) == refusals_before {
                    self.record(now, VenueEvent::Refused(format!("{error:#}")));
                }
                self.disk.kill();
                return false;
            }
        };
        let started = self.begin(now, venue, clock);
        if let Err(error) = &started {
            self.record(now, VenueEvent::Refused(format!("{error:#}")));
        }
        started.is_ok()
    }

    fn begin(&mut self, now: Nanos, venue: Venue, clock: Nanos) -> anyhow::Result<()> {
        let Venue { mut agents, view, admin, instruments, journal, market_recovery, .. } = venue;
        let journal = journal.ok_or_else(|| anyhow::anyhow!("a venue without its journal"))?;
        let found = self.read_log(journal.recovery.session)?;
        let (last, state_hash) = (journal.recovery.last, journal.recovery.state_hash);
        // Commands that the simulator read earlier, but that are missing from the disk now, are lost.
        let records = &mut self.log.commands;
        let lost = records.split_off(records.len().min(last.0 as usize));
        if !lost.is_empty() {
            self.log.lost.push(Timed { at: now, value: lost });
        }
        let known = records.len() as u64;
        records.extend(found.iter().filter(|command| command.sequence().0 > known).cloned());
        self.record(now, VenueEvent::Started { last, state_hash, journal: found });
        agents.extend(market_recovery.map(|recovery| Box::new(recovery) as Box<dyn Agent>));
        for agent in &mut agents {
            agent.on_start()?;
        }
        let clock_offset = clock.0 - now.0;
        let instance = Instance {
            agents,
            view,
            admin,
            journal,
            instruments,
            reader: None,
            has_follower: true,
            unlogged: 0,
            clock_offset,
        };
        self.instance = Some(instance);
        self.record_sequenced(now);
        Ok(())
    }

    fn read_log(&self, session: SessionName) -> Result<Vec<LogCommand>, OpenError> {
        let accept_loss = self.journal.accept_loss;
        let options = InspectOptions { session: Some(session), from: Sequence(0), accept_loss };
        let found = inspect(&self.disk, &options)?;
        let mut records = Vec::new();
        if found.first_sequence().0 > 0 {
            let mut reader = Reader::open(&self.disk, session, found.first_sequence())?;
            read_records(&mut reader, found.last_sequence(), &mut records)?;
        }
        Ok(records)
    }

    /// Returns true if the venue started with fewer commands than the previous instance had sequenced.
    pub(crate) fn has_lost_commands(&self) -> bool {
        matches!(&self.log.sequenced[..], [.., before, begin] if begin.value < before.value)
    }

    /// Runs one duty cycle of an agent; returns its amount of work, or `None` if the venue crashed.
    pub(crate) fn step_agent(&mut self, now: Nanos, agent: usize) -> Option<usize> {
        let Some(instance) = &mut self.instance else { return Some(0) };
        let clock = Nanos(now.0 + instance.clock_offset);
        TscClock::simulate(clock);
        let result = match instance.agents[agent].do_work(clock) {
            Ok(0) => instance.agents[agent].do_background_work(clock),
            other => other,
        };
        if self.has_lost_power(now) {
            return None;
        }
        if agent == ORDER_SERVER {
            self.record_sequenced(now);
            self.record_unlogged(now);
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
        let Some(instance) = &mut self.instance else { return Some(0) };
        let work = instance.journal.work_on_disk();
        (!self.has_lost_power(now)).then_some(work)
    }

    pub(crate) fn step_follower(&mut self, now: Nanos) -> Option<usize> {
        self.read_written_records();
        let Some(instance) = self.instance.as_mut().filter(|instance| instance.has_follower) else {
            return Some(0);
        };
        let followed = instance.journal.follow();
        if let Err(error) = &followed {
            instance.has_follower = !error.is_final();
        }
        (!self.has_lost_power(now)).then_some(followed.unwrap_or(0))
    }

    pub(crate) fn step_copies(&mut self, now: Nanos) -> Option<usize> {
        let Some(instance) = self.instance.as_mut().filter(|instance| instance.has_copies()) else {
            return Some(0);
        };
        match instance.journal.run_drop_copy(Nanos(now.0 + instance.clock_offset)) {
            Ok(work) => Some(work),
            Err(error) => {
                self.copy_failures.push(Timed { at: now, value: error.to_string() });
                Some(0)
            }
        }
    }

    /// Reads the log's new records, before the journal's follower makes snapshots and removes segments.
    fn read_written_records(&mut self) {
        let Some(instance) = &mut self.instance else { return };
        let reader = match instance.reader.take() {
            Some(reader) => Ok(reader),
            None => {
                let next = Sequence(self.log.commands.len() as u64 + 1);
                Reader::open(&self.disk, instance.journal.recovery.session, next)
            }
        };
        if let Ok(mut reader) = reader {
            let read = read_records(&mut reader, Sequence(u64::MAX), &mut self.log.commands);
            instance.reader = read.is_ok().then_some(reader);
        }
    }

    /// Returns the number of market data messages that all instances published; 0 while the venue is down.
    pub(crate) fn published(&self) -> u64 {
        self.instance.as_ref().map_or(0, |instance| instance.view.publisher.messages.read())
    }

    /// Returns true if all sequenced commands are durable, matched, published and copied to drop copies.
    pub(crate) fn is_quiescent(&self) -> bool {
        let Some(instance) = &self.instance else { return false };
        let view = &instance.view;
        let commands = view.order_server.commands.read();
        view.journal.durable.read() == commands
            && view.matcher.commands.read() + instance.journal.recovery.last.0 == commands
            && view.matcher.market_events.read() == view.publisher.messages.read()
            && (self.journal.drop_copy.is_none() || view.drop_copy.commands.read() == commands)
    }

    /// Returns true while an instrument is in an auction, during which the venue publishes repeatedly.
    pub(crate) fn is_in_auction(&self) -> bool {
        let code = u64::from(TradingState::QuotationOnly.code());
        self.instance
            .as_ref()
            .is_some_and(|instance| instance.view.states.iter().any(|state| state.read() == code))
    }

    /// Returns true while the venue makes no market data snapshots because it missed a published message.
    pub(crate) fn are_snapshots_behind(&self) -> bool {
        self.instance.as_ref().is_some_and(|instance| instance.view.market_recovery.is_behind.read() > 0)
    }

    /// Returns true if there will be no more drop copies until the venue restarts.
    pub(crate) fn have_copies_failed(&self) -> bool {
        self.instance.as_ref().is_some_and(|instance| !instance.has_copies())
    }

    /// Returns the number of traded instruments, including added ones.
    pub(crate) fn instrument_count(&self) -> u16 {
        let instruments =
            self.instance.as_ref().map_or(&self.settings.instruments, |instance| &instance.instruments);
        instruments.next_id().0 - 1
    }

    /// Submits an administrator's command; returns false if the venue is down or did not accept it.
    pub(crate) fn command(&mut self, command: AdminCommand) -> bool {
        let Some(instance) = &mut self.instance else { return false };
        while instance.admin.poll().is_some() {}
        instance.admin.submit(command).is_some()
    }

    pub(crate) fn crash(&mut self, now: Nanos, failure: HostFailure) {
        if self.instance.is_none() {
            return;
        }
        self.record(now, VenueEvent::Crashed(failure));
        match failure {
            HostFailure::Process => self.disk.kill(),
            HostFailure::Power => {
                self.disk.crash();
                self.power_losses += 1;
            }
        }
        self.end_instance(failure);
    }

    /// If the disk lost power during a change, cuts the power of the whole machine and returns true.
    fn has_lost_power(&mut self, now: Nanos) -> bool {
        if !self.is_power_lost() {
            return false;
        }
        self.record(now, VenueEvent::Crashed(HostFailure::Power));
        self.end_instance(HostFailure::Power);
        true
    }

    fn is_power_lost(&mut self) -> bool {
        let crashes = self.disk.counters().crashes;
        std::mem::replace(&mut self.power_losses, crashes) != crashes
    }

    fn end_instance(&mut self, failure: HostFailure) {
        // Remove the sockets before the agents, so that no peer sees the agents close them.
        self.network.wires().network.kill(VENUE, failure);
        self.instance = None;
    }

    pub(crate) fn power_on(&mut self) {
        self.network.wires().network.power_on(VENUE);
    }

    /// Handles the failure of an agent: as in production, all agents are closed and the process ends.
    fn fail(&mut self, now: Nanos) {
        self.record(now, VenueEvent::DiskFailed);
        if let Some(instance) = &mut self.instance {
            instance.agents.iter_mut().for_each(|agent| agent.on_close());
        }
        self.record(now, VenueEvent::Crashed(HostFailure::Process));
        self.disk.kill();
        self.end_instance(HostFailure::Process);
    }

    /// Stops the venue while no other part runs. Returns its final state, if it still has an engine.
    pub(crate) fn stop(&mut self, now: Nanos, mut advance: impl FnMut(Nanos)) -> Option<FinalVenue> {
        let mut at = now;
        let mut is_done = false;
        while !is_done && at < now + FINISH_TIMEOUT {
            at = at + FINISH_CYCLE;
            advance(at);
            let instance = self.instance.as_mut()?;
            let clock = Nanos(at.0 + instance.clock_offset);
            TscClock::simulate(clock);
            while instance.journal.work_on_disk() > 0 {}
            is_done = true;
            for agent in &mut instance.agents {
                // An agent that fails is not done: the loop then ends at the timeout.
                is_done &= agent.finish(clock).unwrap_or(false);
            }
        }
        self.record_sequenced(at);
        let instance = self.instance.as_mut()?;
        instance.agents.iter_mut().for_each(|agent| agent.on_close());
        while instance.journal.work_on_disk() > 0 {}
        self.read_written_records();
        self.record(now, VenueEvent::Stopped);
        let last = self.last(Nanos(now.0 + self.instance.as_ref()?.clock_offset));
        self.disk.kill();
        self.end_instance(HostFailure::Process);
        last
    }

    /// Returns the venue's final state after its stop.
    fn last(&self, stopped_at: Nanos) -> Option<FinalVenue> {
        let view = &self.instance.as_ref()?.view;
        let guard = view.engine.lock().ok()?;
        let engine = guard.as_deref()?;
        let mut displayed = Vec::new();
        for instrument in self.instance.as_ref()?.instruments.iter() {
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

    /// Returns the snapshots on the disk that can be read.
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

    fn record_sequenced(&mut self, now: Nanos) {
        let Some(instance) = &self.instance else { return };
        let last = Sequence(instance.view.order_server.commands.read());
        if self.log.sequenced.last().is_none_or(|sequenced| sequenced.value != last) {
            self.log.sequenced.push(Timed { at: now, value: last });
        }
    }

    fn record_unlogged(&mut self, now: Nanos) {
        let Some(instance) = &mut self.instance else { return };
        let unlogged = instance.view.journal.unlogged_refusals.read();
        let count = unlogged - std::mem::replace(&mut instance.unlogged, unlogged);
        if count > 0 {
            self.log.unlogged.push(Timed { at: now, value: count });
        }
    }

    fn record(&mut self, now: Nanos, value: VenueEvent) {
        self.events.push(Timed { at: now, value });
    }
}

/// Returns the number of operations that a disk has refused.
fn refusals(disk: &FaultyDisk) -> u64 {
    let counters = disk.counters();
    counters.failed_writes + counters.failed_syncs + counters.disk_full
}

fn read_records(
    reader: &mut Reader<FaultyDisk>,
    limit: Sequence,
    records: &mut Vec<LogCommand>,
) -> Result<(), OpenError> {
    while let Some(record) = reader.next(limit)? {
        match LogCommand::decode(record.payload) {
            Ok(command) => records.push(command),
            // A venue would refuse to start with this record. The checkers report the command as missing.
            Err(_) => return Ok(()),
        }
    }
    Ok(())
}
