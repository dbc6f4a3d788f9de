//! Recordings generated for tests.

use std::net::SocketAddrV4;
use std::path::{Path, PathBuf};

use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use tickpath_flowgen::{ItchDay, ItchDayConfig, XdpDay, XdpDayConfig, append_record, pcap_header};
use tickpath_iex::wire::{Alpha, Ticker};
use tickpath_iex::{
    AddOrder, Feed, OrderDelete, OrderExecuted, PriceLevelUpdate, SaleFlags, SegmentBuilder, SystemEvent,
    SystemEventCode, TradingCode, TradingStatus,
};
use tickpath_types::{Nanos, OrderId, Side};
use zerocopy::IntoBytes;

/// Start time of IEX recordings, in nanoseconds since the Unix epoch.
pub(crate) const START_NS: u64 = 1_700_000_000_000_000_000;
pub(crate) const SESSION: u32 = 0x4381_0000;

const FLOW: ItchDayConfig = ItchDayConfig { messages: 12_000, symbols: 12, live: 300, seed: 5 };

/// Writes a generated day of ITCH to a file.
pub(crate) fn itch_day(folder: &Path) -> PathBuf {
    let (mut day, mut bytes) = (ItchDay::new(FLOW).unwrap(), Vec::new());
    while day.append_frames(1_000, &mut bytes) > 0 {}
    write(folder, "day.itch", &bytes)
}

/// Writes a generated day of XDP to a capture of both lines.
pub(crate) fn xdp_day(folder: &Path, channels: u8) -> PathBuf {
    let config = XdpDayConfig { flow: FLOW, channels, lines: 2, ..XdpDayConfig::xdp_500() };
    let (mut day, mut bytes) = (XdpDay::new(config).unwrap(), pcap_header().to_vec());
    std::iter::from_fn(|| day.next_packet()).for_each(|packet| append_record(&packet, &mut bytes));
    write(folder, "xdp.pcap", &bytes)
}

/// Seeded random messages of one IEX feed, in order.
pub(crate) fn iex_messages(feed: Feed, count: usize) -> Vec<Vec<u8>> {
    let mut random = Xoshiro256PlusPlus::seed_from_u64(9);
    let mut below = move |bound: u32| random.next_u32() % bound;
    let tickers = ["ALPHA", "BRAVO", "CHARLIE"].map(|symbol| Ticker::new(symbol).unwrap());
    let mut messages = vec![SystemEvent::new(SystemEventCode::START_OF_MESSAGES, 1).as_bytes().to_vec()];
    for ticker in tickers {
        let status = TradingStatus::new(TradingCode::TRADING, Nanos(START_NS), ticker, Alpha(*b"    "));
        messages.push(status.as_bytes().to_vec());
    }
    let mut resting: Vec<(u64, Ticker, u32)> = Vec::new();
    while messages.len() < count {
        let (ticker, side) = (tickers[below(3) as usize], Side::BOTH[below(2) as usize]);
        // Bids below 100.00 and asks above it, so that the book is never crossed.
        let away = i64::from(1 + below(50)) * 100;
        let price = 1_000_000 - side.sign() * away;
        let ts = Nanos(START_NS + messages.len() as u64);
        let number = messages.len() as u64;
        messages.push(match (feed, below(3)) {
            (Feed::DeepPlus10, 0) if !resting.is_empty() => {
                let (id, ticker, _) = resting.swap_remove(below(resting.len() as u32) as usize);
                OrderDelete::new(b' ', ts, ticker, OrderId(id)).as_bytes().to_vec()
            }
            (Feed::DeepPlus10, 1) if !resting.is_empty() => {
                let place = below(resting.len() as u32) as usize;
                let (id, ticker, size) = resting[place];
                let by = 1 + below(size);
                match size - by {
                    0 => _ = resting.swap_remove(place),
                    left => resting[place].2 = left,
                }
                OrderExecuted::new(SaleFlags(0), ts, ticker, OrderId(id), by, price, 1).as_bytes().to_vec()
            }
            (Feed::DeepPlus10, _) => {
                let size = 1 + below(500);
                resting.push((number, ticker, size));
                AddOrder::new(side, ts, ticker, OrderId(number), size, price).as_bytes().to_vec()
            }
            _ => {
                let size = below(4) * 100;
                PriceLevelUpdate::of(side, below(4) != 0, ts, ticker, size, price).as_bytes().to_vec()
            }
        });
    }
    messages
}

/// Writes the messages of [`iex_messages`] to a capture, in segments of seven messages.
pub(crate) fn iex_day(folder: &Path, feed: Feed, count: usize) -> PathBuf {
    let mut bytes = pcap_header().to_vec();
    let mut builder = SegmentBuilder::new([0; 1_400], feed, 1, SESSION);
    let to = "224.67.0.199:16642".parse().unwrap();
    let messages = iex_messages(feed, count);
    for (number, messages) in messages.chunks(7).enumerate() {
        messages.iter().for_each(|message| builder.push(message).unwrap());
        let ts_ns = START_NS + number as u64 * 1_000;
        append_udp(ts_ns, to, builder.finish(Nanos(ts_ns)), &mut bytes);
    }
    write(folder, "iex.pcap", &bytes)
}

/// Appends a datagram as a record of a pcap file of Ethernet frames.
pub(crate) fn append_udp(ts_ns: u64, to: SocketAddrV4, payload: &[u8], out: &mut Vec<u8>) {
    let len = (14 + 20 + 8 + payload.len()) as u32;
    for word in [(ts_ns / 1_000_000_000) as u32, (ts_ns % 1_000_000_000) as u32, len, len] {
        out.extend_from_slice(&word.to_le_bytes());
    }
    out.extend_from_slice(&[0; 12]);
    out.extend_from_slice(&[0x08, 0x00]);
    let ip_len = (20 + 8 + payload.len()) as u16;
    out.extend_from_slice(&[0x45, 0]);
    out.extend_from_slice(&ip_len.to_be_bytes());
    out.extend_from_slice(&[0, 0, 0, 0, 9, 17, 0, 0, 10, 0, 0, 1]);
    out.extend_from_slice(&to.ip().octets());
    out.extend_from_slice(&9_u16.to_be_bytes());
    out.extend_from_slice(&to.port().to_be_bytes());
    out.extend_from_slice(&(8 + payload.len() as u16).to_be_bytes());
    out.extend_from_slice(&[0, 0]);
    out.extend_from_slice(payload);
}

pub(crate) fn write(folder: &Path, name: &str, bytes: &[u8]) -> PathBuf {
    let path = folder.join(name);
    std::fs::write(&path, bytes).unwrap();
    path
}
