//! Damaged snapshots, and snapshots that cannot be removed.

use tickpath_exchange::{Recovery, UserSettings, VenueSettings};
use tickpath_journal::{ACKNOWLEDGED_FILE, Policy, Storage, snapshot_name};
use tickpath_types::{Sequence, Side};

use crate::journal::{Site, receive_messages, trade};
use crate::support::{Rig, build, enter, journal, settings};

/// Offset of the payload in a snapshot file.
const PAYLOAD: usize = 64;

fn snapshots(site: &Site) -> Vec<String> {
    let mut names = site.disk.list().unwrap();
    names.retain(|name| name.starts_with("snapshot-"));
    names.sort();
    names
}

/// Damages the byte at `place` of the newest snapshot. Returns the file's name and its intact contents.
fn damage_newest(site: &Site, place: usize) -> (String, Vec<u8>) {
    let name = snapshots(site).pop().unwrap();
    let good = site.disk.contents(&name).unwrap();
    let mut bad = good.clone();
    bad[place] ^= 1;
    site.disk.put(&name, bad);
    (name, good)
}

fn recovery(rig: &Rig) -> Recovery {
    rig.journal.as_ref().unwrap().recovery.clone()
}

fn kill(site: &Site, rig: Rig) {
    site.disk.kill();
    drop(rig);
}

fn assert_refused(site: &Site, parts: &[&str]) {
    let refusal = site.refusal();
    for word in parts {
        assert!(refusal.contains(word), "no '{word}' in {refusal}");
    }
}

/// Runs a venue that takes a snapshot every `snapshot_every` commands, and kills it.
fn traded_site(snapshot_every: u64) -> Site {
    let mut site = Site::new(Policy::Group);
    site.journal.snapshot_every = snapshot_every;
    site.settings.limits.max_sessions = 8;
    let mut rig = site.start();
    let (mut anna, mut bert) = (rig.log_in("ANNA"), rig.log_in("BERT"));
    trade(&mut rig, [&mut anna, &mut bert], 1);
    drop((anna, bert));
    kill(&site, rig);
    site
}

#[test]
fn an_older_snapshot_recovers_the_state_and_a_new_one_is_written() {
    let site = traded_site(50);
    let rig = site.start();
    let whole = recovery(&rig);
    kill(&site, rig);
    for place in [PAYLOAD - 1, PAYLOAD] {
        let (name, _) = damage_newest(&site, place);
        let rig = site.start();
        let found = recovery(&rig);
        assert!(found.snapshot < whole.snapshot && found.skipped[0].starts_with(&name), "{found}");
        assert_eq!((found.state_hash, found.last), (whole.state_hash, whole.last));
        kill(&site, rig);
        let rig = site.start();
        let found = recovery(&rig);
        assert_eq!((found.skipped.len(), found.snapshot), (0, Some(whole.last)), "{found}");
        kill(&site, rig);
    }
}

#[test]
fn a_log_without_snapshots_is_refused() {
    let site = traded_site(0);
    let (first, good) = damage_newest(&site, PAYLOAD);
    assert_eq!(first, snapshot_name(Sequence(0)));
    assert_refused(&site, &["begins with command 1", &first, "checksum", "restore one from a copy"]);
    site.disk.put(&first, good);
    kill(&site, site.start());
}

/// A start with more users writes a snapshot, the only record of the added users.
#[test]
fn users_known_only_to_a_damaged_snapshot_are_not_lost() {
    let mut site = traded_site(0);
    let dora = UserSettings::new("DORA", site.settings.users[0].password.clone());
    site.settings.users.push(dora);
    let mut rig = site.start();
    let mut dora = rig.log_in_from("DORA", 0);
    rig.assert_serves(&mut dora, 1);
    drop(dora);
    kill(&site, rig);

    let with_dora = site.settings.users.clone();
    let name = snapshots(&site).pop().unwrap();
    let good = site.disk.contents(&name).unwrap();
    // `ACKNOWLEDGED_FILE` records the state hash too, so the hash survives damage to the snapshot.
    for (place, is_recorded, part) in [
        (Some(PAYLOAD), true, "does not lead"),
        (Some(PAYLOAD - 1), true, "does not lead"),
        (None, true, "does not lead"),
        (Some(PAYLOAD - 1), false, "a user that the snapshot before it does not name"),
    ] {
        match place {
            Some(place) => _ = damage_newest(&site, place),
            None => site.disk.remove(&name).unwrap(),
        }
        if !is_recorded {
            site.disk.remove(ACKNOWLEDGED_FILE).unwrap();
        }
        for users in [with_dora.clone(), with_dora[..3].to_vec()] {
            site.settings.users = users;
            assert_refused(&site, &[part, "from a copy"]);
        }
        site.disk.put(&name, good.clone());
    }
    site.settings.users = with_dora;
    let mut rig = site.start();
    let mut dora = rig.log_in_from("DORA", 0);
    assert_eq!(receive_messages(&mut rig, &mut dora).len(), 2);
}

#[test]
fn limits_in_a_damaged_snapshot_are_not_guessed() {
    for place in [PAYLOAD - 1, PAYLOAD] {
        let mut site = traded_site(50);
        let (name, _) = damage_newest(&site, place);
        site.settings.limits.max_open_orders *= 2;
        assert_refused(
            &site,
            &[&name, "checksum", "decided with either", "start once with the previous one"],
        );
        // Follow the error's advice: start once with the previous configuration.
        site.settings.limits.max_open_orders /= 2;
        kill(&site, site.start());
        site.settings.limits.max_open_orders *= 2;
        kill(&site, site.start());
    }
}

#[test]
fn a_snapshot_is_valid_even_if_old_ones_cannot_be_removed() {
    let folder = tempfile::tempdir().unwrap();
    let mut journal = journal(Policy::Async);
    (journal.folder, journal.snapshot_every, journal.keep_snapshots) = (folder.path().into(), 20, 2);
    let mut rig = Rig::of(build(&VenueSettings { journal: Some(journal), ..settings() }).unwrap());
    let mut anna = rig.log_in("ANNA");
    let mut follower = rig.journal.take().unwrap();
    // Before old files are removed, the snapshots are read to find the usable ones. This directory makes the
    // read fail, so nothing is removed.
    let unreadable = folder.path().join(snapshot_name(Sequence(1)));
    std::fs::create_dir(&unreadable).unwrap();
    for user_ref in 1..=60 {
        anna.request(&enter(user_ref, Side::Buy, 1, 900_000));
    }
    let mut follow = || {
        follower.work_on_disk();
        follower.follow()
    };
    let error = rig.until("a snapshot", |_| follow().err());
    let message = error.to_string();
    assert!(message.starts_with("snapshot 20 was written, and older files"), "{message}");
    assert!(!error.is_final());
    assert_eq!((rig.view.journal.snapshots.read(), rig.view.journal.snapshot_sequence.read()), (1, 20));

    std::fs::remove_dir(&unreadable).unwrap();
    rig.until("the next one", |rig| {
        follow().unwrap();
        (rig.view.journal.snapshots.read() == 2).then_some(())
    });
    assert!(
        !folder.path().join(snapshot_name(Sequence(0))).exists(),
        "what the failure left behind goes then"
    );
}
