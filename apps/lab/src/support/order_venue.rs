//! The venue's end of one trader: market data on two lines, and order entry without matching.

use std::io::Write;
use std::net::{SocketAddrV4, TcpListener, TcpStream};

use anyhow::{Context as _, bail, ensure};
use tickpath_agent::{StopSignal, TscClock};
use tickpath_nasdaq::itch50::{EncodeError, encode_market_event};
use tickpath_nasdaq::moldudp64::PacketBuilder;
use tickpath_nasdaq::ouch50::{QueryResponse, RequestError, decode_request, encode_event};
use tickpath_nasdaq::soupbintcp::{CONTROL_LEN_MAX, ServerEvent, ServerSession};
use tickpath_net::{MulticastSender, SendStatus};
use tickpath_types::{
    CancelReason, EnterOrder, Instrument, InstrumentTable, MarketEvent, MarketEventKind, MatchId, Nanos,
    OrderEvent, OrderEventKind, OrderId, OrderRequest, OrderState, Price, Qty, Sequence, SessionId, Side,
    TimeInForce, UserRefNum,
};
use zerocopy::IntoBytes;

use super::loopback::{self, ANY_PORT};
use super::venue::{REFERENCE, TICK, session};
use crate::context::wait_for;

/// Quantity of each execution, and of the order that follows it.
pub(crate) const QTY: Qty = Qty(100);
/// Quantity of the resting orders: enough for any number of executions.
const RESTING_QTY: Qty = Qty(1 << 31);
const ASK: Price = Price(REFERENCE.0 + TICK);
const BID_ORDER: OrderId = OrderId(1);
const ASK_ORDER: OrderId = OrderId(2);
const PACKET_LEN_MAX: usize = 256;

/// Sends market data, and answers orders as a venue where nothing is left to trade.
pub(crate) struct OrderVenue {
    instruments: InstrumentTable,
    packet: PacketBuilder<[u8; PACKET_LEN_MAX]>,
    events: u64,
    stream: TcpStream,
    session: ServerSession,
    received: Vec<u8>,
    clock: TscClock,
}

/// Listens on a free port of the loopback interface.
pub(crate) fn listen() -> anyhow::Result<(TcpListener, SocketAddrV4)> {
    let listener = TcpListener::bind(ANY_PORT)?;
    let std::net::SocketAddr::V4(address) = listener.local_addr()? else { bail!("not an IPv4 address") };
    Ok((listener, address))
}

impl OrderVenue {
    /// Accepts the trader's connection and logs it in.
    pub(crate) fn accept(
        listener: &TcpListener,
        instruments: InstrumentTable,
        clock: TscClock,
        stop: &StopSignal,
    ) -> anyhow::Result<OrderVenue> {
        let (stream, _) = listener.accept()?;
        stream.set_nodelay(true)?;
        stream.set_nonblocking(true)?;
        let packet = PacketBuilder::new([0; PACKET_LEN_MAX], self::session()?, Sequence(1));
        let session = ServerSession::new(clock.now());
        let mut venue =
            OrderVenue { instruments, packet, events: 0, stream, session, received: vec![], clock };
        while !venue.is_queried(stop)? {}
        Ok(venue)
    }

    /// Handles the login and the account query; returns true after the latter.
    fn is_queried(&mut self, stop: &StopSignal) -> anyhow::Result<bool> {
        self.receive(stop)?;
        let now = self.clock.now();
        let mut is_queried = false;
        while let Some((event, used)) = self.session.handle_bytes(now, &self.received)? {
            let is_login = matches!(event, ServerEvent::LoginRequest(_));
            if let ServerEvent::Message(message) = event {
                let request = decode_request(message, |_| None);
                ensure!(matches!(request, Err(RequestError::AccountQuery)), "the first request is a query");
                is_queried = true;
            }
            self.received.drain(..used);
            if is_login {
                self.session.accept(self::session()?, Sequence(1));
                let mut bytes = [0; CONTROL_LEN_MAX];
                let len = self.session.poll_transmit(now, &mut bytes);
                self.stream.write_all(&bytes[..len])?;
            }
        }
        if is_queried {
            let answer = QueryResponse::new(now, UserRefNum(1));
            let mut bytes = [0; 64];
            let (len, _) = self.session.encode_message(now, &mut bytes, answer.as_bytes())?;
            self.stream.write_all(&bytes[..len])?;
        }
        Ok(is_queried)
    }

    /// Waits for bytes of the trader.
    fn receive(&mut self, stop: &StopSignal) -> anyhow::Result<()> {
        let mut bytes = [0; 512];
        let len = wait_for(stop, || loopback::read(&mut self.stream, &mut bytes))?;
        self.received.extend_from_slice(&bytes[..len]);
        Ok(())
    }

    /// Waits for the trader's next message; heartbeats may precede it.
    #[inline(always)]
    fn next_message(&mut self, stop: &StopSignal) -> anyhow::Result<Vec<u8>> {
        loop {
            let event = self.session.handle_bytes(self.clock.now(), &self.received);
            let Some((event, used)) = event.with_context(|| format!("{:x?}", self.received))? else {
                self.receive(stop)?;
                continue;
            };
            let message = match event {
                ServerEvent::Message(message) => Some(message.to_vec()),
                ServerEvent::Heartbeat => None,
                event => bail!("{event:?} is no order"),
            };
            self.received.drain(..used);
            if let Some(message) = message {
                return Ok(message);
            }
        }
    }

    fn push(&mut self, kind: MarketEventKind) -> Result<(), EncodeError> {
        self.events += 1;
        let instrument = &self.instruments.as_slice()[0];
        let event = market_event(instrument, self.events, kind);
        self.packet.push_with(|buffer| encode_market_event(&event, Some(instrument), buffer))
    }

    /// Sends a packet with the resting orders.
    pub(crate) fn send_book(&mut self, lines: &mut [MulticastSender; 2]) -> anyhow::Result<()> {
        for kind in resting_orders() {
            self.push(kind)?;
        }
        let packet = self.packet.finish();
        lines.iter_mut().try_for_each(|line| send(line, packet))?;
        self.packet.start_next();
        Ok(())
    }

    /// Sends a trade on line A, waits for the order that follows it, and sends the trade on line B.
    ///
    /// # Errors
    /// The order is not the expected one.
    #[inline(always)]
    pub(crate) fn trade(
        &mut self,
        number: u64,
        lines: &mut [MulticastSender; 2],
        stop: &StopSignal,
    ) -> anyhow::Result<EnterOrder> {
        self.push(execution(number))?;
        let packet = self.packet.finish();
        let [line_a, line_b] = lines;
        send(line_a, packet)?;
        let message = self.next_message(stop)?;
        let packet = self.packet.finish();
        send(line_b, packet)?;
        self.packet.start_next();
        let instruments = &self.instruments;
        let request = decode_request(&message, |symbol| instruments.find(symbol));
        let Ok(OrderRequest::Enter(order)) = request else { bail!("{request:?} is no new order") };
        let is_right = order.side == Side::Buy
            && (order.price, order.qty) == (ASK, QTY)
            && order.time_in_force == TimeInForce::Ioc
            && u64::from(order.user_ref.0) == number;
        ensure!(is_right, "trade {number} is followed by {order:?}");
        Ok(order)
    }

    /// Accepts an order, and cancels its remainder, in one write.
    pub(crate) fn answer(&mut self, order: EnterOrder) -> anyhow::Result<()> {
        let (now, mut bytes, mut end) = (self.clock.now(), [0; 512], 0);
        for kind in answers_of(order) {
            let command = Sequence(self.events);
            let event = OrderEvent { command, session: SessionId(1), ts: Nanos(1), is_reply: true, kind };
            let instruments = &self.instruments;
            let mut message = [0; 256];
            let len = encode_event(&event, |id| instruments.symbol(id), &mut message)?;
            end += self.session.encode_message(now, &mut bytes[end..], &message[..len])?.0;
        }
        self.stream.write_all(&bytes[..end]).context("answers")
    }
}

/// Sends one packet.
#[inline(always)]
pub(crate) fn send(line: &mut MulticastSender, packet: &[u8]) -> anyhow::Result<()> {
    ensure!(line.send(packet)? == SendStatus::Sent, "a packet was not sent");
    Ok(())
}

/// The orders that rest at the venue.
pub(crate) fn resting_orders() -> [MarketEventKind; 2] {
    [(Side::Buy, BID_ORDER, REFERENCE), (Side::Sell, ASK_ORDER, ASK)]
        .map(|(side, order_id, price)| MarketEventKind::Add { order_id, side, price, qty: RESTING_QTY })
}

/// Trade `number`: an execution of the resting ask.
pub(crate) fn execution(number: u64) -> MarketEventKind {
    MarketEventKind::Executed { order_id: ASK_ORDER, qty: QTY, match_id: MatchId(number) }
}

/// Event `number` of the session.
pub(crate) fn market_event(instrument: &Instrument, number: u64, kind: MarketEventKind) -> MarketEvent {
    let sequence = Sequence(number);
    MarketEvent { sequence, command: sequence, ts: Nanos(number), instrument: instrument.id, kind }
}

/// The answers to an order that finds nothing to trade: its acceptance and its cancel.
pub(crate) fn answers_of(order: EnterOrder) -> [OrderEventKind; 2] {
    let (user_ref, decrement, reason) = (order.user_ref, order.qty, CancelReason::ImmediateOrCancel);
    let order_id = OrderId(u64::from(user_ref.0));
    [
        OrderEventKind::Accepted { order, order_id, state: OrderState::Live },
        OrderEventKind::Canceled { user_ref, decrement, reason },
    ]
}

/// The packet of a trade, for its length.
pub(crate) fn trade_packet(instruments: &InstrumentTable) -> anyhow::Result<Vec<u8>> {
    let mut packet = PacketBuilder::new([0; PACKET_LEN_MAX], session()?, Sequence(1));
    let instrument = &instruments.as_slice()[0];
    let event = market_event(instrument, 1, execution(1));
    packet.push_with(|buffer| encode_market_event(&event, Some(instrument), buffer))?;
    Ok(packet.finish().to_vec())
}

/// The order that follows a trade.
pub(crate) fn order_of_trade(instruments: &InstrumentTable) -> EnterOrder {
    let instrument = instruments.as_slice()[0].id;
    EnterOrder {
        time_in_force: TimeInForce::Ioc,
        ..EnterOrder::limit(UserRefNum(1), instrument, Side::Buy, QTY, ASK)
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use tickpath_nasdaq::ouch50::{MESSAGE_LEN_MAX, encode_request};
    use tickpath_net::free_multicast_group;

    use super::*;
    use crate::support::venue::instruments;

    fn packet(packet_type: u8, payload: &[u8]) -> Vec<u8> {
        [&(payload.len() as u16 + 1).to_be_bytes(), &[packet_type][..], payload].concat()
    }

    #[test]
    fn heartbeats_may_arrive_together_with_an_order() {
        let (instruments, stop) = (instruments(1), StopSignal::new());
        let (listener, address) = listen().unwrap();
        let mut trader = TcpStream::connect(address).unwrap();
        let login = format!("{:<6}{:<10}{:>10}{:>20}", "TRADER", "", "", 1);
        trader.write_all(&packet(b'L', login.as_bytes())).unwrap();
        trader.write_all(&packet(b'U', b"Q")).unwrap();
        let mut venue =
            OrderVenue::accept(&listener, instruments.clone(), TscClock::system(), &stop).unwrap();
        let mut lines = [(); 2]
            .map(|()| MulticastSender::new(free_multicast_group().unwrap(), Ipv4Addr::LOCALHOST).unwrap());
        let heartbeat = packet(b'R', b"");
        for number in 1..=2 {
            let order = EnterOrder { user_ref: UserRefNum(number), ..order_of_trade(&instruments) };
            let mut bytes = [0; MESSAGE_LEN_MAX];
            let request = OrderRequest::Enter(order);
            let len = encode_request(&request, |id| instruments.symbol(id), &mut bytes).unwrap();
            trader.write_all(&[&heartbeat[..], &packet(b'U', &bytes[..len]), &heartbeat].concat()).unwrap();
            assert_eq!(venue.trade(u64::from(number), &mut lines, &stop).unwrap().user_ref, order.user_ref);
        }
    }
}
