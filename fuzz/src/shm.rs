//! The properties of `tickpath-shm`'s segments.

use std::fs;

use tickpath_shm::{
    EventsReader, EventsWriter, Folder, Segment, SegmentConfig, SegmentName, SegmentReader, SegmentWriter,
    TimeBase, verify, verify_events,
};
use tickpath_types::{MarketUpdate, Nanos, PriceLevel, TopOfBook};
use zerocopy::FromZeros;

/// Number of checksummed bytes at a segment's start; a change in them is detected before anything else is
/// read.
const GUARDED: usize = 256;
/// Length of one change to a segment: two bytes of position, and a value.
const PATCH_LEN: usize = 3;

/// Checks a segment of any bytes: it is refused in one line, or all of its contents can be read to an end.
///
/// Bytes that begin like a segment are the whole file. Other bytes are changes to a valid segment after its
/// checksum, like pages that another process has written to.
pub fn segment(data: &[u8]) {
    let place = tempfile::tempdir().expect("a folder can be made");
    let folder = Folder::create(place.path()).expect("it is ours");
    let name = SegmentName::new("fuzz").expect("it is a name");
    let path = folder.file(&name);
    let is_whole_file = data.starts_with(b"TICKPSHM");
    if is_whole_file {
        drop(small_segment(&folder, &name));
        fs::write(&path, data).expect("there is room");
    } else {
        let mut bytes = valid_segment(&folder, &name);
        for patch in data.chunks_exact(PATCH_LEN) {
            let place = usize::from(u16::from_le_bytes([patch[0], patch[1]]));
            let place = GUARDED + place % (bytes.len() - GUARDED);
            bytes[place] = patch[2];
        }
        fs::write(&path, &bytes).expect("there is room");
    }
    match Segment::open(&folder, &name) {
        Ok(Segment::MarketData(reader)) => read(&reader),
        Ok(Segment::Events(reader)) => read_events(&reader),
        Ok(other) => panic!("{other:?}"),
        Err(error) => {
            assert!(is_whole_file, "the header is good: {error}");
            assert_eq!(error.to_string().lines().count(), 1);
        }
    }
}

fn read(reader: &SegmentReader) {
    let found = verify(reader);
    assert!(found.problems.len() as u64 <= found.problem_count);
    assert!(found.symbols <= reader.rows() as u64 && found.quotes <= reader.rows() as u64);
    for row in 0..=reader.rows() {
        let _ = reader.try_read(row);
    }
    for (_, name) in reader.symbols() {
        assert!(name.as_str().is_some_and(|name| name.bytes().all(|byte| byte.is_ascii_graphic())));
    }
    let _ = (reader.writer_state(), reader.heartbeat(), reader.named(), reader.quotes_written());
    let Some(mut stream) = reader.stream() else { return };
    stream.rewind();
    for _ in 0..2 * stream.capacity() {
        let _ = stream.try_recv();
    }
}

fn read_events(reader: &EventsReader) {
    let found = verify_events(reader);
    assert!(found.problems.len() as u64 <= found.problem_count);
    assert!(
        found.updates + found.overtaken + found.problem_count <= reader.header().layout.stream_capacity + 1
    );
    let _ = (reader.writer_state(), reader.heartbeat(), reader.sent());
    let Some(mut stream) = reader.stream::<[u64; 23]>() else { return };
    stream.rewind();
    for _ in 0..2 * stream.capacity() {
        let _ = stream.try_recv();
    }
}

/// The bytes of a small event segment whose writer has closed it normally.
pub(crate) fn valid_events(folder: &Folder, name: &SegmentName) -> Vec<u8> {
    let mut writer = EventsWriter::create(folder, name, 2, Nanos(5)).expect("there is room");
    (1..=3_u64).for_each(|number| writer.send(&[number; 23]));
    drop(writer);
    fs::read(folder.file(name)).expect("it was written")
}

fn small_segment(folder: &Folder, name: &SegmentName) -> SegmentWriter {
    let config = SegmentConfig { rows: 3, stream_capacity: 2, time_base: TimeBase::Unix };
    let mut writer = SegmentWriter::create(folder, name, &config, Nanos(5)).expect("there is room");
    let bid = PriceLevel { price: 0, qty: 5 };
    for (row, symbol) in ["ALPHA", "BETA", "BTC-PERPETUAL"].iter().enumerate() {
        writer.name(row, symbol).expect("there is such a row");
        writer.write(row, &TopOfBook { bid, ..TopOfBook::default() }).expect("there is such a row");
        writer.send(&MarketUpdate { kind: 1, ..MarketUpdate::new_zeroed() });
    }
    writer
}

/// The bytes of a small segment whose writer has closed it normally.
pub(crate) fn valid_segment(folder: &Folder, name: &SegmentName) -> Vec<u8> {
    drop(small_segment(folder, name));
    fs::read(folder.file(name)).expect("it was written")
}
