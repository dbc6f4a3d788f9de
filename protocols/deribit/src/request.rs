//! The venue's side of the envelope. Requests are read, and rejected as by the real venue; replies and
//! notifications are written.

use crate::envelope::{Id, ServerTime};
use crate::error_code::ErrorCode;
use crate::field::{Field, separate, write_member};
use crate::method::Method;
use crate::scan::{ScanError, ScanErrorKind, Scanner, Value};
use crate::text::Text;

/// Maximum length of a request in bytes.
pub const REQUEST_LEN_MAX: usize = 32 * 1024;

/// A client's request.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Request<'a> {
    /// Id to echo.
    pub id: Id<'a>,
    /// Method of the request.
    pub method: Method,
    /// True for an HTTP query.
    pub is_query: bool,
    /// Params object; `None` if absent.
    params: Option<Value<'a>>,
}

/// Rejection of a request; [`write_refusal`] writes the reply.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Refusal<'a> {
    /// Id of the request, if it could be read.
    pub id: Option<Id<'a>>,
    /// Error code.
    pub code: ErrorCode,
    /// Further explanation; may be empty.
    pub reason: &'static str,
    /// Parameter concerned; may be empty.
    pub param: &'static str,
}

impl<'a> Refusal<'a> {
    /// Creates a rejection with only this code.
    #[must_use]
    pub const fn new(id: Id<'a>, code: ErrorCode) -> Refusal<'a> {
        Refusal { id: Some(id), code, reason: "", param: "" }
    }
}

impl<'a> Request<'a> {
    /// Parses a client's frame.
    ///
    /// Errors: -32600 for a frame over [`REQUEST_LEN_MAX`], an array of requests, or a missing id; -32700 for
    /// invalid JSON; -32601 for an unknown method; -32602 for params that are not an object.
    ///
    /// # Errors
    /// The [`Refusal`] to send.
    pub fn parse(frame: &'a [u8]) -> Result<Request<'a>, Refusal<'a>> {
        if frame.len() > REQUEST_LEN_MAX {
            return Err(refusal(None, ErrorCode::RequestTooLarge, ""));
        }
        let members = read_members(frame).map_err(|error| match error.kind {
            ScanErrorKind::TooDeep => refusal(None, ErrorCode::RequestTooLarge, "nested too deeply"),
            _ => refusal(None, ErrorCode::ParseError, ""),
        })?;
        let Some(members) = members else {
            return Err(refusal(
                None,
                ErrorCode::InvalidRequest,
                "must be one object: batches are not supported",
            ));
        };
        let id: Option<Id<'a>> = members.id.and_then(|id| id.parse().ok());
        let Some(id) = id else {
            return Err(refusal(
                None,
                ErrorCode::InvalidRequest,
                "must have an id, a whole number or a string",
            ));
        };
        let method = members.method.and_then(|method| method.parse::<Text<'_>>().ok());
        let Some(method) = method.and_then(Method::from_text) else {
            return Err(refusal(Some(id), ErrorCode::MethodNotFound, ""));
        };
        let params = members.params.filter(|params| !params.is_null());
        if params.is_some_and(|params| !params.text().starts_with('{')) {
            return Err(refusal(Some(id), ErrorCode::InvalidParams, "params must be an object"));
        }
        Ok(Request { id, method, is_query: false, params })
    }

    /// Parses an HTTP query, converted to a request whose params are texts, or lists for JSON lists. The
    /// method determines their types: `60` can be a number or a text.
    ///
    /// # Errors
    /// As for [`parse`](Request::parse).
    pub fn parse_query(frame: &'a [u8]) -> Result<Request<'a>, Refusal<'a>> {
        let request = Request::parse(frame)?;
        Ok(Request { params: request.params.map(Value::of_query), is_query: true, ..request })
    }

    /// Decodes the params of the method. Unknown text codes are rejected.
    ///
    /// # Errors
    /// [`Refusal`] with -32000 if params are absent but required, otherwise with -32602, the reason and the
    /// parameter.
    pub fn params<T: Field<'a>>(&self) -> Result<T, Refusal<'a>> {
        let Some(params) = self.params else {
            return T::read(&mut Scanner::new("{}"))
                .map_err(|_| Refusal::new(self.id, ErrorCode::MissingParams));
        };
        params.parse_strict().map_err(|error| self.refuse_param(error))
    }

    fn refuse_param(&self, error: ScanError) -> Refusal<'a> {
        let reason = match error.kind {
            ScanErrorKind::Missing => "value required",
            ScanErrorKind::WrongType => "value has the wrong type",
            ScanErrorKind::UnknownValue => "value is not one of those allowed",
            ScanErrorKind::NumberRange => "value is out of range or has too many digits",
            _ => "value is not valid",
        };
        Refusal { id: Some(self.id), code: ErrorCode::InvalidParams, reason, param: error.member }
    }
}

const fn refusal<'a>(id: Option<Id<'a>>, code: ErrorCode, reason: &'static str) -> Refusal<'a> {
    Refusal { id, code, reason, param: "" }
}

#[derive(Default)]
struct Members<'a> {
    id: Option<Value<'a>>,
    method: Option<Value<'a>>,
    params: Option<Value<'a>>,
}

/// Reads the members of a frame and validates all of it; `None` if it is JSON but not an object.
fn read_members(frame: &[u8]) -> Result<Option<Members<'_>>, ScanError> {
    let mut scanner = Scanner::from_bytes(frame)?;
    let mut members = Members::default();
    if scanner.peek() != Some(b'{') {
        scanner.skip()?;
        scanner.finish()?;
        return Ok(None);
    }
    scanner.open_object()?;
    while let Some(key) = scanner.next_key()? {
        let value = scanner.value()?;
        match key {
            "id" => members.id = Some(value),
            "method" => members.method = Some(value),
            "params" => members.params = Some(value),
            _ => {}
        }
    }
    scanner.finish()?;
    Ok(Some(members))
}

/// Appends the reply to a successful request.
pub fn write_result<'a>(
    id: Id<'_>,
    result: &impl Field<'a>,
    server_time: ServerTime,
    testnet: bool,
    out: &mut Vec<u8>,
) {
    write_id(Some(id), out);
    out.extend_from_slice(b",\"result\":");
    result.write(out);
    write_end(server_time, testnet, out);
}

/// Appends the reply to a rejected request.
pub fn write_refusal(refusal: &Refusal<'_>, server_time: ServerTime, testnet: bool, out: &mut Vec<u8>) {
    write_error(refusal.id, refusal.code, refusal.code.message(), refusal.reason, refusal.param, out);
    write_end(server_time, testnet, out);
}

/// Appends the reply to a rejected request with a limit in its message, such as `price_too_high 43666.5`.
pub fn write_refusal_with_limit(
    refusal: &Refusal<'_>,
    limit: crate::number::Decimal,
    server_time: ServerTime,
    testnet: bool,
    out: &mut Vec<u8>,
) {
    let message = format!("{} {limit}", refusal.code.message());
    write_error(refusal.id, refusal.code, &message, refusal.reason, refusal.param, out);
    write_end(server_time, testnet, out);
}

fn write_error(
    id: Option<Id<'_>>,
    code: ErrorCode,
    message: &str,
    reason: &str,
    param: &str,
    out: &mut Vec<u8>,
) {
    write_id(id, out);
    out.extend_from_slice(b",\"error\":{");
    write_member("code", &code.code(), out);
    write_member("message", &Text::new(message), out);
    if !reason.is_empty() || !param.is_empty() {
        out.extend_from_slice(b",\"data\":{");
        let text = |text| Some(Text::new(text)).filter(|text| !text.is_empty());
        write_member("reason", &text(reason), out);
        write_member("param", &text(param), out);
        out.push(b'}');
    }
    out.push(b'}');
}

fn write_id(id: Option<Id<'_>>, out: &mut Vec<u8>) {
    out.extend_from_slice(b"{\"jsonrpc\":\"2.0\",\"id\":");
    match id {
        Some(id) => id.write(out),
        None => out.extend_from_slice(b"null"),
    }
}

fn write_end(server_time: ServerTime, testnet: bool, out: &mut Vec<u8>) {
    separate(out);
    out.extend_from_slice(b"\"usIn\":");
    server_time.us_in.write(out);
    write_member("usOut", &server_time.us_out, out);
    write_member("usDiff", &server_time.us_out.saturating_sub(server_time.us_in), out);
    write_member("testnet", &testnet, out);
    out.push(b'}');
}

/// Appends data of a channel. `label` is that of the client's subscription.
pub fn write_notification<'a>(channel: &str, data: &impl Field<'a>, label: Option<&str>, out: &mut Vec<u8>) {
    out.extend_from_slice(b"{\"jsonrpc\":\"2.0\",\"method\":\"subscription\",\"params\":{");
    write_member("channel", &Text::new(channel), out);
    separate(out);
    out.extend_from_slice(b"\"data\":");
    data.write(out);
    write_member("label", &label.map(Text::new), out);
    out.extend_from_slice(b"}}");
}

/// Appends a heartbeat.
pub fn write_heartbeat(out: &mut Vec<u8>) {
    out.extend_from_slice(
        b"{\"jsonrpc\":\"2.0\",\"method\":\"heartbeat\",\"params\":{\"type\":\"heartbeat\"}}",
    );
}

/// Appends a test request.
pub fn write_test_request(out: &mut Vec<u8>) {
    out.extend_from_slice(
        b"{\"jsonrpc\":\"2.0\",\"method\":\"heartbeat\",\"params\":{\"type\":\"test_request\"}}",
    );
}
