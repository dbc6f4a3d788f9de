//! Messages as structures: fields map to members, and repeating groups to entries.

use std::fmt;

use crate::error::{FieldError, SessionRejectReason, WriteError};
use crate::field::{Field, Fields, Value};
use crate::message::{Message, MsgType};
use crate::writer::Writer;

/// Body of a message as a structure, without header and trailer.
pub trait Body<'a>: Sized {
    /// Message type, tag 35.
    const MSG_TYPE: MsgType;

    /// Decodes the fields of a message; unknown fields are ignored. The type is not checked.
    ///
    /// # Errors
    /// The first field that is missing, duplicated or malformed. Entries of groups are decoded only during
    /// iteration.
    fn decode(message: &Message<'a>) -> Result<Self, FieldError>;

    /// Decodes every entry of every group, for a caller that accepts only completely valid messages.
    ///
    /// # Errors
    /// The first field of an entry that is missing, duplicated or malformed.
    fn check(&self) -> Result<(), FieldError>;

    /// Encodes the fields.
    fn encode(&self, writer: &mut Writer<'_>);

    /// Writes a message without header fields, for tests and tools; sessions add the header.
    ///
    /// # Errors
    /// [`WriteError`] if the message does not fit or a value is invalid.
    fn write_bare(&self, buffer: &mut [u8]) -> Result<usize, WriteError> {
        let mut writer = Writer::new(buffer, Self::MSG_TYPE);
        self.encode(&mut writer);
        writer.finish()
    }
}

/// An entry of a repeating group.
pub trait Entry<'a>: Copy + PartialEq + fmt::Debug {
    /// Tag of the number of entries.
    const COUNT: u32;
    /// Tag of the first field of every entry.
    const FIRST: u32;

    /// True if fields with this tag belong to an entry.
    fn has(tag: u32) -> bool;

    /// Decodes one entry, up to the next one or the end.
    ///
    /// # Errors
    /// The first field that is missing, duplicated or malformed.
    fn decode(fields: &mut Fields<'a>) -> Result<Self, FieldError>;

    /// Decodes every entry of the groups in this entry.
    ///
    /// # Errors
    /// As for [`Body::check`].
    fn check(&self) -> Result<(), FieldError>;

    /// Encodes the fields of the entry.
    fn encode(&self, writer: &mut Writer<'_>);
}

/// A repeating group, either received, with entries decoded on iteration, or to be sent.
#[derive(Clone, Copy)]
pub struct Group<'a, E>(Source<'a, E>);

#[derive(Clone, Copy)]
enum Source<'a, E> {
    Absent,
    Wire { fields: Fields<'a>, count: usize },
    Own(&'a [E]),
}

impl<'a, E: Entry<'a>> Group<'a, E> {
    /// Creates a group to send. Without entries, a count of 0 is sent.
    #[must_use]
    pub const fn of(entries: &'a [E]) -> Group<'a, E> {
        Group(Source::Own(entries))
    }

    /// Number of entries.
    #[must_use]
    pub const fn len(&self) -> usize {
        match self.0 {
            Source::Absent => 0,
            Source::Wire { count, .. } => count,
            Source::Own(entries) => entries.len(),
        }
    }

    /// True if there are no entries.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Iterates over the entries in order; ends after the first invalid one.
    #[inline]
    #[must_use]
    pub fn iter(&self) -> Entries<'a, E> {
        Entries(self.0)
    }

    /// Decodes every entry, including nested groups.
    ///
    /// # Errors
    /// As for [`Body::check`].
    pub fn check(&self) -> Result<(), FieldError> {
        self.iter().try_for_each(|entry| entry?.check())
    }

    /// Reads a group after its count, which is `field`.
    ///
    /// The last entry ends at the first field that belongs to the enclosing structure (`is_outer`) but not to
    /// entries; unknown fields are ignored. A nested group ends at the tag `stop`, the next outer entry.
    #[inline]
    fn read(
        field: Field<'a>,
        fields: &mut Fields<'a>,
        stop: Option<u32>,
        is_outer: fn(u32) -> bool,
    ) -> Result<Group<'a, E>, FieldError> {
        let wrong = |reason| field.error(reason);
        let said = usize::try_from(field.read::<u64>()?).unwrap_or(usize::MAX);
        let start = *fields;
        let mut count = 0;
        loop {
            let before = *fields;
            let Some(field) = fields.next() else { break };
            let tag = field?.tag;
            if stop == Some(tag) {
                *fields = before;
                break;
            }
            if tag == E::FIRST && count < said {
                count += 1;
            } else if count == 0 && said > 0 {
                return Err(wrong(SessionRejectReason::GROUP_ORDER));
            } else if tag == E::FIRST {
                return Err(wrong(SessionRejectReason::GROUP_COUNT));
            } else if count == said && (count == 0 || (is_outer(tag) && !E::has(tag))) {
                *fields = before;
                break;
            }
        }
        if count != said {
            return Err(wrong(SessionRejectReason::GROUP_COUNT));
        }
        let len = start.rest().len() - fields.rest().len();
        Ok(Group(Source::Wire { fields: Fields::new(&start.rest()[..len]), count }))
    }

    #[inline]
    pub(crate) fn write(&self, writer: &mut Writer<'_>) {
        if matches!(self.0, Source::Absent) {
            return;
        }
        writer.value(E::COUNT, self.len() as u64);
        for entry in self.iter().map_while(Result::ok) {
            entry.encode(writer);
        }
    }
}

impl<E> Default for Group<'_, E> {
    fn default() -> Self {
        Group(Source::Absent)
    }
}

impl<'a, E: Entry<'a>> PartialEq for Group<'a, E> {
    fn eq(&self, other: &Group<'a, E>) -> bool {
        self.iter().eq(other.iter())
    }
}

impl<'a, E: Entry<'a>> fmt::Debug for Group<'a, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

impl<'a, E: Entry<'a>> IntoIterator for Group<'a, E> {
    type Item = Result<E, FieldError>;
    type IntoIter = Entries<'a, E>;

    fn into_iter(self) -> Entries<'a, E> {
        self.iter()
    }
}

/// Iterator over the entries of a [`Group`].
#[derive(Clone)]
pub struct Entries<'a, E>(Source<'a, E>);

impl<'a, E: Entry<'a>> Iterator for Entries<'a, E> {
    type Item = Result<E, FieldError>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        match &mut self.0 {
            Source::Absent => None,
            Source::Own(entries) => {
                let (first, rest) = entries.split_first()?;
                *entries = rest;
                Some(Ok(*first))
            }
            Source::Wire { fields, .. } if fields.rest().is_empty() => None,
            Source::Wire { fields, .. } => {
                let entry = E::decode(fields);
                if entry.is_err() {
                    self.0 = Source::Absent;
                }
                Some(entry)
            }
        }
    }
}

/// Sets a member from a field that may occur only once.
#[inline]
pub(crate) fn set<'a, T: Value<'a>>(member: &mut Option<T>, field: Field<'a>) -> Result<(), FieldError> {
    if member.is_some() {
        return Err(field.error(SessionRejectReason::TAG_TWICE));
    }
    *member = Some(field.read()?);
    Ok(())
}

/// Sets a member from a group that may occur only once.
#[inline]
pub(crate) fn set_group<'a, E: Entry<'a>>(
    member: &mut Option<Group<'a, E>>,
    field: Field<'a>,
    fields: &mut Fields<'a>,
    stop: Option<u32>,
    is_outer: fn(u32) -> bool,
) -> Result<(), FieldError> {
    if member.is_some() {
        return Err(field.error(SessionRejectReason::TAG_TWICE));
    }
    *member = Some(Group::read(field, fields, stop, is_outer)?);
    Ok(())
}

/// Value of a required field.
#[inline]
pub(crate) fn required<T>(member: Option<T>, tag: u32) -> Result<T, FieldError> {
    member.ok_or(FieldError { tag, reason: SessionRejectReason::REQUIRED_TAG_MISSING })
}

/// Declares a structure of fields with its encoder and decoder; `message!` and `entry!` add their traits.
macro_rules! structure {
    (
        $(#[$meta:meta])* $name:ident<$lt:lifetime>
        { $($(#[$rmeta:meta])* $rname:ident: $rtype:ty = $rtag:ident,)* }
        { $($(#[$ometa:meta])* $oname:ident: $otype:ty = $otag:ident,)* }
        { $($(#[$gmeta:meta])* $gname:ident: $gtype:ident = $gtag:ident,)* }
        $($marker:ident)?
    ) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, Default, PartialEq)]
        pub struct $name<$lt> {
            $($(#[$rmeta])* pub $rname: $rtype,)*
            $($(#[$ometa])* pub $oname: Option<$otype>,)*
            $($(#[$gmeta])* pub $gname: $crate::Group<$lt, $gtype<$lt>>,)*
            $(
                /// Marker without data, because an entry without text borrows nothing.
                pub $marker: std::marker::PhantomData<&$lt str>,
            )?
        }

        impl<$lt> $name<$lt> {
            /// Decodes fields up to the end, or up to the second occurrence of the tag `stop`.
            #[inline]
            // The iterator is passed on to groups, and reset to the start of the next entry.
            #[allow(clippy::while_let_on_iterator)]
            fn decode_fields(
                fields: &mut $crate::Fields<$lt>,
                stop: Option<u32>,
            ) -> Result<Self, $crate::FieldError> {
                $(let mut $rname = None;)*
                $(let mut $oname = None;)*
                $(let mut $gname = None;)*
                let mut is_first = true;
                let mut before = *fields;
                while let Some(field) = fields.next() {
                    let field = field?;
                    match field.tag {
                        other if stop == Some(other) && !is_first => {
                            *fields = before;
                            break;
                        }
                        $($crate::tag::$rtag => $crate::body::set(&mut $rname, field)?,)*
                        $($crate::tag::$otag => $crate::body::set(&mut $oname, field)?,)*
                        $($crate::tag::$gtag => $crate::body::set_group(
                            &mut $gname, field, fields, stop, Self::has_own,
                        )?,)*
                        _ => {}
                    }
                    (is_first, before) = (false, *fields);
                }
                Ok($name {
                    $($rname: $crate::body::required($rname, $crate::tag::$rtag)?,)*
                    $($oname,)*
                    $($gname: $gname.unwrap_or_default(),)*
                    $($marker: std::marker::PhantomData,)?
                })
            }

            /// True for a field with this tag, excluding the entries of groups.
            #[inline]
            #[allow(dead_code, reason = "a message without groups does not ask")]
            fn has_own(tag: u32) -> bool {
                $(tag == $crate::tag::$rtag ||)*
                $(tag == $crate::tag::$otag ||)*
                $(tag == $crate::tag::$gtag ||)*
                false
            }

            fn check_fields(&self) -> Result<(), $crate::FieldError> {
                $(self.$gname.check()?;)*
                Ok(())
            }

            #[inline]
            fn encode_fields(&self, writer: &mut $crate::Writer<'_>) {
                $(writer.value($crate::tag::$rtag, self.$rname);)*
                $(if let Some(value) = self.$oname {
                    writer.value($crate::tag::$otag, value);
                })*
                $(self.$gname.write(writer);)*
            }
        }
    };
}

/// Declares a message.
macro_rules! message {
    (
        $(#[$meta:meta])* $name:ident<$lt:lifetime> = $msg_type:ident
        $required:tt $optional:tt $groups:tt
    ) => {
        $crate::body::structure! { $(#[$meta])* $name<$lt> $required $optional $groups }

        impl<$lt> $crate::Body<$lt> for $name<$lt> {
            const MSG_TYPE: $crate::MsgType = $crate::MsgType::$msg_type;

            #[inline]
            fn decode(message: &$crate::Message<$lt>) -> Result<Self, $crate::FieldError> {
                $name::decode_fields(&mut message.fields(), None)
            }

            fn check(&self) -> Result<(), $crate::FieldError> {
                self.check_fields()
            }

            #[inline]
            fn encode(&self, writer: &mut $crate::Writer<'_>) {
                self.encode_fields(writer);
            }
        }
    };
}

/// Declares an entry of a group: its count, its first field, and its nested groups.
macro_rules! entry {
    (
        $(#[$meta:meta])* $name:ident<$lt:lifetime> in $count:ident from $first:ident
        { $($(#[$rmeta:meta])* $rname:ident: $rtype:ty = $rtag:ident,)* }
        { $($(#[$ometa:meta])* $oname:ident: $otype:ty = $otag:ident,)* }
        { $($(#[$gmeta:meta])* $gname:ident: $gtype:ident = $gtag:ident,)* }
        $($marker:ident)?
    ) => {
        $crate::body::structure! {
            $(#[$meta])* $name<$lt>
            { $($(#[$rmeta])* $rname: $rtype = $rtag,)* }
            { $($(#[$ometa])* $oname: $otype = $otag,)* }
            { $($(#[$gmeta])* $gname: $gtype = $gtag,)* }
            $($marker)?
        }

        impl<$lt> $crate::Entry<$lt> for $name<$lt> {
            const COUNT: u32 = $crate::tag::$count;
            const FIRST: u32 = $crate::tag::$first;

            #[inline]
            fn has(tag: u32) -> bool {
                $(<$gtype<'_> as $crate::Entry<'_>>::has(tag) ||)*
                Self::has_own(tag)
            }

            #[inline]
            fn decode(fields: &mut $crate::Fields<$lt>) -> Result<Self, $crate::FieldError> {
                $name::decode_fields(fields, Some($crate::tag::$first))
            }

            fn check(&self) -> Result<(), $crate::FieldError> {
                self.check_fields()
            }

            #[inline]
            fn encode(&self, writer: &mut $crate::Writer<'_>) {
                self.encode_fields(writer);
            }
        }
    };
}

/// Declares single-character codes as field values. Unknown codes are preserved.
macro_rules! codes {
    ($( $(#[$meta:meta])* $name:ident { $($codes:tt)+ } )+) => {
        tickpath_wire::codes! { $( $(#[$meta])* #[derive(Default)] $name { $($codes)+ } )+ }

        $( impl $crate::Value<'_> for $name {
            #[inline]
            fn read(value: &[u8]) -> Option<$name> {
                match value {
                    [code] => Some($name(*code)),
                    _ => None,
                }
            }

            #[inline]
            fn write(&self, tag: u32, writer: &mut $crate::Writer<'_>) {
                // The code of a default structure is no character, so it writes an empty value.
                writer.field(tag, if self.0 == 0 { &[] } else { std::slice::from_ref(&self.0) });
            }
        } )+
    };
}

pub(crate) use {codes, entry, message, structure};
