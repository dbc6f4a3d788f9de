//! Bare loopback round trips: plain non-blocking sockets, busy polled, both ends on cores of their own.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream, UdpSocket};

use anyhow::{bail, ensure};
use tickpath_agent::StopSignal;

use super::{Round, Sample, orders, paced};
use crate::context::{Context, wait_for};

/// Bytes of a number, which begins each request and its answer.
const NUMBER_LEN: usize = 8;

pub(super) fn open_tcp(context: Context) -> anyhow::Result<Round> {
    Ok(Box::new(move || Ok(vec![Sample::new("tcp_echo", p50_us(&context, tcp_pair()?)?)])))
}

pub(super) fn open_udp(context: Context) -> anyhow::Result<Round> {
    Ok(Box::new(move || Ok(vec![Sample::new("udp_echo", p50_us(&context, udp_pair()?)?)])))
}

fn tcp_pair() -> io::Result<[TcpStream; 2]> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    let client = TcpStream::connect(listener.local_addr()?)?;
    let (server, _) = listener.accept()?;
    for end in [&client, &server] {
        end.set_nodelay(true)?;
        end.set_nonblocking(true)?;
    }
    Ok([client, server])
}

fn udp_pair() -> io::Result<[UdpSocket; 2]> {
    let ends = [UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?, UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?];
    ends[0].connect(ends[1].local_addr()?)?;
    ends[1].connect(ends[0].local_addr()?)?;
    for end in &ends {
        end.set_nonblocking(true)?;
    }
    Ok(ends)
}

/// A connected non-blocking socket.
trait Wire: Send {
    fn write_whole(&mut self, bytes: &[u8]) -> io::Result<()>;
    fn read_some(&mut self, room: &mut [u8]) -> io::Result<usize>;
}

impl Wire for TcpStream {
    fn write_whole(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.write_all(bytes)
    }

    fn read_some(&mut self, room: &mut [u8]) -> io::Result<usize> {
        self.read(room)
    }
}

impl Wire for UdpSocket {
    fn write_whole(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.send(bytes).map(|_| ())
    }

    fn read_some(&mut self, room: &mut [u8]) -> io::Result<usize> {
        self.recv(room)
    }
}

fn p50_us(context: &Context, [mut client, mut server]: [impl Wire; 2]) -> anyhow::Result<f64> {
    let (request_len, answer_len) = orders::wire_lens()?;
    context.beside(
        move |stop| {
            let (mut request, mut answer) = (vec![0; request_len], vec![0; answer_len]);
            loop {
                receive(stop, &mut server, &mut request)?;
                answer[..NUMBER_LEN].copy_from_slice(&request[..NUMBER_LEN]);
                server.write_whole(&answer)?;
            }
        },
        |stop| {
            let (mut request, mut answer) = (vec![0; request_len], vec![0; answer_len]);
            let trip = |number: u64| {
                request[..NUMBER_LEN].copy_from_slice(&number.to_le_bytes());
                client.write_whole(&request)?;
                receive(stop, &mut client, &mut answer)?;
                ensure!(
                    answer[..NUMBER_LEN] == request[..NUMBER_LEN],
                    "request {number} was answered wrongly"
                );
                Ok(())
            };
            paced::p50_us(context, trip, |_| Ok(()))
        },
    )
}

/// Fills `room` with what comes.
fn receive(stop: &StopSignal, wire: &mut impl Wire, room: &mut [u8]) -> anyhow::Result<()> {
    let mut len = 0;
    wait_for(stop, || {
        match wire.read_some(&mut room[len..]) {
            Ok(0) => bail!("the connection was closed"),
            Ok(count) => len += count,
            Err(error) if error.kind() == ErrorKind::WouldBlock => {}
            Err(error) => return Err(error.into()),
        }
        Ok((len == room.len()).then_some(()))
    })
}
