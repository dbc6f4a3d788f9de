//! Tests of XDP channels: requests over TCP, retransmissions by multicast, refreshes of one symbol or of all.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddrV4, TcpListener, TcpStream};

use tickpath_book::{BookLimits, BooksById, Indexed};
use tickpath_feed::xdp::{BookBuilder, order_key};
use tickpath_feed::{IgnoreUpdates, MessageBooks};
use tickpath_feedhandler::live::{ProtocolName, ResyncOutcome};
use tickpath_flowgen::{ItchDayConfig, XdpDay, XdpDayConfig};
use tickpath_net::{MulticastSender, SendStatus, free_multicast_group};
use tickpath_nyse::{
    AddOrderRefresh, DeliveryFlag, Message, Packet, PacketBuilder, RefreshHeader, RefreshRequest,
    RequestResponse, RequestStatus, RetransmissionRequest, SendTime, Side as WireSide, SourceId,
};
use tickpath_reference::ReferenceBooks;
use tickpath_test_support::listen_nonblocking;
use tickpath_types::{InstrumentId, Nanos, Sequence, Side};

use crate::rig::{Rig, all_live};

const MIDNIGHT: Nanos = Nanos::from_secs(1_795_150_800);

/// A day of one channel: its messages in sequence, and their packets.
struct Day {
    messages: Vec<Vec<u8>>,
    packets: Vec<Vec<u8>>,
}

fn day() -> Day {
    let flow = ItchDayConfig { symbols: 8, live: 200, ..ItchDayConfig::itch_500().scaled(2_000) };
    let mut day = XdpDay::new(XdpDayConfig { flow, channels: 1, ..XdpDayConfig::xdp_500() }).unwrap();
    let (mut messages, mut packets) = (vec![], vec![]);
    while let Some(packet) = day.next_packet() {
        let parsed = Packet::parse(packet.bytes()).unwrap();
        messages.extend(parsed.messages().map(|(_, message)| message.to_vec()));
        packets.push(packet.bytes().to_vec());
    }
    Day { messages, packets }
}

fn books(messages: &[Vec<u8>]) -> BookBuilder<Indexed<ReferenceBooks>> {
    let limits = BookLimits::new(InstrumentId(16), 4_096);
    let mut books = BookBuilder::new(Indexed::<ReferenceBooks>::new(limits), MIDNIGHT);
    for (message, sequence) in messages.iter().zip(1..) {
        books.handle_message(Sequence(sequence), message, &mut IgnoreUpdates);
    }
    books
}

/// A request server that answers by multicast.
struct Server {
    listener: TcpListener,
    client: Option<TcpStream>,
    retransmissions: MulticastSender,
    refreshes: MulticastSender,
    messages: Vec<Vec<u8>>,
    /// Number of messages published so far; refreshes include their effect.
    published: usize,
    /// Number of the refresh packet that the test loses, counted from 1 over all refreshes.
    lost_refresh: Option<usize>,
    refresh_packets: usize,
    retransmitted: usize,
    /// Symbol index of each refresh request; 0 requests all symbols.
    refreshed: Vec<u32>,
}

impl Server {
    fn open(messages: &[Vec<u8>]) -> (Server, SocketAddrV4, [SocketAddrV4; 2]) {
        let (listener, address) = listen_nonblocking();
        let groups = [free_multicast_group().unwrap(), free_multicast_group().unwrap()];
        let [retransmissions, refreshes] =
            groups.map(|group| MulticastSender::new(group, Ipv4Addr::LOCALHOST).unwrap());
        let messages = messages.to_vec();
        let server = Server {
            listener,
            client: None,
            retransmissions,
            refreshes,
            published: messages.len(),
            messages,
            lost_refresh: None,
            refresh_packets: 0,
            retransmitted: 0,
            refreshed: vec![],
        };
        (server, address, groups)
    }

    fn serve(&mut self) {
        if let Ok((mut client, _)) = self.listener.accept() {
            client.set_nonblocking(true).unwrap();
            // The client answers this heartbeat with a heartbeat response.
            let mut heartbeat = PacketBuilder::new([0; 64], 1);
            client.write_all(heartbeat.finish(DeliveryFlag::HEARTBEAT, SendTime::default())).unwrap();
            self.client = Some(client);
        }
        let mut bytes = [0; 4_096];
        let Some(Ok(count)) = self.client.as_mut().map(|client| client.read(&mut bytes)) else { return };
        let mut rest = &bytes[..count];
        while rest.len() >= 2 {
            let size = usize::from(u16::from_le_bytes([rest[0], rest[1]]));
            let packet = Packet::parse(&rest[..size]).unwrap();
            let (number, message) = packet.messages().next().unwrap();
            match Message::parse(message).unwrap() {
                Message::RetransmissionRequest(request) => self.retransmit(number, &request),
                Message::RefreshRequest(request) => self.refresh(number, &request),
                Message::HeartbeatResponse(_) => {}
                other => panic!("a client does not send {other:?}"),
            }
            rest = &rest[size..];
        }
    }

    /// Sends the response that accepts a request.
    fn answer(&mut self, number: u32, [begin, end]: [u32; 2], source: SourceId, product: u8, channel: u8) {
        let status = RequestStatus::ACCEPTED;
        let response = RequestResponse::new(number, begin, end, source, product, channel, status);
        let mut packet = PacketBuilder::new([0; 64], 1);
        packet.push(&response).unwrap();
        let bytes = packet.finish(DeliveryFlag::ORIGINAL, SendTime::default()).to_vec();
        self.client.as_mut().unwrap().write_all(&bytes).unwrap();
    }

    fn retransmit(&mut self, number: u32, request: &RetransmissionRequest) {
        self.retransmitted += 1;
        let (begin, end) = (request.begin_seq_num.get(), request.end_seq_num.get());
        self.answer(number, [begin, end], request.source_id, request.product_id, request.channel_id);
        let mut packet = PacketBuilder::new([0; 1_400], begin);
        for message in &self.messages[begin as usize - 1..end as usize] {
            if packet.push_bytes(message).is_err() {
                let bytes = packet.finish(DeliveryFlag::RETRANSMISSION_PART, SendTime::default());
                assert_eq!(self.retransmissions.send(bytes).unwrap(), SendStatus::Sent);
                packet.start_next();
                packet.push_bytes(message).unwrap();
            }
        }
        let bytes = packet.finish(DeliveryFlag::RETRANSMISSION_PART, SendTime::default());
        assert_eq!(self.retransmissions.send(bytes).unwrap(), SendStatus::Sent);
    }

    /// Sends a refresh of one symbol or of all, as of the messages published so far.
    fn refresh(&mut self, number: u32, request: &RefreshRequest) {
        let index = request.symbol_index.get();
        self.refreshed.push(index);
        self.answer(number, [0, 0], request.source_id, request.product_id, request.channel_id);
        let books = books(&self.messages[..self.published]);
        if index != 0 {
            return self.refresh_symbol(&books, index, None);
        }
        let ids = (1..=16).map(InstrumentId);
        let indexes: Vec<u32> = ids.filter_map(|id| books.symbol_index(id)).collect();
        for (place, index) in indexes.iter().enumerate() {
            let flag = match place {
                0 => DeliveryFlag::REFRESH_START,
                _ if place + 1 == indexes.len() => DeliveryFlag::REFRESH_END,
                _ => DeliveryFlag::REFRESH_PART,
            };
            self.refresh_symbol(&books, *index, Some(flag));
        }
    }

    fn refresh_symbol(
        &mut self,
        books: &BookBuilder<Indexed<ReferenceBooks>>,
        index: u32,
        flag: Option<DeliveryFlag>,
    ) {
        let id = books.find(index).expect("a client asks for what it knows");
        let last_symbol = books.next_symbol_seq(id).wrapping_sub(1);
        let mapping = self.messages.iter().find(|message| {
            matches!(Message::parse(message), Ok(Message::SymbolIndexMapping(mapping)) if mapping.symbol_index.get() == index)
        });
        let orders: Vec<_> = Side::BOTH
            .into_iter()
            .flat_map(|side| books.instruments().books().orders(id, side).collect::<Vec<_>>())
            .collect();
        let chunks: Vec<_> = orders.chunks(20).collect();
        let total = chunks.len().max(1) as u16;
        for number in 1..=total {
            let mut packet = PacketBuilder::new([0; 1_400], u32::from(number));
            if number == 1 {
                let header = RefreshHeader::new(number, total, self.published as u32, last_symbol);
                packet.push(&header).unwrap();
                packet.push_bytes(mapping.unwrap()).unwrap();
            } else {
                packet.push_bytes(&RefreshHeader::short(number, total)).unwrap();
            }
            for order in chunks.get(usize::from(number) - 1).copied().unwrap_or_default() {
                let side = if order.side == Side::Buy { WireSide::BUY } else { WireSide::SELL };
                let scale = tickpath_nyse::PriceScale::new(scale_of(mapping.unwrap())).unwrap();
                let price = scale.units(order.price).unwrap();
                let add = AddOrderRefresh::new(
                    1_795_190_400_u32,
                    0_u32,
                    index,
                    last_symbol,
                    order_key(order.id).0,
                    price,
                    order.qty.0 as u32,
                    side,
                    tickpath_nyse::Firm::NONE,
                    0_u8,
                );
                packet.push(&add).unwrap();
            }
            let alone = if total == 1 { DeliveryFlag::REFRESH_ONE } else { DeliveryFlag::REFRESH_PART };
            let bytes = packet.finish(flag.unwrap_or(alone), SendTime::default());
            self.refresh_packets += 1;
            if self.lost_refresh != Some(self.refresh_packets) {
                assert_eq!(self.refreshes.send(bytes).unwrap(), SendStatus::Sent);
            }
        }
    }
}

fn scale_of(mapping: &[u8]) -> u8 {
    match Message::parse(mapping).unwrap() {
        Message::SymbolIndexMapping(mapping) => mapping.price_scale_code,
        _ => unreachable!("it was found by its type"),
    }
}

#[test]
fn losses_are_retransmitted_and_books_refreshed_on_command() {
    let day = day();
    let (mut server, address, [retransmissions, refreshes]) = Server::open(&day.messages);
    let mut rig = Rig::open(ProtocolName::Xdp, |section| {
        section.request_server = Some(address);
        section.retransmission_group = Some(retransmissions);
        section.refresh_group = Some(refreshes);
    });
    let last = day.packets.len() - 1;
    for (index, packet) in day.packets.iter().enumerate() {
        if index % 7 != 3 || index == last {
            rig.send(0, packet);
        }
        if index % 11 != 3 || index == last {
            rig.send(1, packet);
        }
        server.serve();
    }
    let count = day.messages.len() as u64;
    let status = rig.until("all messages", || server.serve(), |status| status.next_sequence == count + 1);
    assert!(all_live(&status), "{status:#?}");
    assert!(server.retransmitted > 0 && status.lines.messages_lost == 0, "{status:#?}");
    let reference = books(&day.messages);
    let symbol = reference.instruments().instrument(InstrumentId(1)).unwrap().symbol.unwrap();
    assert_eq!(rig.resync(symbol.as_str()), ResyncOutcome::Begun);
    let status =
        rig.until("the refresh", || server.serve(), |status| status.snapshot_recovery.recovered == 1);
    assert!(all_live(&status) && !server.refreshed.is_empty(), "{status:#?}");
    let (status, _) = rig.close();
    assert_eq!(status.state_hash, reference.instruments().books().state_hash());
}

/// A handler starts late, and a packet is lost in the refresh of all symbols.
#[test]
fn a_late_start_is_recovered_by_a_refresh_of_all_symbols() {
    let day = day();
    let (mut server, address, [retransmissions, refreshes]) = Server::open(&day.messages);
    let mut rig = Rig::open(ProtocolName::Xdp, |section| {
        section.request_server = Some(address);
        section.retransmission_group = Some(retransmissions);
        section.refresh_group = Some(refreshes);
        section.max_gap = 10;
    });
    let (before, after) = day.packets.split_at(day.packets.len() / 2);
    let (now, later) = after.split_at(after.len() / 2);
    let count = |packets: &[Vec<u8>]| -> usize {
        packets.iter().map(|packet| Packet::parse(packet).unwrap().messages().count()).sum()
    };
    server.published = count(before) + count(now);
    // Lose the first packet of a symbol in the middle of the refresh.
    server.lost_refresh = Some(3);
    now.iter().for_each(|packet| rig.send_both(packet));
    let status = rig.until(
        "the refresh",
        || server.serve(),
        |status| all_live(status) && status.instruments == 8 && status.waiting == 0,
    );
    assert_eq!((server.refreshed[0], server.retransmitted), (0, 0), "all symbols at first");
    assert!(server.refreshed.len() > 1, "what was lost of it is requested again: {:?}", server.refreshed);
    assert_eq!(status.lines.messages_lost as usize, count(before));
    later.iter().for_each(|packet| rig.send_both(packet));
    let end = day.messages.len() as u64 + 1;
    let status = rig.until("the rest", || server.serve(), |status| status.next_sequence == end);
    assert!(all_live(&status), "{status:#?}");
    let (status, _) = rig.close();
    assert_eq!(status.state_hash, books(&day.messages).instruments().books().state_hash());
}
