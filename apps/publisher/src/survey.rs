//! Finds the channels of a recording in its first packets.

use std::collections::{HashMap, HashSet};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::net::SocketAddrV4;

use tickpath_config::{Date, Zone};
use tickpath_nyse::{Message, Packet, SymbolIndexMapping};

use crate::options::PublishOptions;
use crate::packet::{ChannelKey, Kind, PacketHead, for_each_message, read_head};
use crate::source::{Source, Timed};
use crate::xdp::PRODUCT_DEFAULT;

/// Maximum number of channels; packets of further channels are counted and not sent.
pub const CHANNELS_MAX: usize = 64;
/// Number of packets that are scanned for channels before the first packet is sent.
pub(crate) const SURVEY_PACKETS: usize = 65_536;
/// Number of packets that two groups must have in common to be lines of one channel. One pair of different
/// packets with the same sequence number rules this out.
const COMMON_PACKETS: u32 = 3;
/// Number of packets of each group that are remembered for comparison with other groups.
const REMEMBERED_PACKETS: usize = 4_096;
/// Length of an XDP packet's header. Its send time differs between lines, so it is not compared.
const XDP_HEADER_LEN: usize = tickpath_nyse::HEADER_LEN;
/// Maximum number of distinct instruments of one channel: a feed handler has no more instrument ids.
pub(crate) const INSTRUMENTS_MAX: usize = u16::MAX as usize - 1;
/// Byte range of the symbol in IEX messages.
const IEX_SYMBOL: std::ops::Range<usize> = 10..18;

/// The channels and instruments that the first packets of a recording contain.
#[derive(Default)]
pub(crate) struct Survey {
    /// The channels, in order of appearance.
    pub(crate) keys: Vec<ChannelKey>,
    /// Maps the group of each further line of a channel to the channel's first group.
    lines: HashMap<SocketAddrV4, SocketAddrV4>,
    /// Product and channel number, by XDP group.
    products: HashMap<SocketAddrV4, (u8, u8)>,
    /// Instruments of each channel, by stock locate, symbol index or symbol.
    instruments: HashMap<ChannelKey, HashSet<u64>>,
    /// The day in New York on which the first packet was sent, if packets give their send time.
    pub(crate) date: Option<Date>,
}

/// Packet hashes of one group by sequence number, and the number of matches with each other group, far below
/// zero after a mismatch. XDP packets do not name their channel, but a channel's lines have equal packets.
#[derive(Default)]
struct Group {
    packets: HashMap<u64, u64>,
    common_packets: HashMap<SocketAddrV4, i64>,
}

impl Survey {
    /// Scans the first packets of the recording.
    pub(crate) fn of(options: &PublishOptions) -> anyhow::Result<Survey> {
        let mut source = Source::open(&options.file, options.session)?;
        let (mut survey, mut timed) = (Survey::default(), Timed::default());
        let mut groups = HashMap::<SocketAddrV4, Group>::new();
        for _ in 0..SURVEY_PACKETS {
            // Ignore a read error here: it is reported when publishing reaches it.
            let Ok(true) = source.next(&mut timed) else { break };
            let head = timed.dst.and_then(|dst| read_head(&timed.payload, dst));
            let Some(head) = head.filter(|head| head.kind != Kind::OutOfBand) else { continue };
            if let ChannelKey::Xdp(group) = head.key {
                record_packet(&mut groups, group, &head, &timed.payload);
                if let Some(product) = product_of(&timed.payload) {
                    survey.products.insert(group, product);
                }
            }
            if survey.date.is_none() && head.sent_ns > 0 {
                survey.date = Some(Zone::EASTERN.date_at(head.sent_ns));
            }
            let instruments = survey.instruments.entry(head.key).or_default();
            for_each_message(&head.key, &timed.payload, |_, message, _| {
                if instruments.len() < INSTRUMENTS_MAX {
                    instruments.extend(instrument_of(&head.key, message));
                }
            });
            if !survey.keys.contains(&head.key) && survey.keys.len() < CHANNELS_MAX {
                survey.keys.push(head.key);
            }
        }
        survey.join_lines(&groups);
        Ok(survey)
    }

    /// Makes each group a line of an earlier group's channel if the two have enough packets in common.
    fn join_lines(&mut self, groups: &HashMap<SocketAddrV4, Group>) {
        let mut first: Vec<SocketAddrV4> = Vec::new();
        let lines = &mut self.lines;
        self.keys.retain(|key| {
            let ChannelKey::Xdp(group) = key else { return true };
            let common_packets = |other: &&SocketAddrV4| {
                let of = |one: &SocketAddrV4, other: &SocketAddrV4| {
                    groups.get(one).and_then(|group| group.common_packets.get(other)).copied().unwrap_or(0)
                };
                of(group, other) + of(other, group) >= i64::from(COMMON_PACKETS)
            };
            match first.iter().find(common_packets) {
                Some(other) => {
                    lines.insert(*group, *other);
                    false
                }
                None => {
                    first.push(*group);
                    true
                }
            }
        });
    }

    /// Returns the product and channel number of an XDP channel, or the default if unknown.
    pub(crate) fn product(&self, key: &ChannelKey) -> (u8, u8) {
        match key {
            ChannelKey::Xdp(group) => self.products.get(group).copied().unwrap_or(PRODUCT_DEFAULT),
            _ => PRODUCT_DEFAULT,
        }
    }

    /// Returns the instrument capacity that a feed handler needs for a channel, according to the survey.
    pub(crate) fn instruments(&self, key: &ChannelKey) -> usize {
        let Some(seen) = self.instruments.get(key) else { return 0 };
        match key {
            // A handler indexes a table by locate, so the highest one counts.
            ChannelKey::Itch(_) => seen.iter().max().map_or(0, |locate| *locate as usize),
            ChannelKey::Xdp(_) | ChannelKey::Iex(..) => seen.len(),
        }
    }

    /// Returns the channel of a packet: all lines of a channel have the same key.
    pub(crate) fn key_of(&self, head: &PacketHead) -> ChannelKey {
        match head.key {
            ChannelKey::Xdp(group) => ChannelKey::Xdp(self.lines.get(&group).copied().unwrap_or(group)),
            key => key,
        }
    }
}

/// Returns the instrument of a message: stock locate, symbol index, or the characters of the symbol.
fn instrument_of(key: &ChannelKey, message: &[u8]) -> Option<u64> {
    match key {
        // These bytes of every message are its locate, so no directory is needed.
        ChannelKey::Itch(_) => message.get(1..3)?.try_into().ok().map(u16::from_be_bytes).map(u64::from),
        ChannelKey::Xdp(_) if message.get(2..4) == Some(&SymbolIndexMapping::TYPE.to_le_bytes()) => {
            message.get(4..8)?.try_into().ok().map(u32::from_le_bytes).map(u64::from)
        }
        ChannelKey::Iex(..) => message.get(IEX_SYMBOL)?.try_into().ok().map(u64::from_le_bytes),
        _ => None,
    }
}

/// Returns the product and channel numbers of the packet's sequence number reset, if it has one.
fn product_of(payload: &[u8]) -> Option<(u8, u8)> {
    let packet = Packet::parse(payload).ok()?;
    packet.messages().find_map(|(_, message)| match Message::parse(message) {
        Ok(Message::SequenceNumberReset(reset)) => Some((reset.product_id, reset.channel_id)),
        _ => None,
    })
}

/// Records a packet, and compares it with the packets of the same sequence number in other groups.
fn record_packet(
    groups: &mut HashMap<SocketAddrV4, Group>,
    group: SocketAddrV4,
    head: &PacketHead,
    payload: &[u8],
) {
    if head.kind != Kind::Messages {
        return;
    }
    let mut hasher = DefaultHasher::new();
    payload.get(XDP_HEADER_LEN..).hash(&mut hasher);
    let hash = hasher.finish();
    let others: Vec<(SocketAddrV4, bool)> = groups
        .iter()
        .filter(|(other, _)| **other != group)
        .filter_map(|(other, known)| Some((*other, *known.packets.get(&head.first)? == hash)))
        .collect();
    let own = groups.entry(group).or_default();
    for (other, is_same) in others {
        // One difference outweighs all matches.
        *own.common_packets.entry(other).or_default() += if is_same { 1 } else { -(1 << 32) };
    }
    if own.packets.len() < REMEMBERED_PACKETS {
        own.packets.insert(head.first, hash);
    }
}
