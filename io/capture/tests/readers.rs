//! Tests of every reader on complete, truncated and damaged files, and on files of other formats.

#![allow(clippy::unwrap_used, reason = "what fails here fails the test")]

use std::fs;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};

use dbn::encode::{DbnEncoder, EncodeRecord};
use dbn::{MboMsg, Metadata, SType, Schema};
use tickpath_capture::{
    CaptureError, DbnReader, Depth, EventKind, EventReader, Format, IgnoredReason, ItchReader, LobsterReader,
    ReadError, RecordedEvent, Recording, decompress,
};

const LOBSTER: &[u8] = b"34200.5,1,11,100,2238100,1\n34201,4,11,40,2238100,1\n34202.25,3,11,60,2238100,1\n";

fn data(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data").join(name)
}

fn uncompressed(name: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    decompress(fs::File::open(data(name)).unwrap()).unwrap().read_to_end(&mut bytes).unwrap();
    bytes
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

fn dbn_file(count: u64) -> Vec<u8> {
    let metadata = Metadata::builder()
        .dataset("GLBX.MDP3".to_owned())
        .schema(Some(Schema::Mbo))
        .start(0)
        .stype_in(Some(SType::RawSymbol))
        .stype_out(SType::InstrumentId)
        .build();
    let mut encoder = DbnEncoder::new(Vec::new(), &metadata).unwrap();
    for order_id in 1..=count {
        let price = 4_799_250_000_000;
        let record =
            MboMsg { order_id, price, size: 2, action: b'A' as _, side: b'B' as _, ..Default::default() };
        encoder.encode_record(&record).unwrap();
    }
    encoder.get_ref().clone()
}

/// Reads to the end; panics if the reader does not end.
fn read_all(reader: &mut dyn EventReader) -> (Vec<RecordedEvent>, Vec<ReadError>) {
    let (mut events, mut errors) = (Vec::new(), Vec::new());
    for _ in 0..1_000_000 {
        match reader.next_event() {
            Ok(Some(event)) => events.push(event),
            Ok(None) => return (events, errors),
            Err(error) => errors.push(error),
        }
    }
    panic!("the reader does not end");
}

fn read(format: Format, bytes: &[u8]) -> (Vec<RecordedEvent>, Vec<ReadError>) {
    match format {
        Format::Dbn => match DbnReader::new(bytes) {
            Ok(mut reader) => read_all(&mut reader),
            Err(error) => (Vec::new(), vec![error]),
        },
        Format::Lobster => read_all(&mut LobsterReader::new(bytes, "AMZN", Depth::Full)),
        Format::Itch => read_all(&mut ItchReader::new(bytes)),
        Format::Pcap | Format::PcapNg => unreachable!("captures hold packets"),
    }
}

fn samples() -> [(Format, Vec<u8>); 3] {
    [
        (Format::Dbn, dbn_file(5)),
        (Format::Lobster, LOBSTER.to_vec()),
        (Format::Itch, uncompressed("ritch_excerpt.itch50.gz")),
    ]
}

#[test]
fn the_vendors_sample_is_read() {
    let mut recording = Recording::open(data("test_data.mbo.v3.dbn.zst")).unwrap();
    assert_eq!(recording.format(), Format::Dbn);
    let first = recording.next_event().unwrap().unwrap();
    assert_eq!(recording.reader().symbols()[first.instrument as usize], "ESH1");
    assert!(matches!(first.kind, EventKind::Delete { order_id: 647_784_973_705, .. }), "{first:?}");
    assert!(recording.next_event().unwrap().is_some());
    assert!(recording.next_event().unwrap().is_none());
}

#[test]
fn an_itch_file_with_zero_lengths_is_read_and_names_its_symbols() {
    let mut recording = Recording::open(data("ritch_excerpt.itch50.gz")).unwrap();
    assert_eq!(recording.format(), Format::Itch);
    let (mut adds, mut fills, mut hidden, mut total) = (0, 0, 0, 0);
    while let Some(event) = recording.next_event().unwrap() {
        total += 1;
        adds += u32::from(matches!(event.kind, EventKind::Add { .. }));
        fills += u32::from(matches!(event.kind, EventKind::Fill { .. }));
        hidden += u32::from(matches!(event.kind, EventKind::Trade { is_hidden: true, .. }));
    }
    assert_eq!((total, adds, fills, hidden), (46, 15, 4, 4));
    assert_eq!(recording.reader().symbols(), ["ALC", "BOB", "CHAR"]);
}

#[test]
fn prefixed_itch_is_the_same_stream() {
    let implied = uncompressed("ritch_excerpt.itch50.gz");
    let mut prefixed = implied.clone();
    let mut at = 0;
    while at < prefixed.len() {
        let len = tickpath_nasdaq::itch50::message_len(prefixed[at + 2]).unwrap();
        prefixed[at..at + 2].copy_from_slice(&(len as u16).to_be_bytes());
        at += 2 + len;
    }
    assert_eq!(read(Format::Itch, &implied).0, read(Format::Itch, &prefixed).0);
}

#[test]
fn a_message_of_the_wrong_length_is_counted_and_the_next_one_read() {
    let mut file = vec![0, 3, b'D', 1, 2, 0, 12, b'S'];
    file.extend([0, 0, 0, 0, 0, 0, 0, 0, 0, 9, b'O']);
    let (events, errors) = read(Format::Itch, &file);
    assert!(errors.is_empty());
    assert_eq!(events[0].kind, EventKind::Ignored(IgnoredReason::MalformedMessage));
    assert!(matches!(events[1].kind, EventKind::Status(_)));
    assert_eq!(events[1].ts_ns, 9);
}

#[test]
fn every_cut_gives_the_whole_messages_before_it() {
    for (format, whole) in samples() {
        let (all, errors) = read(format, &whole);
        assert!(errors.is_empty() && !all.is_empty(), "{format:?}: {errors:?}");
        let mut clean_cuts = 0;
        for len in 0..whole.len() {
            let (events, errors) = read(format, &whole[..len]);
            assert_eq!(events, all[..events.len()], "{format:?} cut at {len}");
            assert!(errors.len() <= 1, "{format:?} cut at {len}: {errors:?}");
            match errors.first() {
                None => clean_cuts += 1,
                Some(ReadError::Truncated { offset }) => assert!(*offset <= len as u64),
                Some(other) => panic!("{format:?} cut at {len}: {other}"),
            }
        }
        // Cuts without an error: at most one after each record and one before each newline.
        assert!(clean_cuts <= 2 * all.len(), "{format:?}: {clean_cuts}");
    }
}

#[test]
fn every_cut_of_a_compressed_file_is_named() {
    for (_, whole) in samples() {
        let zst = zstd::encode_all(&whole[..], 3).unwrap();
        for (suffix, packed) in [("gz", gzip(&whole)), ("zst", zst)] {
            let dir = tempfile::tempdir().unwrap();
            let path = dir.path().join(format!("AMZN_message_1.{suffix}"));
            for len in (0..packed.len()).step_by(3) {
                fs::write(&path, &packed[..len]).unwrap();
                let mut recording = match Recording::open(&path) {
                    Ok(recording) => recording,
                    Err(error) => {
                        assert!(error.to_string().contains("AMZN_message_1"), "{error}");
                        continue;
                    }
                };
                let error = loop {
                    match recording.next_event() {
                        Ok(Some(_)) => {}
                        Ok(None) => break None,
                        Err(error) => break Some(error),
                    }
                };
                // Only a cut inside the checksum, which follows the data, may give no error.
                assert!(error.is_none_or(|error| error.is_truncation()), "{suffix} cut at {len}");
            }
        }
    }
}

#[test]
fn damage_anywhere_never_panics() {
    let mut seed = 0x9e37_79b9_7f4a_7c15_u64;
    let mut random = || {
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
        seed as usize
    };
    for (format, whole) in samples() {
        for packed in [gzip(&whole), zstd::encode_all(&whole[..], 3).unwrap(), whole.clone()] {
            for _ in 0..400 {
                let mut damaged = packed.clone();
                for _ in 0..=random() % 3 {
                    let at = random() % damaged.len();
                    damaged[at] = random() as u8;
                }
                let mut bytes = Vec::new();
                let Ok(input) = decompress(std::io::Cursor::new(damaged)) else { continue };
                let _ = input.take(1 << 20).read_to_end(&mut bytes);
                let _ = read(format, &bytes);
            }
        }
    }
}

/// Returns one byte per read, so that no record is complete after one read.
struct Bytewise<'a>(&'a [u8]);

impl Read for Bytewise<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let len = buffer.len().min(1);
        self.0.read(&mut buffer[..len])
    }
}

/// Every event and every error as text; events with their position.
fn outcomes(format: Format, input: impl Read) -> Vec<String> {
    fn all(mut reader: impl EventReader) -> Vec<String> {
        let mut outcomes = Vec::new();
        loop {
            let outcome = match reader.next_event() {
                Ok(Some(event)) => format!("{event:?} at {}", reader.position()),
                Ok(None) => return outcomes,
                Err(error) => error.to_string(),
            };
            outcomes.push(outcome);
        }
    }
    match format {
        Format::Dbn => DbnReader::new(input).map_or_else(|error| vec![error.to_string()], all),
        Format::Lobster => all(LobsterReader::new(input, "AMZN", Depth::Full)),
        Format::Itch => all(ItchReader::new(input)),
        Format::Pcap | Format::PcapNg => unreachable!("captures hold packets"),
    }
}

#[test]
fn damaged_files_give_the_same_result_at_once_and_byte_by_byte() {
    let mut seed = 0x9e37_79b9_7f4a_7c15_u64;
    let mut random = || {
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
        (seed >> 16) as usize
    };
    for (format, whole) in [(Format::Dbn, dbn_file(20)), (Format::Lobster, LOBSTER.repeat(7))] {
        for round in 0..400 {
            let mut damaged = whole.clone();
            for _ in 0..round % 4 {
                let at = random() % damaged.len();
                damaged[at] = [random() as u8, b'\n', b'\r', b',', b'-', b'.'][random() % 6];
            }
            if round % 3 == 0 {
                damaged.truncate(random() % damaged.len());
            }
            assert_eq!(outcomes(format, &damaged[..]), outcomes(format, Bytewise(&damaged)), "{damaged:?}");
        }
    }
}

#[test]
fn the_length_of_metadata_is_bounded_before_it_is_allocated() {
    let mut file = b"DBN\x03".to_vec();
    file.extend((tickpath_capture::DBN_METADATA_LEN_MAX as u32 + 1).to_le_bytes());
    assert!(matches!(DbnReader::new(&file[..]), Err(ReadError::Malformed { .. })));
    file.truncate(4);
    file.extend((tickpath_capture::DBN_METADATA_LEN_MAX as u32).to_le_bytes());
    assert!(matches!(DbnReader::new(&file[..]), Err(ReadError::Truncated { .. })));
}

#[test]
fn other_files_are_rejected_with_a_message() {
    let dir = tempfile::tempdir().unwrap();
    let file = |name: &str, bytes: &[u8]| {
        let path = dir.path().join(name);
        fs::write(&path, bytes).unwrap();
        path
    };
    let error = |path: &Path| Recording::open(path).err().expect("no recording");
    assert!(matches!(error(dir.path()), CaptureError::Directory { .. }));
    assert!(matches!(error(&dir.path().join("absent")), CaptureError::Open { .. }));
    assert!(matches!(error(&file("empty", b"")), CaptureError::Empty { .. }));
    assert!(matches!(error(&file("empty.gz", &gzip(b""))), CaptureError::Empty { .. }));
    let book = error(&file("AMZN_orderbook_1.csv", b"2239500,100,2231800,100\n"));
    assert!(book.to_string().contains("its message file is needed"), "{book}");
    assert!(matches!(error(&file("notes.txt", b"hello")), CaptureError::UnknownFormat { .. }));
    assert!(matches!(error(&file("_message_1.csv", LOBSTER)), CaptureError::NoSymbol { .. }));
    let trades = error(&data("test_data.trades.v3.dbn.zst"));
    assert!(matches!(&trades, CaptureError::Read { source: ReadError::Unsupported { .. }, .. }), "{trades}");
    assert!(trades.to_string().contains("schema mbo"), "{trades}");
}
