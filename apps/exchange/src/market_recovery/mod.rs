//! Market data recovery for late joiners and clients that lost messages: snapshots over TCP and multicast,
//! and old messages from the journal. It uses only published messages, and runs as a separate agent.

mod glimpse;
mod settings;

use std::io;
use std::net::SocketAddrV4;
use std::sync::Arc;

use anyhow::Context as _;
use tickpath_agent::{Agent, AgentError, BackgroundThread, TscClock, WaitSet, Waker};
use tickpath_lockfree::spsc;
use tickpath_nasdaq::moldudp64::Session;
use tickpath_net::{DatagramSender, Network, SendStatus};
use tickpath_types::{Nanos, Sequence};
use tickpath_venue::market_recovery::{
    ArchiveLink, CatchUp, MessageArchive, RecoveryCounters, SnapshotChannel,
};
use tickpath_venue::{MarketImage, MessageCopies, PublishedMessage, Replica, StoredLog};
use zerocopy::IntoBytes;

pub use glimpse::GlimpseServer;
pub use settings::{MarketRecoverySettings, SnapshotSettings};

use crate::background_agent::start_background_agent;
use crate::venue::VenueSettings;

/// Maximum number of published messages applied in one duty cycle.
const MESSAGES_PER_CYCLE: usize = 1 << 12;
/// Maximum number of multicast snapshot packets sent in one duty cycle.
const PACKETS_PER_CYCLE: usize = 8;
/// Minimum time between two attempts to rebuild the market state.
const RENEWAL_WAIT: Nanos = Nanos::from_secs(1);
/// Maximum sleep between two checks for published messages.
const COPIES_WAIT: Nanos = Nanos::from_millis(20);

/// Sends snapshots of the published market state, and reads old messages from the journal for retransmission.
///
/// Runs on a separate thread ([`MarketRecovery::start`]) or, as an agent, on any thread. If nothing runs it,
/// no client is served, and the venue is not affected.
pub struct MarketRecovery {
    snapshots: Option<Box<dyn Snapshots>>,
    archive: Option<MessageArchive<SocketAddrV4>>,
    next_renewal: Nanos,
    latest: Nanos,
}

/// Interface of [`SnapshotServices`] that does not depend on the type of the network.
trait Snapshots: Send {
    /// Applies published messages and does bounded work for snapshot clients; returns the amount of work.
    fn poll(&mut self, now: Nanos) -> usize;
    /// Adds to `wait` the GLIMPSE socket and the times of the next work.
    fn wait_for(&self, now: Nanos, wait: &mut WaitSet);
    /// True once a published message was missed or invalid, until the market state is rebuilt.
    fn is_behind(&self) -> bool;
    /// Replaces the incomplete market state with `image`, rebuilt from the journal up to its durable end.
    fn renew(&mut self, image: MarketImage);
    /// The listening address of GLIMPSE.
    fn glimpse_address(&self) -> SocketAddrV4;
    /// Ends all clients' sessions.
    fn close(&mut self, now: Nanos);
}

struct SnapshotServices<N: Network> {
    copies: spsc::Consumer<PublishedMessage>,
    image: MarketImage,
    glimpse: GlimpseServer<N>,
    channel: SnapshotChannel,
    sender: N::Sender,
    counters: Arc<RecoveryCounters>,
}

/// The publisher's ends of the rings to market data recovery.
#[derive(Default)]
pub(crate) struct PublisherLinks {
    pub(crate) copies: Option<MessageCopies>,
    pub(crate) archive: Option<ArchiveLink<SocketAddrV4>>,
}

impl MarketRecovery {
    /// Opens the snapshot endpoints, if configured, and the archive of `log`, if there is a log.
    pub(crate) fn build<N: Network>(
        network: &N,
        venue: &VenueSettings,
        replica: &Replica,
        session: Session,
        log: Option<Box<dyn StoredLog>>,
        counters: &Arc<RecoveryCounters>,
    ) -> anyhow::Result<(Option<MarketRecovery>, PublisherLinks)> {
        let mut links = PublisherLinks::default();
        let archive = log.map(|log| {
            let (link, port) = ArchiveLink::new();
            links.archive = Some(link);
            MessageArchive::new(log, session, venue.packet_bytes, port, Arc::clone(counters))
        });
        let snapshots = match &venue.market_recovery.snapshots {
            None => None,
            Some(settings) => {
                let image = MarketImage::of(replica);
                let (copies, reader) = MessageCopies::from(image.next_sequence().0);
                links.copies = Some(copies);
                let services =
                    SnapshotServices::open(network, venue, settings, session, counters, (image, reader));
                Some(services?)
            }
        };
        let is_needed = snapshots.is_some() || archive.is_some();
        let recovery = MarketRecovery { snapshots, archive, next_renewal: Nanos::ZERO, latest: Nanos::ZERO };
        Ok((is_needed.then_some(recovery), links))
    }

    /// The listening address of GLIMPSE, if enabled.
    #[must_use]
    pub fn glimpse_address(&self) -> Option<SocketAddrV4> {
        self.snapshots.as_ref().map(|snapshots| snapshots.glimpse_address())
    }

    /// Does a bounded amount of work; returns the amount of work.
    pub fn run_once(&mut self, now: Nanos) -> usize {
        self.latest = now;
        let work = self.poll_archive(now);
        work + self.snapshots.as_mut().map_or(0, |snapshots| snapshots.poll(now))
    }

    /// Rebuilds the market state if it is behind, else serves archive requests; returns the amount of work.
    fn poll_archive(&mut self, now: Nanos) -> usize {
        let Some(archive) = &mut self.archive else { return 0 };
        match &mut self.snapshots {
            Some(snapshots) if snapshots.is_behind() && now >= self.next_renewal => {
                match archive.catch_up(now) {
                    CatchUp::Working(count) => return count,
                    CatchUp::Done(image) => snapshots.renew(*image),
                    CatchUp::Impossible => {}
                }
                self.next_renewal = now + RENEWAL_WAIT;
                1
            }
            _ => archive.poll(now),
        }
    }

    /// Runs on a separate thread until the handle is dropped. Dropping it ends all clients' sessions.
    ///
    /// # Errors
    /// The system could not start a thread.
    pub fn start(self, clock: TscClock) -> io::Result<BackgroundThread> {
        start_background_agent(Box::new(self), clock)
    }
}

impl<N: Network> SnapshotServices<N> {
    fn open(
        network: &N,
        venue: &VenueSettings,
        settings: &SnapshotSettings,
        session: Session,
        counters: &Arc<RecoveryCounters>,
        (image, copies): (MarketImage, spsc::Consumer<PublishedMessage>),
    ) -> anyhow::Result<Box<dyn Snapshots>> {
        let counters = Arc::clone(counters);
        let glimpse = GlimpseServer::bind(network, settings, venue.pre_login, session, Arc::clone(&counters))
            .context("snapshots over TCP")?;
        let sender = network.sender(settings.group, venue.interface).context("snapshots by multicast")?;
        let (packet_bytes, interval) = (venue.packet_bytes, settings.interval);
        let channel = SnapshotChannel::new(session, packet_bytes, interval, Arc::clone(&counters));
        Ok(Box::new(SnapshotServices { copies, image, glimpse, channel, sender, counters }))
    }

    /// Sends some multicast snapshot packets; returns their number. A later cycle retries an unsent packet.
    fn send_on_channel(&mut self, now: Nanos) -> usize {
        let SnapshotServices { channel, sender, counters, .. } = self;
        channel.handle_time(now, &self.image);
        let mut count = 0;
        while count < PACKETS_PER_CYCLE
            && let Some(packet) = channel.poll_packet()
        {
            if !matches!(sender.send(packet), Ok(SendStatus::Sent)) {
                counters.channel_unsent.add(1);
                break;
            }
            channel.handle_sent(now);
            count += 1;
        }
        if let Some(heartbeat) = channel.poll_heartbeat(now) {
            _ = sender.send(heartbeat.as_bytes());
        }
        count
    }
}

impl<N: Network> Snapshots for SnapshotServices<N> {
    fn poll(&mut self, now: Nanos) -> usize {
        let SnapshotServices { copies, image, glimpse, counters, .. } = self;
        let mut work = copies.drain(MESSAGES_PER_CYCLE, |copy| {
            // After a rebuild, the ring may still hold messages that the state already covers.
            if copy.sequence >= image.next_sequence().0 {
                image.apply(Sequence(copy.sequence), copy.message());
            }
        });
        work += glimpse.poll(now, image);
        counters.next_sequence.set(image.next_sequence().0);
        counters.is_behind.set(u64::from(!image.is_complete()));
        work + self.send_on_channel(now)
    }

    fn wait_for(&self, now: Nanos, wait: &mut WaitSet) {
        self.glimpse.wait_for(wait);
        wait.until(self.channel.poll_timeout(&self.image));
        if self.channel.is_sending() {
            wait.soon();
        }
        // The publisher does not wake this thread. If the ring is full, the publisher's store keeps messages.
        wait.until(now + COPIES_WAIT);
    }

    fn is_behind(&self) -> bool {
        !self.image.is_complete()
    }

    fn renew(&mut self, image: MarketImage) {
        self.image = image;
        self.counters.renewals.add(1);
    }

    fn glimpse_address(&self) -> SocketAddrV4 {
        self.glimpse.local_address()
    }

    fn close(&mut self, now: Nanos) {
        self.glimpse.close(now);
        _ = self.sender.send(self.channel.end_of_session().as_bytes());
    }
}

impl Agent for MarketRecovery {
    fn do_work(&mut self, now: Nanos) -> Result<usize, AgentError> {
        Ok(self.run_once(now))
    }

    fn wake_by(&mut self, waker: &Waker) {
        self.archive.iter().for_each(|archive| archive.wake_by(waker));
    }

    fn wait_for(&mut self, now: Nanos, wait: &mut WaitSet) {
        if let Some(archive) = &self.archive {
            if archive.is_busy() {
                wait.soon();
            }
            if let Some(at) = archive.poll_timeout() {
                wait.until(at);
            }
        }
        if let Some(snapshots) = &self.snapshots {
            snapshots.wait_for(now, wait);
            if snapshots.is_behind() {
                wait.until(self.next_renewal);
            }
        }
    }

    fn role_name(&self) -> &'static str {
        "market-recovery"
    }

    fn on_close(&mut self) {
        if let Some(snapshots) = &mut self.snapshots {
            snapshots.close(self.latest);
        }
    }
}
