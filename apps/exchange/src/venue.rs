//! The venue put together.

use std::net::{Ipv4Addr, SocketAddrV4};
use std::sync::{Arc, Mutex};

use anyhow::Context;
use tickpath_agent::{Agent, TscClock};
use tickpath_lockfree::spsc;
use tickpath_matching::{Engine, EngineLimits};
use tickpath_nasdaq::moldudp64::Session;
use tickpath_nasdaq::soupbintcp::ServerConfig;
use tickpath_net::{MulticastSender, NetError, UdpEndpoint};
use tickpath_timing::Tracer;
use tickpath_types::{InstrumentTable, Nanos};

use crate::matcher::{FinalEngine, Matcher, MatcherCounters};
use crate::order_server::{
    BATCH_CAPACITY, OrderServer, OrderServerConfig, OrderServerCounters, RESPONSES_PER_CYCLE,
};
use crate::publisher::{Publisher, PublisherConfig, PublisherCounters};
use crate::sequencer::Sequencer;
use crate::users::{Credentials, Users};

/// Slots of the rings between the agents: more than 4 ms of a million messages a second.
const RING_CAPACITY: usize = 1 << 13;

/// Everything that a venue needs to know, checked.
#[derive(Clone)]
pub struct VenueSettings {
    /// Name of the session.
    pub session: Session,
    /// What is traded.
    pub instruments: InstrumentTable,
    /// Where orders are taken; port 0 takes a free one.
    pub order_entry: SocketAddrV4,
    /// Connections at a time.
    pub max_connections: usize,
    /// Messages kept for each user; 256 at least.
    pub retained_responses: usize,
    /// Who may log in; their sessions are 1, 2, 3 ... in this order.
    pub users: Vec<Credentials>,
    /// Group and port of line A.
    pub line_a: SocketAddrV4,
    /// Group and port of line B.
    pub line_b: SocketAddrV4,
    /// Interface of both lines.
    pub interface: Ipv4Addr,
    /// Where retransmission is requested; port 0 takes a free one.
    pub retransmission: SocketAddrV4,
    /// Longest datagram.
    pub packet_bytes: usize,
    /// After so long without a packet a heartbeat is sent.
    pub heartbeat: Nanos,
    /// Messages kept for retransmission.
    pub retained_messages: usize,
    /// Bounds of the engine.
    pub limits: EngineLimits,
}

/// Where the venue can be reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Endpoints {
    /// OUCH over SoupBinTCP.
    pub order_entry: SocketAddrV4,
    /// ITCH over MoldUDP64, line A.
    pub line_a: SocketAddrV4,
    /// The same on line B.
    pub line_b: SocketAddrV4,
    /// MoldUDP64 requests.
    pub retransmission: SocketAddrV4,
}

/// What can be read of a venue while it runs, and afterwards.
#[derive(Clone, Default)]
pub struct VenueView {
    /// The order server's counts.
    pub order_server: Arc<OrderServerCounters>,
    /// The matcher's counts.
    pub matcher: Arc<MatcherCounters>,
    /// The publisher's counts.
    pub publisher: Arc<PublisherCounters>,
    /// The engine, once the venue has stopped.
    pub engine: FinalEngine,
}

/// One tracer for each agent of the venue.
pub struct VenueTracers<T> {
    /// The order server's.
    pub order_server: T,
    /// The matcher's.
    pub matcher: T,
    /// The publisher's.
    pub publisher: T,
}

/// A venue that is ready to run: its agents, to be placed on threads.
pub struct Venue {
    /// `order-server`, `matcher` and `publisher`.
    pub agents: Vec<Box<dyn Agent>>,
    /// Where it can be reached.
    pub endpoints: Endpoints,
    /// What can be read of it.
    pub view: VenueView,
}

impl Venue {
    /// Opens the venue's sockets and joins its agents by rings.
    ///
    /// # Errors
    /// An address that is in use or not this machine's, or instruments that cannot be matched.
    pub fn build<T: Tracer + Send + 'static>(
        settings: &VenueSettings,
        clock: TscClock,
        tracers: VenueTracers<T>,
    ) -> anyhow::Result<Venue> {
        let view = VenueView { engine: Arc::new(Mutex::new(None)), ..VenueView::default() };
        let (commands_in, commands_out) = spsc::channel(RING_CAPACITY);
        let (responses_in, responses_out) = spsc::channel(RING_CAPACITY);
        let (market_in, market_out) = spsc::channel(RING_CAPACITY);

        let order_server = OrderServer::new(
            OrderServerConfig {
                address: settings.order_entry,
                session: settings.session,
                max_connections: settings.max_connections,
                soup: ServerConfig::default(),
                instruments: settings.instruments.clone(),
            },
            Users::new(&settings.users, settings.retained_responses.max(RESPONSES_PER_CYCLE)),
            Sequencer::new(commands_in, BATCH_CAPACITY),
            responses_out,
            clock,
            Arc::clone(&view.order_server),
            tracers.order_server,
        )
        .context("order entry")?;
        let engine = Engine::new(settings.instruments.as_slice(), settings.limits)?;
        let matcher = Matcher::new(
            engine,
            commands_out,
            responses_in,
            market_in,
            Arc::clone(&view.matcher),
            Arc::clone(&view.engine),
            tracers.matcher,
        );
        let sender = |group| MulticastSender::new(group, settings.interface);
        let requests = UdpEndpoint::bind(settings.retransmission).map_err(retransmission_error)?;
        let endpoints = Endpoints {
            order_entry: order_server.local_address(),
            line_a: settings.line_a,
            line_b: settings.line_b,
            retransmission: requests.local_address(),
        };
        let publisher = Publisher::new(
            PublisherConfig {
                session: settings.session,
                instruments: settings.instruments.clone(),
                packet_bytes: settings.packet_bytes,
                heartbeat: settings.heartbeat,
                retained_messages: settings.retained_messages,
            },
            market_out,
            [sender(settings.line_a).context("line A")?, sender(settings.line_b).context("line B")?],
            requests,
            Arc::clone(&view.publisher),
            tracers.publisher,
        );
        Ok(Venue {
            agents: vec![Box::new(order_server), Box::new(matcher), Box::new(publisher)],
            endpoints,
            view,
        })
    }
}

/// Another port for orders is no remedy here: a second venue needs market data addresses of its own.
fn retransmission_error(error: NetError) -> anyhow::Error {
    match error {
        NetError::AddressInUse { address } => anyhow::anyhow!(
            "retransmission: address {address} is in use: another venue? give this one lines and a \
             retransmission address of its own under [market_data]"
        ),
        other => anyhow::Error::from(other).context("retransmission"),
    }
}
