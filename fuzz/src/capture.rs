//! The properties of `tickpath-capture`'s readers, and of a replay of their output.

use std::fmt::Debug;
use std::io::{self, Cursor, Read};

use tickpath_agent::StopSignal;
use tickpath_capture::{
    DbnReader, Depth, EventReader, ItchBlocks, ItchReader, LobsterBookReader, LobsterBookRow, LobsterReader,
    Packets, Position, ReadError, RecordedEvent, StreamData, StreamReader, Transport, decompress,
};
use tickpath_nasdaq::itch50::framing::{Frames, Lengths};
use tickpath_replay::{ReplayOptions, replay};

/// Maximum number of uncompressed bytes read: a few compressed bytes may expand to millions.
const UNPACKED_LEN_MAX: u64 = 1 << 20;

/// A reader that returns at most `len` bytes at a time, like pipes and decompressors.
struct Pieces<'a> {
    data: &'a [u8],
    len: usize,
}

impl Read for Pieces<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let len = self.len.min(self.data.len()).min(buffer.len());
        let (now, later) = self.data.split_at(len);
        buffer[..len].copy_from_slice(now);
        self.data = later;
        Ok(len)
    }
}

/// Checks that the result of `read` does not depend on the pieces in which the bytes arrive.
fn in_any_pieces<T: PartialEq + Debug>(data: &[u8], read: impl Fn(Pieces<'_>) -> T) -> T {
    let whole = read(Pieces { data, len: usize::MAX });
    for len in [1, 7] {
        assert_eq!(read(Pieces { data, len }), whole, "in pieces of {len}");
    }
    whole
}

/// All events with their positions, and the message of every error.
type Outcome = (Vec<(RecordedEvent, Position)>, Vec<String>);

/// Reads to the end. Readers of line formats continue after a bad line; all others stop at their first error.
fn events(mut reader: impl EventReader, records_max: usize) -> Outcome {
    let (mut events, mut errors) = (Vec::new(), Vec::new());
    loop {
        assert!(events.len() + errors.len() <= records_max, "more records than bytes");
        match reader.next_event() {
            Ok(Some(event)) => {
                let is_known = (event.instrument as usize) < reader.symbols().len();
                assert!(is_known || event.instrument == 0);
                events.push((event, reader.position()));
            }
            Ok(None) => break,
            Err(error) => {
                let words = error.to_string();
                assert!(!words.contains('\n'), "{words}");
                errors.push(words);
                if !matches!(error, ReadError::Malformed { position: Position::Line(_), .. }) {
                    break;
                }
            }
        }
    }
    for _ in 0..2 {
        assert!(matches!(reader.next_event(), Ok(None)), "something comes after the end");
    }
    let order = |position: &Position| match *position {
        Position::Byte(at) | Position::Line(at) => at,
    };
    assert!(events.windows(2).all(|pair| order(&pair[0].1) < order(&pair[1].1)));
    (events, errors)
}

/// Checks DBN of schema MBO: the same events in any pieces, each at a higher position than the previous one.
pub fn dbn(data: &[u8]) {
    in_any_pieces(data, |pieces| match DbnReader::new(pieces) {
        Ok(reader) => Ok(events(reader, data.len())),
        Err(error) => Err(error.to_string()),
    })
    .ok();
}

/// Checks LOBSTER messages: every line is an event, an error or empty.
pub fn lobster(data: &[u8]) {
    let (events, errors) = in_any_pieces(data, |pieces| {
        events(LobsterReader::new(pieces, "FUZZ", Depth::Partial { levels: Some(1) }), data.len())
    });
    let lines = data.split(|byte| *byte == b'\n').filter(|line| !line.trim_ascii_end().is_empty()).count();
    assert!(events.len() + errors.len() <= lines);
    assert!(events.iter().all(|(event, _)| event.instrument == 0));
}

/// Checks LOBSTER order books: rows of one width whose levels have quantities, until the first error.
pub fn lobster_book(data: &[u8]) {
    let (rows, _) = in_any_pieces(data, |pieces| {
        let mut reader = LobsterBookReader::new(pieces);
        let (mut rows, mut row) = (Vec::new(), LobsterBookRow::default());
        loop {
            assert!(rows.len() <= data.len(), "more rows than bytes");
            match reader.next_row(&mut row) {
                Ok(true) => rows.push(row.clone()),
                Ok(false) => return (rows, None),
                Err(error) => return (rows, Some(error.to_string())),
            }
        }
    });
    for row in &rows {
        assert_eq!(row.level_count, rows[0].level_count);
        for side in &row.sides {
            assert!(side.len() <= row.level_count && side.iter().all(|(_, qty)| qty.0 > 0));
        }
    }
}

/// Checks ITCH files, read in blocks and as events: both readers find the same messages at the same
/// positions, with length prefixes and with implied lengths.
pub fn itch_blocks(data: &[u8]) {
    let (messages, error) = in_any_pieces(data, |pieces| {
        let mut blocks = ItchBlocks::new(pieces);
        let mut messages = Vec::new();
        loop {
            match blocks.fill() {
                Ok(true) => {
                    let block = blocks.block();
                    assert!(!block.messages.is_empty() || data.starts_with(&[0, 0]));
                    let found = block.messages.iter().enumerate();
                    messages.extend(found.map(|(index, message)| (block.offset_of(index), message.to_vec())));
                }
                Ok(false) => return (messages, None),
                Err(error) => {
                    assert!(matches!(blocks.fill(), Ok(false)), "something comes after an error");
                    return (messages, Some(error.to_string()));
                }
            }
        }
    });
    for (offset, message) in &messages {
        let start = *offset as usize + 2;
        assert_eq!(data[start..start + message.len()], *message);
    }
    let framed: Vec<&[u8]> = Frames::new(data, Lengths::detect(data)).map_while(Result::ok).collect();
    assert!(messages.iter().map(|(_, message)| message.as_slice()).eq(framed.iter().copied()));
    let (events, errors) = in_any_pieces(data, |pieces| events(ItchReader::new(pieces), data.len()));
    let places = |at: &u64| Position::Byte(*at);
    assert!(events.iter().map(|(_, at)| *at).eq(messages.iter().map(|(at, _)| places(at))));
    // Data after the end of a session are an error of the block reader only.
    assert!(errors.is_empty() || error.is_some(), "{errors:?}");
}

/// Checks gzip, Zstandard and uncompressed data, with any of the formats inside.
pub fn compressed(data: &[u8]) {
    let read = || {
        let Ok(reader) = decompress(Cursor::new(data.to_vec())) else { return Vec::new() };
        let mut unpacked = Vec::new();
        // On an error, keep the data unpacked before it, which readers see too.
        let _ = reader.take(UNPACKED_LEN_MAX).read_to_end(&mut unpacked);
        unpacked
    };
    let unpacked = read();
    assert_eq!(unpacked, read());
    if let Ok(reader) = decompress(Cursor::new(data.to_vec())) {
        let mut blocks = ItchBlocks::new(reader.take(UNPACKED_LEN_MAX));
        while let Ok(true) = blocks.fill() {
            blocks.block();
        }
    }
}

/// Replays a file of any format through full books, which never differ from the reference model. Each problem
/// in the report is one line, and so is an error. In a LOBSTER file, the text after a blank line is its order
/// book file.
pub fn replay_file(data: &[u8]) {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("FUZZ_message_2.csv");
    let blank = data.windows(2).position(|pair| pair == b"\n\n").filter(|_| data[0].is_ascii_digit());
    let (messages, rows) = blank.map_or((data, &b""[..]), |at| (&data[..=at], &data[at + 2..]));
    std::fs::write(&path, messages).expect("a temporary file");
    if !rows.is_empty() {
        let beside = folder.path().join("FUZZ_orderbook_2.csv");
        std::fs::write(beside, rows).expect("a temporary file");
    }
    let options = ReplayOptions { check_every: Some(2), ..ReplayOptions::default() };
    match replay(&path, &options, &StopSignal::new(), &mut |_| {}) {
        Ok(report) => {
            assert!(report.messages() <= data.len() as u64 && !report.to_string().is_empty());
            assert!(report.to_json().is_object());
            for report in &report.files {
                assert!(report.contradictions.iter().all(|words| !words.contains('\n')), "{report}");
                let twin = report.model.as_ref().and_then(|twin| twin.difference.as_ref());
                assert_eq!(twin, None);
            }
        }
        Err(error) => assert!(!error.to_string().contains('\n'), "{error}"),
    }
}

/// Checks a capture of packets: no panic, payloads no longer than the file, and no packet after an error or
/// the end. TCP streams assembled from any segments have no more bytes than the segments.
pub fn packets(data: &[u8]) {
    let mut reader = Packets::new(data);
    let mut streams = StreamReader::default();
    let (mut segment_bytes, mut stream_bytes) = (0, 0);
    let mut count = 0;
    let mut give = |data: StreamData<'_>| {
        if let StreamData::Bytes(bytes) = data {
            stream_bytes += bytes.len();
        }
    };
    while let Ok(Some(packet)) = reader.next_packet() {
        count += 1;
        assert!(packet.payload.len() <= data.len() && packet.number >= count);
        if let Transport::Tcp(segment) = packet.transport {
            segment_bytes += packet.payload.len();
            streams.handle_segment(&segment, packet.payload, &mut give);
        }
    }
    streams.finish(&mut give);
    assert!(stream_bytes <= segment_bytes);
    assert!(matches!(reader.next_packet(), Ok(None)));
    let counters = reader.counters();
    let skipped: u64 = counters.skipped().iter().map(|(_, count)| count).sum();
    assert_eq!(counters.frames, counters.udp + counters.tcp + skipped);
}
