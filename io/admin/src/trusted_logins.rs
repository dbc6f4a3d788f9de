//! The pairs of user and address whose password was right, in a file that outlasts a restart.
//!
//! Duty cycles hand over what is new by rings; the file is written on another thread.

use std::io;
use std::net::Ipv4Addr;

use tickpath_admission::TrustedPeers;
use tickpath_lockfree::spsc;

/// New pairs that wait to be written; further ones are trusted until the program stops.
const RING_CAPACITY: usize = 1 << 10;

/// A user's place, and the address where its password was right.
pub type TrustedLogin = (u32, Ipv4Addr);

/// Writes all pairs, in place of those that were there.
type WritePairs = Box<dyn FnMut(&TrustedPeers<Ipv4Addr>) -> io::Result<()> + Send>;

/// Writes the file. None of its failures costs more than trust: a password is then checked as from a new address.
pub struct TrustedLogins {
    known: TrustedPeers<Ipv4Addr>,
    new: Vec<spsc::Consumer<TrustedLogin>>,
    write: WritePairs,
    is_written: bool,
}

impl TrustedLogins {
    /// Takes the pairs of `text`, the file as it was read, into `known`, by the places of the users' names. The state of a
    /// file that is damaged, or missing though there `should_be` one, is a line for the operator.
    pub fn recall(
        known: &mut TrustedPeers<Ipv4Addr>,
        text: io::Result<Option<Vec<u8>>>,
        should_be: bool,
        place: impl Fn(&str) -> Option<usize>,
    ) -> Option<String> {
        match text {
            Ok(None) => should_be.then(|| "is missing".to_owned()),
            Ok(Some(text)) => known.take_text(&text, place).err().map(|error| format!("is {error}")),
            Err(error) => Some(format!("cannot be read: {error}")),
        }
    }

    /// With the pairs so far. `write` puts all pairs into the file, in place of those that were there.
    pub fn new(
        known: TrustedPeers<Ipv4Addr>,
        write: impl FnMut(&TrustedPeers<Ipv4Addr>) -> io::Result<()> + Send + 'static,
    ) -> TrustedLogins {
        // A new file is written with no pairs, so that a missing one is noticed.
        TrustedLogins { known, new: Vec::new(), write: Box::new(write), is_written: false }
    }

    /// The pairs so far.
    #[must_use]
    pub fn known(&self) -> TrustedPeers<Ipv4Addr> {
        self.known.clone()
    }

    /// A ring for the new pairs of an endpoint.
    pub fn sink(&mut self) -> spsc::Producer<TrustedLogin> {
        let (sink, new) = spsc::channel(RING_CAPACITY);
        self.new.push(new);
        sink
    }

    /// Takes what is new, and writes the file where it lacks something; returns how many pairs were new.
    ///
    /// # Errors
    /// The error of the system; the next call tries again.
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
