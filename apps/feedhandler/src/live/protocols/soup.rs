//! Live channels of ITCH 5.0 over SoupBinTCP.

use tickpath_feed::itch::SoupStream;
use tickpath_feed::{BookBuilder, MoldUdp64};
use tickpath_net::{BufferSizes, Network, ReconnectConfig};
use tickpath_types::Nanos;

use crate::live::channel::LiveFeed;
use crate::live::protocol::{LiveProtocol, Opening};
use crate::recovery_sockets::RecoveryServers;

const SERVER: ReconnectConfig = ReconnectConfig {
    buffers: BufferSizes::DEFAULT,
    connect_timeout: Nanos::from_secs(5),
    wait_min: Nanos::from_millis(100),
    wait_max: Nanos::from_secs(10),
    failure_wait_min: Nanos::ZERO,
};

pub(super) struct ItchSoup;

impl<N: Network> LiveProtocol<N> for ItchSoup {
    fn server_keys(&self) -> &'static [&'static str] {
        &[]
    }

    fn is_stream(&self) -> bool {
        true
    }

    fn open(&self, opening: Opening<'_, N>) -> anyhow::Result<Box<dyn LiveFeed>> {
        let servers = RecoveryServers {
            connection: opening.section.server.map(|server| (server, SERVER)),
            ..opening.servers()
        };
        let (books, stream) = (BookBuilder::new(opening.books()), SoupStream::new(opening.login()?));
        opening.channel::<_, MoldUdp64, _>(books, servers, stream)
    }
}
