//! The channels of a recording, found in its first packets.

use std::collections::{HashMap, HashSet};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::net::SocketAddrV4;

use tickpath_config::{Date, Zone};
use tickpath_nyse::{Message, Packet, SymbolIndexMapping};

use crate::options::PublishOptions;
use crate::packet::{Key, Kind, PacketHead, for_each_message, read_head};
use crate::source::{Source, Timed};
use crate::xdp::PRODUCT_DEFAULT;

/// Channels of one recording; packets of further ones are counted and not sent.
pub const CHANNELS_MAX: usize = 64;
/// Packets that are looked at before the first is sent, to know the channels.
pub(crate) const SURVEY_PACKETS: usize = 65_536;
/// Packets that two groups must have in common to be two lines of one channel, and none of one number that differs.
const COMMON_PACKETS: u32 = 3;
/// Packets remembered of each group while its lines are sought.
const REMEMBERED_PACKETS: usize = 4_096;
/// Bytes before the messages of an XDP packet; when it was sent is among them, and differs from line to line.
const XDP_HEADER_LEN: usize = tickpath_nyse::HEADER_LEN;
/// Instruments of one channel that are told apart: a feed handler has numbers for no more.
pub(crate) const INSTRUMENTS_MAX: usize = u16::MAX as usize - 1;
/// Where IEX's messages name their symbol.
const IEX_SYMBOL: std::ops::Range<usize> = 10..18;

/// What was found.
#[derive(Default)]
pub(crate) struct Survey {
    /// The channels, in the order in which they came.
    pub(crate) keys: Vec<Key>,
    /// Groups that are another line of a channel, and that channel's.
    lines: HashMap<SocketAddrV4, SocketAddrV4>,
    /// Product and channel that XDP's groups name.
    products: HashMap<SocketAddrV4, (u8, u8)>,
    /// Instruments of each channel: locates, symbol indexes or symbols.
    instruments: HashMap<Key, HashSet<u64>>,
    /// The day in New York on which the first packet was sent, where packets say when that was.
    pub(crate) date: Option<Date>,
}

/// Packets of one group by number: XDP says nothing of channel and line, but the lines of a channel say the same.
#[derive(Default)]
struct Group {
    packets: HashMap<u64, u64>,
    in_common: HashMap<SocketAddrV4, i64>,
}

impl Survey {
    /// Looks at the first packets.
    pub(crate) fn of(options: &PublishOptions) -> anyhow::Result<Survey> {
        let mut source = Source::open(&options.file, options.session)?;
        let (mut survey, mut timed) = (Survey::default(), Timed::default());
        let mut groups = HashMap::<SocketAddrV4, Group>::new();
        for _ in 0..SURVEY_PACKETS {
            // What cannot be read is told when its turn comes.
            let Ok(true) = source.next(&mut timed) else { break };
            let head = timed.dst.and_then(|dst| read_head(&timed.payload, dst));
            let Some(head) = head.filter(|head| head.kind != Kind::Aside) else { continue };
            if let Key::Xdp(group) = head.key {
                note(&mut groups, group, &head, &timed.payload);
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

    /// A group that has enough in common with an earlier one is a line of its channel.
    fn join_lines(&mut self, groups: &HashMap<SocketAddrV4, Group>) {
        let mut first: Vec<SocketAddrV4> = Vec::new();
        let lines = &mut self.lines;
        self.keys.retain(|key| {
            let Key::Xdp(group) = key else { return true };
            let in_common = |other: &&SocketAddrV4| {
                let of = |one: &SocketAddrV4, other: &SocketAddrV4| {
                    groups.get(one).and_then(|group| group.in_common.get(other)).copied().unwrap_or(0)
                };
                of(group, other) + of(other, group) >= i64::from(COMMON_PACKETS)
            };
            match first.iter().find(in_common) {
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

    /// Product and channel of a channel of XDP.
    pub(crate) fn product(&self, key: &Key) -> (u8, u8) {
        match key {
            Key::Xdp(group) => self.products.get(group).copied().unwrap_or(PRODUCT_DEFAULT),
            _ => PRODUCT_DEFAULT,
        }
    }

    /// The least number of instruments that a handler of a channel needs room for, as far as they were seen.
    pub(crate) fn instruments(&self, key: &Key) -> usize {
        let Some(seen) = self.instruments.get(key) else { return 0 };
        match key {
            // A locate is a place in a table.
            Key::Itch(_) => seen.iter().max().map_or(0, |locate| *locate as usize),
            Key::Xdp(_) | Key::Iex(..) => seen.len(),
        }
    }

    /// The channel of a packet.
    pub(crate) fn key_of(&self, head: &PacketHead) -> Key {
        match head.key {
            Key::Xdp(group) => Key::Xdp(self.lines.get(&group).copied().unwrap_or(group)),
            key => key,
        }
    }
}

/// The instrument that a message names, by the channel's own numbers or characters.
fn instrument_of(key: &Key, message: &[u8]) -> Option<u64> {
    match key {
        // Every message has its locate there: a recording may lack the directory.
        Key::Itch(_) => message.get(1..3)?.try_into().ok().map(u16::from_be_bytes).map(u64::from),
        Key::Xdp(_) if message.get(2..4) == Some(&SymbolIndexMapping::TYPE.to_le_bytes()) => {
            message.get(4..8)?.try_into().ok().map(u32::from_le_bytes).map(u64::from)
        }
        Key::Iex(..) => message.get(IEX_SYMBOL)?.try_into().ok().map(u64::from_le_bytes),
        _ => None,
    }
}

/// What the reset at the start of a channel's day names.
fn product_of(payload: &[u8]) -> Option<(u8, u8)> {
    let packet = Packet::parse(payload).ok()?;
    packet.messages().find_map(|(_, message)| match Message::parse(message) {
        Ok(Message::SequenceNumberReset(reset)) => Some((reset.product_id, reset.channel_id)),
        _ => None,
    })
}

/// Notes which other groups brought the same under the same number.
fn note(groups: &mut HashMap<SocketAddrV4, Group>, group: SocketAddrV4, head: &PacketHead, payload: &[u8]) {
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
        // One difference outweighs whatever is the same.
        *own.in_common.entry(other).or_default() += if is_same { 1 } else { -(1 << 32) };
    }
    if own.packets.len() < REMEMBERED_PACKETS {
        own.packets.insert(head.first, hash);
    }
}
