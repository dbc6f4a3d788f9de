//! An open WebSocket, at either end.

use std::io::{self, ErrorKind, Write};

use bytes::BytesMut;
use rand::Rng as _;
use rand::rngs::StdRng;
use tickpath_net::{SendOutcome, StreamSocket};
use tungstenite::error::CapacityError;
use tungstenite::protocol::frame::coding::CloseCode;
use tungstenite::protocol::{CloseFrame, Role, WebSocket, WebSocketConfig};
use tungstenite::{Error, Message, Utf8Bytes};

use crate::stream::Stream;
use crate::{WebError, WebLimits};

/// Bytes that the codec reads at a time. It clears as many beforehand, so a larger buffer slows each message.
const READ_BUFFER: usize = 4 << 10;
/// Bytes of queued messages beyond which the codec writes without a flush.
const WRITE_BUFFER: usize = 16 << 10;
/// Upper bound of a frame header, in bytes.
const FRAME_HEADER: usize = 14;
/// Upper bound of the reason in a close frame, in bytes (RFC 6455, 5.5).
const REASON_MAX: usize = 123;

/// An event received over a WebSocket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WebEvent<'a> {
    /// A text message.
    Text(&'a str),
    /// A binary message.
    Binary(&'a [u8]),
    /// The peer closed, or the connection broke. The last event.
    Closed(Closed<'a>),
}

/// The end of a WebSocket: close code and reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Closed<'a> {
    /// The code of the close frame (RFC 6455, 7.4), e.g. 1000 normal, 1001 going away; 1005 if the frame had
    /// none; 1006 if the connection broke without a close frame.
    pub code: u16,
    /// The reason. For 1006, the cause of the break; empty if the peer ended without a close frame.
    pub reason: &'a str,
}

impl Closed<'_> {
    /// The code that stands for a close frame without a code.
    pub const NO_CODE: u16 = 1005;
    /// The code that stands for a broken connection.
    pub const BROKEN: u16 = 1006;
}

/// The codec's configuration under these limits.
pub(crate) fn config(limits: &WebLimits) -> WebSocketConfig {
    WebSocketConfig::default()
        .read_buffer_size(READ_BUFFER)
        .write_buffer_size(WRITE_BUFFER)
        .max_write_buffer_size(pending_max(limits))
        .max_message_size(Some(limits.message_max))
        .max_frame_size(Some(limits.message_max))
}

/// Upper bound of bytes that wait for the kernel.
fn pending_max(limits: &WebLimits) -> usize {
    limits.pending_max.max(WRITE_BUFFER) + FRAME_HEADER
}

/// An open WebSocket over a stream, with its state between calls.
#[derive(Debug)]
pub(crate) struct Channel<S> {
    socket: WebSocket<Stream<S>>,
    /// Generates the masking keys of a client's messages; a server's are not masked.
    masks: Option<StdRng>,
    read_max: usize,
    message_max: usize,
    /// Upper bound of bytes that wait for the kernel.
    pending_max: usize,
    /// The last message returned; its memory is reused.
    last: Message,
    /// Buffer for outgoing messages; its memory returns after they are sent.
    scratch: BytesMut,
    /// True after the last event.
    is_closed: bool,
    /// True if the codec holds no whole message and the last read found nothing.
    is_drained: bool,
    /// True if bytes may wait for the kernel.
    is_pending: bool,
    /// True if some of these bytes may wait in the codec.
    is_in_codec: bool,
    /// Name of the peer, for error messages.
    host: String,
}

impl<S: StreamSocket> Channel<S> {
    pub(crate) fn new(
        socket: WebSocket<Stream<S>>,
        role: Role,
        limits: &WebLimits,
        host: String,
    ) -> Channel<S> {
        let mut socket = socket;
        socket.get_mut().read_ahead();
        Channel {
            socket,
            masks: (role == Role::Client).then(rand::make_rng),
            read_max: limits.read_max,
            message_max: limits.message_max,
            pending_max: pending_max(limits),
            last: Message::Text(Utf8Bytes::from_static("")),
            scratch: BytesMut::new(),
            is_closed: false,
            is_drained: false,
            is_pending: false,
            is_in_codec: false,
            host,
        }
    }

    pub(crate) fn stream(&self) -> &Stream<S> {
        self.socket.get_ref()
    }

    pub(crate) fn stream_mut(&mut self) -> &mut Stream<S> {
        self.socket.get_mut()
    }

    pub(crate) fn has_pending(&self) -> bool {
        self.is_pending
    }

    /// Whether the buffer accepts a text message of `len` bytes now.
    #[inline]
    pub(crate) fn has_room(&self, len: usize) -> bool {
        !self.is_closed && self.stream().kept() + len + FRAME_HEADER <= self.pending_max
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.is_closed
    }

    /// Returns the next event, if any.
    #[inline]
    pub(crate) fn receive(&mut self) -> Result<Option<WebEvent<'_>>, WebError> {
        Ok(self.poll()?.then(|| self.last()))
    }

    /// Whether there is another event; [`last`](Channel::last) returns it.
    #[inline]
    pub(crate) fn poll(&mut self) -> Result<bool, WebError> {
        if self.is_closed {
            return Ok(false);
        }
        self.socket.get_mut().allow_reading(self.read_max);
        if self.is_drained {
            match self.stream_mut().has_more() {
                Ok(has_more) => self.is_drained = !has_more,
                Err(error) => return self.fail(Error::Io(error)),
            }
            if self.is_drained {
                return Ok(false);
            }
        }
        // Released before the next read, so that its memory is reused.
        self.last = Message::Text(Utf8Bytes::from_static(""));
        loop {
            match self.socket.read() {
                Ok(Message::Ping(_) | Message::Pong(_) | Message::Frame(_)) => {}
                Ok(message @ (Message::Text(_) | Message::Binary(_))) => {
                    self.last = message;
                    return Ok(true);
                }
                Ok(message @ Message::Close(_)) => {
                    self.is_closed = true;
                    self.last = message;
                    // Sends the close reply. If it cannot leave now, the peer relies on its own time-out.
                    let _ = self.socket.flush();
                    return Ok(true);
                }
                Err(Error::Io(error)) if error.kind() == ErrorKind::WouldBlock => {
                    self.is_drained = true;
                    return Ok(false);
                }
                Err(error) => return self.fail(error),
            }
        }
    }

    /// The last event.
    #[inline]
    pub(crate) fn last(&self) -> WebEvent<'_> {
        match &self.last {
            Message::Text(text) => WebEvent::Text(text.as_str()),
            Message::Binary(bytes) => WebEvent::Binary(bytes),
            Message::Close(Some(frame)) => {
                WebEvent::Closed(Closed { code: frame.code.into(), reason: frame.reason.as_str() })
            }
            _ => WebEvent::Closed(Closed { code: Closed::NO_CODE, reason: "" }),
        }
    }

    #[cold]
    fn fail(&mut self, error: Error) -> Result<bool, WebError> {
        self.is_closed = true;
        let abnormal = CloseFrame { code: CloseCode::Abnormal, reason: Utf8Bytes::from_static("") };
        self.last = Message::Close(Some(abnormal));
        let (code, error) = match error {
            Error::ConnectionClosed | Error::AlreadyClosed => return Ok(true),
            // TLS ended without close_notify: the peer has closed.
            Error::Io(error) if error.kind() == ErrorKind::UnexpectedEof => return Ok(true),
            Error::Io(error) if is_lost(&error) => {
                let reason = Utf8Bytes::from(error.to_string());
                self.last = Message::Close(Some(CloseFrame { code: CloseCode::Abnormal, reason }));
                return Ok(true);
            }
            Error::Protocol(tungstenite::error::ProtocolError::ResetWithoutClosingHandshake) => {
                return Ok(true);
            }
            Error::Io(source) if source.kind() == ErrorKind::InvalidData => {
                let why = source.to_string();
                return Err(WebError::Tls { host: self.host.clone(), why });
            }
            Error::Io(source) => return Err(WebError::Io { host: self.host.clone(), source }),
            Error::Capacity(CapacityError::MessageTooLong { size, .. }) => {
                let (host, max) = (self.host.clone(), self.message_max);
                (CloseCode::Size, WebError::TooLong { host, size, max })
            }
            Error::Utf8(why) => (CloseCode::Invalid, WebError::Protocol { host: self.host.clone(), why }),
            other => {
                let (host, why) = (self.host.clone(), other.to_string());
                (CloseCode::Protocol, WebError::Protocol { host, why })
            }
        };
        // Sends the reason to the peer; delivery is neither certain nor required.
        let _ = self.socket.close(Some(CloseFrame { code, reason: Utf8Bytes::from_static("") }));
        Err(error)
    }

    /// Sends a text message, which is UTF-8, after those that wait. It is sent whole or not at all.
    #[inline]
    pub(crate) fn send(&mut self, text: &[u8]) -> SendOutcome {
        match self.queue(text) {
            SendOutcome::Pending => self.flush(),
            outcome => outcome,
        }
    }

    /// Queues a text message for the next flush; it leaves earlier if many bytes wait.
    #[inline]
    pub(crate) fn queue(&mut self, text: &[u8]) -> SendOutcome {
        debug_assert!(std::str::from_utf8(text).is_ok());
        if self.is_closed {
            return SendOutcome::Closed;
        }
        if self.is_in_codec || !self.socket.can_write() {
            return self.queue_in_codec(text);
        }
        let kept = self.stream().kept() + text.len() + FRAME_HEADER;
        if kept > self.pending_max {
            return SendOutcome::Backpressured;
        }
        let mask = self.mask();
        if !self.stream_mut().append_text(text, mask) {
            return self.queue_in_codec(text);
        }
        self.is_pending = true;
        if kept > WRITE_BUFFER && self.flush() == SendOutcome::Closed {
            return SendOutcome::Closed;
        }
        SendOutcome::Pending
    }

    /// Runs the code of [`queue`](Channel::queue) and discards the result.
    pub(crate) fn rehearse(&mut self, text: &[u8]) {
        let (mask, kept) = (self.mask(), self.stream().kept());
        if kept == 0 && self.stream_mut().append_text(text, mask) {
            self.stream_mut().take_back(kept);
        }
    }

    /// The masking key of a client's message. It is random, so that no intermediary can mistake the payload
    /// for another protocol (RFC 6455, 10.3).
    #[inline]
    fn mask(&mut self) -> Option<[u8; 4]> {
        self.masks.as_mut().map(|masks| masks.next_u32().to_ne_bytes())
    }

    /// Queues the message in the codec, after the bytes that wait there.
    #[cold]
    fn queue_in_codec(&mut self, text: &[u8]) -> SendOutcome {
        self.is_in_codec = true;
        self.scratch.reserve(text.len());
        self.scratch.extend_from_slice(text);
        let message = Utf8Bytes::try_from(self.scratch.split().freeze()).expect("texts are UTF-8");
        self.is_pending = true;
        match self.socket.write(Message::Text(message)) {
            Ok(()) => SendOutcome::Pending,
            Err(error) => self.send_failed(error),
        }
    }

    /// Passes waiting bytes to the kernel, as many as it accepts.
    #[inline]
    pub(crate) fn flush(&mut self) -> SendOutcome {
        if self.is_closed && !self.socket.can_write() && self.stream().unsent() == 0 {
            return SendOutcome::Closed;
        }
        // Bypasses an empty codec: frames that it creates itself, such as a pong, are sent while it reads.
        let flushed = match self.is_in_codec {
            false if self.socket.can_write() => self.stream_mut().flush().map_err(Error::Io),
            _ => self.socket.flush(),
        };
        match flushed {
            Ok(()) => {
                self.is_pending = false;
                self.is_in_codec = false;
                SendOutcome::Sent
            }
            Err(error) => self.send_failed(error),
        }
    }

    #[cold]
    fn send_failed(&mut self, error: Error) -> SendOutcome {
        match error {
            Error::Io(error) if error.kind() == ErrorKind::WouldBlock => SendOutcome::Pending,
            Error::WriteBufferFull(_) => SendOutcome::Backpressured,
            // The receive path reports that the connection has ended, and why.
            _ => {
                self.is_pending = false;
                SendOutcome::Closed
            }
        }
    }

    /// Starts the closing handshake. Receiving continues until the peer has closed.
    pub(crate) fn close(&mut self, code: u16, reason: &str) {
        let mut end = reason.len().min(REASON_MAX);
        while !reason.is_char_boundary(end) {
            end -= 1;
        }
        let frame = CloseFrame { code: code.into(), reason: reason[..end].into() };
        // If the frame cannot be sent, the connection has ended.
        self.is_pending = self.socket.close(Some(frame)).is_err();
    }
}

/// Whether the error means that the peer disconnected, which is not a fault.
pub(crate) fn is_lost(error: &io::Error) -> bool {
    use ErrorKind::{
        BrokenPipe, ConnectionAborted, ConnectionReset, HostUnreachable, NotConnected, TimedOut,
        UnexpectedEof,
    };
    matches!(
        error.kind(),
        BrokenPipe
            | ConnectionAborted
            | ConnectionReset
            | HostUnreachable
            | NotConnected
            | TimedOut
            | UnexpectedEof
    )
}
