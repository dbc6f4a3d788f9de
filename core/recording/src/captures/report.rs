//! The part of a report that describes a capture: its channels, and the packets assigned to none.

use core::net::SocketAddrV4;

use super::channel::ChannelReport;
use crate::integrity::Integrity;
use crate::protocol_name::Protocol;

/// The part of a recording's report that describes its capture.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CaptureReport {
    /// Name of the recording, such as `NYSE XDP Integrated Feed`.
    pub name: String,
    /// Protocol of the recording.
    pub protocol: Protocol,
    /// Channels of the recording.
    pub channels: Vec<ChannelReport>,
    /// Names of all recordings of the capture, this one among them.
    pub recordings: Vec<String>,
    /// Packets of the whole capture that could not be assigned to a protocol or channel.
    pub unknown: UnknownPackets,
}

/// Packets that could not be assigned to a protocol or channel.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UnknownPackets {
    /// Number of these packets.
    pub count: u64,
    /// The most frequent destinations of these packets, at most three, each with its number of packets.
    pub destinations: Vec<(SocketAddrV4, u64)>,
}

/// Maximum number of destinations of unknown packets in a report.
pub(super) const DESTINATIONS_NAMED: usize = 3;

impl CaptureReport {
    /// Channels whose first message in the capture is not message 1 of the session.
    fn without_beginning(&self) -> impl Iterator<Item = &ChannelReport> {
        self.channels.iter().filter(|channel| channel.first_sequence > 1)
    }

    /// Describes crossed books in an unknown trading state if a channel begins in mid-session: the earlier
    /// messages are missing, so the books are wrong.
    pub(super) fn crossed_from_the_middle(&self, integrity: &Integrity) -> Option<String> {
        let crossed = &integrity.crossed.unknown;
        let channel = self.without_beginning().next().filter(|_| crossed.count > 0)?;
        Some(format!(
            "{} message(s) leave a book crossed, first at {}, and {} begins with message {}: the books are wrong without \
             the earlier messages",
            crossed.count,
            crossed.first.as_deref().unwrap_or("an unknown place"),
            channel.name,
            channel.first_sequence
        ))
    }

    /// Reasons, as text, why books may be incomplete: the capture begins late or has unnumbered messages.
    pub(super) fn reservations(&self) -> Vec<String> {
        let mut reasons: Vec<String> = self
            .without_beginning()
            .map(|channel| {
                let recovered = match channel.recovered {
                    0 => String::new(),
                    books => format!("; refreshes recovered {books} of them"),
                };
                format!(
                    "{} begins with message {}: books lack what rested before{recovered}",
                    channel.name, channel.first_sequence
                )
            })
            .collect();
        for channel in self.channels.iter().filter(|channel| channel.unnumbered > 0) {
            let (count, name) = (channel.unnumbered, &channel.name);
            reasons.push(format!(
                "{count} message(s) of {name} have no sequence number: gaps cannot be detected"
            ));
        }
        reasons
    }

    /// Reasons, as text, why books may be wrong: packets are lost, malformed, or differ from line to line.
    pub(super) fn contradictions(&self) -> Vec<String> {
        let mut reasons = Vec::new();
        for channel in &self.channels {
            let name = &channel.name;
            if channel.gaps > 0 {
                let recovered = match channel.recovered {
                    0 => String::new(),
                    books => format!("; refreshes recovered {books} of them"),
                };
                reasons.push(format!(
                    "{} gap(s) on {name}, {} message(s) lost: books may be wrong from there on{recovered}",
                    channel.gaps, channel.lost
                ));
            }
            if channel.jumped_back > 0 {
                reasons.push(format!(
                    "{} packet(s) of {name} whose numbers jumped back without a reset: their messages were omitted",
                    channel.jumped_back
                ));
            }
            if let Some(stream) = channel.stream.filter(|stream| stream.holes > 0) {
                reasons.push(format!(
                    "{} hole(s) in the stream of {name}, {} byte(s) lost: books may be wrong from there on",
                    stream.holes, stream.lost_bytes
                ));
            }
            if channel.malformed > 0 {
                reasons.push(format!("{} malformed packet(s) on {name}", channel.malformed));
            }
            if channel.disagreements > 0 {
                reasons.push(format!(
                    "{} packet(s) of {name} that differ from line to line: the first copy was taken",
                    channel.disagreements
                ));
            }
        }
        reasons
    }
}
