//! A demonstration's journal: its folder and its threads.

use std::path::{Path, PathBuf};

use anyhow::{Context, ensure};
use tempfile::TempDir;
use tickpath_exchange::{JournalSettings, JournalThreads, VenueJournal, VenueView};
use tickpath_journal::{Folder, Policy, session_of};

/// The folder of the journal, and the threads that write it.
pub(crate) struct JournalRetention {
    folder: PathBuf,
    threads: Option<JournalThreads>,
    /// The temporary folder, removed on drop; `None` if the user named a folder.
    temporary: Option<TempDir>,
}

/// The journal of a finished demonstration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JournalSummary {
    /// The journal's folder; `None` for a temporary folder, which is removed.
    pub folder: Option<PathBuf>,
    /// Number of durable commands in the journal.
    pub commands: u64,
    /// Number of times that a command had to wait for the disk.
    pub delayed: u64,
}

impl JournalRetention {
    /// Opens a journal in `folder`, or in a temporary one.
    ///
    /// # Errors
    /// The folder already holds a session's journal, or cannot be created.
    pub(crate) fn open(folder: Option<&Path>) -> anyhow::Result<JournalRetention> {
        let Some(folder) = folder else {
            let temporary = tempfile::tempdir().context("cannot make a folder for the journal")?;
            return Ok(JournalRetention {
                folder: temporary.path().to_owned(),
                temporary: Some(temporary),
                threads: None,
            });
        };
        let name = folder.display();
        let storage = Folder::new(folder).with_context(|| format!("journal {name}"))?;
        let session = session_of(&storage).with_context(|| format!("journal {name}"))?;
        ensure!(
            session.is_none(),
            "journal {name} holds a session: a demonstration needs a new one: name a folder without a journal"
        );
        Ok(JournalRetention { folder: folder.to_owned(), temporary: None, threads: None })
    }

    /// Settings with which no command waits for the disk. Snapshots are off: they would take CPU time.
    pub(crate) fn settings(&self) -> JournalSettings {
        JournalSettings { snapshot_every: 0, ..JournalSettings::new(&self.folder, Policy::Async) }
    }

    pub(crate) fn start(&mut self, journal: Option<VenueJournal>) -> anyhow::Result<()> {
        self.threads = journal.map(VenueJournal::start).transpose()?;
        Ok(())
    }

    /// Ends the journal's threads and returns the summary. The venue's threads must have ended before.
    pub(crate) fn finish(self, view: &VenueView) -> JournalSummary {
        let JournalRetention { folder, temporary, threads } = self;
        drop(threads);
        JournalSummary {
            folder: temporary.is_none().then_some(folder),
            commands: view.journal.durable.read(),
            delayed: view.journal.delayed.read(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_with_a_session_is_refused() {
        let site = tempfile::tempdir().unwrap();
        let named = site.path().join("new");
        let journal_retention = JournalRetention::open(Some(&named)).unwrap();
        assert_eq!(
            (journal_retention.settings().folder, journal_retention.settings().policy),
            (named.clone(), Policy::Async)
        );
        let storage = Folder::new(&named).unwrap();
        let session = tickpath_journal::SessionName::new("DEMO").unwrap();
        drop(tickpath_journal::open(&storage, session, Default::default(), &Default::default()).unwrap());
        let refusal = JournalRetention::open(Some(&named)).err().unwrap().to_string();
        assert!(refusal.contains("holds a session") && refusal.contains("new"), "{refusal}");

        let journal_retention = JournalRetention::open(None).unwrap();
        let folder = journal_retention.settings().folder;
        assert!(folder.is_dir());
        assert_eq!(journal_retention.finish(&VenueView::default()).folder, None);
        assert!(!folder.exists());
    }
}
