//! JSON results without a type in the protocol crate, and access to params.

use tickpath_deribit::field::Field;
use tickpath_deribit::number::Decimal;
use tickpath_deribit::scan::{ScanError, Scanner, Value};

use crate::fault::Fault;

/// A value that is already encoded.
pub(crate) struct Json(pub(crate) Vec<u8>);

impl<'a> Field<'a> for Json {
    fn read(scanner: &mut Scanner<'a>) -> Result<Self, ScanError> {
        scanner.value().map(|value| Json(value.text().as_bytes().to_vec()))
    }

    fn write(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.0);
    }
}

/// Encodes a value.
pub(crate) fn json<'a>(value: &impl Field<'a>) -> Vec<u8> {
    let mut out = Vec::new();
    value.write(&mut out);
    out
}

/// Writes a list; `write` writes one element per call.
pub(crate) fn list<T>(items: impl IntoIterator<Item = T>, mut write: impl FnMut(T, &mut Vec<u8>)) -> Vec<u8> {
    let mut out = vec![b'['];
    for item in items {
        if out.len() > 1 {
            out.push(b',');
        }
        write(item, &mut out);
    }
    out.push(b']');
    out
}

/// An object under construction.
pub(crate) struct Object(Vec<u8>);

impl Object {
    pub(crate) fn new() -> Object {
        Object(vec![b'{'])
    }

    pub(crate) fn with<'a>(mut self, name: &str, value: impl Field<'a>) -> Object {
        if !value.is_absent() {
            if self.0.len() > 1 {
                self.0.push(b',');
            }
            self.0.push(b'"');
            self.0.extend_from_slice(name.as_bytes());
            self.0.extend_from_slice(b"\":");
            value.write(&mut self.0);
        }
        self
    }

    pub(crate) fn end(mut self) -> Vec<u8> {
        self.0.push(b'}');
        self.0
    }

    pub(crate) fn json(self) -> Json {
        Json(self.end())
    }
}

/// Returns a member of an object; none if it is absent or null.
pub(crate) fn member<'a>(object: &Value<'a>, name: &str) -> Option<Value<'a>> {
    let mut scanner = object.scanner();
    scanner.open_object().ok()?;
    while let Ok(Some(key)) = scanner.next_key() {
        let value = scanner.value().ok()?;
        if key == name {
            return Some(value).filter(|value| !value.is_null());
        }
    }
    None
}

/// Returns a member of a type; none if it is absent or of another type.
pub(crate) fn get<'a, T: Field<'a>>(object: &Value<'a>, name: &str) -> Option<T> {
    member(object, name)?.parse().ok()
}

/// Returns a param of a type; none if it is absent or null.
///
/// # Errors
/// `invalid_params` naming the param if it has another type.
pub(crate) fn param<'a, T: Field<'a>>(params: &Value<'a>, name: &'static str) -> Result<Option<T>, Fault> {
    let Some(value) = member(params, name) else { return Ok(None) };
    value.parse_strict().map(Some).map_err(|_| Fault::param(name, "value is of the wrong type"))
}

/// Returns an un-escaped text param; none if it is absent or null.
///
/// # Errors
/// `invalid_params` naming the param if it is no text.
pub(crate) fn text_param(params: &Value<'_>, name: &'static str) -> Result<Option<String>, Fault> {
    let text: Option<tickpath_deribit::text::Text<'_>> = param(params, name)?;
    Ok(text.map(|text| text.to_cow().into_owned()))
}

/// Returns an un-escaped text member.
pub(crate) fn text_of(object: &Value<'_>, name: &str) -> Option<String> {
    get::<tickpath_deribit::text::Text<'_>>(object, name).map(|text| text.to_cow().into_owned())
}

/// Returns a decimal without fraction.
pub(crate) fn whole(value: u64) -> Decimal {
    Decimal::from(i64::try_from(value).unwrap_or(i64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn objects_are_written_and_members_found() {
        let object = Object::new()
            .with("a", 1_u64)
            .with("b", true)
            .with("c", Json(list([1_u64, 2], |n, out| n.write(out))));
        let text = String::from_utf8(object.end()).unwrap();
        assert_eq!(text, r#"{"a":1,"b":true,"c":[1,2]}"#);
        let value = Scanner::new(&text).value().unwrap();
        assert_eq!((get::<u64>(&value, "a"), get::<u64>(&value, "b")), (Some(1), None));
        assert_eq!(member(&value, "c").unwrap().text(), "[1,2]");
        assert!(member(&value, "d").is_none());
    }
}
