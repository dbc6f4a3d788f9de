//! HTTP/1.1 requests and responses of a server.

use std::borrow::Cow;
use std::io::Write;
use std::ops::Range;

use arrayvec::ArrayVec;
use tungstenite::handshake::derive_accept_key;

/// Upper bound of the number of headers; a request with more is answered with 431.
pub(crate) const HEADERS_MAX: usize = 64;

/// The head of a request, as ranges of the received bytes.
#[derive(Clone, Debug, Default)]
pub(crate) struct Head {
    method: Range<usize>,
    target: Range<usize>,
    headers: ArrayVec<(Range<usize>, Range<usize>), HEADERS_MAX>,
    /// Length of the head, in bytes.
    pub(crate) len: usize,
    /// Length of the body, in bytes.
    pub(crate) body_len: usize,
    /// Whether the connection is kept after the answer.
    pub(crate) is_kept: bool,
    /// Whether the client waits for `100 Continue` before it sends the body.
    pub(crate) expects_continue: bool,
    /// Whether the request is a WebSocket upgrade.
    pub(crate) is_upgrade: bool,
}

/// The fault of a request; each is answered with its own status.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BadRequest {
    /// Not HTTP/1.x, or not a valid request.
    Malformed,
    /// Head or number of headers above the limit.
    HeadTooLarge,
    /// Body above the limit.
    BodyTooLarge,
    /// A body without a stated length: chunked bodies are not accepted.
    LengthRequired,
    /// A WebSocket upgrade that is incomplete or not version 13.
    BadUpgrade,
}

impl BadRequest {
    pub(crate) fn response(self) -> HttpResponse<'static> {
        let (status, text): (u16, &'static [u8]) = match self {
            BadRequest::Malformed => (400, b"not an HTTP/1.1 request\n"),
            BadRequest::HeadTooLarge => (431, b"the head of the request is too large\n"),
            BadRequest::BodyTooLarge => (413, b"the body of the request is too large\n"),
            BadRequest::LengthRequired => (411, b"state the length of the body in Content-Length\n"),
            BadRequest::BadUpgrade => (426, b"a WebSocket is opened with version 13\n"),
        };
        let headers: &[(&str, &str)] = match self {
            BadRequest::BadUpgrade => &[("Sec-WebSocket-Version", "13")],
            _ => &[],
        };
        HttpResponse { status, content_type: "text/plain", headers, body: text }
    }
}

/// Parses the head of a request; `None` while it is incomplete.
pub(crate) fn parse_head(bytes: &[u8], head_max: usize) -> Result<Option<Head>, BadRequest> {
    let mut headers = [httparse::EMPTY_HEADER; HEADERS_MAX];
    let mut request = httparse::Request::new(&mut headers);
    let seen = &bytes[..bytes.len().min(head_max)];
    let len = match request.parse(seen) {
        Ok(httparse::Status::Complete(len)) => len,
        Ok(httparse::Status::Partial) if bytes.len() >= head_max => return Err(BadRequest::HeadTooLarge),
        Ok(httparse::Status::Partial) => return Ok(None),
        Err(httparse::Error::TooManyHeaders) => return Err(BadRequest::HeadTooLarge),
        Err(_) => return Err(BadRequest::Malformed),
    };
    let place = |part: &[u8]| {
        let start = part.as_ptr() as usize - bytes.as_ptr() as usize;
        start..start + part.len()
    };
    let mut head = Head {
        method: place(request.method.unwrap_or_default().as_bytes()),
        target: place(request.path.unwrap_or_default().as_bytes()),
        headers: ArrayVec::new(),
        len,
        body_len: 0,
        is_kept: request.version == Some(1),
        expects_continue: false,
        is_upgrade: false,
    };
    head.headers.extend(request.headers.iter().map(|header| {
        (place(header.name.as_bytes()), if header.value.is_empty() { 0..0 } else { place(header.value) })
    }));
    head.read_headers(bytes)?;
    Ok(Some(head))
}

impl Head {
    fn read_headers(&mut self, bytes: &[u8]) -> Result<(), BadRequest> {
        let mut length = None;
        let (mut is_upgrade, mut names_websocket) = (false, false);
        for (name, value) in &self.headers {
            let (name, value) = (&bytes[name.clone()], &bytes[value.clone()]);
            if name.eq_ignore_ascii_case(b"content-length") {
                let value = parse_length(value).ok_or(BadRequest::Malformed)?;
                // Two different lengths allow request smuggling past a proxy (RFC 9112, 6.3).
                if length.replace(value).is_some_and(|before| before != value) {
                    return Err(BadRequest::Malformed);
                }
            } else if name.eq_ignore_ascii_case(b"transfer-encoding") {
                return Err(BadRequest::LengthRequired);
            } else if name.eq_ignore_ascii_case(b"connection") {
                is_upgrade |= has_token(value, b"upgrade");
                self.is_kept =
                    (self.is_kept || has_token(value, b"keep-alive")) && !has_token(value, b"close");
            } else if name.eq_ignore_ascii_case(b"upgrade") {
                names_websocket |= has_token(value, b"websocket");
            } else if name.eq_ignore_ascii_case(b"expect") {
                self.expects_continue = value.eq_ignore_ascii_case(b"100-continue");
            }
        }
        self.body_len = length.unwrap_or(0);
        self.is_upgrade = is_upgrade && names_websocket;
        if self.is_upgrade && !self.is_whole_upgrade(bytes) {
            return Err(BadRequest::BadUpgrade);
        }
        Ok(())
    }

    /// Whether the upgrade is valid (RFC 6455, 4.2.1).
    fn is_whole_upgrade(&self, bytes: &[u8]) -> bool {
        let request = HttpRequest { bytes, head: self, body: &[] };
        // 16 bytes in base64.
        let has_key = request
            .header("sec-websocket-key")
            .is_some_and(|key| key.len() == 24 && key.ends_with("==") && key.is_ascii());
        request.method() == "GET"
            && request.header("sec-websocket-version") == Some("13")
            && has_key
            && self.body_len == 0
    }
}

fn parse_length(value: &[u8]) -> Option<usize> {
    let text = std::str::from_utf8(value).ok()?.trim_matches([' ', '\t']);
    // `parse` would accept a sign.
    if text.is_empty() || !text.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    text.parse().ok()
}

fn has_token(value: &[u8], token: &[u8]) -> bool {
    value.split(|byte| *byte == b',').any(|part| part.trim_ascii().eq_ignore_ascii_case(token))
}

/// A complete HTTP request.
#[derive(Clone, Copy, Debug)]
pub struct HttpRequest<'a> {
    pub(crate) bytes: &'a [u8],
    pub(crate) head: &'a Head,
    pub(crate) body: &'a [u8],
}

impl<'a> HttpRequest<'a> {
    /// The method: `GET`, `POST`, ...
    #[must_use]
    pub fn method(&self) -> &'a str {
        self.text(&self.head.method)
    }

    /// The path without the query, not decoded.
    #[must_use]
    pub fn path(&self) -> &'a str {
        self.target().split_once('?').map_or(self.target(), |(path, _)| path)
    }

    /// The query after the `?`, not decoded; empty if there is none.
    #[must_use]
    pub fn query(&self) -> &'a str {
        self.target().split_once('?').map_or("", |(_, query)| query)
    }

    /// Path and query, not decoded.
    #[must_use]
    pub fn target(&self) -> &'a str {
        self.text(&self.head.target)
    }

    /// The names and values of the query in order, decoded.
    pub fn query_pairs(&self) -> impl Iterator<Item = (Cow<'a, str>, Cow<'a, str>)> + use<'a> {
        self.query().split('&').filter(|pair| !pair.is_empty()).map(|pair| {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            (decode(name), decode(value))
        })
    }

    /// The first header of that name, in any case; `None` also if its value is not text.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&'a str> {
        self.headers().find(|(other, _)| other.eq_ignore_ascii_case(name)).map(|(_, value)| value)
    }

    /// All headers whose values are text, in order.
    pub fn headers(&self) -> impl Iterator<Item = (&'a str, &'a str)> + use<'a> {
        let bytes = self.bytes;
        self.head.headers.iter().filter_map(move |(name, value)| {
            let name = std::str::from_utf8(&bytes[name.clone()]).ok()?;
            Some((name, std::str::from_utf8(&bytes[value.clone()]).ok()?))
        })
    }

    /// The body; empty if there is none.
    #[must_use]
    pub fn body(&self) -> &'a [u8] {
        self.body
    }

    fn text(&self, place: &Range<usize>) -> &'a str {
        std::str::from_utf8(&self.bytes[place.clone()]).unwrap_or_default()
    }
}

/// Decodes `%41` and `+` of a query to `A` and a space. Invalid UTF-8 becomes replacement characters.
fn decode(text: &str) -> Cow<'_, str> {
    if !text.bytes().any(|byte| matches!(byte, b'%' | b'+')) {
        return Cow::Borrowed(text);
    }
    let bytes = text.as_bytes();
    let digit = |at: usize| bytes.get(at).and_then(|byte| (*byte as char).to_digit(16));
    let mut decoded = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        match (bytes[at], digit(at + 1), digit(at + 2)) {
            (b'%', Some(high), Some(low)) => {
                decoded.push((high * 16 + low) as u8);
                at += 2;
            }
            (b'+', ..) => decoded.push(b' '),
            (byte, ..) => decoded.push(byte),
        }
        at += 1;
    }
    Cow::Owned(String::from_utf8_lossy(&decoded).into_owned())
}

/// An HTTP response.
#[derive(Clone, Copy, Debug)]
pub struct HttpResponse<'a> {
    /// The status: 200, 400, ...
    pub status: u16,
    /// The type of the body, e.g. `application/json`.
    pub content_type: &'a str,
    /// Further headers.
    pub headers: &'a [(&'a str, &'a str)],
    /// The body.
    pub body: &'a [u8],
}

impl<'a> HttpResponse<'a> {
    /// A JSON response with a status.
    #[must_use]
    pub fn json(status: u16, body: &'a [u8]) -> HttpResponse<'a> {
        HttpResponse { status, content_type: "application/json", headers: &[], body }
    }

    /// Writes head and body; a `HEAD` request gets only the head.
    pub(crate) fn write(&self, is_kept: bool, with_body: bool, out: &mut Vec<u8>) {
        let (status, reason) = (self.status, reason(self.status));
        let connection = if is_kept { "keep-alive" } else { "close" };
        let (content_type, len) = (self.content_type, self.body.len());
        // Writing to memory cannot fail.
        let _ = write!(
            out,
            "HTTP/1.1 {status} {reason}\r\nContent-Type: {content_type}\r\nContent-Length: {len}\r\n\
             Connection: {connection}\r\n"
        );
        for (name, value) in self.headers {
            let _ = write!(out, "{name}: {value}\r\n");
        }
        out.extend_from_slice(b"\r\n");
        if with_body {
            out.extend_from_slice(self.body);
        }
    }
}

/// Writes the response that accepts an upgrade.
pub(crate) fn write_upgrade(request: &HttpRequest<'_>, out: &mut Vec<u8>) {
    let key = request.header("sec-websocket-key").unwrap_or_default();
    let accept = derive_accept_key(key.as_bytes());
    let _ = write!(
        out,
        "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
         Sec-WebSocket-Accept: {accept}\r\n\r\n"
    );
}

/// The reason phrases of RFC 9110, 15, for the statuses in use.
fn reason(status: u16) -> &'static str {
    match status {
        200 => "OK",
        204 => "No Content",
        400 => "Bad Request",
        401 => "Unauthorized",
        403 => "Forbidden",
        404 => "Not Found",
        405 => "Method Not Allowed",
        408 => "Request Timeout",
        411 => "Length Required",
        413 => "Content Too Large",
        426 => "Upgrade Required",
        429 => "Too Many Requests",
        431 => "Request Header Fields Too Large",
        500 => "Internal Server Error",
        503 => "Service Unavailable",
        _ => "",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with_request<T>(text: &str, read: impl FnOnce(HttpRequest<'_>) -> T) -> T {
        let head = parse_head(text.as_bytes(), 1_000).unwrap().unwrap();
        let body = &text.as_bytes()[head.len..];
        read(HttpRequest { bytes: text.as_bytes(), head: &head, body })
    }

    #[test]
    fn a_request_is_read_whole() {
        let text = "POST /api/v2/public/auth?grant_type=client%5Fcredentials&x=a+b&&y HTTP/1.1\r\nHost: a\r\n\
                    Content-Length: 2\r\nX-Empty:\r\n\r\n{}";
        with_request(text, |request| {
            assert_eq!((request.method(), request.path()), ("POST", "/api/v2/public/auth"));
            assert_eq!(request.header("HOST"), Some("a"));
            assert_eq!(request.header("x-empty"), Some(""));
            assert_eq!(request.header("missing"), None);
            assert_eq!(request.body(), b"{}");
            let pairs: Vec<_> = request.query_pairs().collect();
            let pairs: Vec<_> = pairs.iter().map(|(name, value)| (&**name, &**value)).collect();
            assert_eq!(pairs, [("grant_type", "client_credentials"), ("x", "a b"), ("y", "")]);
        });
    }

    #[test]
    fn every_truncation_of_a_head_waits_for_more() {
        let text = b"GET /a?b=c HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";
        for end in 0..text.len() {
            assert!(parse_head(&text[..end], 1_000).unwrap().is_none(), "{end}");
        }
        let head = parse_head(text, 1_000).unwrap().unwrap();
        assert_eq!((head.len, head.body_len, head.is_kept), (text.len(), 0, false));
        assert_eq!(parse_head(text, text.len()).unwrap().unwrap().len, text.len());
        assert_eq!(parse_head(text, text.len() - 1).unwrap_err(), BadRequest::HeadTooLarge);
    }

    #[test]
    fn bad_requests_are_told_apart() {
        let many = "X: y\r\n".repeat(HEADERS_MAX + 1);
        let upgrade = "GET / HTTP/1.1\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n";
        for (text, error) in [
            ("\0\r\n\r\n".to_owned(), BadRequest::Malformed),
            ("GET / HTTP/2.7\r\n\r\n".to_owned(), BadRequest::Malformed),
            ("POST / HTTP/1.1\r\nContent-Length: -1\r\n\r\n".to_owned(), BadRequest::Malformed),
            (
                "POST / HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n".to_owned(),
                BadRequest::Malformed,
            ),
            ("POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n".to_owned(), BadRequest::LengthRequired),
            (format!("GET / HTTP/1.1\r\n{many}\r\n"), BadRequest::HeadTooLarge),
            (format!("{upgrade}\r\n"), BadRequest::BadUpgrade),
            (
                format!(
                    "{upgrade}Sec-WebSocket-Version: 8\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n"
                ),
                BadRequest::BadUpgrade,
            ),
        ] {
            assert_eq!(parse_head(text.as_bytes(), 10_000).unwrap_err(), error, "{text}");
        }
    }

    #[test]
    fn queries_are_decoded_whatever_they_hold() {
        for (text, decoded) in
            [("", ""), ("%", "%"), ("%4", "%4"), ("%zz", "%zz"), ("%41%4a", "AJ"), ("%ff", "\u{fffd}")]
        {
            assert_eq!(decode(text), decoded);
        }
    }
}
