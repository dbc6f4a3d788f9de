//! Tests a Python client that encodes and decodes messages by the tables of docs/protocols/layouts.md.

use std::io::ErrorKind;
use std::process::Command;

use crate::support::{Site, repository};

#[test]
fn a_client_can_be_written_from_the_page_alone() {
    let site = Site::new();
    let (venue, order_entry, retransmission) = site.start_venue();
    let config = std::fs::read_to_string(site.path("exchange.toml")).unwrap();
    let line_a = config.lines().find_map(|line| line.strip_prefix("line_a = '")?.strip_suffix('\'')).unwrap();
    let client = Command::new("python3")
        .arg("-B")
        .args([
            repository().join("tests/interop/python/from_page.py"),
            repository().join("docs/protocols/layouts.md"),
        ])
        .args([&order_entry, line_a, &retransmission, "ONLY"])
        .output();
    if matches!(&client, Err(error) if error.kind() == ErrorKind::NotFound) {
        return println!("skipped: there is no 'python3': install Python of version 3.8 or later");
    }
    let client = client.unwrap();
    let expected = "accepted 1 ONLY 5 at 1000000\nfilled 2 at 1000000 as A\ncanceled 3\nrejected 0x17\n\
                    recovered B 5 ONLY, executed 2\n";
    assert_eq!(
        String::from_utf8_lossy(&client.stdout),
        expected,
        "{}",
        String::from_utf8_lossy(&client.stderr)
    );
    venue.interrupt();
    assert_eq!(venue.join().code, Some(0));
}
