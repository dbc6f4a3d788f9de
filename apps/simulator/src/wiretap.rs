//! Records the order entry connections of traders in the form of a client's log, since traders keep none.

use std::collections::BTreeMap;

use tickpath_nasdaq::soupbintcp::{Packet, next_packet};
use tickpath_simnet::{ClosedBy, SocketId, StreamEvent};
use tickpath_types::{Nanos, Sequence, SessionId};

use crate::hosts::ORDER_ENTRY;
use crate::net::StreamPart;
use crate::{ClientEvent, ClientEventKind, ClientLog, DisconnectCause, LoginOutcome};

/// Records the traffic of one user's connections.
#[derive(Debug)]
pub(crate) struct Wiretap {
    pub(crate) log: ClientLog,
    connections: BTreeMap<SocketId, Connection>,
}

#[derive(Debug, Default)]
struct Connection {
    number: u32,
    /// Bytes that the user sent and that do not form a whole packet yet.
    sent: Vec<u8>,
    received: Vec<u8>,
    cursor: u64,
    is_closed: bool,
}

impl Wiretap {
    pub(crate) fn new(session: SessionId) -> Wiretap {
        Wiretap { log: ClientLog { session, events: Vec::new() }, connections: BTreeMap::new() }
    }

    pub(crate) fn connection_count(&self) -> u32 {
        self.connections.len() as u32
    }

    /// Records an event at the user's end of a connection.
    pub(crate) fn take(&mut self, now: Nanos, socket: SocketId, part: StreamPart) {
        let number = self.connection_count() + 1;
        if matches!(part, StreamPart::Connecting(ORDER_ENTRY)) {
            self.connections.insert(socket, Connection { number, ..Connection::default() });
        }
        // Connections to other addresses belong to the user's feed handler.
        let Some(connection) = self.connections.get_mut(&socket) else { return };
        let mut kinds = Vec::new();
        match part {
            StreamPart::Connecting(_) => {}
            StreamPart::Connected => kinds.push(ClientEventKind::Connected),
            StreamPart::Sent(bytes) => connection.on_sent(&bytes, &mut kinds),
            StreamPart::Received(bytes) => connection.on_received(&bytes, &mut kinds),
            StreamPart::Closed(closed_by) => {
                if !std::mem::replace(&mut connection.is_closed, true) {
                    kinds.push(ClientEventKind::Disconnected(cause(closed_by)));
                }
            }
        }
        let connection = connection.number;
        self.log.events.extend(kinds.into_iter().map(|kind| ClientEvent { at: now, connection, kind }));
    }

    /// Records an event at the venue's end; returns false for a connection that is not recorded here.
    pub(crate) fn on_stream_event(&mut self, stream_event: &StreamEvent) -> bool {
        let Some(Connection { number, .. }) = self.connections.get(&stream_event.peer) else { return false };
        self.log.insert_stream_event(stream_event, *number);
        true
    }
}

const fn cause(closed_by: Option<ClosedBy>) -> DisconnectCause {
    match closed_by {
        Some(ClosedBy::Network) => DisconnectCause::Network,
        Some(_) => DisconnectCause::Venue,
        None => DisconnectCause::Client,
    }
}

impl ClientEventKind {
    /// Returns the event for a packet from the venue; `None` for a heartbeat or debug packet. Updates
    /// `cursor`, the next message's sequence number.
    pub(crate) fn of_packet(packet: &Packet<'_>, cursor: &mut u64) -> Option<ClientEventKind> {
        Some(match packet {
            Packet::LoginAccepted(accepted) => {
                *cursor = accepted.next_sequence.0;
                let outcome = LoginOutcome::Accepted { sequence: accepted.next_sequence };
                ClientEventKind::LoginAnswered(outcome)
            }
            Packet::LoginRejected(reason) => ClientEventKind::LoginAnswered(LoginOutcome::Rejected(reason.0)),
            Packet::SequencedData(message) => {
                let sequence = Sequence(*cursor);
                *cursor += 1;
                ClientEventKind::Received { sequence, bytes: message.to_vec() }
            }
            Packet::EndOfSession => ClientEventKind::SessionEnded,
            Packet::ServerHeartbeat | Packet::Debug(_) => return None,
            _ => ClientEventKind::Garbage,
        })
    }
}

impl Connection {
    fn on_sent(&mut self, bytes: &[u8], kinds: &mut Vec<ClientEventKind>) {
        self.sent.extend_from_slice(bytes);
        let mut taken = 0;
        while let Ok(Some((packet, used))) = next_packet(&self.sent[taken..]) {
            taken += used;
            kinds.extend(match packet {
                Packet::LoginRequest(login) => Some(ClientEventKind::LoginSent { sequence: login.sequence }),
                Packet::UnsequencedData(request) => Some(ClientEventKind::Sent(request.to_vec())),
                _ => None,
            });
        }
        self.sent.drain(..taken);
    }

    fn on_received(&mut self, bytes: &[u8], kinds: &mut Vec<ClientEventKind>) {
        self.received.extend_from_slice(bytes);
        let mut taken = 0;
        loop {
            let (packet, used) = match next_packet(&self.received[taken..]) {
                Ok(Some(found)) => found,
                Ok(None) => break,
                Err(_) => {
                    kinds.push(ClientEventKind::Garbage);
                    break;
                }
            };
            taken += used;
            kinds.extend(ClientEventKind::of_packet(&packet, &mut self.cursor));
        }
        self.received.drain(..taken);
    }
}
