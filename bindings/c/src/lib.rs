//! Gateway client for C programs; `include/tickpath_gateway.h` declares its functions.
//!
//! Handles are opaque and owned by the caller until freed; no function keeps a pointer passed to it. Results
//! are fixed numbers ([`result`]). For a negative one, [`tp_error_text`] returns the text on the same thread.
//! Panics do not cross into C: they become [`result::PANIC`], after which the handle is to be freed.
//!
//! ```
//! use tickpath_gateway_client::{result, tp_fixed_parse, tp_gateway_version};
//!
//! let mut units = 0;
//! // SAFETY: the text ends with a zero, and the place is one for a number.
//! let parsed = unsafe { tp_fixed_parse(c"64250.5".as_ptr(), &raw mut units) };
//! assert_eq!((parsed, units), (result::OK, 6_425_050_000_000));
//! assert_eq!(tp_gateway_version(), 1);
//! ```
#![allow(unsafe_code)] // the other side is C

use std::cell::RefCell;
use std::ffi::{CStr, c_char};
use std::fmt::Display;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::ptr;
use std::time::Duration;

use tickpath_gateway_io::{Client, ClientConfig, SendError, monotonic};
use tickpath_gateway_protocol::frame::{Password, VERSION};
use tickpath_gateway_protocol::{Event, Fixed, Request, Text};
use tickpath_types::Nanos;

/// Results of functions: zero and above for success, below zero for an error.
pub mod result {
    /// Success; of a poll: no event at the moment.
    pub const OK: i32 = 0;
    /// Success of a poll: an event was written.
    pub const EVENT: i32 = 1;
    /// An argument is missing or invalid.
    pub const INVALID: i32 = -1;
    /// The gateway is not reachable, or refused the client.
    pub const CONNECT: i32 = -2;
    /// The client is not connected at the moment.
    pub const NOT_CONNECTED: i32 = -3;
    /// The ring to the gateway is full.
    pub const FULL: i32 = -4;
    /// The client will not connect again.
    pub const FINISHED: i32 = -5;
    /// An error in this library: free the handle.
    pub const PANIC: i32 = -100;
}

thread_local! {
    static ERROR: RefCell<String> = const { RefCell::new(String::new()) };
}

fn failed(code: i32, error: impl Display) -> i32 {
    ERROR.with_borrow_mut(|text| {
        use std::fmt::Write;
        text.clear();
        let _ = write!(text, "{error}");
    });
    code
}

/// Converts a panic to an error, as it must not cross into C.
fn guarded(work: impl FnOnce() -> i32) -> i32 {
    catch_unwind(AssertUnwindSafe(work))
        .unwrap_or_else(|_| failed(result::PANIC, "an error in the library: free the handle"))
}

/// Configuration of a client; `tp_gateway_config`. Texts are zero-terminated and owned by the caller.
#[derive(Debug)]
#[repr(C)]
pub struct GatewayConfig {
    /// Path of the gateway's Unix socket.
    pub socket: *const c_char,
    /// Name of the client; null for `client`.
    pub name: *const c_char,
    /// Name of the user.
    pub user: *const c_char,
    /// The user's password.
    pub password: *const c_char,
    /// Time to wait for an answer when connecting, in milliseconds; 0 for 5,000.
    pub timeout_ms: u32,
    /// Period of timer events, in milliseconds; 0 for none.
    pub timer_ms: u32,
    /// 1 to send orders.
    pub is_trading: u8,
    /// 1 to reconnect when the connection is lost.
    pub is_persistent: u8,
    /// Reserved; zero.
    pub reserved: [u8; 6],
}

/// A client; `tp_gateway_client`.
#[derive(Debug)]
pub struct GatewayClient(Client);

/// Returns the text at a pointer; `None` if it is null or not UTF-8.
///
/// # Safety
/// The pointer is null, or a zero-terminated text that outlives the result.
unsafe fn text<'a>(pointer: *const c_char) -> Option<&'a str> {
    if pointer.is_null() {
        return None;
    }
    // SAFETY: the caller's promise.
    unsafe { CStr::from_ptr(pointer) }.to_str().ok()
}

/// Writes as much of the text as fits, and a zero; returns the length of the whole text.
///
/// # Safety
/// `out` points to `room` writable bytes, or `room` is 0.
unsafe fn copy_out(text: &str, out: *mut c_char, room: usize) -> usize {
    if room > 0 && !out.is_null() {
        let len = text.len().min(room - 1);
        // SAFETY: the caller's promise; `len` and the zero are within `room`.
        unsafe {
            ptr::copy_nonoverlapping(text.as_ptr().cast(), out, len);
            *out.add(len) = 0;
        }
    }
    text.len()
}

/// # Safety
/// As of [`tp_gateway_client_new`].
unsafe fn config_of(config: &GatewayConfig) -> Result<ClientConfig, &'static str> {
    // SAFETY: the caller's promise, for each of the four.
    let (socket, name, user, password) =
        unsafe { (text(config.socket), text(config.name), text(config.user), text(config.password)) };
    let socket = socket.ok_or("the config has no socket")?;
    let user = user.and_then(Text::new).ok_or("the user is missing, or longer than 32 characters")?;
    let password = password.ok_or("the config has no password")?;
    let password = Password::new(password.as_bytes()).ok_or("the password is longer than 64 bytes")?;
    let mut made = ClientConfig::new(Path::new(socket), user, password);
    if let Some(name) = name {
        made.name = Text::new(name).ok_or("the name is longer than 32 characters, or not plain text")?;
    }
    if config.timeout_ms > 0 {
        made.timeout = Duration::from_millis(u64::from(config.timeout_ms));
    }
    made.timer = (config.timer_ms > 0).then(|| Nanos(u64::from(config.timer_ms) * 1_000_000));
    made.is_trading = config.is_trading != 0;
    made.is_persistent = config.is_persistent != 0;
    Ok(made)
}

/// Connects. On [`result::OK`], `*out` is a client to free with [`tp_gateway_client_free`]; otherwise null.
///
/// # Safety
/// `config` is null or points to a config with zero-terminated texts; `out` is null or points to a pointer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tp_gateway_client_new(
    config: *const GatewayConfig,
    out: *mut *mut GatewayClient,
) -> i32 {
    guarded(|| {
        // SAFETY: the caller's promise.
        let (Some(config), false) = (unsafe { config.as_ref() }, out.is_null()) else {
            return failed(result::INVALID, "an argument is null");
        };
        // SAFETY: the caller's promise.
        unsafe { *out = ptr::null_mut() };
        // SAFETY: the caller's promise.
        let config = match unsafe { config_of(config) } {
            Ok(config) => config,
            Err(error) => return failed(result::INVALID, error),
        };
        match Client::connect(config) {
            Ok(client) => {
                // SAFETY: the caller's promise.
                unsafe { *out = Box::into_raw(Box::new(GatewayClient(client))) };
                result::OK
            }
            Err(error) => failed(result::CONNECT, error),
        }
    })
}

/// Closes the connection and frees the client; no effect for null.
///
/// # Safety
/// `client` is null, or was created by [`tp_gateway_client_new`] and is not used afterwards.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tp_gateway_client_free(client: *mut GatewayClient) {
    if !client.is_null() {
        // SAFETY: the caller's promise: it was created by `Box::into_raw`, and is freed once.
        let client = unsafe { Box::from_raw(client) };
        guarded(|| {
            drop(client);
            result::OK
        });
    }
}

/// Writes the next event to `*event`: [`result::EVENT`] if there is one, [`result::OK`] if there is none at
/// the moment, [`result::FINISHED`] if there will be no more. Never blocks while the connection lasts.
///
/// # Safety
/// `client` is null or a client not in use by another thread; `event` is null or points to an event.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tp_gateway_client_poll(client: *mut GatewayClient, event: *mut Event) -> i32 {
    guarded(|| {
        // SAFETY: the caller's promise.
        let (Some(client), false) = (unsafe { client.as_mut() }, event.is_null()) else {
            return failed(result::INVALID, "an argument is null");
        };
        match client.0.poll() {
            Some(found) => {
                // SAFETY: the caller's promise.
                unsafe { event.write(found) };
                result::EVENT
            }
            None if client.0.is_finished() => match client.0.failure() {
                Some(error) => failed(result::FINISHED, error),
                None => failed(result::FINISHED, "the connection is closed"),
            },
            None => result::OK,
        }
    })
}

/// Sends a request, after filling in `create_ns` and, if it is 0, `request_id`.
///
/// # Safety
/// `client` is null or a client not in use by another thread; `request` is null or a request.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tp_gateway_client_send(client: *mut GatewayClient, request: *mut Request) -> i32 {
    guarded(|| {
        // SAFETY: the caller's promise.
        let (Some(client), Some(request)) = (unsafe { client.as_mut() }, unsafe { request.as_mut() }) else {
            return failed(result::INVALID, "an argument is null");
        };
        match client.0.send(request) {
            Ok(_) => result::OK,
            Err(SendError::Full) => failed(result::FULL, SendError::Full),
            Err(error) => failed(result::NOT_CONNECTED, error),
        }
    })
}

/// Returns a client order id that is unused by this user, as far as reported; 0 for null.
///
/// # Safety
/// `client` is null or a client not in use by another thread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tp_gateway_client_next_order_id(client: *mut GatewayClient) -> u64 {
    // SAFETY: the caller's promise.
    unsafe { client.as_mut() }.map_or(0, |client| client.0.next_order_id())
}

/// Returns 1 while connected.
///
/// # Safety
/// `client` is null or a client not in use by another thread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tp_gateway_client_is_connected(client: *const GatewayClient) -> i32 {
    // SAFETY: the caller's promise.
    unsafe { client.as_ref() }.map_or(0, |client| i32::from(client.0.is_connected()))
}

/// Writes the error of this thread's last failed call, in one line: as much of the text as fits, and a zero.
/// Returns the length of the whole text.
///
/// # Safety
/// `out` points to `room` writable bytes, or `room` is 0.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tp_error_text(out: *mut c_char, room: usize) -> usize {
    // SAFETY: the caller's promise.
    ERROR.with_borrow(|text| unsafe { copy_out(text, out, room) })
}

/// Writes an event as one line of text; as [`tp_error_text`].
///
/// # Safety
/// `event` is null or an event; `out` points to `room` writable bytes, or `room` is 0.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tp_event_text(event: *const Event, out: *mut c_char, room: usize) -> usize {
    // SAFETY: the caller's promise.
    let text = unsafe { event.as_ref() }.map(Event::to_string).unwrap_or_default();
    // SAFETY: the caller's promise.
    unsafe { copy_out(&text, out, room) }
}

/// Writes a request as one line of text; as [`tp_error_text`].
///
/// # Safety
/// `request` is null or a request; `out` points to `room` writable bytes, or `room` is 0.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tp_request_text(request: *const Request, out: *mut c_char, room: usize) -> usize {
    // SAFETY: the caller's promise.
    let text = unsafe { request.as_ref() }.map(Request::to_string).unwrap_or_default();
    // SAFETY: the caller's promise.
    unsafe { copy_out(&text, out, room) }
}

/// Parses a decimal number into units of 10^-8, exactly, in `*units`; [`result::INVALID`] if it is not one.
///
/// # Safety
/// `number` is null or a zero-terminated text; `units` is null or points to a number.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tp_fixed_parse(number: *const c_char, units: *mut i64) -> i32 {
    guarded(|| {
        // SAFETY: the caller's promise.
        let (Some(number), false) = (unsafe { text(number) }, units.is_null()) else {
            return failed(result::INVALID, "an argument is null, or not plain text");
        };
        match number.parse::<Fixed>() {
            Ok(fixed) => {
                // SAFETY: the caller's promise.
                unsafe { units.write(fixed.0) };
                result::OK
            }
            Err(error) => failed(result::INVALID, error),
        }
    })
}

/// Writes units of 10^-8 as a decimal number; as [`tp_error_text`]. 32 bytes are always enough.
///
/// # Safety
/// `out` points to `room` writable bytes, or `room` is 0.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tp_fixed_text(units: i64, out: *mut c_char, room: usize) -> usize {
    // SAFETY: the caller's promise.
    unsafe { copy_out(&Fixed(units).to_string(), out, room) }
}

/// Returns the machine's monotonic clock in nanoseconds: the times of events and requests.
#[unsafe(no_mangle)]
pub extern "C" fn tp_monotonic_ns() -> u64 {
    monotonic().0
}

/// Returns the version of events and requests, which must match that of the gateway and the header.
#[unsafe(no_mangle)]
pub extern "C" fn tp_gateway_version() -> u32 {
    VERSION
}
