//! The interface of a live channel's protocol.

use std::path::Path;

use anyhow::Context;
use tickpath_book::{BookLimits, BooksById, PackedBooks};
use tickpath_config::{ConfigError, Secret};
use tickpath_feed::{Channel, Framing, MessageBooks, Recovering, RecoveryClient, RecoveryInput};
use tickpath_nasdaq::soupbintcp::LoginRequest;
use tickpath_net::{Network, RecvBatch};
use tickpath_types::{InstrumentId, Nanos, Symbol};

use super::channel::{LiveChannel, LiveFeed};
use super::outputs::{ChannelOutput, Sink};
use super::section::ChannelSection;
use crate::channel_handler::ChannelHandler;
use crate::lines::{LineReader, Lines};
use crate::recovery_sockets::{RecoveryServers, RecoverySockets};

/// Maximum number of datagrams received from one line with one call.
const BATCH: usize = 32;
/// Receive buffer length, sufficient for jumbo frames. A longer datagram is counted and dropped.
const DATAGRAM_MAX: usize = 9_216;

/// A protocol of live channels. Each protocol is implemented in `protocols` and listed in `protocols/mod.rs`.
pub(super) trait LiveProtocol<N: Network>: Sync {
    /// Returns the protocol-specific keys of a channel's section that this protocol supports.
    fn server_keys(&self) -> &'static [&'static str];

    /// Returns whether messages come from a server, not multicast lines.
    fn is_stream(&self) -> bool {
        false
    }

    /// Checks the protocol-specific keys of a section.
    fn check(&self, section: &ChannelSection) -> Result<(), &'static str> {
        let _ = section;
        Ok(())
    }

    /// Opens a channel.
    fn open(&self, opening: Opening<'_, N>) -> anyhow::Result<Box<dyn LiveFeed>>;
}

/// The inputs for opening a channel.
pub(super) struct Opening<'a, N> {
    pub(super) network: &'a N,
    pub(super) section: &'a ChannelSection,
    /// The configuration file, if any: relative `file:` secrets begin at its folder.
    pub(super) path: Option<&'a Path>,
    /// Symbols for the outputs; all when empty.
    pub(super) symbols: Vec<Symbol>,
    /// The midnight from which update times count, as time since the Unix epoch.
    pub(super) midnight: Nanos,
}

impl<N: Network> Opening<'_, N> {
    fn last_instrument(&self) -> InstrumentId {
        InstrumentId(self.section.max_instruments)
    }

    /// Returns empty books with the limits of the section.
    pub(super) fn books(&self) -> PackedBooks {
        PackedBooks::new(BookLimits::new(self.last_instrument(), self.section.max_orders))
    }

    /// Resolves a secret of the section; returns an empty string for `None`.
    pub(super) fn secret(&self, secret: Option<&Secret>) -> Result<String, ConfigError> {
        secret.map_or(Ok(String::new()), |secret| secret.resolve(self.path))
    }

    /// Returns an error that names the channel.
    pub(super) fn invalid(&self, problem: &str) -> ConfigError {
        ConfigError::value(format!("channel '{}': {problem}", self.section.name))
    }

    /// Returns the SoupBinTCP login with the section's user and password.
    pub(super) fn login(&self) -> anyhow::Result<LoginRequest> {
        let password = self.secret(self.section.password.as_ref())?;
        let login = LoginRequest::new(&self.section.user, &password);
        Ok(login.ok_or_else(|| self.invalid("user has at most 6 characters, password 10"))?)
    }

    /// Returns [`RecoveryServers`] with the section's interface and senders, but no servers or groups yet.
    pub(super) fn servers(&self) -> RecoveryServers {
        RecoveryServers {
            requests: None,
            connection: None,
            groups: [None; _],
            interface: self.section.interface,
            senders: self.section.senders(),
        }
    }

    /// Opens a channel with the given books: joins its lines, and opens the sockets of its recovery client.
    pub(super) fn channel<B, F, R>(
        self,
        books: B,
        servers: RecoveryServers,
        recovery: R,
    ) -> anyhow::Result<Box<dyn LiveFeed>>
    where
        B: MessageBooks + Send + 'static,
        F: Framing<Session: Send, Storage: Send> + Send + 'static,
        R: RecoveryClient<Request = F::Request> + Send + 'static,
        R: for<'a, 's> RecoveryInput<Recovering<'a, B, F, Sink<'s>>>,
    {
        let section = self.section;
        let channel = || format!("channel '{}'", section.name);
        let (groups, interface) = ([section.line_a, section.line_b], section.interface);
        let lines = Lines::join(self.network, groups, interface, section.senders(), LineReader::Sockets);
        Ok(Box::new(LiveChannel {
            name: section.name.clone(),
            handler: ChannelHandler {
                lines: lines.with_context(channel)?.0,
                sockets: RecoverySockets::open(self.network, servers, &recovery).with_context(channel)?,
                recovery,
                channel: Channel::<B, F>::new(&section.core(), books),
            },
            batch: RecvBatch::new(BATCH, DATAGRAM_MAX),
            output: ChannelOutput::new(self.last_instrument(), self.symbols),
        }))
    }
}
