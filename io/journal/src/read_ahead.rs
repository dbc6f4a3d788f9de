//! Reading of a long log by a separate thread.

use std::sync::mpsc::{Receiver, TryRecvError, sync_channel};
use std::thread;
use std::time::{Duration, Instant};

use tickpath_types::Sequence;

use crate::{OpenError, Reader, Record, Storage};

/// Number of records in a batch. Their items fit into a core's second-level cache.
const BATCH_LEN: usize = 512;
/// Number of batches in use.
const BATCHES: usize = 4;
/// Time that a thread waits for the other one without sleeping. Batches are faster than a virtual CPU wakes up, while a
/// disk may take longer than this.
const AWAKE: Duration = Duration::from_millis(1);
/// Number of records from which a second thread is worth its start.
const LONG: u64 = 16 * BATCH_LEN as u64;

/// Reads the records from the reader's position up to `last`, and passes what `decode` makes of them to `accept`, in
/// order and in batches. `decode` appends one item for each record.
///
/// A second thread reads and decodes a long log, while `accept` handles the batches before.
///
/// # Errors
/// The first error of `accept`, `decode` or the reader. After one of the latter, `accept` has had all items before the
/// bad record.
pub fn read_ahead<S: Storage, T: Send, E: From<OpenError> + Send>(
    reader: &mut Reader<S>,
    last: Sequence,
    mut decode: impl FnMut(Record<'_>, &mut Vec<T>) -> Result<(), E> + Send,
    mut accept: impl FnMut(&[T]) -> Result<(), E>,
) -> Result<(), E> {
    let is_long = last.0.saturating_sub(reader.next_sequence().0) >= LONG;
    let mut fill = |batch: &mut Vec<T>| {
        batch.clear();
        while batch.len() < BATCH_LEN
            && let Some(record) = reader.next(last)?
        {
            decode(record, batch)?;
        }
        Ok(())
    };
    if is_long && let Some(result) = on_two_threads(&mut fill, &mut accept) {
        return result;
    }
    let mut batch = Vec::with_capacity(BATCH_LEN);
    loop {
        let filled = fill(&mut batch);
        accept(&batch)?;
        filled?;
        if batch.len() < BATCH_LEN {
            return Ok(());
        }
    }
}

/// Calls `fill` on a second thread until a batch stays short or an error occurs; `None` if no thread can be started.
fn on_two_threads<T: Send, E: Send>(
    fill: &mut (impl FnMut(&mut Vec<T>) -> Result<(), E> + Send),
    accept: &mut impl FnMut(&[T]) -> Result<(), E>,
) -> Option<Result<(), E>> {
    let (full, to_accept) = sync_channel(BATCHES);
    let (empty, to_fill) = sync_channel(BATCHES);
    for _ in 0..BATCHES {
        empty.send(Vec::with_capacity(BATCH_LEN)).ok()?;
    }
    thread::scope(|scope| {
        let read = move || {
            while let Some(mut batch) = receive(&to_fill) {
                let filled = fill(&mut batch);
                let is_last = filled.is_err() || batch.len() < BATCH_LEN;
                // After an error of `accept`, the batch has no receiver.
                if full.send(batch).is_err() || is_last {
                    return filled;
                }
            }
            Ok(())
        };
        let reading = thread::Builder::new().name("read-ahead".to_owned()).spawn_scoped(scope, read).ok()?;
        let accepted = std::iter::from_fn(|| receive(&to_accept)).try_for_each(|batch| {
            accept(&batch)?;
            // Fails only after the last batch.
            empty.send(batch).ok();
            Ok(())
        });
        drop((to_accept, empty));
        let read = reading.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        Some(accepted.and(read))
    })
}

/// The next item; `None` if there are no more.
fn receive<T>(items: &Receiver<T>) -> Option<T> {
    let start = Instant::now();
    loop {
        match items.try_recv() {
            Ok(item) => return Some(item),
            Err(TryRecvError::Disconnected) => return None,
            Err(TryRecvError::Empty) if start.elapsed() < AWAKE => thread::yield_now(),
            Err(TryRecvError::Empty) => return items.recv().ok(),
        }
    }
}
