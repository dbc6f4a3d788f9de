//! The name of the session that a log belongs to.

use std::fmt;

/// Name of the session that a log belongs to: at most 16 printable ASCII characters, padded with spaces.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct SessionName([u8; 16]);

/// Error: the text is not a session name. Use 1 to 16 printable ASCII characters without spaces.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("'{text}' is not a session's name: use 1 to 16 printable ASCII characters without spaces")]
pub struct SessionNameError {
    text: String,
}

impl SessionName {
    /// Creates a name from text.
    ///
    /// # Errors
    /// [`SessionNameError`] when the text is empty, has over 16 characters, or one outside `!`..`~`.
    pub fn new(text: &str) -> Result<SessionName, SessionNameError> {
        let bytes = text.as_bytes();
        if bytes.is_empty() || bytes.len() > 16 || !bytes.iter().all(u8::is_ascii_graphic) {
            return Err(SessionNameError { text: text.to_owned() });
        }
        let mut padded = [b' '; 16];
        padded[..bytes.len()].copy_from_slice(bytes);
        Ok(SessionName(padded))
    }

    /// Returns the name that a header stores as these bytes.
    pub(crate) const fn from_bytes(bytes: [u8; 16]) -> SessionName {
        SessionName(bytes)
    }

    pub(crate) const fn bytes(&self) -> [u8; 16] {
        self.0
    }
}

impl fmt::Display for SessionName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0.trim_ascii_end().escape_ascii())
    }
}

impl fmt::Debug for SessionName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "\"{self}\"")
    }
}
