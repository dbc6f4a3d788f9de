//! Reading and writing of message fields, and the macros that define messages.

use std::marker::PhantomData;

use crate::digits::{WHOLE_ROOM, write_whole};
use crate::number::{Decimal, Number, number_len, shared_whole};
use crate::scan::{Rest, ScanError, ScanErrorKind, Scanner, Value};
use crate::text::{Secret, Text};

/// A value of a message.
pub trait Field<'a>: Sized {
    /// Reads the value from a message.
    ///
    /// # Errors
    /// [`ScanError`] if the next value has another type.
    fn read(scanner: &mut Scanner<'a>) -> Result<Self, ScanError>;

    /// Reads the value from the start of `rest` if servers write it so: plain, without spaces. Returns `None`
    /// for any other form, which [`read`](Field::read) handles; both give the same values.
    #[must_use]
    fn quick(rest: Rest<'a>) -> Option<(Self, Rest<'a>)> {
        let _ = rest;
        None
    }

    /// [`quick`](Field::quick) into a place with the default value; the place is invalid after `None`.
    #[must_use]
    #[inline(always)]
    fn quick_into(rest: Rest<'a>, place: &mut Self) -> Option<Rest<'a>> {
        let (value, end) = Self::quick(rest)?;
        *place = value;
        Some(end)
    }

    /// True if [`quick_into`](Field::quick_into) leaves parts of the previous value.
    const NEEDS_DEFAULT: bool = false;

    /// [`read`](Field::read) into a place that has the default value; the place is invalid after an error.
    ///
    /// # Errors
    /// As [`read`](Field::read).
    #[inline]
    fn read_into(scanner: &mut Scanner<'a>, place: &mut Self) -> Result<(), ScanError> {
        *place = Self::read(scanner)?;
        Ok(())
    }

    /// Appends the value as JSON.
    fn write(&self, out: &mut Vec<u8>);

    /// Value of an absent member; `None` if the member is required.
    #[must_use]
    fn absent() -> Option<Self> {
        None
    }

    /// True if the member is omitted when writing.
    #[must_use]
    fn is_absent(&self) -> bool {
        false
    }

    /// Skips a value that a peer writes for an absent optional value.
    ///
    /// # Errors
    /// [`ScanError`] if the message is malformed there.
    fn try_nothing(scanner: &mut Scanner<'a>) -> Result<bool, ScanError> {
        scanner.try_null()
    }
}

impl<'a, T: Field<'a>> Field<'a> for Option<T> {
    #[inline]
    fn read(scanner: &mut Scanner<'a>) -> Result<Self, ScanError> {
        if T::try_nothing(scanner)? { Ok(None) } else { T::read(scanner).map(Some) }
    }

    #[inline(always)]
    fn quick(rest: Rest<'a>) -> Option<(Self, Rest<'a>)> {
        match T::quick(rest) {
            Some((value, rest)) => Some((Some(value), rest)),
            None => Some((None, rest.after("null")?)),
        }
    }

    fn write(&self, out: &mut Vec<u8>) {
        match self {
            Some(value) => value.write(out),
            None => out.extend_from_slice(b"null"),
        }
    }

    fn absent() -> Option<Self> {
        Some(None)
    }

    fn is_absent(&self) -> bool {
        self.is_none()
    }
}

/// Skips an empty string, which older servers write for an absent price.
fn try_empty(scanner: &mut Scanner<'_>) -> Result<bool, ScanError> {
    if scanner.peek() != Some(b'"') {
        return scanner.try_null();
    }
    let mut ahead = scanner.clone();
    if ahead.text()?.is_empty() {
        *scanner = ahead;
        return Ok(true);
    }
    Ok(false)
}

impl<'a> Field<'a> for Decimal {
    #[inline]
    fn read(scanner: &mut Scanner<'a>) -> Result<Self, ScanError> {
        scanner.decimal()
    }

    #[inline(always)]
    fn quick(rest: Rest<'a>) -> Option<(Self, Rest<'a>)> {
        let (decimal, len) = Decimal::read_shared(rest.bytes())?;
        Some((decimal, rest.skip(len)?))
    }

    fn write(&self, out: &mut Vec<u8>) {
        Decimal::write(*self, out);
    }

    fn try_nothing(scanner: &mut Scanner<'a>) -> Result<bool, ScanError> {
        try_empty(scanner)
    }
}

impl<'a> Field<'a> for Number<'a> {
    #[inline]
    fn read(scanner: &mut Scanner<'a>) -> Result<Self, ScanError> {
        scanner.number()
    }

    #[inline(always)]
    fn quick(rest: Rest<'a>) -> Option<(Self, Rest<'a>)> {
        let (text, rest) = rest.split(number_len(rest.bytes())?)?;
        Some((Number(text), rest))
    }

    fn write(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(self.text().as_bytes());
    }

    fn try_nothing(scanner: &mut Scanner<'a>) -> Result<bool, ScanError> {
        try_empty(scanner)
    }
}

impl<'a> Field<'a> for bool {
    #[inline]
    fn read(scanner: &mut Scanner<'a>) -> Result<Self, ScanError> {
        scanner.bool()
    }

    #[inline(always)]
    fn quick(rest: Rest<'a>) -> Option<(Self, Rest<'a>)> {
        match rest.after("false") {
            Some(rest) => Some((false, rest)),
            None => Some((true, rest.after("true")?)),
        }
    }

    fn write(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(if *self { b"true" } else { b"false" });
    }

    /// An absent flag is not set.
    fn absent() -> Option<Self> {
        Some(false)
    }
}

/// Reads an integer in any notation, and its start.
#[inline(never)]
fn whole(scanner: &mut Scanner<'_>) -> Result<(i64, usize), ScanError> {
    let at = scanner.at();
    let decimal = scanner.decimal()?;
    if decimal.scale() == 0 {
        Ok((decimal.mantissa(), at))
    } else {
        Err(scanner.error_at(at, ScanErrorKind::NumberRange))
    }
}

macro_rules! whole_numbers {
    ($($number:ty)*) => { $(
        impl<'a> Field<'a> for $number {
            #[inline]
            fn read(scanner: &mut Scanner<'a>) -> Result<Self, ScanError> {
                match scanner.quick::<Self>() {
                    Some(value) => Ok(value),
                    None => {
                        let (value, at) = whole(scanner)?;
                        <$number>::try_from(value)
                            .map_err(|_| scanner.error_at(at, ScanErrorKind::NumberRange))
                    }
                }
            }

            #[inline(always)]
            fn quick(rest: Rest<'a>) -> Option<(Self, Rest<'a>)> {
                let (value, len) = shared_whole(rest.bytes());
                let rest = rest.skip(len)?;
                if len == 0 { None } else { Some((<$number>::try_from(value).ok()?, rest)) }
            }

            fn write(&self, out: &mut Vec<u8>) {
                match u64::try_from(*self) {
                    Ok(number) => append_whole(number, out),
                    Err(_) => out.extend_from_slice(itoa::Buffer::new().format(*self).as_bytes()),
                }
            }
        }
    )* };
}

whole_numbers! { i64 u64 u32 u8 i32 }

/// Appends a whole number.
#[inline]
fn append_whole(number: u64, out: &mut Vec<u8>) {
    let mut room = [0; WHOLE_ROOM];
    let len = out.len() + write_whole(number, &mut room);
    // A copy of constant length is faster than one of the digits alone.
    out.extend_from_slice(&room);
    out.truncate(len);
}

impl<'a> Field<'a> for Text<'a> {
    #[inline]
    fn read(scanner: &mut Scanner<'a>) -> Result<Self, ScanError> {
        scanner.text()
    }

    #[inline(always)]
    fn quick(rest: Rest<'a>) -> Option<(Self, Rest<'a>)> {
        rest.string()
    }

    fn write(&self, out: &mut Vec<u8>) {
        Text::write(*self, out);
    }
}

impl<'a> Field<'a> for Secret<'a> {
    fn read(scanner: &mut Scanner<'a>) -> Result<Self, ScanError> {
        scanner.text().map(Secret::from_text)
    }

    fn write(&self, out: &mut Vec<u8>) {
        self.expose().write(out);
    }
}

impl<'a> Field<'a> for Value<'a> {
    fn read(scanner: &mut Scanner<'a>) -> Result<Self, ScanError> {
        scanner.value()
    }

    fn quick(rest: Rest<'a>) -> Option<(Self, Rest<'a>)> {
        // An optional value is then absent.
        if rest.bytes().starts_with(b"null") { None } else { rest.value() }
    }

    fn write(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(self.text().as_bytes());
    }
}

impl<'a> Value<'a> {
    /// Parses the value; unknown codes become `Other`.
    ///
    /// # Errors
    /// [`ScanError`] if it has another type.
    pub fn parse<T: Field<'a>>(&self) -> Result<T, ScanError> {
        T::read(&mut self.scanner())
    }

    /// Parses the value as a venue does: unknown codes are errors.
    ///
    /// # Errors
    /// [`ScanError`] if it has another type.
    pub fn parse_strict<T: Field<'a>>(&self) -> Result<T, ScanError> {
        T::read(&mut self.scanner().strict())
    }
}

/// A list of values: either received, validated as JSON and decoded one by one, or local, for writing.
#[derive(Clone, Copy)]
pub struct List<'a, T>(Source<'a, T>);

#[derive(Clone, Copy)]
enum Source<'a, T> {
    Received(Value<'a>, PhantomData<T>),
    Ours(&'a [T]),
}

impl<'a, T: Field<'a> + Clone> List<'a, T> {
    /// Creates a list to write.
    #[must_use]
    pub const fn new(items: &'a [T]) -> List<'a, T> {
        List(Source::Ours(items))
    }

    /// Items of the list; iteration ends after the first item that cannot be decoded.
    pub fn iter(&self) -> impl Iterator<Item = Result<T, ScanError>> + use<'a, T> {
        let (mut received, ours) = match self.0 {
            Source::Received(value, _) => {
                let mut scanner = value.scanner();
                (scanner.open_array().is_ok().then_some(scanner), &[][..])
            }
            Source::Ours(items) => (None, items),
        };
        let from_frame = std::iter::from_fn(move || {
            let scanner = received.as_mut()?;
            let item = match scanner.next_element() {
                Ok(false) => {
                    received = None;
                    return None;
                }
                Ok(true) => T::read(scanner),
                Err(error) => Err(error),
            };
            if item.is_err() {
                received = None;
            }
            Some(item)
        });
        from_frame.chain(ours.iter().map(|item| Ok(item.clone())))
    }

    /// Number of items.
    #[must_use]
    pub fn count(&self) -> usize {
        match self.0 {
            Source::Ours(items) => items.len(),
            Source::Received(value, _) => {
                let mut scanner = value.scanner();
                let mut count = 0;
                if scanner.open_array().is_ok() {
                    while scanner.next_element() == Ok(true) && scanner.skip().is_ok() {
                        count += 1;
                    }
                }
                count
            }
        }
    }
}

impl<T> Default for List<'_, T> {
    fn default() -> Self {
        List(Source::Ours(&[]))
    }
}

impl<'a, T: Field<'a> + Clone + std::fmt::Debug> std::fmt::Debug for List<'a, T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

impl<'a, T: Field<'a> + Clone + PartialEq> PartialEq for List<'a, T> {
    fn eq(&self, other: &Self) -> bool {
        // Items that cannot be decoded are equal, regardless of their position.
        self.iter().map(Result::ok).eq(other.iter().map(Result::ok))
    }
}

impl<'a, T: Field<'a> + Clone> Field<'a> for List<'a, T> {
    fn read(scanner: &mut Scanner<'a>) -> Result<Self, ScanError> {
        let is_array = scanner.peek() == Some(b'[');
        let at = scanner.at();
        let value = scanner.value()?;
        if is_array {
            Ok(List(Source::Received(value, PhantomData)))
        } else {
            Err(scanner.error_at(at, ScanErrorKind::WrongType))
        }
    }

    /// Reading the items is cheaper than checking arbitrary JSON; the values are discarded here.
    #[inline]
    fn quick(rest: Rest<'a>) -> Option<(Self, Rest<'a>)> {
        let list = |end: Rest<'a>| (List(Source::Received(rest.value_to(end), PhantomData)), end);
        if let Some(end) = rest.after("[]") {
            return Some(list(end));
        }
        let mut at = rest.open("[")?;
        while let Some((_, end)) = T::quick(at) {
            if let Some(end) = end.after("]") {
                return Some(list(end.close()));
            }
            at = end.after(",")?;
        }
        rest.bytes().starts_with(b"[").then(|| rest.value()).flatten().map(|(_, end)| list(end))
    }

    fn write(&self, out: &mut Vec<u8>) {
        match self.0 {
            Source::Received(value, _) => value.write(out),
            Source::Ours(items) => write_list(items, out),
        }
    }
}

/// Appends a list as an array.
pub fn write_list<'a, T: Field<'a>>(items: &[T], out: &mut Vec<u8>) {
    out.push(b'[');
    for item in items {
        separate(out);
        item.write(out);
    }
    out.push(b']');
}

/// Appends a comma between two items, if needed.
pub(crate) fn separate(out: &mut Vec<u8>) {
    if !matches!(out.last(), Some(b'{' | b'[' | b':')) {
        out.push(b',');
    }
}

/// Appends a member of the current object, unless its value is absent.
pub(crate) fn write_member<'a, T: Field<'a>>(name: &str, value: &T, out: &mut Vec<u8>) {
    if !value.is_absent() {
        separate(out);
        out.push(b'"');
        out.extend_from_slice(name.as_bytes());
        out.extend_from_slice(b"\":");
        value.write(out);
    }
}

/// Appends a member as [`write_member`] does; `key` is a comma, the quoted name and a colon.
#[inline]
pub(crate) fn write_keyed<'a, T: Field<'a>>(key: &'static str, value: &T, out: &mut Vec<u8>) {
    if !value.is_absent() {
        write_always(key, value, out);
    }
}

/// Appends a member as [`write_keyed`] does, but `null` if its value is absent.
#[inline]
pub(crate) fn write_always<'a, T: Field<'a>>(key: &'static str, value: &T, out: &mut Vec<u8>) {
    // The first member has no comma. Both copies have a constant length once this function is inlined.
    if matches!(out.last(), Some(b'{')) {
        out.extend_from_slice(&key.as_bytes()[1..]);
    } else {
        out.extend_from_slice(key.as_bytes());
    }
    value.write(out);
}

/// Reads a member of a message in unusual form.
#[inline(never)]
pub(crate) fn read_member<'a, T: Field<'a>>(
    scanner: &mut Scanner<'a>,
    name: &'static str,
    value: &mut Option<T>,
) -> Result<(), ScanError> {
    *value = Some(T::read(scanner).map_err(|error| error.of_member(name))?);
    Ok(())
}

/// Bit of a member if `is_asked`, otherwise 0.
pub(crate) const fn bit_if(is_asked: bool, place: u8) -> u64 {
    if is_asked { 1 << place } else { 0 }
}

/// Defines a structure as a message: an object whose members are its fields. Unknown members are skipped,
/// `null` counts as an absent optional member, and the last of duplicate members counts. A member with `=
/// null` is written as `null` if absent; all others are then omitted.
macro_rules! message {
    (
        $(#[$meta:meta])*
        pub struct $name:ident<$life:lifetime> { $($body:tt)* }
    ) => {
        $crate::field::message! { @make [$life] [$name<$life>] $(#[$meta])* pub struct $name<$life> { $($body)* } }
    };
    (
        $(#[$meta:meta])*
        pub struct $name:ident { $($body:tt)* }
    ) => {
        $crate::field::message! { @make ['frame] [$name] $(#[$meta])* pub struct $name { $($body)* } }
    };
    (
        @make [$life:lifetime] [$self:ty]
        $(#[$meta:meta])*
        pub struct $name:ident $(<$own:lifetime>)? {
            $( $(#[$field_meta:meta])* pub $field:ident $(as $wire:literal)? : $type:ty $(= $null:ident)? ),* $(,)?
        }
    ) => {
        $(#[$meta])*
        #[derive(Clone, Debug, Default, PartialEq)]
        pub struct $name $(<$own>)? {
            $( $(#[$field_meta])* pub $field: $type ),*
        }

        impl<$life> $crate::field::Field<$life> for $self {
            const NEEDS_DEFAULT: bool = true;

            #[inline]
            fn read(scanner: &mut $crate::scan::Scanner<$life>) -> Result<Self, $crate::scan::ScanError> {
                let mut message = Self::default();
                <Self as $crate::field::Field<$life>>::read_into(scanner, &mut message)?;
                Ok(message)
            }

            #[inline]
            fn read_into(
                scanner: &mut $crate::scan::Scanner<$life>,
                message: &mut Self,
            ) -> Result<(), $crate::scan::ScanError> {
                #[inline(never)]
                fn read_any<$life>(
                    scanner: &mut $crate::scan::Scanner<$life>,
                ) -> Result<$self, $crate::scan::ScanError> {
                    $crate::field::message!(@steps [$life] $name scanner { $( $field $($wire)? : $type ),* })
                }
                let mut quick = |rest| <Self as $crate::field::Field<$life>>::quick_into(rest, message);
                if scanner.quick_by(|rest| Some(((), quick(rest)?))).is_none() {
                    *message = read_any(scanner)?;
                }
                Ok(())
            }

            #[inline]
            fn quick(rest: $crate::scan::Rest<$life>) -> Option<(Self, $crate::scan::Rest<$life>)> {
                let mut message = Self::default();
                let end = <Self as $crate::field::Field<$life>>::quick_into(rest, &mut message)?;
                Some((message, end))
            }

            #[inline(always)]
            fn quick_into(
                rest: $crate::scan::Rest<$life>,
                message: &mut Self,
            ) -> Option<$crate::scan::Rest<$life>> {
                /// Number of bytes left after the message; more than possible if it has another form. All
                /// arguments and results are in registers.
                #[inline(never)]
                fn len_behind<$life>(
                    frame: &$life str,
                    bytes: &$life [u8],
                    room: u64,
                    message: &mut $self,
                ) -> usize {
                    let rest = $crate::scan::Rest::new(frame, bytes, room);
                    members(rest, message).map_or(usize::MAX, |end| end.bytes().len())
                }

                #[inline(always)]
                fn members<$life>(
                    mut rest: $crate::scan::Rest<$life>,
                    message: &mut $self,
                ) -> Option<$crate::scan::Rest<$life>> {
                use $crate::field::{Field, bit_if};
                /// Positions in the structure.
                #[allow(non_camel_case_types)]
                enum Place {
                    $( $field, )*
                }
                // One bit per required member.
                let required = 0 $( | bit_if(<$type as Field<$life>>::absent().is_none(), Place::$field as u8) )*;
                rest = rest.open("{")?;
                // The first member has no preceding comma.
                if rest.bytes().first() == Some(&b',') {
                    return None;
                }
                let (mut from, mut seen) = (0, 0_u64);
                let mut is_first = true;
                loop {
                    // Members usually have the order of the structure, and some are absent.
                    $(
                        if from <= Place::$field as u8
                            && let Some(value) = if is_first && Place::$field as u8 == 0 {
                                rest.after($crate::field::message!(@start $field $($wire)?))
                            } else {
                                rest.after($crate::field::message!(@key $field $($wire)?))
                            }
                        {
                            let bit = bit_if(<$type as Field<$life>>::absent().is_none(), Place::$field as u8);
                            if <$type as Field<$life>>::NEEDS_DEFAULT && seen & bit != 0 {
                                return None;
                            }
                            rest = <$type as Field<$life>>::quick_into(value, &mut message.$field)?;
                            (from, seen, is_first) = (Place::$field as u8 + 1, seen | bit, false);
                        }
                    )*
                    let next = match rest.after("}") {
                        Some(end) => return (seen == required).then_some(end.close()),
                        None if is_first => rest,
                        None => rest.after(",")?,
                    };
                    is_first = false;
                    let (name, value) = next.name()?;
                    match name {
                        $( $crate::field::message!(@name $field $($wire)?) => {
                            let bit = bit_if(<$type as Field<$life>>::absent().is_none(), Place::$field as u8);
                            if <$type as Field<$life>>::NEEDS_DEFAULT && seen & bit != 0 {
                                return None;
                            }
                            rest = <$type as Field<$life>>::quick_into(value, &mut message.$field)?;
                            seen |= bit;
                            from = Place::$field as u8 + 1;
                        } )*
                        _ => rest = value.value()?.1,
                    }
                }
                }

                let (frame, bytes, room) = rest.parts();
                let len = bytes.len().checked_sub(len_behind(frame, bytes, room, message))?;
                rest.skip(len)
            }

            fn write(&self, out: &mut Vec<u8>) {
                out.push(b'{');
                $(
                    $crate::field::message!(@write $($null)?)(
                        $crate::field::message!(@key $field $($wire)?),
                        &self.$field,
                        out,
                    );
                )*
                out.push(b'}');
            }
        }
    };
    // Reads the members one by one, in any order and form.
    (@steps [$life:lifetime] $name:ident $scanner:ident { $( $field:ident $($wire:literal)? : $type:ty ),* }) => { {
        $( let mut $field: Option<$type> = None; )*
        let at = $scanner.at();
        $scanner.open_object()?;
        while $scanner.next_member()? {
            match $scanner.key()? {
                $( $crate::field::message!(@name $field $($wire)?) => {
                    let name = $crate::field::message!(@name $field $($wire)?);
                    $crate::field::read_member($scanner, name, &mut $field)?;
                } )*
                _ => $scanner.skip()?,
            }
        }
        let missing = |name| $scanner.error_at(at, $crate::scan::ScanErrorKind::Missing).of_member(name);
        Ok($name {
            $( $field: match $field {
                Some(value) => value,
                None => <$type as $crate::field::Field<$life>>::absent()
                    .ok_or_else(|| missing($crate::field::message!(@name $field $($wire)?)))?,
            } ),*
        })
    } };
    (@write) => { $crate::field::write_keyed };
    (@write null) => { $crate::field::write_always };
    (@name $field:ident) => { stringify!($field) };
    (@name $field:ident $wire:literal) => { $wire };
    (@key $field:ident) => { concat!(",\"", stringify!($field), "\":") };
    (@key $field:ident $wire:literal) => { concat!(",\"", $wire, "\":") };
    (@start $field:ident) => { concat!("\"", stringify!($field), "\":") };
    (@start $field:ident $wire:literal) => { concat!("\"", $wire, "\":") };
}
pub(crate) use message;

/// Defines a message as `message!` does, but only for messages off the hot path. It reads step by step
/// only, with a tenth of the code.
macro_rules! plain_message {
    (
        $(#[$meta:meta])*
        pub struct $name:ident<$life:lifetime> { $($body:tt)* }
    ) => {
        $crate::field::plain_message! { @make [$life] [$name<$life>] $(#[$meta])* pub struct $name<$life> { $($body)* } }
    };
    (
        $(#[$meta:meta])*
        pub struct $name:ident { $($body:tt)* }
    ) => {
        $crate::field::plain_message! { @make ['frame] [$name] $(#[$meta])* pub struct $name { $($body)* } }
    };
    (
        @make [$life:lifetime] [$self:ty]
        $(#[$meta:meta])*
        pub struct $name:ident $(<$own:lifetime>)? {
            $( $(#[$field_meta:meta])* pub $field:ident $(as $wire:literal)? : $type:ty ),* $(,)?
        }
    ) => {
        $(#[$meta])*
        #[derive(Clone, Debug, Default, PartialEq)]
        pub struct $name $(<$own>)? {
            $( $(#[$field_meta])* pub $field: $type ),*
        }

        impl<$life> $crate::field::Field<$life> for $self {
            fn read(scanner: &mut $crate::scan::Scanner<$life>) -> Result<Self, $crate::scan::ScanError> {
                $crate::field::message!(@steps [$life] $name scanner { $( $field $($wire)? : $type ),* })
            }

            fn write(&self, out: &mut Vec<u8>) {
                out.push(b'{');
                $( $crate::field::write_member($crate::field::message!(@name $field $($wire)?), &self.$field, out); )*
                out.push(b'}');
            }
        }
    };
}
pub(crate) use plain_message;

/// Defines an enumeration of text codes, with `Other` for codes of later API versions.
macro_rules! codes {
    ($( $(#[$meta:meta])* $name:ident { $( $value:ident = $text:literal $meaning:literal, )+ } )+) => { $(
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum $name {
            $(
                #[doc = concat!("`", $text, "`: ", $meaning, ".")]
                $value,
            )+
            /// Any other text; a venue rejects it.
            #[default]
            Other,
        }

        impl $name {
            /// All values except `Other`.
            pub const ALL: &[$name] = &[$($name::$value),+];

            /// Text code in messages.
            #[must_use]
            pub const fn text(self) -> &'static str {
                match self {
                    $( $name::$value => $text, )+
                    $name::Other => "other",
                }
            }

            /// Value of a text; `Other` if it is unknown.
            #[must_use]
            pub fn from_text(text: &str) -> $name {
                match text {
                    $( $text => $name::$value, )+
                    _ => $name::Other,
                }
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.pad(self.text())
            }
        }

        impl<'a> $crate::field::Field<'a> for $name {
            fn read(scanner: &mut $crate::scan::Scanner<'a>) -> Result<Self, $crate::scan::ScanError> {
                scanner.peek();
                let at = scanner.at();
                let text = scanner.text()?;
                match text.plain().map_or($name::Other, $name::from_text) {
                    $name::Other if scanner.is_strict() => {
                        Err(scanner.error_at(at, $crate::scan::ScanErrorKind::UnknownValue))
                    }
                    value => Ok(value),
                }
            }

            #[inline(always)]
            fn quick(rest: $crate::scan::Rest<'a>) -> Option<(Self, $crate::scan::Rest<'a>)> {
                /// The value and its length, returned in registers.
                #[inline(never)]
                fn find(bytes: &[u8]) -> ($name, usize) {
                    $(
                        if $crate::scan::starts_with(bytes, concat!("\"", $text, "\"").as_bytes()) {
                            return ($name::$value, $text.len() + 2);
                        }
                    )+
                    ($name::Other, 0)
                }
                let (value, len) = find(rest.bytes());
                if len == 0 { None } else { Some((value, rest.skip(len)?)) }
            }

            fn write(&self, out: &mut Vec<u8>) {
                $crate::text::Text::new(self.text()).write(out);
            }
        }
    )+ };
}
pub(crate) use codes;
