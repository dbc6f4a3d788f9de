//! Pairs of a user and an address from which the user's password was right, kept in a file.
//!
//! Duty cycles pass new pairs through rings; another thread writes the file.

use std::io;
use std::net::Ipv4Addr;

use tickpath_admission::TrustedPeers;
use tickpath_lockfree::spsc;

/// Capacity of a ring of new pairs. Pairs that do not fit are not written, so they are lost at a restart.
const RING_CAPACITY: usize = 1 << 10;

/// A user's index, and an address from which the user's password was right.
pub type TrustedLogin = (u32, Ipv4Addr);

/// Function that replaces all pairs in the file.
type WritePairs = Box<dyn FnMut(&TrustedPeers<Ipv4Addr>) -> io::Result<()> + Send>;

/// Collects new pairs and writes all pairs to the file. Pairs that could not be written are lost at a
/// restart: their logins are then untrusted.
pub struct TrustedLogins {
    known: TrustedPeers<Ipv4Addr>,
    new: Vec<spsc::Consumer<TrustedLogin>>,
    write: WritePairs,
    is_written: bool,
}

impl TrustedLogins {
    /// Adds the pairs in the file's `text` to `known`; `place` returns the index of the user with a name.
    /// Returns a message for the operator if the file is unreadable or damaged, or is missing although
    /// `is_expected`.
    pub fn load(
        known: &mut TrustedPeers<Ipv4Addr>,
        text: io::Result<Option<Vec<u8>>>,
        is_expected: bool,
        place: impl Fn(&str) -> Option<usize>,
    ) -> Option<String> {
        match text {
            Ok(None) => is_expected.then(|| "is missing".to_owned()),
            Ok(Some(text)) => known.load_text(&text, place).err().map(|error| format!("is {error}")),
            Err(error) => Some(format!("cannot be read: {error}")),
        }
    }

    /// Creates a writer that begins with the pairs `known`; `write` replaces all pairs in the file.
    pub fn new(
        known: TrustedPeers<Ipv4Addr>,
        write: impl FnMut(&TrustedPeers<Ipv4Addr>) -> io::Result<()> + Send + 'static,
    ) -> TrustedLogins {
        // The file is written even without pairs, so that later a missing file is noticed.
        TrustedLogins { known, new: Vec::new(), write: Box::new(write), is_written: false }
    }

    /// Returns a copy of all pairs known now.
    #[must_use]
    pub fn known(&self) -> TrustedPeers<Ipv4Addr> {
        self.known.clone()
    }

    /// Creates a ring through which an endpoint passes its new pairs.
    pub fn sink(&mut self) -> spsc::Producer<TrustedLogin> {
        let (sink, new) = spsc::channel(RING_CAPACITY);
        self.new.push(new);
        sink
    }

    /// Takes new pairs from the rings, and writes the file if it is outdated. Returns the number of pairs
    /// taken.
    ///
    /// # Errors
    /// The system's error when writing. The next call retries.
    pub fn run_once(&mut self) -> io::Result<usize> {
        let mut count = 0;
        for new in &mut self.new {
            while let Some((user, address)) = new.try_pop() {
                self.known.record(user as usize, address);
                count += 1;
            }
        }
        self.is_written &= !self.known.take_changed();
        if !self.is_written {
            (self.write)(&self.known)?;
            self.is_written = true;
        }
        Ok(count)
    }
}
