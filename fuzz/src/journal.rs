//! The properties of `tickpath-journal`'s segments and of the commands in them.

use tickpath_exchange::LogCommand;
use tickpath_journal::{
    DiskFaults, FaultyDisk, InspectOptions, JournalConfig, OpenError, Reader, inspect, open,
};
use tickpath_matching::COMMAND_LEN_MAX;

/// Name of a segment that begins with sequence 1.
const SEGMENT: &str = "00000000000000000001.journal";

/// Checks a segment of any bytes: it is a log, perhaps with a torn tail, or gives an error of one line. A log
/// is readable to its end; after it is opened, it is complete and has the same records.
pub fn journal(data: &[u8]) {
    let disk = FaultyDisk::new(1, DiskFaults::default());
    disk.put(SEGMENT, data.to_vec());
    let found = match inspect(&disk, &InspectOptions { accept_loss: true, ..InspectOptions::default() }) {
        Ok(found) => found,
        Err(error) => return assert_eq!(error.to_string().lines().count(), 1),
    };
    // A segment with a damaged header has nothing to read.
    let Some(session) = found.session else { return };
    let records = || -> Result<Vec<Vec<u8>>, OpenError> {
        let mut records = Vec::new();
        let mut reader = Reader::open(&disk, session, found.first_sequence())?;
        while let Some(record) = reader.next(found.last_sequence())? {
            records.push(record.payload.to_vec());
        }
        Ok(records)
    };
    let before = records().expect("what was found good can be read");
    assert_eq!(before.len() as u64, found.records_read);
    let options = InspectOptions { accept_loss: true, ..InspectOptions::default() };
    let config = JournalConfig { segment_len: 4096, buffer_len: 1024, ..JournalConfig::default() };
    drop(open(&disk, session, config, &options).expect("a good log opens"));
    let after = inspect(&disk, &InspectOptions::default()).expect("an opened log is whole");
    assert_eq!((after.last_sequence(), after.torn), (found.last_sequence(), None));
    if !before.is_empty() {
        assert_eq!(records().expect("an opened log can be read"), before);
    }
}

/// Checks that any bytes are a command or an error, and that a command has exactly one encoding.
pub fn command(data: &[u8]) {
    if let Ok(command) = LogCommand::decode(data) {
        let mut bytes = [0; COMMAND_LEN_MAX];
        let len = command.encode(&mut bytes);
        assert_eq!(&bytes[..len], data);
    }
}
