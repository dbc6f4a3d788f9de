//! Reads files of an older version of the program, and refuses those of a later version.
//!
//! The folder `version_1` has a journal of a venue with the settings of these tests and snapshots every 30
//! commands, in the layout of snapshot version 1. User CLEO has a limit of 500 per order, and the log
//! has a `kill` command for CLEO. The folder also has the messages that ANNA and BERT received from that
//! venue, concatenated.

use tickpath_exchange::{UserLimits, audit};
use tickpath_journal::{Policy, SessionName, snapshot_name};
use tickpath_types::{Qty, Sequence};

use crate::journal::{Site, receive_messages, trade};
use crate::support::{Client, PASSWORD, Received, login};

const SEGMENT: &str = "00000000000000000001.journal";
/// Offset of the payload in a snapshot file. The payload begins with `TPVENUE` and the version.
const PAYLOAD: usize = 64;
/// The current snapshot version.
const VERSION: u8 = 3;
/// Number of commands in the log, and the state hash recorded after them.
const LAST: u64 = 39;
const STATE_HASH: u64 = 0x43d0985e559fe2d2;

fn bytes(hex: &str) -> Vec<u8> {
    let digits: Vec<u8> = hex.bytes().filter(u8::is_ascii_hexdigit).collect();
    digits.chunks(2).map(|pair| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap()).collect()
}

fn snapshots() -> [(Sequence, Vec<u8>); 2] {
    [
        (Sequence(0), bytes(include_str!("version_1/snapshot-00000000000000000000.hex"))),
        (Sequence(30), bytes(include_str!("version_1/snapshot-00000000000000000030.hex"))),
    ]
}

/// A venue's settings, and a disk with the log in `version_1` and these snapshots.
fn site(snapshots: &[(Sequence, Vec<u8>)]) -> Site {
    let mut site = Site::new(Policy::Group);
    site.journal.snapshot_every = 30;
    site.settings.users[2].limits = UserLimits { order_qty: Some(Qty(500)), ..UserLimits::default() };
    site.disk.put(SEGMENT, bytes(include_str!("version_1/00000000000000000001.journal.hex")));
    for (sequence, snapshot) in snapshots {
        site.disk.put(&snapshot_name(*sequence), snapshot.clone());
    }
    site
}

fn version_of(site: &Site, sequence: Sequence) -> u8 {
    let snapshot = site.disk.contents(&snapshot_name(sequence)).unwrap();
    assert_eq!(snapshot[PAYLOAD..PAYLOAD + 7], *b"TPVENUE");
    snapshot[PAYLOAD + 7]
}

#[test]
fn a_journal_with_snapshots_of_version_1_is_continued() {
    let [first, second] = snapshots();
    for kept in [vec![first, second.clone()], vec![second]] {
        let newest = kept.last().unwrap().0;
        let site = site(&kept);
        assert_eq!(version_of(&site, newest), 1);
        let mut rig = site.start();
        let recovery = rig.journal.as_ref().unwrap().recovery.clone();
        assert_eq!((recovery.last, recovery.replayed), (Sequence(LAST), LAST - newest.0));
        assert_eq!((recovery.state_hash, recovery.generation), (STATE_HASH, 0), "{recovery}");
        for (user, expected) in
            [("ANNA", include_str!("version_1/ANNA.hex")), ("BERT", include_str!("version_1/BERT.hex"))]
        {
            // A venue of version 1 did not send the start of the day to users.
            let mut client = Client::connect(rig.endpoints.order_entry);
            client.send(&login(user, PASSWORD, "TODAY", 1));
            let session = "TODAY".to_owned();
            assert_eq!(rig.receive(&mut client), Received::LoginAccepted { session, next: 1 });
            assert!(receive_messages(&mut rig, &mut client).concat() == bytes(expected), "{user}");
        }

        // The venue continues to trade, and its next snapshots have the current version.
        let mut rig = site.restart(rig);
        let (mut anna, mut bert) = (rig.log_in_from("ANNA", 1), rig.log_in_from("BERT", 1));
        trade(&mut rig, [&mut anna, &mut bert], 100);
        rig.until_true("a snapshot", |rig| rig.view.journal.snapshot_sequence.read() >= 90);
        let last = Sequence(rig.view.journal.durable.read());
        assert_eq!(version_of(&site, Sequence(rig.view.journal.snapshot_sequence.read())), VERSION);
        let session = SessionName::new("TODAY").unwrap();
        let done = audit(&site.disk, session, Sequence(0), last, |_| ()).unwrap();
        assert!(done.snapshots_checked >= 2 && done.skipped.is_empty());
    }
}

/// Users now receive more messages than in version 1, so a replay of the commands before the newest snapshot
/// does not result in the recorded state. The audit must report that.
#[test]
fn the_state_hash_reveals_version_differences() {
    let site = site(&snapshots());
    let session = SessionName::new("TODAY").unwrap();
    let error = audit(&site.disk, session, Sequence(0), Sequence(LAST), |_| ()).err().unwrap().to_string();
    assert!(error.starts_with("after command 30 the state hash is "), "{error}");
    let done = audit(&site.disk, session, Sequence(30), Sequence(LAST), |_| ()).unwrap();
    assert_eq!(done.replica.state_hash(), STATE_HASH);
}

#[test]
fn a_snapshot_of_a_later_version_is_refused_with_advice() {
    let [(sequence, mut later), _] = snapshots();
    later[PAYLOAD + 7] = VERSION + 1;
    let checksum = crc32c(&later[PAYLOAD..]);
    later[56..60].copy_from_slice(&checksum.to_le_bytes());
    let checksum = crc32c(&later[..60]);
    later[60..64].copy_from_slice(&checksum.to_le_bytes());
    let refusal = site(&[(sequence, later)]).refusal();
    for part in [
        &snapshot_name(sequence),
        &format!("version {}", VERSION + 1),
        "use the version of the program that wrote it",
    ] {
        assert!(refusal.contains(part), "no '{part}' in {refusal}");
    }
}

/// Computes the CRC32C bit by bit, as the documentation of snapshots describes it.
fn crc32c(bytes: &[u8]) -> u32 {
    let shifted = |crc: u32, _| crc >> 1 ^ if crc & 1 == 1 { 0x82f6_3b78 } else { 0 };
    !bytes.iter().fold(!0, |crc, byte| (0..8).fold(crc ^ u32::from(*byte), shifted))
}

/// A start with more users and other limits writes a snapshot. A full replay must result in its state.
#[test]
fn a_log_with_changed_users_and_limits_replays_from_its_start() {
    let mut site = Site::new(Policy::Group);
    site.journal.snapshot_every = 0;
    site.settings.limits.max_sessions = 8;
    let mut rig = site.start();
    let (mut anna, mut bert) = (rig.log_in("ANNA"), rig.log_in("BERT"));
    trade(&mut rig, [&mut anna, &mut bert], 1);
    drop((anna, bert));
    let dora = tickpath_exchange::UserSettings::new("DORA", site.settings.users[0].password.clone());
    site.settings.users.push(dora);
    site.settings.limits.max_open_orders *= 2;
    let mut rig = site.restart(rig);
    let mut dora = rig.log_in_from("DORA", 0);
    rig.assert_serves(&mut dora, 1);
    let last = Sequence(rig.view.journal.durable.read());
    let session = SessionName::new("TODAY").unwrap();
    let done = audit(&site.disk, session, Sequence(0), last, |_| ()).unwrap();
    assert_eq!((done.from, done.snapshots_checked), (Sequence(0), 2));
}
