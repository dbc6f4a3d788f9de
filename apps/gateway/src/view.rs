//! State of a gateway and its parts, readable from outside while it runs.

use std::sync::Arc;

use tickpath_agent::Counter;
use tickpath_gateway_core::{Connection, Core, account::Step};

use crate::metrics::{MetricsText, Sampler, TextCell};

/// Reason for the latest loss of a connection: up to 128 bytes.
pub type LossText = TextCell<16>;

/// State of a gateway, readable from outside while it runs.
#[derive(Debug, Default)]
#[repr(align(128))] // separate cache lines: other threads' writes nearby would slow its writer
pub struct GatewayView {
    /// State: a [`GatewayState`](tickpath_gateway_protocol::GatewayState).
    pub state: Counter,
    /// Time of the last state change, in nanoseconds since 1970; 0 before the first update.
    pub state_since_ns: Counter,
    /// Time when it was built, in nanoseconds since 1970.
    pub started_ns: Counter,
    /// Reason for the state, for display; empty if all is well.
    pub text: TextCell<8>,
    /// Number of connected clients.
    pub clients: Counter,
    /// Number of clients' requests.
    pub requests: Counter,
    /// Number of requests that the gateway rejected.
    pub refused: Counter,
    /// Number of open orders.
    pub open_orders: Counter,
    /// Number of messages from the venue.
    pub messages: Counter,
    /// Number of broadcast events.
    pub broadcasts: Counter,
    /// Number of instruments.
    pub instruments: Counter,
    /// Number of venue updates that could not be represented exactly.
    pub faults: Counter,
    /// Number of orders whose status was unknown for a while.
    pub doubts: Counter,
    /// Number of connection losses.
    pub losses: Counter,
    /// Number of external orders: open at the accounts, but not entered by a client of this gateway.
    pub foreign: Counter,
    /// Number of external orders that are unreadable and may be this gateway's.
    pub unreadable: Counter,
    /// Number of orders under this gateway's name that a duplicate instance works on, since the start.
    pub elsewhere: Counter,
    /// Number of instruments listed by the venue; 0 before they are known.
    pub listed: Counter,
    /// While [closing](crate::process::Gateway::closing): number of orders not yet confirmed as cancelled.
    pub cancels_left: Counter,
    /// While closing: 1 when no work for clients is left.
    pub is_closed: Counter,
    /// The accounts, sorted by name.
    pub accounts: Box<[AccountView]>,
    /// The connections, by number.
    pub connections: Box<[ConnectionView]>,
    /// Reason for the latest loss of each connection.
    pub loss_texts: Arc<[LossText]>,
}

/// One account.
#[derive(Debug, Default)]
pub struct AccountView {
    /// Name of the account.
    pub name: String,
    /// Startup step: an index into [`Step::ALL`].
    step: Counter,
    /// 1 if the venue does not allow its login to trade.
    pub watches: Counter,
    /// Number of its open orders.
    pub open_orders: Counter,
}

/// One connection to the venue.
#[derive(Debug, Default)]
pub struct ConnectionView {
    /// Name of the connection.
    pub name: String,
    /// 1 if the gateway uses the connection.
    pub is_used: Counter,
    /// Status: a [`ConnectionStatus`](tickpath_gateway_protocol::ConnectionStatus).
    pub status: Counter,
    /// Transport: a [`Transport`](tickpath_gateway_protocol::Transport).
    pub transport: Counter,
    /// 1 if it carries orders.
    pub is_trading: Counter,
    /// 1 if it carries market data.
    pub is_market_data: Counter,
    /// Number of times that it was lost.
    pub losses: Counter,
    /// Round trip of the last ping to the venue, in nanoseconds; 0 before the first.
    pub round_trip_ns: Counter,
}

impl AccountView {
    /// Startup step of the account.
    #[must_use]
    pub fn step(&self) -> Step {
        let place = usize::try_from(self.step.read()).unwrap_or(0);
        Step::ALL.get(place).copied().unwrap_or(Step::Down)
    }
}

impl GatewayView {
    /// Creates the view of a gateway built at `started_ns`, with the core's accounts and connections.
    #[must_use]
    pub fn new(core: &Core, started_ns: u64, loss_texts: Arc<[LossText]>) -> GatewayView {
        let of_account = |name: &str| AccountView { name: name.to_owned(), ..AccountView::default() };
        let of_connection = |place| ConnectionView {
            name: core.stream_name(place).as_str().to_owned(),
            ..ConnectionView::default()
        };
        let view = GatewayView {
            accounts: core.accounts().iter().map(|account| of_account(account.name.as_str())).collect(),
            connections: (0..core.stream_count()).map(of_connection).collect(),
            loss_texts,
            ..GatewayView::default()
        };
        view.started_ns.set(started_ns);
        view.show_parts(core);
        view
    }

    /// Updates accounts and connections. Only the writer thread may call this.
    pub fn show_parts(&self, core: &Core) {
        self.text.set(core.why().as_str());
        for (view, account) in self.accounts.iter().zip(core.accounts()) {
            view.step.set(account.step as u64);
            view.watches.set((!account.may_trade).into());
            view.open_orders.set(account.open_orders.into());
        }
        for (place, view) in self.connections.iter().enumerate() {
            let Connection { status, round_trip, is_used } = core.connection(place);
            view.is_used.set(is_used.into());
            view.status.set(status.status.0.into());
            view.transport.set(status.transport.0.into());
            view.is_trading.set(status.is_trading.into());
            view.is_market_data.set(status.is_market_data.into());
            view.losses.set(status.losses.into());
            view.round_trip_ns.set(round_trip.0);
        }
    }

    /// Number of accounts that are ready.
    #[must_use]
    pub fn accounts_ready(&self) -> usize {
        self.accounts.iter().filter(|account| account.step() == Step::Ready).count()
    }
}

/// Returns a sampler of the state of a gateway and its parts.
#[must_use]
pub fn view_sampler(view: Arc<GatewayView>) -> Sampler {
    Box::new(move |text| write(&view, text))
}

fn write(view: &GatewayView, text: &mut MetricsText) {
    use tickpath_gateway_protocol::{ConnectionStatus, GatewayState, Transport};

    text.family("state", "gauge", "1 for the state in which the gateway is.");
    let state = GatewayState(view.state.read() as u8);
    for known in GatewayState::ALL {
        text.value(&[("state", known.name().unwrap_or("other"))], u64::from(*known == state));
    }
    text.family("accounts", "gauge", "Accounts that are there.");
    text.value(&[], view.accounts.len() as u64);
    text.family("account_ready", "gauge", "1 for an account that can be traded with.");
    for account in &view.accounts {
        text.value(&[("account", &account.name)], u64::from(account.step() == Step::Ready));
    }
    let used: Vec<&ConnectionView> =
        view.connections.iter().filter(|connection| connection.is_used.read() == 1).collect();
    text.family("connection_ready", "gauge", "1 for a connection to the venue that is ready.");
    for connection in &used {
        let transport = Transport(connection.transport.read() as u8);
        let labels =
            [("connection", connection.name.as_str()), ("transport", transport.name().unwrap_or("other"))];
        let is_ready = connection.status.read() == u64::from(ConnectionStatus::READY.0);
        text.value(&labels, is_ready.into());
    }
    text.family("connection_losses_total", "counter", "How often a connection to the venue was lost.");
    for connection in &used {
        text.value(&[("connection", &connection.name)], connection.losses.read());
    }
    text.family("started_nanoseconds", "gauge", "When the gateway was started, since 1970.");
    text.value(&[], view.started_ns.read());
}
