//! Bare loopback round trips: plain non-blocking sockets, busy polling, each end on a separate core.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{TcpStream, UdpSocket};

use tickpath_nasdaq::{ouch50, soupbintcp};
use tickpath_types::{
    Nanos, OrderEvent, OrderEventKind, OrderId, OrderRequest, OrderState, Sequence, SessionId,
};

use super::prelude::*;
use crate::support::loopback::{ANY_PORT, tcp_pair};
use crate::support::paced;
use crate::support::venue::{instruments, order};

pub(super) const MEASUREMENTS: &[Measurement] = &[
    on_two_cores(
        &[row("udp_echo", "us").note("bare loopback UDP round trip with the sizes of order_rtt, p50")],
        |lab| each_round(lab, |context| Ok([p50_us(context, udp_pair()?)?])),
    ),
    on_two_cores(
        &[row("tcp_echo", "us")
            .note("bare loopback TCP round trip with the sizes of order_rtt, p50; 20 us between trips")],
        |lab| each_round(lab, |context| Ok([p50_us(context, tcp_pair()?)?])),
    ),
];

/// Number of round trips in a full round.
pub(super) const TRIPS: usize = 10_000;
/// Length of the round trip's number, which begins each request and its answer.
const NUMBER_LEN: usize = 8;

fn udp_pair() -> io::Result<[UdpSocket; 2]> {
    let ends = [UdpSocket::bind(ANY_PORT)?, UdpSocket::bind(ANY_PORT)?];
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
    fn read_some(&mut self, buffer: &mut [u8]) -> io::Result<usize>;
}

impl Wire for TcpStream {
    fn write_whole(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.write_all(bytes)
    }

    fn read_some(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.read(buffer)
    }
}

impl Wire for UdpSocket {
    fn write_whole(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.send(bytes).map(|_| ())
    }

    fn read_some(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.recv(buffer)
    }
}

fn p50_us(context: &Context, [mut client, mut server]: [impl Wire; 2]) -> anyhow::Result<f64> {
    let (request_len, answer_len) = wire_lens()?;
    context.run_on_two_cores(
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
                context.timed(|| {
                    request[..NUMBER_LEN].copy_from_slice(&number.to_le_bytes());
                    client.write_whole(&request)?;
                    receive(stop, &mut client, &mut answer)?;
                    let is_right = answer[..NUMBER_LEN] == request[..NUMBER_LEN];
                    ensure!(is_right, "request {number} was answered wrongly");
                    Ok(())
                })
            };
            let measured = context.effort.count(TRIPS);
            let mut ticks = paced::trips(context, measured / 10, measured, trip)?;
            Ok(context.quantile_ns(&mut ticks, 0.5) / 1_000.0)
        },
    )
}

/// Fills `buffer` with received bytes.
fn receive(stop: &StopSignal, wire: &mut impl Wire, buffer: &mut [u8]) -> anyhow::Result<()> {
    let mut len = 0;
    wait_for(stop, || {
        match wire.read_some(&mut buffer[len..]) {
            Ok(0) => bail!("the connection was closed"),
            Ok(count) => len += count,
            Err(error) if error.kind() == ErrorKind::WouldBlock => {}
            Err(error) => return Err(error.into()),
        }
        Ok((len == buffer.len()).then_some(()))
    })
}

/// Returns the lengths of an order and of its acceptance on the wire.
pub(super) fn wire_lens() -> anyhow::Result<(usize, usize)> {
    let instruments = instruments(1);
    let order = order(1);
    let mut bytes = [0; ouch50::MESSAGE_LEN_MAX];
    let request =
        ouch50::encode_request(&OrderRequest::Enter(order), |id| instruments.symbol(id), &mut bytes)?;
    let accepted = OrderEvent {
        command: Sequence(1),
        session: SessionId(1),
        ts: Nanos::ZERO,
        is_reply: true,
        kind: OrderEventKind::Accepted { order, order_id: OrderId(1), state: OrderState::Live },
    };
    let answer = ouch50::encode_event(&accepted, |id| instruments.symbol(id), &mut bytes)?;
    Ok((soupbintcp::HEADER_LEN + request, soupbintcp::HEADER_LEN + answer))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_echo_has_the_lengths_of_the_real_messages() {
        let (soup, no_options) = (3, 2);
        assert_eq!(wire_lens().unwrap(), (soup + 45 + no_options, soup + 64));
    }
}
