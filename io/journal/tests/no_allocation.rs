//! Neither appending nor polling allocates, over many segments.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use tickpath_agent::{CountingAllocator, thread_allocations};
use tickpath_journal::{
    AppendError, Folder, InspectOptions, JournalConfig, Opened, Policy, SessionName, WorkerThread, open,
};
use tickpath_types::Sequence;

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;

#[test]
fn the_duty_cycle_allocates_nothing() {
    for policy in Policy::ALL {
        let path = tempfile::tempdir().unwrap();
        let folder = Folder::new(path.path()).unwrap();
        let config =
            JournalConfig { policy, segment_len: 64 << 10, buffer_len: 8 << 10, ..JournalConfig::default() };
        let session = SessionName::new("SESSION001").unwrap();
        let Opened { mut journal, worker, .. } =
            open(&folder, session, config, &InspectOptions::default()).unwrap();
        let _thread = WorkerThread::start(worker).unwrap();
        let before = thread_allocations();
        let mut sequence = 0;
        while sequence < 3_000 || !journal.is_all_durable() {
            if sequence < 3_000 {
                match journal.append(Sequence(sequence + 1), &[1; 76]) {
                    Ok(()) => sequence += 1,
                    Err(AppendError::Full) => {}
                    Err(error) => panic!("{error}"),
                }
            }
            journal.poll();
        }
        assert_eq!(thread_allocations(), before, "{policy}");
    }
}
