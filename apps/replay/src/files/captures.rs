//! Replays packet captures, pcap and pcapng, with a report for each recording in a capture.

use tickpath_capture::{Format, PacketCounters, Packets, RecordingFile};
use tickpath_recording::{Captures, Listener, Pass, Protocol, UnknownPackets};

use crate::cost::Output;
use crate::error::ReplayError;
use crate::file_format::{FileFormat, Reports};
use crate::report::FileReport;
use crate::session::Session;

pub(crate) static PCAP: FileFormat = capture(Format::Pcap);
pub(crate) static PCAP_NG: FileFormat = capture(Format::PcapNg);

const fn capture(format: Format) -> FileFormat {
    FileFormat {
        format,
        json_name: name(format),
        title: |report| {
            let format = name(report.format);
            report.capture.as_ref().map_or(format.to_owned(), |capture| format!("{format}, {}", capture.name))
        },
        has_dates: true,
        date_in_name: |_| None,
        has_order_book_files: false,
    }
}

const fn name(format: Format) -> &'static str {
    if matches!(format, Format::Pcap) { "pcap" } else { "pcapng" }
}

pub(super) fn replay(
    file: RecordingFile,
    session: &mut Session<'_>,
    pass: Pass<Output<'_, impl Listener>>,
) -> Reports {
    let meter = file.meter().clone();
    let mut packets = Packets::of(file);
    let mut captures = Captures::new(pass, meter.len());
    let mut read_error = None;
    while !captures.is_over() && !session.is_over(captures.pass(), &meter)? {
        match packets.fill() {
            Ok(true) if session.is_paced() => {
                for packet in packets.block() {
                    if session.wait(captures.pass(), 1, |_| Some(packet.ts_ns)).is_none() {
                        break;
                    }
                    captures.handle_packets([packet])?;
                    if captures.is_over() || session.is_over(captures.pass(), &meter)? {
                        break;
                    }
                }
            }
            Ok(true) => captures.handle_packets(packets.block())?,
            Ok(false) => break,
            Err(error) => {
                read_error = Some(error.to_string());
                break;
            }
        }
    }
    let (pass, recordings, unknown) = captures.finish()?;
    let frames = *packets.counters();
    if recordings.is_empty() {
        return Err(ReplayError::NothingKnown {
            file: session.path.display().to_string(),
            found: read_error.unwrap_or_else(|| nothing_known(&frames, &unknown)),
            known: Protocol::all().map(Protocol::title).collect::<Vec<_>>().join("; "),
        });
    }
    let of =
        |(index, recording)| FileReport { frames: Some(frames), ..session.report(&pass, index, recording) };
    let mut reports: Vec<FileReport> = recordings.into_iter().enumerate().map(of).collect();
    if let (Some(error), Some(report)) = (read_error, reports.first_mut()) {
        report.recording.integrity.read_error = Some(error.clone());
        report.recording.contradictions.insert(0, error);
    }
    Ok(reports)
}

/// Describes the contents of a capture without market data, for the error message.
fn nothing_known(frames: &PacketCounters, unknown: &UnknownPackets) -> String {
    let mut description =
        format!("{} frames, {} of UDP and {} of TCP", frames.frames, frames.udp, frames.tcp);
    if let Some((dst, count)) = unknown.destinations.first() {
        description.push_str(&format!(", most of them to {dst} ({count})"));
    }
    for (what, count) in frames.skipped().into_iter().filter(|(_, count)| *count > 0) {
        description.push_str(&format!(", {count} {what}"));
    }
    description
}
