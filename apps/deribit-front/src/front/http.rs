//! Requests over HTTP: one each, by GET with a query or by POST with a body.

use tickpath_deribit::error_code::ErrorCode;
use tickpath_deribit::sign::HttpRequest;
use tickpath_deribit::text::Text;

use super::Front;
use super::peers::PublicPool;
use crate::connection::Frame;
use crate::fault::Fault;
use crate::json::Object;
use crate::pending::{ReplyTo, RequestId};

/// Where the methods are.
const BASE: &str = "/api/v2/";
/// Params that are texts, whatever they look like: order ids are digits.
const TEXTS: [&str; 22] = [
    "order_id",
    "label",
    "client_id",
    "client_secret",
    "refresh_token",
    "signature",
    "nonce",
    "data",
    "state",
    "scope",
    "access_token",
    "start_id",
    "end_id",
    "currency",
    "instrument_name",
    "index_name",
    "session_name",
    "quote_id",
    "quote_set_id",
    "mmp_group",
    "client_name",
    "client_version",
];

/// A request over HTTP.
pub struct HttpCall<'a> {
    /// `GET` or `POST`.
    pub method: &'a str,
    /// Path and query as they came, for the signature.
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

impl Front {
    /// A request over HTTP on a connection of its own number; its reply is the next frame.
    pub fn handle_http(&mut self, number: u64, call: &HttpCall<'_>, now_us: u64) {
        self.now_us = now_us;
        if let Some(header) = call.authorization {
            let signed = HttpRequest { method: call.method, uri: call.target, body: call.body };
            if let Err(fault) = self.authorize_http(number, header, signed) {
                self.counters.logins_refused.add(1);
                let charged = self.charge_refused(number, PublicPool::RefusedLogin);
                self.refuse_http(number, charged.err().unwrap_or(fault));
                return;
            }
        }
        if !matches!(call.method, "GET" | "POST") {
            let to = ReplyTo { connection: number, id: RequestId::Number(0), us_in: now_us };
            let fault = Fault::because(ErrorCode::MethodNotFound, "GET with a query, or POST with a body");
            return self.reply(&to, Err(fault));
        }
        match call.path.strip_prefix(BASE) {
            // The body names the method; one in the path is the same.
            _ if call.method == "POST"
                && !call.body.is_empty()
                && call.path.starts_with(BASE.trim_end_matches('/')) =>
            {
                self.handle_frame(number, call.body, now_us);
            }
            Some(method) => self.handle_frame(number, &request_of(method, &call.query), now_us),
            None => self.push(number, Front::not_found()),
        }
    }

    fn refuse_http(&mut self, number: u64, fault: Fault) {
        let to = ReplyTo { connection: number, id: RequestId::Number(0), us_in: self.now_us };
        self.reply(&to, Err(fault));
    }

    /// What is answered where an address has as many connections as it may.
    #[must_use]
    pub fn too_many_connections() -> Frame {
        let code = ErrorCode::TooManyRequests;
        let data = Object::new().with("reason", Text::new("the address has as many connections as it may"));
        let error = Object::new()
            .with("code", code.code())
            .with("message", Text::new(code.message()))
            .with("data", data.json());
        let bytes = Object::new().with("jsonrpc", Text::new("2.0")).with("error", error.json()).end();
        Frame { bytes, error: Some(code.code()) }
    }

    /// What is answered where a path is no method's.
    #[must_use]
    pub fn not_found() -> Frame {
        let error = Object::new().with("code", 13_020_u64).with("message", Text::new("not_found"));
        let bytes = Object::new().with("jsonrpc", Text::new("2.0")).with("error", error.json()).end();
        Frame { bytes, error: Some(13_020) }
    }
}

/// The request that a query stands for.
fn request_of(method: &str, query: &[(String, String)]) -> Vec<u8> {
    let mut params = Object::new();
    for (name, value) in query {
        if !name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_') {
            continue;
        }
        let is_list = name == "currency" && value.starts_with('[');
        let is_json = (is_list || !TEXTS.contains(&name.as_str()))
            && tickpath_deribit::scan::check(value.as_bytes()).is_ok();
        params = if is_json {
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
             \"amount\":10,\"post_only\":true,\"order_id\":\"123\",\"type\":\"limit\",\"channels\":[\"a\"]}}"
        );
    }
}
