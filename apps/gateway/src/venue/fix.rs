//! FIX sessions for orders, one per account.

use tickpath_deribit::credits::CreditPlan;
use tickpath_deribit_link::{FixChange, FixLink, FixLinkConfig, FixListener, FixRoute};
use tickpath_fix::{Message, MsgType};
use tickpath_types::Nanos;
use tickpath_web::TlsClient;

use super::{AccountKey, Ear};
use crate::config::{GatewayConfig, Transport};
use crate::metrics::{Exception, Function};

/// Maximum length of a venue message, in bytes: the report of a mass cancel names its orders.
const MESSAGE_LEN_MAX: usize = 1 << 20;
/// Maximum length of a SenderCompID, in characters.
const NAME_LEN_MAX: usize = 64;

/// Creates the sessions of all accounts, switched off; none if orders use the WebSocket.
///
/// # Errors
/// Certificates cannot be read, or the proxy is invalid.
pub(super) fn links(config: &GatewayConfig, keys: &[AccountKey]) -> anyhow::Result<Vec<FixLink>> {
    let venue = &config.venue;
    let Some(uri) = venue.fix_uri.as_ref().filter(|_| venue.transport == Transport::Fix) else {
        return Ok(Vec::new());
    };
    let tls = match (&venue.ca_file, uri.is_tls) {
        (_, false) => None,
        (Some(path), true) => Some(TlsClient::with_ca_file(path)?),
        (None, true) => Some(TlsClient::with_system_roots()?),
    };
    let proxy = venue.proxy.as_ref().map(|proxy| proxy.parse()).transpose()?;
    let route = FixRoute { host: uri.host.clone(), port: uri.port, proxy, tls };
    let of_account = |(name, key): (&String, &AccountKey)| {
        let mut sender = format!("{}-{name}", config.name);
        sender.truncate(NAME_LEN_MAX);
        let mut link = FixLinkConfig::new(route.clone(), &sender, key.key.clone());
        link.session.heartbeat = venue.fix_ping_interval.0;
        link.session.message_len_max = MESSAGE_LEN_MAX;
        link.session.output_len = venue.encode_buffer.0 as usize;
        link.cancel_on_disconnect = venue.cancel_on_disconnect;
        link.matching = CreditPlan::rate(venue.matching_rate.into(), venue.matching_burst.into());
        link.pause_max = venue.reconnect_pause_max.0;
        FixLink::new(link)
    };
    Ok(config.accounts.keys().zip(keys).map(of_account).collect())
}

impl FixListener for Ear<'_> {
    #[inline]
    fn now(&mut self, _: Nanos) -> Nanos {
        self.clock.now()
    }

    #[inline]
    fn on_message(&mut self, at: Nanos, message: &Message<'_>) {
        let function = match message.msg_type() {
            MsgType::EXECUTION_REPORT | MsgType::ORDER_CANCEL_REJECT => Function::ParseOrder,
            _ => Function::ParseOther,
        };
        let begun = self.clock.now();
        self.note_bytes(at, message);
        self.core.handle_fix(self.stream, at, message, self.door);
        self.door.metrics().parsed(self.stream, function).record(self.clock.now().since(begun).0);
    }

    fn on_session_message(&mut self, at: Nanos, message: &Message<'_>) {
        self.note_bytes(at, message);
        self.core.keep_session_message(self.stream, at, message);
    }

    fn on_change(&mut self, at: Nanos, change: FixChange<'_>) {
        match change {
            FixChange::Begun => self.core.handle_begun(self.stream, at, self.door),
            FixChange::Opened => self.core.handle_opened(self.stream, at, self.door),
            FixChange::Ready => {
                let event = tickpath_deribit::session::SessionEvent::Ready;
                self.core.handle_event(self.stream, at, event, self.door);
            }
            FixChange::Lost { why, .. } => {
                self.door.metrics().count_exception(Exception::Disconnect);
                self.notes.lost(self.stream, self.core.stream_name(self.stream), why);
                self.core.handle_lost(self.stream, at, self.door);
            }
            _ => {}
        }
    }
}

impl Ear<'_> {
    fn note_bytes(&mut self, at: Nanos, message: &Message<'_>) {
        let metrics = self.door.metrics();
        metrics.count_bytes(self.stream, message.as_bytes().len() as u64);
        metrics.updated_ns.set(at.0);
    }
}
