//! Tests of IEX channels: segments of different lengths per line, gap fill, SNAP, a restart of the sequence.

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};

use tickpath_config::Secret;
use tickpath_feedhandler::live::{BookStatus, ProtocolName};
use tickpath_iex::gap_fill::Request;
use tickpath_iex::snap::{self, Frame};
use tickpath_iex::wire::Ticker;
use tickpath_iex::{Feed, Header, PriceLevelUpdate, SegmentBuilder};
use tickpath_net::{SendStatus, UdpEndpoint};
use tickpath_test_support::{ANY_PORT, listen_nonblocking};
use tickpath_types::{Nanos, Price, Sequence, Side, Symbol};
use zerocopy::{FromBytes, IntoBytes};

use crate::rig::{Rig, all_live};

const SESSION: u32 = 77;
const SYMBOLS: [&str; 3] = ["ZIEXT", "ZXIET", "ZEXIT"];

fn level(side: Side, symbol: &str, price: i64, qty: u32) -> Vec<u8> {
    let ticker = Ticker::from(Symbol::new(symbol).unwrap());
    PriceLevelUpdate::of(side, true, Nanos(5), ticker, qty, Price(price)).as_bytes().to_vec()
}

/// Returns messages that add and remove price levels on both sides of three symbols, never crossed.
fn messages(count: u64) -> Vec<Vec<u8>> {
    (0..count)
        .map(|index| {
            let symbol = SYMBOLS[(index % 3) as usize];
            let side = if index % 2 == 0 { Side::Buy } else { Side::Sell };
            let away = 100 * (1 + (index * 7) as i64 % 10);
            let qty = if index % 5 == 4 { 0 } else { 100 + (index % 900) as u32 };
            level(side, symbol, 1_000_000 - side.sign() * away, qty)
        })
        .collect()
}

/// Returns one segment of messages from sequence number `first` on, with send time `sent`.
fn segment(messages: &[Vec<u8>], first: u64, count: usize, sent: u64) -> Vec<u8> {
    let place = first as usize - 1;
    let offset: usize = messages[..place].iter().map(|message| message.len() + 2).sum();
    let id = Feed::Deep10.protocol_id();
    let mut builder = SegmentBuilder::resuming([0; 1_400], id, 1, SESSION, Sequence(first), offset as u64);
    let end = (place + count).min(messages.len());
    messages[place..end].iter().for_each(|message| builder.push(message).unwrap());
    builder.finish(Nanos(sent)).to_vec()
}

/// A gap fill server over UDP.
struct GapFill {
    endpoint: UdpEndpoint,
    messages: Vec<Vec<u8>>,
    request_count: usize,
}

impl GapFill {
    fn serve(&mut self) {
        let mut bytes = [0; 2_048];
        while let Ok(Some(received)) = self.endpoint.recv_from(&mut bytes) {
            let (request, _) = Request::parse_prefix(&bytes[..received.len]).unwrap().unwrap();
            self.request_count += 1;
            assert_eq!(request.header.session.get(), SESSION);
            for range in request.ranges {
                let (first, last) = (range.first.get() as u64, range.last.get() as u64);
                for start in (first..=last).step_by(20) {
                    let count = (last + 1 - start).min(20) as usize;
                    let answer = segment(&self.messages, start, count, 1);
                    assert_eq!(self.endpoint.send_to(&answer, received.from).unwrap(), SendStatus::Sent);
                }
            }
        }
    }
}

#[test]
fn gaps_are_filled_across_different_segmentation() {
    let messages = messages(600);
    let endpoint = UdpEndpoint::bind(ANY_PORT).unwrap();
    let mut server = GapFill { endpoint, messages: messages.clone(), request_count: 0 };
    let address = server.endpoint.local_address();
    let mut rig = Rig::open(ProtocolName::IexDeep, |section| section.gap_fill = Some(address));
    for step in 0..20_u64 {
        let first = step * 30 + 1;
        // Line A has segments of 10 messages, B of 15; both lose the segments that begin at 91 and 391.
        for (line, cut) in [(0, 10), (1, 15)] {
            for start in (first..first + 30).step_by(cut as usize) {
                let is_lost = [91, 391].contains(&start) || (line == 0 && start % 70 == 1 && start > 1);
                if !is_lost {
                    rig.send(line, &segment(&messages, start, cut as usize, 1_000 + start));
                }
            }
        }
        server.serve();
    }
    let status = rig.until("all messages", || server.serve(), |status| status.next_sequence == 601);
    assert!(all_live(&status), "{status:#?}");
    assert!(server.request_count > 0 && status.lines.messages_lost == 0);
    // The sequence restarts within the same session, which a later send time reveals.
    let restart = segment(&messages, 1, 10, 10_000_000_000);
    rig.send_both(&restart);
    let status = rig.until("the restart", || (), |status| status.next_sequence == 11);
    assert_eq!(status.lines.restarts, 1, "the copy on the other line is none");
    // A segment of another feed is dropped.
    let mut other = restart.clone();
    other[2..4].copy_from_slice(&Feed::Tops16.protocol_id().to_le_bytes());
    rig.send_both(&other);
    let status = rig.until("the other feed", || (), |status| status.unauthorised == 2);
    assert_eq!(status.next_sequence, 11);
}

/// A SNAP server over TCP whose snapshots contain the levels that result from `messages`.
struct Snap {
    listener: TcpListener,
    clients: Vec<TcpStream>,
    messages: Vec<Vec<u8>>,
    served: usize,
}

impl Snap {
    fn serve(&mut self) {
        if let Ok((client, _)) = self.listener.accept() {
            client.set_nonblocking(true).unwrap();
            self.clients.push(client);
        }
        for mut client in std::mem::take(&mut self.clients) {
            let mut bytes = [0; 256];
            match client.read(&mut bytes) {
                Ok(0) => {}
                Ok(count) => {
                    let Some((Frame::Request(request), 59)) = snap::next_frame(&bytes[..count]).unwrap()
                    else {
                        panic!("a whole request is there");
                    };
                    assert_eq!(request.token.as_str(), "token");
                    client.set_nonblocking(false).unwrap();
                    client.write_all(&self.answer(request.minimum)).unwrap();
                    self.served += 1;
                    self.clients.push(client);
                }
                Err(_) => self.clients.push(client),
            }
        }
    }

    fn answer(&self, minimum: Sequence) -> Vec<u8> {
        let end = self.messages.len() as u64;
        let mut buffer = vec![0; snap::FRAME_LEN_MAX];
        let mut answer = vec![];
        let mut push = |frame: &Frame<'_>| {
            let len = snap::encode(frame, &mut buffer).unwrap();
            answer.extend(&buffer[..len]);
        };
        if minimum.0 > end {
            push(&Frame::Error(snap::ErrorCode::NOT_YET));
            return answer;
        }
        let empty = segment(&self.messages, 1, 0, 1);
        let (header, _) = Header::ref_from_prefix(&empty[..]).unwrap();
        push(&Frame::Start { total_len: 0 });
        // The latest message of each level.
        let mut levels = std::collections::BTreeMap::new();
        for message in &self.messages {
            let level = PriceLevelUpdate::ref_from_bytes(message).unwrap();
            levels.insert((message[0], level.symbol.get(), level.price.get()), message);
        }
        for message in levels.values() {
            let level = PriceLevelUpdate::ref_from_bytes(message).unwrap();
            if !level.size.get().is_zero() {
                push(&Frame::Data { header, message });
            }
        }
        push(&Frame::End { sequence: Sequence(end) });
        answer
    }
}

#[test]
fn a_late_start_is_recovered_by_a_snapshot() {
    let messages = messages(400);
    let (listener, address) = listen_nonblocking();
    let mut server = Snap { listener, clients: vec![], messages: vec![], served: 0 };
    let mut late = Rig::open(ProtocolName::IexDeep, |section| {
        section.snap = Some(address);
        section.token = Some(Secret::new("token"));
        section.max_gap = 50;
    });
    let mut whole = Rig::open(ProtocolName::IexDeep, |_| {});
    for first in (1..=400).step_by(10) {
        let segment = segment(&messages, first, 10, first);
        whole.send_both(&segment);
        if first > 200 {
            late.send_both(&segment);
            // Serve snapshots that lag behind the lines, so that the first ones are too old.
            server.messages = messages[..first as usize - 21].to_vec();
            server.serve();
        }
    }
    server.messages = messages[..390].to_vec();
    let status = late.until(
        "the snapshot",
        || server.serve(),
        |status| status.next_sequence == 401 && status.waiting == 0 && status.recovery.snapshots == 1,
    );
    assert!(all_live(&status), "{status:#?}");
    whole.until("the twin", || (), |status| status.next_sequence == 401);
    let ((late, late_books), (whole, whole_books)) = (late.close(), whole.close());
    assert_eq!(late.lines.messages_lost, 200);
    assert!(server.served > 0);
    assert_eq!(late.health, [3, 0, 0, 0]);
    assert_eq!(whole.health, [3, 0, 0, 0]);
    // Instrument ids depend on the order in which symbols first appear, so compare by symbol.
    let best = |books: Vec<BookStatus>| {
        books.into_iter().map(|book| (book.symbol, (book.bid, book.ask))).collect::<BTreeMap<_, _>>()
    };
    let (late, whole) = (best(late_books), best(whole_books));
    assert!(whole.len() == SYMBOLS.len() && whole.values().all(|(bid, ask)| bid.is_some() && ask.is_some()));
    assert_eq!(late, whole);
}
