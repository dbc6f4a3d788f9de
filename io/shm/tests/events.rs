//! Tests of segments of events: writing, reading, verification, and rejection of other kinds of segments.
#![allow(clippy::unwrap_used)]

use std::fs::OpenOptions;
use std::os::unix::fs::FileExt;

use tempfile::TempDir;
use tickpath_lockfree::broadcast::Lagged;
use tickpath_shm::{
    EventsReader, EventsWriter, Folder, KIND_EVENTS, KIND_MARKET_DATA, Reclaimed, Segment, SegmentConfig,
    SegmentName, SegmentReader, SegmentWriter, ShmError, TimeBase, WriterState, reclaim, verify_events,
};
use tickpath_types::Nanos;

type Item = [u64; 23];

fn place() -> (TempDir, Folder, SegmentName) {
    let place = tempfile::tempdir().unwrap();
    let folder = Folder::create(&place.path().join("shm")).unwrap();
    (place, folder, SegmentName::new("deribit").unwrap())
}

fn item(number: u64) -> Item {
    [number; 23]
}

#[test]
fn events_pass_in_order_and_an_overtaken_reader_is_notified() {
    let (_place, folder, name) = place();
    let mut writer = EventsWriter::<Item>::create(&folder, &name, 3, Nanos(5)).unwrap();
    let reader = EventsReader::open(&folder, &name).unwrap();
    let header = *reader.header();
    assert_eq!((header.kind(), header.layout.stream_capacity, header.layout.item_len), (KIND_EVENTS, 4, 184));
    assert_eq!(
        (header.time_base(), header.generation, reader.heartbeat()),
        (TimeBase::Monotonic, 1, Nanos(5))
    );
    assert!(reader.stream::<[u64; 22]>().is_none(), "of another length");
    let mut stream = reader.stream::<Item>().unwrap();
    writer.send(&item(1));
    assert_eq!((stream.try_recv(), stream.try_recv()), (Ok(Some(item(1))), Ok(None)));
    (2..=7).for_each(|number| writer.send(&item(number)));
    assert_eq!((writer.sent(), reader.sent()), (7, 7));
    assert_eq!(stream.try_recv(), Err(Lagged(2)));
    assert_eq!(stream.try_recv(), Ok(Some(item(4))));
    let found = verify_events(&reader);
    assert_eq!((found.updates, found.overtaken, found.problem_count), (4, 0, 0));

    writer.heartbeat(Nanos(6));
    assert_eq!((reader.heartbeat(), reader.writer_state()), (Nanos(6), WriterState::Alive));
    assert!(matches!(
        EventsWriter::<Item>::create(&folder, &name, 4, Nanos(5)),
        Err(ShmError::InUse { pid: Some(pid), .. }) if pid == std::process::id()
    ));
    assert_eq!(reclaim(&folder, &name).unwrap(), Reclaimed::Kept);
    drop(writer);
    assert_eq!(reader.writer_state(), WriterState::Closed);
    assert!(stream.is_disconnected() && !reader.is_replaced());
    assert_eq!(reclaim(&folder, &name).unwrap(), Reclaimed::Removed);
    assert!(reader.is_replaced() && reader.is_whole());
}

#[test]
fn the_two_kinds_are_distinguished() {
    let (_place, folder, name) = place();
    let other = SegmentName::new("feed").unwrap();
    let _events = EventsWriter::<Item>::create(&folder, &name, 4, Nanos(5)).unwrap();
    let _feed = SegmentWriter::create(&folder, &other, &SegmentConfig::default(), Nanos(5)).unwrap();
    let error = SegmentReader::open(&folder, &name).unwrap_err();
    assert!(
        error.to_string().ends_with("holds a gateway's events, and no quotes: name another segment"),
        "{error}"
    );
    let error = EventsReader::open(&folder, &other).unwrap_err();
    assert!(matches!(error, ShmError::OtherKind { kind: KIND_MARKET_DATA, .. }), "{error}");
    assert!(matches!(Segment::open(&folder, &name).unwrap(), Segment::Events(_)));
    assert!(matches!(Segment::open(&folder, &other).unwrap(), Segment::MarketData(_)));
}

#[test]
fn a_segment_of_one_kind_takes_the_place_of_another() {
    let (_place, folder, name) = place();
    drop(SegmentWriter::create(&folder, &name, &SegmentConfig::default(), Nanos(5)).unwrap());
    let old = SegmentReader::open(&folder, &name).unwrap();
    let writer = EventsWriter::<Item>::create(&folder, &name, 4, Nanos(5)).unwrap();
    assert_eq!(writer.header().generation, 2);
    assert!(old.is_replaced());
}

#[test]
fn damage_is_found_and_never_followed() {
    let (_place, folder, name) = place();
    let mut writer = EventsWriter::<Item>::create(&folder, &name, 4, Nanos(5)).unwrap();
    (0..6).for_each(|number| writer.send(&item(number)));
    drop(writer);
    let path = folder.file(&name);
    let file = OpenOptions::new().write(true).open(&path).unwrap();
    let reader = EventsReader::open(&folder, &name).unwrap();
    // Events 4 and 5 use the slots of events 0 and 1; a slot has three cache lines.
    let slot = |index: u64| 4_096 + 128 + index * 192;
    file.write_all_at(&11_u64.to_ne_bytes(), slot(0)).unwrap();
    file.write_all_at(&0_u64.to_ne_bytes(), slot(1)).unwrap();
    let found = verify_events(&reader);
    assert_eq!((found.updates, found.problem_count), (2, 2));
    assert!(
        found.problems[0].contains("event 4 is torn")
            && found.problems[1].contains("event 5 of 6 is missing")
    );
    for tail in [0, 1, u64::MAX, u64::MAX / 2] {
        file.write_all_at(&tail.to_ne_bytes(), 4_096).unwrap();
        assert!(verify_events(&reader).problems.len() <= 16);
        let mut stream = reader.stream::<Item>().unwrap();
        for _ in 0..9 {
            let _ = stream.try_recv();
        }
    }
    file.set_len(4_096 * 3).unwrap();
    assert!(matches!(EventsReader::open(&folder, &name), Err(ShmError::Damaged { .. })));
}

#[test]
fn a_writer_removes_its_segment_and_readers_see_its_end() {
    let (_place, folder, name) = place();
    let mut writer = EventsWriter::<Item>::create(&folder, &name, 4, Nanos(5)).unwrap();
    writer.send(&item(1));
    let reader = EventsReader::open(&folder, &name).unwrap();
    writer.remove().unwrap();
    assert!(folder.names().unwrap().is_empty());
    writer.remove().unwrap();
    drop(writer);
    assert_eq!((reader.sent(), reader.writer_state()), (1, WriterState::Closed));
    // The name is free: another writer creates a segment under it.
    let other = EventsWriter::<Item>::create(&folder, &name, 4, Nanos(5)).unwrap();
    assert_eq!(folder.names().unwrap(), [name]);
    drop(other);
}
