//! An HTTP proxy, used with CONNECT.

use std::io::{self, ErrorKind};

use tickpath_net::StreamSocket;

use crate::WebError;

/// Upper bound of a proxy's answer, in bytes.
const PROXY_ANSWER_MAX: usize = 8 << 10;
/// Upper bound of the number of headers in a proxy's answer.
const PROXY_HEADERS_MAX: usize = 64;

/// A CONNECT request in progress.
#[derive(Debug)]
pub(crate) struct Proxy<S> {
    socket: S,
    request: Vec<u8>,
    sent: usize,
    answer: Vec<u8>,
}

impl<S: StreamSocket> Proxy<S> {
    /// Asks the proxy at the other end of `socket` for a tunnel to `host:port`.
    pub(crate) fn ask(socket: S, host: &str, port: u16) -> Proxy<S> {
        let request = format!("CONNECT {host}:{port} HTTP/1.1\r\nHost: {host}:{port}\r\n\r\n");
        Proxy { socket, request: request.into_bytes(), sent: 0, answer: Vec::new() }
    }

    pub(crate) fn socket(&self) -> &S {
        &self.socket
    }

    pub(crate) fn into_socket(self) -> S {
        self.socket
    }

    /// Continues the request. Returns whether the tunnel to `host:port` is open.
    pub(crate) fn poll_through(&mut self, host: &str, port: u16) -> Result<bool, WebError> {
        let refused = |status| WebError::Proxy { target: format!("{host}:{port}"), status };
        match self.poll() {
            Ok(None) => Ok(false),
            Ok(Some(200..=299)) => Ok(true),
            Ok(Some(status)) => Err(refused(status)),
            Err(error) if error.kind() == ErrorKind::InvalidData => Err(refused(0)),
            Err(source) => Err(WebError::Io { host: "the proxy".to_owned(), source }),
        }
    }

    /// Returns the status of the answer, once its head is complete.
    fn poll(&mut self) -> io::Result<Option<u16>> {
        while self.sent < self.request.len() {
            match self.socket.send(&self.request[self.sent..]) {
                Ok(count) => self.sent += count,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(None),
                Err(error) => return Err(error),
            }
        }
        // Reads byte by byte at the end, to leave the following bytes in the socket. TLS begins only when
        // this side speaks, but a server without TLS may send first.
        let mut byte = [0];
        loop {
            match self.socket.receive(&mut byte)? {
                None => return Ok(None),
                Some((0, _)) => return Err(ErrorKind::UnexpectedEof.into()),
                Some(_) => self.answer.push(byte[0]),
            }
            if self.answer.ends_with(b"\r\n\r\n") {
                break;
            }
            if self.answer.len() >= PROXY_ANSWER_MAX {
                return Err(ErrorKind::InvalidData.into());
            }
        }
        let mut headers = [httparse::EMPTY_HEADER; PROXY_HEADERS_MAX];
        let mut answer = httparse::Response::new(&mut headers);
        match answer.parse(&self.answer) {
            Ok(httparse::Status::Complete(_)) => Ok(answer.code),
            _ => Err(ErrorKind::InvalidData.into()),
        }
    }
}
