//! Counters and histograms in the Prometheus format, over HTTP.
//!
//! The duty cycle records into [`GatewayMetrics`] with one plain store per value, without locks or
//! allocations. A separate thread answers `GET /metrics` ([`MetricsServer`]) and renders the text on request.
//! Times are in nanoseconds, as the names say.
//!
//! ```
//! use tickpath_gateway::metrics::{Function, GatewayMetrics};
//!
//! let metrics = GatewayMetrics::new("deribit", 4);
//! metrics.profile(Function::Request).record(1_500);
//! let text = metrics.render();
//! let labels = "gateway=\"deribit\",function=\"request\"";
//! assert!(text.contains(&format!("tickpath_gateway_profile_nanoseconds_bucket{{{labels},le=\"2000\"}} 1")));
//! assert!(text.contains(&format!("tickpath_gateway_profile_nanoseconds_sum{{{labels}}} 1500")));
//! ```

mod event_log;
mod histogram;
mod name;
mod process;
mod server;
mod text;

use tickpath_agent::Counter;
use tickpath_gateway_protocol::{ErrorCode, EventKind, RequestKind};

pub use event_log::event_log_sampler;
pub use histogram::{Histogram, NETWORK_NS, PROFILE_NS};
pub use name::{NameCell, TextCell};
pub use server::{MetricsServer, Sampler};
pub use text::MetricsText;

/// Maximum number of venue connections with separate histograms; further ones share the last one's.
pub const STREAMS_MAX: usize = 144;

macro_rules! names {
    ($(#[$doc:meta])* $name:ident { $($(#[$of:meta])* $variant:ident = $text:literal,)* }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum $name {
            $($(#[$of])* $variant,)*
        }

        impl $name {
            /// All values.
            pub const ALL: &'static [$name] = &[$($name::$variant),*];

            /// Name in labels.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self {
                    $($name::$variant => $text,)*
                }
            }
        }
    };
}

names! {
    /// A function whose time is measured.
    Function {
        /// Parsing and applying a book change.
        ParseBook = "parse_book",
        /// Parsing a ticker.
        ParseTicker = "parse_ticker",
        /// Parsing market trades.
        ParseTrades = "parse_trades",
        /// Parsing an order or an order update.
        ParseOrder = "parse_order",
        /// Parsing any other message of the venue.
        ParseOther = "parse_other",
        /// Checking a client's request and encoding it for the venue.
        Request = "request",
        /// Passing bytes to the kernel.
        Write = "write",
        /// A whole duty cycle that found work.
        DutyCycle = "duty_cycle",
    }
}

impl Function {
    /// Whether it handles a message of one connection.
    #[must_use]
    pub const fn is_of_connection(self) -> bool {
        !matches!(self, Function::Request | Function::Write | Function::DutyCycle)
    }
}

names! {
    /// Outcome of a caller or client at the client port.
    AtDoor {
        /// It connected to the socket.
        Called = "called",
        /// It was admitted.
        Admitted = "admitted",
        /// It was refused.
        Refused = "refused",
        /// It sent a message that is not a valid hello, or one of another version.
        Malformed = "malformed",
        /// It did not log in in time.
        TimedOut = "timed_out",
        /// It disconnected before it was admitted.
        GaveUp = "gave_up",
        /// A system error prevented serving it.
        Failed = "failed",
        /// It disconnected in order.
        Closed = "closed",
        /// Its process ended.
        Died = "died",
        /// It was disconnected because its ring was full.
        TooSlow = "too_slow",
        /// It was disconnected because its ring was damaged.
        Broken = "broken",
        /// It was disconnected by the gateway.
        Dismissed = "dismissed",
        /// Its answer to a ping matched no ping.
        WrongPong = "wrong_pong",
        /// It was evicted before login in favour of newer callers.
        Evicted = "evicted",
    }
}

names! {
    /// Kind of an exceptional event.
    Exception {
        /// A message of the venue could not be parsed.
        Unreadable = "unreadable_message",
        /// A number from the venue is out of range.
        Number = "number_out_of_range",
        /// A book missed a message, or was crossed.
        Book = "book_lost",
        /// A request was not answered in time.
        Timeout = "request_timeout",
        /// A connection to the venue was lost.
        Disconnect = "disconnect",
        /// The status of an order was unknown.
        Doubt = "order_in_doubt",
        /// A client did not read its events in time.
        SlowClient = "slow_client",
        /// A client violated the protocol of its ring.
        BadClient = "bad_client",
        /// A caller was refused for any reason.
        LoginRefused = "login_refused",
        /// A table was full, and an item was left out.
        Full = "table_full",
    }
}

/// Metrics of one client, with its ping times in each direction.
#[derive(Debug)]
pub struct ClientMetrics {
    /// Name of the client in this slot; empty if the slot is free.
    pub name: NameCell,
    /// Name of its user.
    pub user: NameCell,
    /// Number of the client: several clients may have the same name.
    pub number: Counter,
    /// 1 if it may send orders.
    pub may_trade: Counter,
    /// Ping time from the gateway to the client.
    pub to_client: Histogram,
    /// Ping time from the client to the gateway.
    pub to_gateway: Histogram,
}

impl ClientMetrics {
    /// Creates a free slot.
    fn free() -> ClientMetrics {
        ClientMetrics {
            name: NameCell::default(),
            user: NameCell::default(),
            number: Counter::default(),
            may_trade: Counter::default(),
            to_client: Histogram::new(&PROFILE_NS),
            to_gateway: Histogram::new(&PROFILE_NS),
        }
    }

    /// Assigns the slot to a client and clears its previous occupant's values.
    pub fn join(&self, name: &str, user: &str, number: u32, may_trade: bool) {
        self.to_client.clear();
        self.to_gateway.clear();
        self.number.set(number.into());
        self.may_trade.set(may_trade.into());
        self.user.set(user);
        self.name.set(if name.is_empty() { "-" } else { name });
    }

    /// Frees the slot.
    pub fn leave(&self) {
        self.name.set("");
    }
}

/// Metrics of one connection to the venue.
#[derive(Debug)]
struct StreamMetrics {
    /// Name of the connection.
    name: String,
    /// Time of each [`Function`] for its messages.
    profile: Box<[Histogram]>,
    external: Histogram,
    market_data: Histogram,
    bytes_in: Counter,
}

/// All metrics of a gateway. One thread writes, any other reads.
#[derive(Debug)]
pub struct GatewayMetrics {
    gateway: String,
    profile: Box<[Histogram]>,
    round_trip: Box<[Histogram]>,
    request_latency: Box<[Histogram]>,
    streams: Box<[StreamMetrics]>,
    /// Index of the first FIX connection; the number of connections if there is none.
    first_fix: usize,
    clients: Box<[ClientMetrics]>,
    events: Box<[Counter]>,
    requests: Box<[Counter]>,
    refusals: Box<[Counter]>,
    exceptions: Box<[Counter]>,
    door: Box<[Counter]>,
    /// Time from reading a message to its last event in the rings.
    pub end_to_end: Histogram,
    /// Time from creating a request at the client to taking it at the gateway.
    pub inter_process: Histogram,
    /// Number of connected clients.
    pub clients_connected: Counter,
    /// Number of open orders.
    pub open_orders: Counter,
    /// Number of venue connections that are ready.
    pub streams_ready: Counter,
    /// 1 while the kill switch is on.
    pub is_killed: Counter,
    /// Number of bans that started.
    pub bans: Counter,
    /// The gateway's clock when the latest venue message was read, in nanoseconds since 1970.
    pub updated_ns: Counter,
}

fn places(codes: impl Iterator<Item = u16>) -> usize {
    codes.map(usize::from).max().unwrap_or(0) + 1
}

fn counters(count: usize) -> Box<[Counter]> {
    (0..count).map(|_| Counter::default()).collect()
}

fn histograms(count: usize, bounds: &'static [u64]) -> Box<[Histogram]> {
    (0..count).map(|_| Histogram::new(bounds)).collect()
}

/// Returns the item at an index, or the last item: an index from a client or the venue never causes a panic.
fn at<T>(list: &[T], place: usize) -> &T {
    &list[place.min(list.len() - 1)]
}

impl GatewayMetrics {
    /// Creates the metrics of a gateway of this name with at most `clients_max` clients.
    #[must_use]
    pub fn new(gateway: &str, clients_max: usize) -> GatewayMetrics {
        GatewayMetrics::of(gateway, clients_max, &[])
    }

    /// Creates the metrics with connection names, indexed by connection number.
    #[must_use]
    pub fn of(gateway: &str, clients_max: usize, connections: &[String]) -> GatewayMetrics {
        let stream = |place: usize| StreamMetrics {
            name: connections.get(place).cloned().unwrap_or_else(|| place.to_string()),
            profile: histograms(Function::ALL.len(), &PROFILE_NS),
            external: Histogram::new(&NETWORK_NS),
            market_data: Histogram::new(&NETWORK_NS),
            bytes_in: Counter::default(),
        };
        let request_kinds = places(RequestKind::ALL.iter().map(|kind| kind.0));
        GatewayMetrics {
            gateway: gateway.to_owned(),
            profile: histograms(Function::ALL.len(), &PROFILE_NS),
            round_trip: histograms(request_kinds, &NETWORK_NS),
            request_latency: histograms(request_kinds, &PROFILE_NS),
            streams: (0..STREAMS_MAX).map(stream).collect(),
            first_fix: usize::MAX,
            clients: (0..clients_max.max(1)).map(|_| ClientMetrics::free()).collect(),
            events: counters(places(EventKind::ALL.iter().map(|kind| kind.0))),
            requests: counters(request_kinds),
            refusals: counters(places(ErrorCode::ALL.iter().map(|code| code.0))),
            exceptions: counters(Exception::ALL.len()),
            door: counters(AtDoor::ALL.len()),
            end_to_end: Histogram::new(&PROFILE_NS),
            inter_process: Histogram::new(&PROFILE_NS),
            clients_connected: Counter::default(),
            open_orders: Counter::default(),
            streams_ready: Counter::default(),
            is_killed: Counter::default(),
            bans: Counter::default(),
            updated_ns: Counter::default(),
        }
    }

    /// Marks the connections from index `first_fix` on as FIX connections.
    #[must_use]
    pub fn with_fix_from(self, first_fix: usize) -> GatewayMetrics {
        GatewayMetrics { first_fix, ..self }
    }

    /// Transport of a connection, as labels name it.
    fn transport(&self, place: usize) -> &'static str {
        if place >= self.first_fix { "fix" } else { "ws" }
    }

    /// Time of a function.
    #[inline]
    #[must_use]
    pub fn profile(&self, function: Function) -> &Histogram {
        at(&self.profile, function as usize)
    }

    /// Time of a function for messages of one connection.
    #[inline]
    #[must_use]
    pub fn parsed(&self, stream: usize, function: Function) -> &Histogram {
        at(&at(&self.streams, stream).profile, function as usize)
    }

    /// Time from a request to the venue's answer.
    #[inline]
    #[must_use]
    pub fn round_trip(&self, kind: RequestKind) -> &Histogram {
        at(&self.round_trip, usize::from(kind.0))
    }

    /// Time from taking a request out of its ring to passing its bytes to the kernel.
    #[inline]
    #[must_use]
    pub fn request_latency(&self, kind: RequestKind) -> &Histogram {
        at(&self.request_latency, usize::from(kind.0))
    }

    /// Time from a ping on a connection to the venue's answer.
    #[inline]
    #[must_use]
    pub fn external(&self, stream: usize) -> &Histogram {
        &at(&self.streams, stream).external
    }

    /// Time from the venue's timestamp of market data to its arrival; as accurate as both clocks.
    #[inline]
    #[must_use]
    pub fn market_data(&self, stream: usize) -> &Histogram {
        &at(&self.streams, stream).market_data
    }

    /// Counts bytes of messages that a connection received.
    #[inline]
    pub fn count_bytes(&self, stream: usize, received: u64) {
        at(&self.streams, stream).bytes_in.add(received);
    }

    /// Metrics of the client in a slot.
    #[inline]
    #[must_use]
    pub fn client(&self, place: usize) -> &ClientMetrics {
        at(&self.clients, place)
    }

    /// Metrics of all client slots.
    pub fn clients(&self) -> impl Iterator<Item = &ClientMetrics> {
        self.clients.iter()
    }

    /// Counts an event that was put into a ring.
    #[inline]
    pub fn count_event(&self, kind: EventKind) {
        at(&self.events, usize::from(kind.0)).add(1);
    }

    /// Counts a request that was taken out of a ring.
    #[inline]
    pub fn count_request(&self, kind: RequestKind) {
        at(&self.requests, usize::from(kind.0)).add(1);
    }

    /// Counts a request that was refused.
    #[inline]
    pub fn count_refusal(&self, code: ErrorCode) {
        at(&self.refusals, usize::from(code.0)).add(1);
    }

    /// Counts an exceptional event.
    #[inline]
    pub fn count_exception(&self, exception: Exception) {
        at(&self.exceptions, exception as usize).add(1);
    }

    /// Sets the count of an exception that is counted elsewhere.
    pub fn set_exceptions(&self, exception: Exception, count: u64) {
        at(&self.exceptions, exception as usize).set(count);
    }

    /// Sets the count of an outcome at the client port.
    pub fn set_door(&self, what: AtDoor, count: u64) {
        at(&self.door, what as usize).set(count);
    }

    /// Renders all metrics as Prometheus text.
    #[must_use]
    pub fn render(&self) -> String {
        let mut text = MetricsText::new(&self.gateway);
        self.write(&mut text);
        text.finish()
    }

    pub(crate) fn write(&self, text: &mut MetricsText) {
        self.write_latencies(text);
        self.write_clients(text);
        self.write_streams(text);
        self.write_counts(text);
    }

    fn write_latencies(&self, text: &mut MetricsText) {
        text.family("profile_nanoseconds", "histogram", "Time that a function takes.");
        for function in Function::ALL {
            if !function.is_of_connection() {
                text.histogram(&[("function", function.name())], self.profile(*function));
                continue;
            }
            for stream in &self.streams {
                let labels = [("function", function.name()), ("connection", &stream.name)];
                text.used_histogram(&labels, at(&stream.profile, *function as usize));
            }
        }
        text.family(
            "round_trip_latency_nanoseconds",
            "histogram",
            "From a request to the venue's answer, for each kind of request.",
        );
        for kind in RequestKind::ALL {
            text.used_histogram(&[("request", kind.name().unwrap_or("other"))], self.round_trip(*kind));
        }
        text.family(
            "request_latency_nanoseconds",
            "histogram",
            "From a request in the client's ring to its bytes in the kernel, for each kind of request.",
        );
        for kind in RequestKind::ALL {
            text.used_histogram(&[("request", kind.name().unwrap_or("other"))], self.request_latency(*kind));
        }
        text.family(
            "end_to_end_latency_nanoseconds",
            "histogram",
            "From a message read to its events in the rings.",
        );
        text.histogram(&[], &self.end_to_end);
        text.family(
            "inter_process_latency_nanoseconds",
            "histogram",
            "From a client's making a request to the gateway's taking it.",
        );
        text.histogram(&[], &self.inter_process);
    }

    fn write_clients(&self, text: &mut MetricsText) {
        text.family(
            "heartbeat_latency_nanoseconds",
            "histogram",
            "One way of a ping, for each client and direction.",
        );
        for client in &self.clients {
            let (name, user) = (client.name.read(), client.user.read());
            if name.is_empty() {
                continue;
            }
            let number = client.number.read().to_string();
            for (direction, histogram) in
                [("to_client", &client.to_client), ("to_gateway", &client.to_gateway)]
            {
                let labels =
                    [("client", &*name), ("number", &*number), ("user", &*user), ("direction", direction)];
                text.histogram(&labels, histogram);
            }
        }
        text.family("clients", "gauge", "Clients that are connected.");
        text.value(&[], self.clients_connected.read());
        text.family("door_total", "counter", "Outcomes of connections and clients at the client port.");
        for what in AtDoor::ALL {
            text.value(&[("what", what.name())], at(&self.door, *what as usize).read());
        }
    }

    fn write_streams(&self, text: &mut MetricsText) {
        let used = |stream: &StreamMetrics| {
            stream.external.count() + stream.market_data.count() + stream.bytes_in.read() > 0
        };
        let streams: Vec<(&str, &'static str, &StreamMetrics)> = (self.streams.iter().enumerate())
            .filter(|(_, stream)| used(stream))
            .map(|(place, stream)| (stream.name.as_str(), self.transport(place), stream))
            .collect();
        text.family(
            "external_latency_nanoseconds",
            "histogram",
            "From a ping to the venue's answer, for each connection.",
        );
        for (name, transport, stream) in &streams {
            text.used_histogram(&[("connection", name), ("transport", transport)], &stream.external);
        }
        text.family(
            "market_data_latency_nanoseconds",
            "histogram",
            "From the venue's time to the arrival of market data, for each connection.",
        );
        for (name, transport, stream) in &streams {
            text.used_histogram(&[("connection", name), ("transport", transport)], &stream.market_data);
        }
        text.family("received_bytes_total", "counter", "Bytes of the venue's messages, for each connection.");
        for (name, transport, stream) in &streams {
            text.value(&[("connection", name), ("transport", transport)], stream.bytes_in.read());
        }
        let trading = if self.first_fix == usize::MAX { "ws" } else { "fix" };
        text.family("orders_by", "gauge", "1 for the transport that orders go by.");
        text.value(&[("transport", trading)], 1);
        text.family("connections_ready", "gauge", "Connections to the venue that are ready.");
        text.value(&[], self.streams_ready.read());
    }

    fn write_counts(&self, text: &mut MetricsText) {
        text.family("events_total", "counter", "Events put into the rings, for each kind.");
        for kind in EventKind::ALL {
            let count = at(&self.events, usize::from(kind.0)).read();
            text.used_value(&[("event", kind.name().unwrap_or("other"))], count);
        }
        text.family("requests_total", "counter", "Requests of clients, for each kind.");
        // Pongs are counted by the client port: each has a heartbeat.
        for kind in RequestKind::ALL.iter().filter(|kind| **kind != RequestKind::PONG) {
            let count = at(&self.requests, usize::from(kind.0)).read();
            text.value(&[("request", kind.name().unwrap_or("other"))], count);
        }
        text.family("refusals_total", "counter", "Requests refused, for each reason.");
        for code in ErrorCode::ALL {
            let count = at(&self.refusals, usize::from(code.0)).read();
            text.used_value(&[("reason", code.name().unwrap_or("other"))], count);
        }
        text.family("exceptions_total", "counter", "What went wrong.");
        for exception in Exception::ALL {
            text.value(&[("exception", exception.name())], at(&self.exceptions, *exception as usize).read());
        }
        text.family("rate_limiter_bans_total", "counter", "Bans of users that sent too much.");
        text.value(&[], self.bans.read());
        text.family("open_orders", "gauge", "Orders that are not over.");
        text.value(&[], self.open_orders.read());
        text.family("killed", "gauge", "1 while the kill switch is on.");
        text.value(&[], self.is_killed.read());
        text.family("updated_nanoseconds", "gauge", "When the venue said something last, since 1970.");
        text.value(&[], self.updated_ns.read());
    }
}

#[cfg(test)]
mod tests;
