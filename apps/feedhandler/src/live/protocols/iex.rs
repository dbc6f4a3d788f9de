//! Live channels of IEX: DEEP, DEEP+ and TOPS.

use tickpath_feed::IexTp;
use tickpath_feed::iex::{BookBuilder, IexRecovery};
use tickpath_iex::Feed;
use tickpath_iex::snap::FRAME_LEN_MAX;
use tickpath_iex::wire::Alpha;
use tickpath_net::{BufferSizes, Network, ReconnectConfig};
use tickpath_types::Nanos;

use crate::live::channel::LiveFeed;
use crate::live::protocol::{LiveProtocol, Opening};
use crate::live::section::ChannelSection;
use crate::recovery_sockets::RecoveryServers;

/// Reconnect delays of SNAP, the snapshot service. They double, because it limits the snapshots per day.
const SNAP: ReconnectConfig = ReconnectConfig {
    buffers: BufferSizes { receive: 2 * FRAME_LEN_MAX, pending: 4_096 },
    connect_timeout: Nanos::from_secs(5),
    wait_min: Nanos::from_millis(100),
    wait_max: Nanos::from_secs(30),
    failure_wait_min: Nanos::from_secs(1),
};

pub(super) struct Iex(pub(super) Feed);

impl<N: Network> LiveProtocol<N> for Iex {
    fn server_keys(&self) -> &'static [&'static str] {
        &["gap_fill", "snap", "token"]
    }

    fn check(&self, section: &ChannelSection) -> Result<(), &'static str> {
        if section.snap.is_some() && section.token.is_none() {
            return Err("snap needs a token: token = \"env:NAME\"");
        }
        Ok(())
    }

    fn open(&self, opening: Opening<'_, N>) -> anyhow::Result<Box<dyn LiveFeed>> {
        let section = opening.section;
        let token = Alpha::new(&opening.secret(section.token.as_ref())?)
            .ok_or_else(|| opening.invalid("a token has at most 40 characters"))?;
        let servers = RecoveryServers {
            requests: section.gap_fill,
            connection: section.snap.map(|server| (server, SNAP)),
            ..opening.servers()
        };
        let books = BookBuilder::new(self.0, opening.books()).since(opening.midnight);
        opening.channel::<_, IexTp, _>(books, servers, IexRecovery::new(token))
    }
}
