//! The report of a publication.

use std::fmt;
use std::net::SocketAddrV4;
use std::path::PathBuf;

use serde_json::{Map, Value, json};

/// Packet counts of one line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LineReport {
    /// Group and port of the line.
    pub group: SocketAddrV4,
    /// Packets that were sent, heartbeats included.
    pub packets: u64,
    /// Packets dropped on purpose.
    pub dropped: u64,
    /// Packets that the operating system did not accept.
    pub unsent: u64,
}

/// Packet and message counts of one channel, and the counters of its recovery services.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChannelReport {
    /// Name of the channel.
    pub name: String,
    /// Packets of the recording that were published.
    pub packets: u64,
    /// Messages in the published packets.
    pub messages: u64,
    /// Heartbeats added by the publisher.
    pub heartbeats: u64,
    /// Duplicate packets, such as those of a second line in the recording.
    pub duplicates: u64,
    /// Packets of retransmissions and refreshes in the recording, which are not published.
    pub out_of_band: u64,
    /// Messages missing from the recording.
    pub missing: u64,
    /// Sequence resets in the recording.
    pub restarts: u64,
    /// Number of messages still stored for recovery.
    pub stored: u64,
    /// Counts of line A, then of line B if there is one.
    pub lines: Vec<LineReport>,
    /// Counters of the channel's recovery services, by name.
    pub service: Vec<(&'static str, u64)>,
}

impl ChannelReport {
    pub(crate) const fn new(name: String) -> ChannelReport {
        ChannelReport {
            name,
            packets: 0,
            messages: 0,
            heartbeats: 0,
            duplicates: 0,
            out_of_band: 0,
            missing: 0,
            restarts: 0,
            stored: 0,
            lines: Vec::new(),
            service: Vec::new(),
        }
    }
}

/// The report of a publication.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PublishReport {
    /// Path of the recording.
    pub file: PathBuf,
    /// Channels of the recording, in order of appearance.
    pub channels: Vec<ChannelReport>,
    /// Packets of unknown protocols.
    pub unknown: u64,
    /// Packets of channels beyond the maximum number.
    pub beyond_channels: u64,
    /// TCP packets, which are not published.
    pub tcp: u64,
    /// Frames of the capture without a payload to publish, counted by kind.
    pub skipped: Vec<(&'static str, u64)>,
    /// The error that ended reading before the end of the recording, if any.
    pub read_error: Option<String>,
    /// True if the stop signal ended the run before the linger time was over.
    pub is_stopped: bool,
}

impl PublishReport {
    /// True if the whole recording was published and the run was not stopped.
    #[must_use]
    pub fn is_whole(&self) -> bool {
        let lines = || self.channels.iter().flat_map(|channel| &channel.lines);
        self.read_error.is_none()
            && !self.is_stopped
            && self.beyond_channels == 0
            && !self.channels.is_empty()
            && lines().all(|line| line.unsent == 0)
    }

    /// Returns the report as JSON with stable names.
    #[must_use]
    pub fn to_json(&self) -> Value {
        let counts = |counts: &[(&'static str, u64)]| {
            counts.iter().map(|(name, count)| ((*name).to_owned(), json!(count))).collect::<Map<_, _>>()
        };
        let channel = |channel: &ChannelReport| {
            let lines: Vec<_> = channel
                .lines
                .iter()
                .map(|line| {
                    json!({
                        "group": line.group.to_string(),
                        "packets": line.packets,
                        "dropped": line.dropped,
                        "unsent": line.unsent,
                    })
                })
                .collect();
            json!({
                "name": channel.name,
                "packets": channel.packets,
                "messages": channel.messages,
                "heartbeats": channel.heartbeats,
                "copies": channel.duplicates,
                "aside": channel.out_of_band,
                "missing": channel.missing,
                "restarts": channel.restarts,
                "kept": channel.stored,
                "lines": lines,
                "service": counts(&channel.service),
            })
        };
        json!({
            "file": self.file.display().to_string(),
            "channels": self.channels.iter().map(channel).collect::<Vec<_>>(),
            "unknown": self.unknown,
            "beyond_channels": self.beyond_channels,
            "tcp": self.tcp,
            "skipped": counts(&self.skipped),
            "read_error": self.read_error,
            "stopped": self.is_stopped,
            "whole": self.is_whole(),
        })
    }
}

impl fmt::Display for PublishReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "published from {}", self.file.display())?;
        for channel in &self.channels {
            let ChannelReport { name, packets, messages, .. } = channel;
            write!(f, "\n{name}: {messages} messages in {packets} packets")?;
            for (count, description) in [
                (channel.heartbeats, "heartbeats added"),
                (channel.restarts, "sequence resets"),
                (channel.duplicates, "duplicate packets skipped"),
                (channel.out_of_band, "recovery packets skipped"),
                (channel.missing, "messages missing in the recording"),
            ] {
                if count > 0 {
                    write!(f, ", {count} {description}")?;
                }
            }
            for line in &channel.lines {
                let LineReport { group, packets, dropped, unsent } = line;
                write!(
                    f,
                    "\n  {group}: {packets} packets sent, {dropped} dropped on purpose, {unsent} refused by the system"
                )?;
            }
            for (name, count) in channel.service.iter().filter(|(_, count)| *count > 0) {
                write!(f, "\n  {name} {count}")?;
            }
        }
        for (count, description) in [
            (self.unknown, "packets of no known protocol"),
            (self.beyond_channels, "packets of unpublished channels"),
            (self.tcp, "TCP packets"),
        ] {
            if count > 0 {
                write!(f, "\n{count} {description} skipped")?;
            }
        }
        for (what, count) in self.skipped.iter().filter(|(_, count)| *count > 0) {
            write!(f, "\n{count} frames skipped: {what}")?;
        }
        if let Some(error) = &self.read_error {
            write!(f, "\nincomplete: {error}")?;
        }
        Ok(())
    }
}
