//! Messages as structures: how fields become members, and groups become entries.

use std::fmt;

use crate::error::{FieldError, SessionRejectReason, WriteError};
use crate::field::{Field, Fields, Value};
use crate::message::{Message, MsgType};
use crate::writer::Writer;

/// A message as a structure: its body, without header and trailer.
pub trait Body<'a>: Sized {
    /// Its type, tag 35.
    const MSG_TYPE: MsgType;

    /// Reads the fields of a message; unknown ones do not matter. The type is not looked at.
    ///
    /// # Errors
    /// The first field that is missing, comes twice or is written wrongly. Entries of groups are read as they are asked
    /// for.
    fn decode(message: &Message<'a>) -> Result<Self, FieldError>;

    /// Reads every entry of every group: for who takes a message as a whole or not at all.
    ///
    /// # Errors
    /// The first field of an entry that is missing, comes twice or is written wrongly.
    fn check(&self) -> Result<(), FieldError>;

    /// Writes the fields.
    fn encode(&self, writer: &mut Writer<'_>);

    /// Writes the fields as a message without a header, for tests and tools; sessions add the header.
    ///
    /// # Errors
    /// [`WriteError`] when it does not fit or a value is wrong.
    fn write_bare(&self, buffer: &mut [u8]) -> Result<usize, WriteError> {
        let mut writer = Writer::new(buffer, Self::MSG_TYPE);
        self.encode(&mut writer);
        writer.finish()
    }
}

/// An entry of a repeating group.
pub trait Entry<'a>: Copy + PartialEq + fmt::Debug {
    /// The tag that says how many entries there are.
    const COUNT: u32;
    /// The tag that every entry begins with.
    const FIRST: u32;

    /// Whether fields of this tag belong to an entry.
    fn has(tag: u32) -> bool;

    /// Reads one entry, up to the next one or the end.
    ///
    /// # Errors
    /// The first field that is missing, comes twice or is written wrongly.
    fn decode(fields: &mut Fields<'a>) -> Result<Self, FieldError>;

    /// Reads every entry of the groups in this entry.
    ///
    /// # Errors
    /// As [`Body::check`].
    fn check(&self) -> Result<(), FieldError>;

    /// Writes the fields of the entry.
    fn encode(&self, writer: &mut Writer<'_>);
}

/// A repeating group: received, and then its entries are read as they are asked for, or to be sent.
#[derive(Clone, Copy)]
pub struct Group<'a, E>(Source<'a, E>);

#[derive(Clone, Copy)]
enum Source<'a, E> {
    Absent,
    Wire { fields: Fields<'a>, count: usize },
    Own(&'a [E]),
}

impl<'a, E: Entry<'a>> Group<'a, E> {
    /// A group to be sent. Without entries its count is sent, as 0.
    #[must_use]
    pub const fn of(entries: &'a [E]) -> Group<'a, E> {
        Group(Source::Own(entries))
    }

    /// How many entries there are.
    #[must_use]
    pub const fn len(&self) -> usize {
        match self.0 {
            Source::Absent => 0,
            Source::Wire { count, .. } => count,
            Source::Own(entries) => entries.len(),
        }
    }

    /// True without entries.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The entries in order; the first that is wrong is the last that is given.
    #[inline]
    #[must_use]
    pub fn iter(&self) -> Entries<'a, E> {
        Entries(self.0)
    }

    /// Reads every entry, and those of the groups in them.
    ///
    /// # Errors
    /// As [`Body::check`].
    pub fn check(&self) -> Result<(), FieldError> {
        self.iter().try_for_each(|entry| entry?.check())
    }

    /// Reads a group behind its count, which `field` is.
    ///
    /// The last entry ends at the first field that what holds the group has (`is_outer`) and an entry has not: unknown
    /// fields do not matter. A group in an entry ends where the next of those begins, at the tag `stop`.
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

/// The entries of a [`Group`].
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

/// Fills a member from a field that may come once.
#[inline]
pub(crate) fn set<'a, T: Value<'a>>(member: &mut Option<T>, field: Field<'a>) -> Result<(), FieldError> {
    if member.is_some() {
        return Err(field.error(SessionRejectReason::TAG_TWICE));
    }
    *member = Some(field.read()?);
    Ok(())
}

/// Fills a member from a group that may come once.
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

/// A field that has to be there.
#[inline]
pub(crate) fn required<T>(member: Option<T>, tag: u32) -> Result<T, FieldError> {
    member.ok_or(FieldError { tag, reason: SessionRejectReason::REQUIRED_TAG_MISSING })
}

/// Declares a structure of fields and how it is read and written; `message!` and `entry!` add what they are.
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
                /// Nothing: an entry without text borrows from nobody.
                pub $marker: std::marker::PhantomData<&$lt str>,
            )?
        }

        impl<$lt> $name<$lt> {
            /// Reads fields up to the end, or up to the second of the tag `stop`.
            #[inline]
            // The iterator is handed on to groups, and set back where the next entry begins.
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

            /// Whether it has a field of this tag, those of its groups' entries left out.
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

/// Declares an entry of a group: its count, its first field, and whose entries lie inside.
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

/// Declares codes of one character, which are values of fields. Unknown codes are kept as they came.
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
                // The code of a structure that nobody filled is no character.
                writer.field(tag, if self.0 == 0 { &[] } else { std::slice::from_ref(&self.0) });
            }
        } )+
    };
}

pub(crate) use {codes, entry, message, structure};
