//! A client that records its messages. It has a separate parser, as checks must not use the code under test.

use std::collections::BTreeMap;
use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddrV4, TcpStream, UdpSocket};

use tickpath_net::MulticastReceiver;
use tickpath_test_support::ANY_PORT;

use crate::support::{PASSWORD, login};

/// A user's connection; it implements the part of SoupBinTCP 3.00 that the test needs.
pub struct Link {
    stream: TcpStream,
    bytes: Vec<u8>,
    pub is_closed: bool,
    /// Session name and number of the next message, from the response to the login.
    pub accepted: Option<(String, u64)>,
    /// All messages since the login.
    pub messages: Vec<Vec<u8>>,
}

impl Link {
    /// Logs in and requests all messages from `next` on.
    pub fn log_in(address: SocketAddrV4, user: &str, next: u64) -> Link {
        let mut stream = TcpStream::connect(address).unwrap();
        stream.set_nodelay(true).unwrap();
        stream.write_all(&login(user, PASSWORD, "", next)).unwrap();
        stream.set_nonblocking(true).unwrap();
        Link { stream, bytes: Vec::new(), is_closed: false, accepted: None, messages: Vec::new() }
    }

    /// Sends all bytes, or records that the connection is closed.
    pub fn send(&mut self, bytes: &[u8]) {
        self.stream.set_nonblocking(false).unwrap();
        self.is_closed |= self.stream.write_all(bytes).is_err();
        self.stream.set_nonblocking(true).unwrap();
    }

    /// Reads available bytes; returns whether there were any.
    pub fn read(&mut self) -> bool {
        let mut bytes = [0; 1 << 16];
        let count = match self.stream.read(&mut bytes) {
            Ok(0) => {
                self.is_closed = true;
                0
            }
            Ok(count) => count,
            Err(error) if error.kind() == ErrorKind::WouldBlock => 0,
            Err(_) => {
                self.is_closed = true;
                0
            }
        };
        self.bytes.extend_from_slice(&bytes[..count]);
        while let Some(len) = self.bytes.first_chunk().map(|len| usize::from(u16::from_be_bytes(*len)))
            && self.bytes.len() >= 2 + len
        {
            let packet: Vec<u8> = self.bytes.drain(..2 + len).skip(2).collect();
            match packet[0] {
                b'A' => {
                    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap().trim().to_owned();
                    self.accepted = Some((text(&packet[1..11]), text(&packet[11..31]).parse().unwrap()));
                }
                b'J' => self.is_closed = true,
                b'S' => self.messages.push(packet[1..].to_vec()),
                _ => {}
            }
        }
        count > 0
    }

    /// Index in `messages` of the response to the new order `user_ref`: accepted (`A`) or rejected (`J`).
    pub fn answer_to(&self, user_ref: u32) -> Option<usize> {
        let is_answer =
            |message: &Vec<u8>| matches!(message[0], b'A' | b'J') && message[9..13] == user_ref.to_be_bytes();
        self.messages.iter().rposition(is_answer)
    }
}

/// Collects market data messages; it parses the part of MoldUDP64 that the test needs.
#[derive(Clone, Debug, Default)]
pub struct Market {
    /// Messages by session and sequence number.
    pub messages: BTreeMap<(String, u64), Vec<u8>>,
}

impl Market {
    fn take(&mut self, packet: &[u8]) {
        let session = String::from_utf8(packet[..10].to_vec()).unwrap().trim().to_owned();
        let mut number = u64::from_be_bytes(*packet[10..].first_chunk().unwrap());
        let count = u16::from_be_bytes(*packet[18..].first_chunk().unwrap());
        let mut rest = &packet[20..];
        // Heartbeats and the end of the session have no messages; the latter has the count 65,535.
        while let Some(len) = rest.first_chunk().map(|len| usize::from(u16::from_be_bytes(*len)))
            && count != u16::MAX
        {
            self.messages.insert((session.clone(), number), rest[2..2 + len].to_vec());
            rest = &rest[2 + len..];
            number += 1;
        }
    }

    pub fn read(&mut self, receiver: &mut MulticastReceiver) {
        let mut bytes = [0; 1 << 16];
        while let Ok(Some(received)) = receiver.recv(&mut bytes) {
            self.take(&bytes[..received.len]);
        }
    }

    /// Session and sequence number of the last message.
    pub fn last(&self) -> Option<(String, u64)> {
        self.messages.keys().next_back().cloned()
    }
}

/// A client that requests retransmissions and collects the messages.
pub struct RetransmissionClient {
    socket: UdpSocket,
    pub market: Market,
}

impl RetransmissionClient {
    pub fn request(server: SocketAddrV4, session: &str, number: u64, count: u16) -> RetransmissionClient {
        let socket = UdpSocket::bind(ANY_PORT).unwrap();
        socket.set_nonblocking(true).unwrap();
        let mut request = format!("{session:<10}").into_bytes();
        request.extend(number.to_be_bytes());
        request.extend(count.to_be_bytes());
        socket.send_to(&request, server).unwrap();
        RetransmissionClient { socket, market: Market::default() }
    }

    /// Reads an answer; returns whether there was one.
    pub fn read(&mut self) -> bool {
        let mut bytes = [0; 1 << 16];
        let Ok(len) = self.socket.recv(&mut bytes) else { return false };
        self.market.take(&bytes[..len]);
        true
    }
}
