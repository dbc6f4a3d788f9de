//! Tests that a venue whose journal cannot be written ends with exit code 1 and one error line.

use std::io::{Read, Write};

use tickpath_test_support::{Deadline, PATIENCE, connect, soup, wait_until};

use crate::support::{Site, run};

/// Sends account queries, the shortest requests that are journaled, until the venue disconnects.
fn query_until_the_end(address: &str) {
    let deadline = Deadline::start();
    let mut stream = connect(address);
    stream.set_write_timeout(Some(PATIENCE)).unwrap();
    stream.write_all(&soup::login("TEST01", "test", "", 0)).unwrap();
    let queries: Vec<u8> = (0..512).flat_map(|_| soup::packet(b'U', b"Q")).collect();
    let mut answers = stream.try_clone().unwrap();
    let reading = std::thread::spawn(move || {
        let mut bytes = [0; 1 << 16];
        while answers.read(&mut bytes).is_ok_and(|count| count > 0) {}
    });
    while stream.write_all(&queries).is_ok() {
        assert!(!deadline.is_over(), "the venue continues without a journal");
    }
    reading.join().unwrap();
}

#[test]
fn a_failed_journal_ends_the_venue_with_one_error_line() {
    for policy in ["async", "group"] {
        let site = Site::new();
        let config = std::fs::read_to_string(site.path("exchange.toml")).unwrap();
        site.write("exchange.toml", &format!("{config}\n[journal]\nsegment = '4MiB'\npolicy = '{policy}'\n"));
        let (venue, order_entry, _) = site.start_venue();
        // Move the prepared next segment away, so that the venue cannot rename it.
        let prepared = site.path("journal/prepared.segment");
        wait_until("a prepared segment", || std::fs::rename(&prepared, site.path("elsewhere")).is_ok());
        query_until_the_end(&order_entry);
        let printed = venue.join();
        assert_eq!((printed.code, printed.err.lines().count()), (Some(1), 1), "{policy}: {}", printed.err);
        for words in ["journal", "No such file", "answers no more requests", "restart the venue"] {
            assert!(printed.err.contains(words), "{policy}: no '{words}' in {}", printed.err);
        }
        let verified = run(&["journal", "verify", &site.path("journal")]);
        // Under async, the venue has answered commands whose records are missing from the journal.
        let is_whole = policy != "async";
        let expected = if is_whole { Some(0) } else { Some(1) };
        assert_eq!(verified.code, expected, "{policy}: {}{}", verified.out, verified.err);
        assert!(is_whole || verified.err.contains("there is no record"), "{}", verified.err);
    }
}
