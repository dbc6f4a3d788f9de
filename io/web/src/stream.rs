//! Bytes over a non-blocking socket, with or without TLS.

use std::io::{self, ErrorKind, Read, Write};
use std::net::Shutdown;

use rustls::{Connection, IoState};
use tickpath_net::StreamSocket;

/// Upper bound of bytes that TLS buffers, encrypted or for its handshake.
const TLS_BUFFER: usize = 64 << 10;
/// Bytes of a message that are masked at a time.
const MASK_CHUNK: usize = 64;
/// Bytes that one system call takes from the socket when they are read in smaller pieces.
const AHEAD: usize = 8 << 10;

/// A socket with an optional TLS session. "Nothing to read" and "buffer full" are `WouldBlock`; the end of
/// the stream is 0 bytes.
#[derive(Debug)]
pub(crate) struct Stream<S> {
    socket: S,
    tls: Option<Box<Connection>>,
    /// Bytes to send before any others: heads and bodies of HTTP answers.
    first: Vec<u8>,
    first_sent: usize,
    /// True if a frame of the codec is partly sent.
    is_cut: bool,
    ahead: Ahead,
    meter: Meter,
}

/// The state of reading.
#[derive(Debug, Default)]
struct Meter {
    /// The kernel's receive time of the last bytes, in nanoseconds since the Unix epoch.
    kernel_ns: Option<u64>,
    /// Bytes that may still be read.
    budget: usize,
}

/// Bytes taken from the socket and not read yet; no memory unless read-ahead is on.
#[derive(Debug, Default)]
struct Ahead {
    bytes: Box<[u8]>,
    start: usize,
    end: usize,
}

impl Ahead {
    /// Reads available bytes from the socket and returns their number. Requires an empty buffer.
    #[inline]
    fn fill(&mut self, socket: &mut impl Read) -> io::Result<usize> {
        let count = socket.read(&mut self.bytes)?;
        (self.start, self.end) = (0, count);
        Ok(count)
    }

    #[inline]
    fn read(&mut self, socket: &mut impl Read, buffer: &mut [u8]) -> io::Result<usize> {
        if self.start == self.end {
            if buffer.len() >= self.bytes.len() {
                return socket.read(buffer);
            }
            self.fill(socket)?;
        }
        let count = buffer.len().min(self.end - self.start);
        buffer[..count].copy_from_slice(&self.bytes[self.start..self.start + count]);
        self.start += count;
        Ok(count)
    }
}

impl<S: StreamSocket> Stream<S> {
    pub(crate) fn new(socket: S, tls: Option<Connection>) -> Stream<S> {
        let tls = tls.map(|mut session| {
            session.set_buffer_limit(Some(TLS_BUFFER));
            Box::new(session)
        });
        Stream {
            socket,
            tls,
            first: Vec::new(),
            first_sent: 0,
            is_cut: false,
            ahead: Ahead::default(),
            meter: Meter::default(),
        }
    }

    pub(crate) fn socket(&self) -> &S {
        &self.socket
    }

    /// The kernel's receive time of the bytes read last.
    pub(crate) fn kernel_ns(&self) -> Option<u64> {
        self.meter.kernel_ns
    }

    /// Allows `bytes` to be read from the socket from now on; then reads return `WouldBlock`. Decrypted TLS
    /// data is always returned, so that the rest waits in the kernel, where a poller sees it.
    pub(crate) fn allow_reading(&mut self, bytes: usize) {
        self.meter.budget = bytes;
    }

    /// Turns read-ahead on: takes all available bytes from the socket, to be read in pieces of any size. The
    /// caller must then read until nothing is left, because a poller does not see bytes already taken.
    pub(crate) fn read_ahead(&mut self) {
        // TLS reads ahead itself.
        if self.tls.is_none() {
            self.ahead.bytes = vec![0; AHEAD].into();
        }
    }

    /// Whether there is something to read, data or the end, after the last read found nothing.
    ///
    /// # Errors
    /// The connection has ended.
    #[inline]
    pub(crate) fn has_more(&mut self) -> io::Result<bool> {
        let mut socket = SocketIo { socket: &self.socket, meter: &mut self.meter };
        let taken = match &mut self.tls {
            None => self.ahead.fill(&mut socket).map(|_| true),
            // After close_notify, TLS reads return 0 bytes.
            Some(tls) => take_in(tls, &mut socket)
                .map(|(count, state)| count == 0 || state.plaintext_bytes_to_read() > 0),
        };
        match taken {
            Err(error) if error.kind() == ErrorKind::WouldBlock => Ok(false),
            taken => taken,
        }
    }

    /// Whether the TLS handshake is in progress.
    pub(crate) fn is_handshaking(&self) -> bool {
        self.tls.as_ref().is_some_and(|tls| tls.is_handshaking())
    }

    /// Continues the TLS handshake. Returns whether it is complete; without TLS it is at once.
    pub(crate) fn poll_handshake(&mut self) -> io::Result<bool> {
        let Some(tls) = &mut self.tls else { return Ok(true) };
        let mut socket = SocketIo { socket: &self.socket, meter: &mut self.meter };
        while tls.is_handshaking() {
            while tls.wants_write() {
                match tls.write_tls(&mut socket) {
                    Ok(_) => {}
                    Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(false),
                    Err(error) => return Err(error),
                }
            }
            if !tls.is_handshaking() {
                break;
            }
            match tls.read_tls(&mut socket) {
                Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
                Ok(_) => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(false),
                Err(error) => return Err(error),
            }
            let state = tls.process_new_packets();
            // Sends the alert that names the fault; the rest of it leaves later.
            while tls.wants_write() && tls.write_tls(&mut socket).is_ok() {}
            state.map_err(|error| io::Error::new(ErrorKind::InvalidData, error))?;
        }
        Ok(true)
    }

    /// The buffer for bytes that leave before anything written later.
    pub(crate) fn first_out(&mut self) -> &mut Vec<u8> {
        &mut self.first
    }

    /// Appends a WebSocket text frame to the bytes that leave first. A client's frame is masked (RFC 6455,
    /// 5.2). Returns false while a frame of the codec is partly sent, since nothing may be sent in between.
    ///
    /// Never inlined, so that sending and warming up run the same code.
    #[inline(never)]
    pub(crate) fn append_text(&mut self, text: &[u8], mask: Option<[u8; 4]>) -> bool {
        const FIN_TEXT: u8 = 0x81;
        const MASKED: u8 = 0x80;
        if self.is_cut {
            return false;
        }
        let out = &mut self.first;
        let flag = if mask.is_some() { MASKED } else { 0 };
        match text.len() {
            len @ 0..126 => out.extend_from_slice(&[FIN_TEXT, flag | len as u8]),
            len @ 126..0x1_0000 => {
                let [high, low] = (len as u16).to_be_bytes();
                out.extend_from_slice(&[FIN_TEXT, flag | 126, high, low]);
            }
            len => {
                out.extend_from_slice(&[FIN_TEXT, flag | 127]);
                out.extend_from_slice(&(len as u64).to_be_bytes());
            }
        }
        let Some(mask) = mask else {
            out.extend_from_slice(text);
            return true;
        };
        out.extend_from_slice(&mask);
        out.reserve(text.len() + MASK_CHUNK);
        let len = out.len() + text.len();
        let (chunks, rest) = text.as_chunks();
        chunks.iter().for_each(|chunk| out.extend_from_slice(&masked(chunk, mask)));
        let mut last = [0; MASK_CHUNK];
        last[..rest.len()].copy_from_slice(rest);
        out.extend_from_slice(&masked(&last, mask));
        out.truncate(len);
        true
    }

    /// Removes the bytes appended since `kept` bytes were waiting.
    pub(crate) fn take_back(&mut self, kept: usize) {
        self.first.truncate(self.first_sent + kept);
    }

    /// Number of bytes that wait to leave first.
    #[inline]
    pub(crate) fn kept(&self) -> usize {
        self.first.len() - self.first_sent
    }

    /// Number of waiting bytes, plus one if TLS holds some.
    pub(crate) fn unsent(&self) -> usize {
        let in_tls = usize::from(self.tls.as_ref().is_some_and(|tls| tls.wants_write()));
        self.kept() + in_tls
    }

    /// Sends close_notify in TLS, passes waiting TLS bytes to the kernel and ends the sending side.
    pub(crate) fn end_sending(&mut self) {
        if let Some(tls) = &mut self.tls {
            tls.send_close_notify();
            // Fails if the connection has ended, which has the same effect.
            let _ = tls.write_tls(&mut SocketIo { socket: &self.socket, meter: &mut self.meter });
        }
        let _ = self.socket.shutdown(Shutdown::Write);
    }

    /// Shuts down both directions.
    pub(crate) fn shut_down(&mut self) {
        self.end_sending();
        let _ = self.socket.shutdown(Shutdown::Both);
    }

    fn send_first(&mut self) -> io::Result<()> {
        while self.first_sent < self.first.len() {
            let rest = &self.first[self.first_sent..];
            let sent = match &mut self.tls {
                None => send(&self.socket, rest),
                Some(tls) => send_by_tls(tls, &self.socket, &mut self.meter, rest),
            };
            match sent {
                Ok(sent) => self.first_sent += sent,
                Err(error) => {
                    // Drops sent bytes, which would otherwise accumulate while there is always more to send.
                    self.first.drain(..self.first_sent);
                    self.first_sent = 0;
                    return Err(error);
                }
            }
        }
        self.first.clear();
        self.first_sent = 0;
        Ok(())
    }
}

impl<S: StreamSocket> Read for Stream<S> {
    #[inline]
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let mut socket = SocketIo { socket: &self.socket, meter: &mut self.meter };
        match &mut self.tls {
            None => self.ahead.read(&mut socket, buffer),
            Some(tls) => read_by_tls(tls, &mut socket, buffer),
        }
    }
}

impl<S: StreamSocket> Write for Stream<S> {
    #[inline]
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if !self.first.is_empty() {
            self.send_first()?;
        }
        let sent = match &mut self.tls {
            None => send(&self.socket, bytes),
            Some(tls) => send_by_tls(tls, &self.socket, &mut self.meter, bytes),
        }?;
        self.is_cut = sent < bytes.len();
        Ok(sent)
    }

    /// `WouldBlock` while bytes wait for the kernel.
    fn flush(&mut self) -> io::Result<()> {
        if !self.first.is_empty() {
            self.send_first()?;
        }
        let Some(tls) = &mut self.tls else { return Ok(()) };
        let mut socket = SocketIo { socket: &self.socket, meter: &mut self.meter };
        while tls.wants_write() {
            tls.write_tls(&mut socket)?;
        }
        Ok(())
    }
}

/// A piece of a text, masked.
#[inline(always)]
fn masked(chunk: &[u8; MASK_CHUNK], mask: [u8; 4]) -> [u8; MASK_CHUNK] {
    let mut masked = *chunk;
    for word in masked.as_chunks_mut().0 {
        *word = (u32::from_ne_bytes(*word) ^ u32::from_ne_bytes(mask)).to_ne_bytes();
    }
    masked
}

/// The socket as TLS reads and writes it.
struct SocketIo<'a, S> {
    socket: &'a S,
    meter: &'a mut Meter,
}

impl<S: StreamSocket> Read for SocketIo<'_, S> {
    #[inline]
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.meter.budget == 0 {
            return Err(ErrorKind::WouldBlock.into());
        }
        let len = buffer.len().min(self.meter.budget);
        let Some((count, kernel_ns)) = self.socket.receive(&mut buffer[..len])? else {
            return Err(ErrorKind::WouldBlock.into());
        };
        self.meter.budget -= count;
        self.meter.kernel_ns = kernel_ns.or(self.meter.kernel_ns);
        Ok(count)
    }
}

impl<S: StreamSocket> Write for SocketIo<'_, S> {
    #[inline]
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        send(self.socket, bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Treats `Interrupted` as "buffer full": the next duty cycle tries again.
#[inline]
fn send(socket: &impl StreamSocket, bytes: &[u8]) -> io::Result<usize> {
    match socket.send(bytes) {
        Err(error) if error.kind() == ErrorKind::Interrupted => Err(ErrorKind::WouldBlock.into()),
        result => result,
    }
}

fn send_by_tls<S: StreamSocket>(
    tls: &mut Connection,
    socket: &S,
    meter: &mut Meter,
    bytes: &[u8],
) -> io::Result<usize> {
    let count = tls.writer().write(bytes)?;
    let mut socket = SocketIo { socket, meter };
    while tls.wants_write() {
        match tls.write_tls(&mut socket) {
            Ok(_) => {}
            // The bytes stay in TLS; the flush reports it to the writer.
            Err(error) if error.kind() == ErrorKind::WouldBlock => break,
            Err(error) => return Err(error),
        }
    }
    if count == 0 && !bytes.is_empty() { Err(ErrorKind::WouldBlock.into()) } else { Ok(count) }
}

fn read_by_tls(
    tls: &mut Connection,
    socket: &mut (impl Read + Write),
    buffer: &mut [u8],
) -> io::Result<usize> {
    loop {
        match tls.reader().read(buffer) {
            Ok(count) => return Ok(count),
            // The peer ended without close_notify in TLS; the protocol above knows whether it was complete.
            Err(error) if error.kind() == ErrorKind::UnexpectedEof => return Ok(0),
            Err(error) if error.kind() == ErrorKind::WouldBlock => {}
            Err(error) => return Err(error),
        }
        let (count, _) = take_in(tls, socket)?;
        if count == 0 && tls.is_handshaking() {
            return Ok(0);
        }
    }
}

/// Takes bytes from the socket and decrypts them; returns their number.
fn take_in(tls: &mut Connection, socket: &mut (impl Read + Write)) -> io::Result<(usize, IoState)> {
    let count = tls.read_tls(socket)?;
    let state = tls.process_new_packets();
    // Sends handshake messages, or the alert that names the fault; the rest of them leaves later.
    while tls.wants_write() && tls.write_tls(socket).is_ok() {}
    Ok((count, state.map_err(|error| io::Error::new(ErrorKind::InvalidData, error))?))
}
