//! Live channels of NYSE's XDP Integrated Feed.

use tickpath_feed::xdp::{self, RequestSource, XdpRecovery};
use tickpath_net::{BufferSizes, Network, ReconnectConfig};
use tickpath_nyse::SourceId;
use tickpath_types::Nanos;

use crate::live::channel::LiveFeed;
use crate::live::protocol::{LiveProtocol, Opening};
use crate::live::section::ChannelSection;
use crate::recovery_sockets::RecoveryServers;

const REQUEST_SERVER: ReconnectConfig = ReconnectConfig {
    buffers: BufferSizes { receive: 64 << 10, pending: 16 << 10 },
    ..ReconnectConfig::fixed(Nanos::from_secs(5), Nanos::from_secs(1))
};

pub(super) struct Xdp;

impl<N: Network> LiveProtocol<N> for Xdp {
    fn server_keys(&self) -> &'static [&'static str] {
        &["request_server", "retransmission_group", "refresh_group"]
    }

    fn check(&self, section: &ChannelSection) -> Result<(), &'static str> {
        let has_group = section.retransmission_group.is_some() || section.refresh_group.is_some();
        if section.request_server.is_some() && !has_group {
            return Err("request_server answers by multicast: name retransmission_group");
        }
        Ok(())
    }

    fn open(&self, opening: Opening<'_, N>) -> anyhow::Result<Box<dyn LiveFeed>> {
        let section = opening.section;
        let mut groups = [None; _];
        groups[XdpRecovery::RETRANSMISSION_GROUP] = section.retransmission_group;
        groups[XdpRecovery::REFRESH_GROUP] = section.refresh_group;
        let connection = section.request_server.map(|server| (server, REQUEST_SERVER));
        let servers = RecoveryServers { connection, groups, ..opening.servers() };
        let recovery = XdpRecovery::new(RequestSource {
            source_id: SourceId::new(&section.source_id).expect("checked with the configuration"),
            product_id: section.product,
            channel_id: section.channel_id,
        });
        let books = xdp::BookBuilder::new(opening.books(), opening.midnight);
        opening.channel::<_, xdp::Packets, _>(books, servers, recovery)
    }
}
