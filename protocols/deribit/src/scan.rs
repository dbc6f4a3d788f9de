//! A pull scanner for one received message: strict JSON, no allocation, bounded depth.
//!
//! The reader states the expected type. Unknown values are skipped, but validated. Every error has its
//! position. Strings are borrowed from the frame, and unescaped only when they are read.

mod rest;

use std::fmt;

use thiserror::Error;

use crate::field::Field;
use crate::number::{Decimal, Number, NumberError, number_len};
pub use crate::text::Text;
pub use rest::Rest;
pub(crate) use rest::starts_with;
use rest::string_stop;

/// Maximum depth of nested containers.
pub const DEPTH_MAX: u64 = 64;

/// Kind of a scan error.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ScanErrorKind {
    /// The frame ends within a value.
    #[error("the message ends too early")]
    End,
    /// Another character was expected.
    #[error("an unexpected character")]
    Unexpected,
    /// A string contains a control character.
    #[error("a control character in a string")]
    Control,
    /// An unknown escape sequence follows a backslash.
    #[error("an unknown escape in a string")]
    Escape,
    /// Not a valid JSON number.
    #[error("not a number")]
    Number,
    /// A number does not fit its field: too many digits, too many decimals, or too large.
    #[error("a number that does not fit its field")]
    NumberRange,
    /// More than [`DEPTH_MAX`] containers are nested.
    #[error("nested too deeply")]
    TooDeep,
    /// Something follows the message.
    #[error("something follows the message")]
    Trailing,
    /// The frame is not UTF-8.
    #[error("not UTF-8")]
    Utf8,
    /// A required member is absent.
    #[error("a required value is missing")]
    Missing,
    /// A value has another type than its field.
    #[error("a value of the wrong type")]
    WrongType,
    /// A text is not one of the allowed values of its field.
    #[error("a value that is not one of those allowed")]
    UnknownValue,
    /// A list exceeds its maximum length.
    #[error("a list that is too long")]
    TooMany,
}

/// Error in a message, with its position.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("{kind} at byte {at}{}", MemberName(member))]
pub struct ScanError {
    /// Byte offset of the error.
    pub at: u32,
    /// Kind of error.
    pub kind: ScanErrorKind,
    /// Innermost known member that contains the error; empty outside of members.
    pub member: &'static str,
}

impl ScanError {
    /// True if the message is not valid JSON within the depth limit, false if it is valid but unexpected.
    #[must_use]
    pub const fn is_syntax(&self) -> bool {
        use ScanErrorKind as K;
        matches!(
            self.kind,
            K::End | K::Unexpected | K::Control | K::Escape | K::Number | K::TooDeep | K::Trailing | K::Utf8
        )
    }

    /// Assigns the error to this member, unless it already has one.
    #[cold]
    pub(crate) fn of_member(self, member: &'static str) -> ScanError {
        if self.member.is_empty() { ScanError { member, ..self } } else { self }
    }
}

struct MemberName<'m>(&'m str);

impl fmt::Display for MemberName<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() { Ok(()) } else { write!(f, " ({})", self.0) }
    }
}

/// A value that was validated and skipped, to be read later.
#[derive(Clone, Copy)]
pub struct Value<'a> {
    frame: &'a str,
    start: u32,
    end: u32,
    depth: u32,
    is_query: bool,
}

impl<'a> Value<'a> {
    /// Text of the value.
    #[must_use]
    pub fn text(&self) -> &'a str {
        &self.frame[self.start as usize..self.end as usize]
    }

    /// Creates a scanner at the start of the value; offsets count from the start of the whole message.
    #[must_use]
    pub const fn scanner(&self) -> Scanner<'a> {
        Scanner {
            frame: self.frame,
            at: self.start as usize,
            depth: self.depth as u64,
            is_first: false,
            is_strict: false,
            // The quick readers accept a text only as a text.
            is_plain: self.is_query,
            is_query: self.is_query,
        }
    }

    /// The same value as part of an HTTP query, where all values are texts: a text also counts as the number
    /// or flag in it, and a list also counts as a text.
    #[must_use]
    pub const fn of_query(self) -> Value<'a> {
        Value { is_query: true, ..self }
    }

    /// True for `null`.
    #[must_use]
    pub fn is_null(&self) -> bool {
        self.text() == "null"
    }
}

impl Default for Value<'_> {
    /// `null`.
    fn default() -> Self {
        Value { frame: "null", start: 0, end: 4, depth: 0, is_query: false }
    }
}

impl PartialEq for Value<'_> {
    /// Compares the texts.
    fn eq(&self, other: &Value<'_>) -> bool {
        self.text() == other.text()
    }
}

impl Eq for Value<'_> {}

impl fmt::Debug for Value<'_> {
    /// Shows its position, not its text, which may be a secret.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Value({}..{})", self.start, self.end)
    }
}

/// Reads one message from its start to its end.
///
/// ```
/// use tickpath_deribit::scan::Scanner;
///
/// let mut scanner = Scanner::new(r#"{"price":5042.5,"other":[1,{}],"label":"a\"b"}"#);
/// let (mut price, mut label) = (None, None);
/// scanner.open_object().unwrap();
/// while let Some(key) = scanner.next_key().unwrap() {
///     match key {
///         "price" => price = Some(scanner.decimal().unwrap()),
///         "label" => label = Some(scanner.text().unwrap()),
///         _ => scanner.skip().unwrap(),
///     }
/// }
/// scanner.finish().unwrap();
/// assert_eq!(price.unwrap().to_string(), "5042.5");
/// assert_eq!(label.unwrap().to_string(), "a\"b");
/// ```
#[derive(Clone, Debug)]
pub struct Scanner<'a> {
    frame: &'a str,
    at: usize,
    depth: u64,
    /// True between the opening of a container and its first item.
    is_first: bool,
    is_strict: bool,
    is_plain: bool,
    is_query: bool,
}

impl<'a> Scanner<'a> {
    /// Creates a scanner for a message that is valid UTF-8 and shorter than 4 GiB.
    #[must_use]
    pub const fn new(frame: &'a str) -> Scanner<'a> {
        let (is_first, is_strict, is_plain, is_query) = (false, false, false, false);
        Scanner { frame, at: 0, depth: 0, is_first, is_strict, is_plain, is_query }
    }

    /// Creates a scanner for a message as received.
    ///
    /// # Errors
    /// [`ScanErrorKind::Utf8`] if it is not UTF-8.
    pub fn from_bytes(frame: &'a [u8]) -> Result<Scanner<'a>, ScanError> {
        let error = |error: std::str::Utf8Error| ScanError {
            at: error.valid_up_to() as u32,
            kind: ScanErrorKind::Utf8,
            member: "",
        };
        Ok(Scanner::new(std::str::from_utf8(frame).map_err(error)?))
    }

    /// Rejects unknown text codes, as a venue does; a client reads them as `Other`.
    #[must_use]
    pub const fn strict(self) -> Scanner<'a> {
        Scanner { is_strict: true, ..self }
    }

    /// Reads every message step by step, as if it had an unusual form: the reference for the quick readers.
    #[must_use]
    pub const fn plain(self) -> Scanner<'a> {
        Scanner { is_plain: true, ..self }
    }

    pub(crate) const fn is_strict(&self) -> bool {
        self.is_strict
    }

    /// Byte offset of the next byte.
    #[must_use]
    pub const fn at(&self) -> usize {
        self.at
    }

    #[inline]
    fn byte(&self, at: usize) -> Option<u8> {
        self.frame.as_bytes().get(at).copied()
    }

    #[cold]
    pub(crate) const fn error_at(&self, at: usize, kind: ScanErrorKind) -> ScanError {
        ScanError { at: at as u32, kind, member: "" }
    }

    /// Returns an error at the current position.
    #[cold]
    pub(crate) const fn error(&self, kind: ScanErrorKind) -> ScanError {
        self.error_at(self.at, kind)
    }

    /// Returns the error for an unexpected character: end of frame, another type, or invalid JSON.
    #[cold]
    fn unexpected(&mut self) -> ScanError {
        match self.byte(self.at) {
            None => self.error(ScanErrorKind::End),
            Some(b'"' | b'{' | b'[' | b'-' | b'0'..=b'9' | b't' | b'f' | b'n') => {
                // A value is here: the error is its type, unless the value itself is invalid.
                let place = self.error(ScanErrorKind::WrongType);
                match self.skip() {
                    Ok(()) => place,
                    Err(error) => error,
                }
            }
            Some(_) => self.error(ScanErrorKind::Unexpected),
        }
    }

    /// First character of the next value, without taking it.
    #[inline(always)]
    pub(crate) fn peek(&mut self) -> Option<u8> {
        match self.byte(self.at) {
            Some(byte) if byte > b' ' => Some(byte),
            _ => self.peek_beyond_spaces(),
        }
    }

    #[cold]
    fn peek_beyond_spaces(&mut self) -> Option<u8> {
        while let Some(b' ' | b'\n' | b'\r' | b'\t') = self.byte(self.at) {
            self.at += 1;
        }
        self.byte(self.at)
    }

    /// Takes the opening brace of an object.
    ///
    /// # Errors
    /// If there is no object here, or it is nested too deeply.
    #[inline]
    pub fn open_object(&mut self) -> Result<(), ScanError> {
        self.open(b'{')
    }

    /// Takes the opening bracket of an array.
    ///
    /// # Errors
    /// If there is no array here, or it is nested too deeply.
    #[inline]
    pub fn open_array(&mut self) -> Result<(), ScanError> {
        self.open(b'[')
    }

    #[inline]
    fn open(&mut self, bracket: u8) -> Result<(), ScanError> {
        if self.peek() != Some(bracket) {
            return Err(self.unexpected());
        }
        if self.depth == DEPTH_MAX {
            return Err(self.error(ScanErrorKind::TooDeep));
        }
        self.at += 1;
        self.depth += 1;
        self.is_first = true;
        Ok(())
    }

    /// True if another item follows in the open container, otherwise takes `bracket`, which closes it.
    #[inline(always)]
    fn next_item(&mut self, bracket: u8) -> Result<bool, ScanError> {
        let is_first = std::mem::replace(&mut self.is_first, false);
        match self.peek() {
            Some(byte) if byte == bracket => {
                self.at += 1;
                self.depth = self.depth.saturating_sub(1);
                Ok(false)
            }
            Some(b',') if !is_first => {
                self.at += 1;
                Ok(true)
            }
            Some(_) if is_first => Ok(true),
            _ => Err(self.end_or_unexpected()),
        }
    }

    /// Name of the next member of the open object, whose value must be taken next; `None` at its end.
    ///
    /// Names are returned as spelled. A name with an escape is therefore not a name of this API.
    ///
    /// # Errors
    /// If the object is malformed here.
    #[inline]
    pub fn next_key(&mut self) -> Result<Option<&'a str>, ScanError> {
        if self.next_member()? { self.key().map(Some) } else { Ok(None) }
    }

    /// True if another member of the open object follows, whose name must be taken next.
    #[inline(always)]
    pub(crate) fn next_member(&mut self) -> Result<bool, ScanError> {
        self.next_item(b'}')
    }

    /// Takes the name of a member and the colon after it.
    pub(crate) fn key(&mut self) -> Result<&'a str, ScanError> {
        if self.peek() != Some(b'"') {
            return Err(self.end_or_unexpected());
        }
        let (start, end, _) = self.string()?;
        if self.peek() != Some(b':') {
            return Err(self.end_or_unexpected());
        }
        self.at += 1;
        Ok(&self.frame[start..end])
    }

    /// Takes a member's name with the text around it, if the frame continues with exactly this literal.
    #[inline(always)]
    pub(crate) fn take(&mut self, literal: &'static str) -> bool {
        let rest = self.frame.as_bytes().get(self.at..).unwrap_or_default();
        if self.is_plain || !rest.starts_with(literal.as_bytes()) {
            return false;
        }
        self.at += literal.len();
        self.is_first = false;
        true
    }

    /// Adds the number of containers that [`take`](Scanner::take) has opened.
    #[inline(always)]
    pub(crate) const fn note_opened(&mut self, count: u64) {
        self.depth += count;
    }

    /// True if exactly `end` is left of the frame.
    #[inline(always)]
    pub(crate) fn is_rest(&self, end: &'static str) -> bool {
        self.frame.as_bytes().get(self.at..) == Some(end.as_bytes())
    }

    /// Takes the next value if it has the form that servers write.
    #[inline(always)]
    pub(crate) fn quick<T: Field<'a>>(&mut self) -> Option<T> {
        self.quick_by(T::quick)
    }

    /// Takes one value with `read` at the start of the rest.
    #[inline(always)]
    pub(crate) fn quick_by<T>(&mut self, read: impl FnOnce(Rest<'a>) -> Option<(T, Rest<'a>)>) -> Option<T> {
        if self.is_plain {
            return None;
        }
        let rest = Rest {
            frame: self.frame,
            bytes: self.frame.as_bytes().get(self.at..)?,
            room: DEPTH_MAX - self.depth,
        };
        let (value, rest) = read(rest)?;
        self.at = rest.at();
        self.is_first = false;
        Some(value)
    }

    #[cold]
    fn end_or_unexpected(&self) -> ScanError {
        match self.byte(self.at) {
            None => self.error(ScanErrorKind::End),
            Some(_) => self.error(ScanErrorKind::Unexpected),
        }
    }

    /// True if another item of the open array follows, which must be taken next.
    ///
    /// # Errors
    /// If the array is malformed here.
    #[inline]
    pub fn next_element(&mut self) -> Result<bool, ScanError> {
        self.next_item(b']')
    }

    /// Takes a string.
    ///
    /// # Errors
    /// If there is no string here, or it is malformed.
    #[inline]
    pub fn text(&mut self) -> Result<Text<'a>, ScanError> {
        match self.quick() {
            Some(text) => Ok(text),
            None => self.any_text(),
        }
    }

    #[inline(never)]
    fn any_text(&mut self) -> Result<Text<'a>, ScanError> {
        match self.peek() {
            Some(b'"') => {}
            Some(b'[' | b'{') if self.is_query => return Ok(Text::borrowed(self.value()?.text(), false)),
            _ => return Err(self.unexpected()),
        }
        let (start, end, has_escapes) = self.string()?;
        Ok(Text::borrowed(&self.frame[start..end], has_escapes))
    }

    /// Takes a text in an HTTP query, and returns its content; `None` elsewhere.
    #[inline]
    fn in_text(&mut self) -> Result<Option<&'a str>, ScanError> {
        if !self.is_query || self.peek() != Some(b'"') {
            return Ok(None);
        }
        let (start, end, _) = self.string()?;
        Ok(Some(&self.frame[start..end]))
    }

    /// Skips the string that starts here. Returns the bounds of its content, and whether it has escapes.
    #[inline]
    fn string(&mut self) -> Result<(usize, usize, bool), ScanError> {
        let start = self.at + 1;
        let end = string_stop(self.frame.as_bytes(), start);
        if self.byte(end) == Some(b'"') {
            self.at = end + 1;
            return Ok((start, end, false));
        }
        self.long_string(start, end)
    }

    /// Skips the rest of a string from `at`, where a special character is.
    #[cold]
    fn long_string(&mut self, start: usize, mut at: usize) -> Result<(usize, usize, bool), ScanError> {
        loop {
            match self.byte(at) {
                None => return Err(self.error_at(at, ScanErrorKind::End)),
                Some(b'"') => {
                    self.at = at + 1;
                    return Ok((start, at, true));
                }
                Some(b'\\') => at = self.escape(at)?,
                Some(_) => return Err(self.error_at(at, ScanErrorKind::Control)),
            }
            at = string_stop(self.frame.as_bytes(), at);
        }
    }

    /// End of the escape sequence that starts at `at`.
    fn escape(&self, at: usize) -> Result<usize, ScanError> {
        match self.byte(at + 1) {
            None => Err(self.error_at(at + 1, ScanErrorKind::End)),
            Some(b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't') => Ok(at + 2),
            Some(b'u') => {
                for digit in at + 2..at + 6 {
                    match self.byte(digit) {
                        None => return Err(self.error_at(digit, ScanErrorKind::End)),
                        Some(byte) if byte.is_ascii_hexdigit() => {}
                        Some(_) => return Err(self.error_at(digit, ScanErrorKind::Escape)),
                    }
                }
                Ok(at + 6)
            }
            Some(_) => Err(self.error_at(at + 1, ScanErrorKind::Escape)),
        }
    }

    /// Takes a number, exactly.
    ///
    /// # Errors
    /// If there is no number here, or it does not fit.
    #[inline(never)]
    pub fn decimal(&mut self) -> Result<Decimal, ScanError> {
        match self.quick() {
            Some(decimal) => Ok(decimal),
            None => self.any_decimal(),
        }
    }

    fn any_decimal(&mut self) -> Result<Decimal, ScanError> {
        let at = self.at;
        if let Some(text) = self.in_text()? {
            return match Decimal::read(text.as_bytes()) {
                Ok((decimal, len)) if len == text.len() => Ok(decimal),
                Err(NumberError::NotANumber) | Ok(_) => Err(self.error_at(at, ScanErrorKind::WrongType)),
                Err(error) => Err(self.number_error(error)),
            };
        }
        if !matches!(self.peek(), Some(b'-' | b'0'..=b'9')) {
            return Err(self.unexpected());
        }
        match Decimal::read(&self.frame.as_bytes()[self.at..]) {
            Ok((decimal, len)) => {
                self.at += len;
                Ok(decimal)
            }
            Err(error) => Err(self.number_error(error)),
        }
    }

    #[cold]
    fn number_error(&self, error: NumberError) -> ScanError {
        self.error(match error {
            NumberError::NotANumber => ScanErrorKind::Number,
            _ => ScanErrorKind::NumberRange,
        })
    }

    /// Takes a number as text.
    ///
    /// # Errors
    /// If there is no number here.
    #[inline]
    pub fn number(&mut self) -> Result<Number<'a>, ScanError> {
        let at = self.at;
        if let Some(text) = self.in_text()? {
            return Number::new(text).map_err(|_| self.error_at(at, ScanErrorKind::WrongType));
        }
        if !matches!(self.peek(), Some(b'-' | b'0'..=b'9')) {
            return Err(self.unexpected());
        }
        let start = self.at;
        self.pass_number()?;
        Ok(Number(&self.frame[start..self.at]))
    }

    #[inline]
    fn pass_number(&mut self) -> Result<(), ScanError> {
        let len = number_len(&self.frame.as_bytes()[self.at..]);
        self.at += len.ok_or_else(|| self.error(ScanErrorKind::Number))?;
        Ok(())
    }

    /// Takes `true` or `false`.
    ///
    /// # Errors
    /// If there is neither here.
    #[inline]
    pub fn bool(&mut self) -> Result<bool, ScanError> {
        let at = self.at;
        if let Some(text) = self.in_text()? {
            return text.parse().map_err(|_| self.error_at(at, ScanErrorKind::WrongType));
        }
        match self.peek() {
            Some(b't') => self.word("true").map(|()| true),
            Some(b'f') => self.word("false").map(|()| false),
            _ => Err(self.unexpected()),
        }
    }

    /// Takes a `null`, if there is one here.
    ///
    /// # Errors
    /// If the value starts like `null` but differs.
    #[inline]
    pub fn try_null(&mut self) -> Result<bool, ScanError> {
        if self.peek() == Some(b'n') { self.word("null").map(|()| true) } else { Ok(false) }
    }

    #[inline]
    fn word(&mut self, word: &str) -> Result<(), ScanError> {
        let rest = &self.frame.as_bytes()[self.at..];
        if rest.starts_with(word.as_bytes()) {
            self.at += word.len();
            return Ok(());
        }
        let same = rest.iter().zip(word.as_bytes()).take_while(|(a, b)| a == b).count();
        let is_end = same == rest.len();
        Err(self
            .error_at(self.at + same, if is_end { ScanErrorKind::End } else { ScanErrorKind::Unexpected }))
    }

    /// Validates and skips the next value.
    ///
    /// # Errors
    /// If it is not valid JSON, or nested too deeply.
    #[inline]
    pub fn skip(&mut self) -> Result<(), ScanError> {
        match self.quick::<Value<'_>>() {
            Some(_) => Ok(()),
            None => self.skip_any(),
        }
    }

    fn skip_any(&mut self) -> Result<(), ScanError> {
        // One bit per container opened here: 1 for an object.
        let (mut kinds, base) = (0_u64, self.depth);
        loop {
            match self.peek() {
                Some(b'"') => {
                    self.string()?;
                }
                Some(b'-' | b'0'..=b'9') => self.pass_number()?,
                Some(bracket @ (b'{' | b'[')) => {
                    self.open(bracket)?;
                    kinds = kinds << 1 | u64::from(bracket == b'{');
                }
                Some(b't') => self.word("true")?,
                Some(b'f') => self.word("false")?,
                Some(b'n') => self.word("null")?,
                Some(_) => return Err(self.error(ScanErrorKind::Unexpected)),
                None => return Err(self.error(ScanErrorKind::End)),
            }
            // Continue to the next value, or leave every container that ends here.
            loop {
                if self.depth == base {
                    return Ok(());
                }
                let follows = match kinds & 1 {
                    1 => self.next_key()?.is_some(),
                    _ => self.next_element()?,
                };
                if follows {
                    break;
                }
                kinds >>= 1;
            }
        }
    }

    /// Validates the next value, and returns it to be read later.
    ///
    /// # Errors
    /// If it is not valid JSON, or nested too deeply.
    pub fn value(&mut self) -> Result<Value<'a>, ScanError> {
        let mark = self.mark();
        self.skip()?;
        Ok(self.value_since(mark))
    }

    /// Start of the next value.
    #[inline]
    pub(crate) fn mark(&mut self) -> usize {
        self.peek();
        self.at
    }

    /// The value that starts at `mark` and was just read.
    #[inline]
    pub(crate) fn value_since(&self, mark: usize) -> Value<'a> {
        // Every transport rejects frames of 4 GiB before.
        let (start, end, depth) = (mark as u32, self.at as u32, self.depth as u32);
        Value { frame: self.frame, start, end, depth, is_query: self.is_query }
    }

    /// Checks that the message ends here.
    ///
    /// # Errors
    /// [`ScanErrorKind::Trailing`] if something else follows.
    pub fn finish(mut self) -> Result<(), ScanError> {
        match self.peek() {
            None => Ok(()),
            Some(_) => Err(self.error(ScanErrorKind::Trailing)),
        }
    }
}

/// Checks that a frame is one JSON value nested at most [`DEPTH_MAX`] deep.
///
/// # Errors
/// The first error, with its position.
pub fn check(frame: &[u8]) -> Result<Value<'_>, ScanError> {
    let mut scanner = Scanner::from_bytes(frame)?;
    let value = scanner.value()?;
    scanner.finish()?;
    Ok(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strict_json_is_accepted_and_nothing_else() {
        for good in [
            "0",
            "-0.5e+7",
            "\"\"",
            "\"a\\u00e9\\n\\/\"",
            "[]",
            "{}",
            " [ 1 , {\"a\" : [ ] } ]\n",
            "true",
            "null",
            "\"\u{e9}\u{1f600} longer than eight\"",
            "{\"a\":1,\"a\":2}",
        ] {
            check(good.as_bytes()).unwrap_or_else(|error| panic!("{good}: {error}"));
            serde_json::from_str::<serde::de::IgnoredAny>(good).unwrap();
        }
        for (bad, at) in [
            ("", 0),
            ("[", 1),
            ("[1", 2),
            ("[1,]", 3),
            ("[,1]", 1),
            ("{\"a\"}", 4),
            ("{\"a\":}", 5),
            ("{a:1}", 1),
            ("{\"a\":1,}", 7),
            ("[1}", 2),
            ("tru", 3),
            ("trux", 3),
            ("01", 0),
            ("\"a", 2),
            ("\"\\x\"", 2),
            ("\"\\u12g4\"", 5),
            ("\"\n\"", 1),
            ("1 2", 2),
            ("nul", 3),
            ("'a'", 0),
            ("[1 2]", 3),
            ("\"\\", 2),
        ] {
            let error = check(bad.as_bytes()).expect_err(bad);
            assert_eq!((error.at, error.is_syntax()), (at, true), "{bad}: {error}");
        }
        assert_eq!(check(b"\"\xff\"").map_err(|error| (error.at, error.kind)), Err((1, ScanErrorKind::Utf8)));
    }

    #[test]
    fn depth_has_a_bound() {
        let nested = |depth: usize| "[".repeat(depth) + &"]".repeat(depth);
        assert!(check(nested(64).as_bytes()).is_ok());
        assert_eq!(check(nested(65).as_bytes()).map_err(|error| error.kind), Err(ScanErrorKind::TooDeep));
        assert!(check(nested(100_000).as_bytes()).is_err());
    }

    #[test]
    fn a_value_of_another_type_is_told_from_broken_json() {
        let mut scanner = Scanner::new("{\"a\":1}");
        assert_eq!(
            scanner.text().map_err(|error| (error.at, error.kind)),
            Err((0, ScanErrorKind::WrongType))
        );
        let mut scanner = Scanner::new("{\"a\":x}");
        assert_eq!(
            scanner.text().map_err(|error| (error.at, error.kind)),
            Err((5, ScanErrorKind::Unexpected))
        );
    }
}
