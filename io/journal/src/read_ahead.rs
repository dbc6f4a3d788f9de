//! Reading of a long log by a separate thread.

use std::sync::mpsc::{self, sync_channel};
use std::thread;

use tickpath_types::Sequence;

use crate::{OpenError, Reader, Record, Storage};

/// Number of records in a batch.
const BATCH_LEN: usize = 256;
/// Number of batches that the reading thread gets back at once. Meanwhile it sleeps, since a thread that waits awake would
/// slow down the other one if both share a physical core; to wake it for each batch would take longer than the batch.
const GROUP_LEN: usize = 16;
/// Number of groups of batches. While one is filled, the other one is accepted.
const GROUPS: usize = 2;
/// Number of records from which a second thread is worth its start.
const LONG: u64 = 1 << 13;

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
    let (full, to_accept) = sync_channel(GROUPS * GROUP_LEN);
    let (empty, to_fill) = sync_channel(GROUPS);
    for _ in 0..GROUPS {
        empty.send((0..GROUP_LEN).map(|_| Vec::with_capacity(BATCH_LEN)).collect()).ok()?;
    }
    thread::scope(|scope| {
        let read = move || {
            let groups: mpsc::IntoIter<Vec<Vec<T>>> = to_fill.into_iter();
            for mut batch in groups.flatten() {
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
        let mut accepted_batches = Vec::with_capacity(GROUP_LEN);
        let accepted = to_accept.iter().try_for_each(|batch| {
            accept(&batch)?;
            accepted_batches.push(batch);
            if accepted_batches.len() == GROUP_LEN {
                // Fails only after the last batch.
                empty.send(std::mem::replace(&mut accepted_batches, Vec::with_capacity(GROUP_LEN))).ok();
            }
            Ok(())
        });
        drop((to_accept, empty));
        let read = reading.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        Some(accepted.and(read))
    })
}
