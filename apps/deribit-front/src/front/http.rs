//! HTTP requests: one per connection number, by GET with a query or by POST with a body.

use std::net::Ipv4Addr;

use tickpath_deribit::error_code::ErrorCode;
use tickpath_deribit::request::Request;
use tickpath_deribit::sign::HttpRequest;
use tickpath_deribit::text::Text;

use super::Front;
use super::peers::PublicPool;
use super::waiting_logins::Shown;
use crate::connection::Frame;
use crate::fault::Fault;
use crate::json::Object;
use crate::pending::{ReplyTo, RequestId};

/// Base path of the methods.
const BASE: &str = "/api/v2/";
/// A request over HTTP.
pub struct HttpCall<'a> {
    /// Id of the underlying connection, unique among all.
    pub connection: u64,
    /// `GET` or `POST`.
    pub method: &'a str,
    /// Unmodified path and query, for the signature.
    pub target: &'a str,
    /// The path alone.
    pub path: &'a str,
    /// The query's names and values, decoded.
    pub query: Vec<(String, String)>,
    /// The `Authorization` header.
    pub authorization: Option<&'a str>,
    /// The body.
    pub body: &'a [u8],
}

/// Owned copy of a call, kept while its login is delayed.
pub(super) struct KeptCall {
    connection: u64,
    query: Vec<(String, String)>,
    authorization: Option<String>,
    method: String,
    target: String,
    path: String,
    body: Vec<u8>,
}

impl KeptCall {
    fn of(call: &HttpCall<'_>) -> KeptCall {
        KeptCall {
            connection: call.connection,
            query: call.query.clone(),
            authorization: call.authorization.map(str::to_owned),
            method: call.method.to_owned(),
            target: call.target.to_owned(),
            path: call.path.to_owned(),
            body: call.body.to_vec(),
        }
    }

    pub(super) fn as_call(&self) -> HttpCall<'_> {
        HttpCall {
            connection: self.connection,
            method: &self.method,
            target: &self.target,
            path: &self.path,
            query: self.query.clone(),
            authorization: self.authorization.as_deref(),
            body: &self.body,
        }
    }
}

impl Front {
    /// Handles an HTTP request under its own connection number; the reply is the next frame.
    pub fn handle_http(&mut self, number: u64, call: &HttpCall<'_>, now_us: u64) {
        self.now_us = now_us;
        if let Some(named) = call.authorization.and_then(|header| self.key_of_header(header)) {
            match self.put_off(number, named, || Shown::Http(KeptCall::of(call))) {
                Ok(true) => return,
                Ok(false) => {}
                Err(fault) => return self.refuse_http(number, fault),
            }
        }
        self.do_http(number, call);
    }

    /// Handles a request whose login is not, or no longer, delayed.
    pub(super) fn do_http(&mut self, number: u64, call: &HttpCall<'_>) {
        if let Some(header) = call.authorization {
            let signed = HttpRequest { method: call.method, uri: call.target, body: call.body };
            if let Err(fault) = self.authorize_http(number, header, call.connection, signed) {
                self.counters.logins_refused.add(1);
                return self.refuse_http(number, fault);
            }
        }
        if !matches!(call.method, "GET" | "POST") {
            // A rejected request costs credits too.
            let charged = self.charge_refused(number, PublicPool::Any);
            let fault = Fault::because(ErrorCode::MethodNotFound, "GET with a query, or POST with a body");
            return self.refuse_http(number, charged.err().unwrap_or(fault));
        }
        match call.path.strip_prefix(BASE) {
            // The body names the method; a method in the path must be equal.
            _ if call.method == "POST"
                && !call.body.is_empty()
                && call.path.starts_with(BASE.trim_end_matches('/')) =>
            {
                self.handle_frame(number, call.body, self.now_us);
            }
            Some(method) => {
                let frame = request_of(method, &call.query);
                self.handle_request(number, Request::parse_query(&frame), &frame);
            }
            None => match self.charge_refused(number, PublicPool::Any) {
                Ok(()) => {
                    self.counters.refused.add(1);
                    self.push(number, not_found());
                }
                Err(fault) => self.refuse_http(number, fault),
            },
        }
    }

    /// Returns the reply to a WebSocket request at a wrong path; it costs credits like other requests.
    pub fn no_websocket(&mut self, peer: Ipv4Addr, now_us: u64) -> Frame {
        self.now_us = now_us;
        self.counters.refused.add(1);
        let now = self.now();
        if self.peers.try_take(peer, PublicPool::Any, now) {
            return not_found();
        }
        self.counters.over_rate.add(1);
        let code = ErrorCode::TooManyRequests;
        error_frame(code.code(), code.message(), None)
    }

    fn refuse_http(&mut self, number: u64, fault: Fault) {
        let to = ReplyTo { connection: number, id: RequestId::Number(0), us_in: self.now_us };
        self.reply(&to, Err(fault));
    }

    /// Returns the reply to an address that has reached its connection limit.
    #[must_use]
    pub fn too_many_connections() -> Frame {
        let code = ErrorCode::TooManyRequests;
        error_frame(code.code(), code.message(), Some("the address has as many connections as it may"))
    }
}

/// Returns the reply for a path without a method.
fn not_found() -> Frame {
    error_frame(ErrorCode::NotFound.code(), ErrorCode::NotFound.message(), None)
}

fn error_frame(code: i64, message: &str, reason: Option<&str>) -> Frame {
    let data = reason.map(|reason| Object::new().with("reason", Text::new(reason)).json());
    let error = Object::new().with("code", code).with("message", Text::new(message)).with("data", data);
    let bytes = Object::new().with("jsonrpc", Text::new("2.0")).with("error", error.json()).end();
    Frame { bytes, error: Some(code) }
}

/// Builds the request of a query. Values are texts that the method converts to the type it expects; JSON
/// lists are passed unchanged.
fn request_of(method: &str, query: &[(String, String)]) -> Vec<u8> {
    let mut params = Object::new();
    for (name, value) in query {
        if !name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_') {
            continue;
        }
        let is_list =
            value.starts_with(['[', '{']) && tickpath_deribit::scan::check(value.as_bytes()).is_ok();
        params = if is_list {
            params.with(name, crate::json::Json(value.clone().into_bytes()))
        } else {
            params.with(name, Text::new(value))
        };
    }
    Object::new()
        .with("jsonrpc", Text::new("2.0"))
        .with("id", 0_u64)
        .with("method", Text::new(method))
        .with("params", params.json())
        .end()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_query_is_a_request() {
        let query = [
            ("instrument_name", "BTC-PERPETUAL"),
            ("amount", "10"),
            ("post_only", "true"),
            ("order_id", "123"),
            ("type", "limit"),
            ("channels", "[\"a\"]"),
            ("b\"ad", "1"),
        ]
        .map(|(name, value)| (name.to_owned(), value.to_owned()));
        let text = String::from_utf8(request_of("private/buy", &query)).unwrap();
        assert_eq!(
            text,
            "{\"jsonrpc\":\"2.0\",\"id\":0,\"method\":\"private/buy\",\"params\":{\"instrument_name\":\"BTC-PERPETUAL\",\
             \"amount\":\"10\",\"post_only\":\"true\",\"order_id\":\"123\",\"type\":\"limit\",\"channels\":[\"a\"]}}"
        );
    }
}
