//! Pairs of user and address where the password was right, in a file that survives a restart.
//!
//! Duty cycles pass new pairs through rings; another thread writes the file.

use std::io;
use std::net::Ipv4Addr;

use tickpath_admission::TrustedPeers;
use tickpath_lockfree::spsc;

/// Maximum number of new pairs waiting to be written; further ones are trusted only until the program stops.
const RING_CAPACITY: usize = 1 << 10;

/// A user's index, and the address where its password was right.
pub type TrustedLogin = (u32, Ipv4Addr);

/// Writes all pairs, and replaces the previous ones.
type WritePairs = Box<dyn FnMut(&TrustedPeers<Ipv4Addr>) -> io::Result<()> + Send>;

/// Writes the file. A failure only loses trust: a password is then checked as from a new address.
pub struct TrustedLogins {
    known: TrustedPeers<Ipv4Addr>,
    new: Vec<spsc::Consumer<TrustedLogin>>,
    write: WritePairs,
    is_written: bool,
}

impl TrustedLogins {
    /// Adds the pairs of the file's `text` to `known`; `place` returns a user's index by name. Returns a
    /// message for the operator if the file is damaged, or missing although `is_expected`.
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

    /// Creates a writer with these pairs. `write` replaces the pairs in the file by the given ones.
    pub fn new(
        known: TrustedPeers<Ipv4Addr>,
        write: impl FnMut(&TrustedPeers<Ipv4Addr>) -> io::Result<()> + Send + 'static,
    ) -> TrustedLogins {
        // A new file is written even without pairs, so that a missing file is detected.
        TrustedLogins { known, new: Vec::new(), write: Box::new(write), is_written: false }
    }

    /// Returns the current pairs.
    #[must_use]
    pub fn known(&self) -> TrustedPeers<Ipv4Addr> {
        self.known.clone()
    }

    /// Returns a ring for the new pairs of an endpoint.
    pub fn sink(&mut self) -> spsc::Producer<TrustedLogin> {
        let (sink, new) = spsc::channel(RING_CAPACITY);
        self.new.push(new);
        sink
    }

    /// Takes new pairs, and writes the file if it lacks some; returns the number of new pairs.
    ///
    /// # Errors
    /// The system's error. The next call tries again.
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
