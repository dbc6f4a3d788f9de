//! A gateway's client endpoint, and its clients.

use std::path::{Path, PathBuf};

use anyhow::Context as _;
use tempfile::TempDir;
use tickpath_gateway_io::{ClientConfig, ClientPort, ClientPortConfig};
use tickpath_gateway_protocol::frame::Password;
use tickpath_gateway_protocol::{Event, EventKind, OrderAck, Text};
use tickpath_shm::{Folder, SegmentName};

/// Password of every client.
pub(crate) const PASSWORD: &str = "test";

/// Temporary folder for an endpoint's socket and shared memory.
pub(crate) struct PortFolder {
    folder: TempDir,
}

impl PortFolder {
    pub(crate) fn make() -> anyhow::Result<PortFolder> {
        Ok(PortFolder { folder: tempfile::tempdir()? })
    }

    fn socket(&self) -> PathBuf {
        self.folder.path().join("gateway.sock")
    }

    /// Opens the endpoint; `adjust` changes its default configuration.
    pub(crate) fn open(&self, adjust: impl FnOnce(&mut ClientPortConfig)) -> anyhow::Result<ClientPort> {
        let folder = Folder::create(&self.folder.path().join("shm"))?;
        let mut config = ClientPortConfig::new(&self.socket(), folder, SegmentName::new("lab")?);
        adjust(&mut config);
        Ok(ClientPort::open(config)?)
    }

    /// Returns the configuration of a client of the endpoint.
    pub(crate) fn client(&self) -> anyhow::Result<ClientConfig> {
        client(&self.socket(), "lab")
    }
}

/// Returns the configuration of a client that logs in to a gateway's socket as `user`.
pub(crate) fn client(socket: &Path, user: &str) -> anyhow::Result<ClientConfig> {
    let password = Password::new(PASSWORD.as_bytes()).context("it is short")?;
    Ok(ClientConfig::new(socket, Text::new(user).context("it is short")?, password))
}

/// Returns the event's body if the event acknowledges order `client_order_id`.
pub(crate) fn ack_of(event: &Event, client_order_id: u64) -> Option<OrderAck> {
    if event.header.kind != EventKind::ORDER_ACK {
        return None;
    }
    event.body::<OrderAck>().filter(|ack| ack.client_order_id == client_order_id)
}
