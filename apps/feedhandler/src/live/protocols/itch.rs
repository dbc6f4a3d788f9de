//! Live channels of ITCH 5.0 in MoldUDP64.

use tickpath_feed::itch::ItchRecovery;
use tickpath_feed::{BookBuilder, MoldUdp64};
use tickpath_net::Network;

use crate::live::channel::LiveFeed;
use crate::live::protocol::{LiveProtocol, Opening};
use crate::recovery_sockets::RecoveryServers;
use crate::snapshots::GLIMPSE;

pub(super) struct Itch;

impl<N: Network> LiveProtocol<N> for Itch {
    fn server_keys(&self) -> &'static [&'static str] {
        &["retransmission", "glimpse", "snapshots"]
    }

    fn open(&self, opening: Opening<'_, N>) -> anyhow::Result<Box<dyn LiveFeed>> {
        let section = opening.section;
        let servers = RecoveryServers {
            requests: section.retransmission,
            connection: section.glimpse.map(|server| (server, GLIMPSE)),
            groups: [section.snapshots, None],
            ..opening.servers()
        };
        let (has_glimpse, has_group) = (section.glimpse.is_some(), section.snapshots.is_some());
        let recovery = ItchRecovery::new(opening.login()?, has_glimpse, has_group);
        let books = BookBuilder::new(opening.books());
        opening.channel::<_, MoldUdp64, _>(books, servers, recovery)
    }
}
