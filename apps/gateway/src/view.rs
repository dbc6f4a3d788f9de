//! What a gateway does and how its parts stand, readable from outside while it runs.

use std::sync::Arc;

use tickpath_agent::Counter;
use tickpath_gateway_core::{Connection, Core, account::Step};

use crate::metrics::{MetricsText, Sampler, TextCell};

/// Why a connection was lost last: up to 128 bytes.
pub type LossText = TextCell<16>;

/// What a gateway does, readable from outside while it runs.
#[derive(Debug, Default)]
#[repr(align(128))] // on cache lines of its own: another thread's writes beside it would cost its writer
pub struct GatewayView {
    /// How it stands, a [`GatewayState`](tickpath_gateway_protocol::GatewayState).
    pub state: Counter,
    /// Since when, in nanoseconds since 1970; 0 before the first look.
    pub state_since_ns: Counter,
    /// When it was built, in nanoseconds since 1970.
    pub started_ns: Counter,
    /// Why it stands so, for people; empty where all is well.
    pub text: TextCell<8>,
    /// Clients that are in.
    pub clients: Counter,
    /// Requests of clients.
    pub requests: Counter,
    /// Those of them that were refused here.
    pub refused: Counter,
    /// Orders that are not over.
    pub open_orders: Counter,
    /// Messages of the venue.
    pub messages: Counter,
    /// Broadcast events.
    pub broadcasts: Counter,
    /// Instruments.
    pub instruments: Counter,
    /// News of the venue that could not be told exactly.
    pub faults: Counter,
    /// Orders whose fate was not certain for a while.
    pub doubts: Counter,
    /// Connections that were lost.
    pub losses: Counter,
    /// Open orders at the accounts that no client of this gateway made.
    pub foreign: Counter,
    /// Those of them that cannot be read, and may be of this gateway.
    pub unreadable: Counter,
    /// Orders under this gateway's name at which somebody else is at work, since the start.
    pub elsewhere: Counter,
    /// Instruments that the venue has; 0 before they are known.
    pub listed: Counter,
    /// Once it is [closing](crate::process::Gateway::closing): orders that are to be cancelled and are not known to be over.
    pub cancels_left: Counter,
    /// Once it is closing: 1 when nothing is left to be done for clients.
    pub is_closed: Counter,
    /// The accounts, in the order of their names.
    pub accounts: Box<[AccountView]>,
    /// The connections, by their numbers.
    pub connections: Box<[ConnectionView]>,
    /// Why each connection was lost last.
    pub loss_texts: Arc<[LossText]>,
}

/// One account.
#[derive(Debug, Default)]
pub struct AccountView {
    /// Its name.
    pub name: String,
    /// How far it is: the place in [`Step::ALL`].
    step: Counter,
    /// 1 where the venue does not let its login trade.
    pub watches: Counter,
    /// Its orders that are not over.
    pub open_orders: Counter,
}

/// One connection to the venue.
#[derive(Debug, Default)]
pub struct ConnectionView {
    /// What it is called.
    pub name: String,
    /// 1 where it is wanted at all.
    pub is_used: Counter,
    /// How it stands, a [`ConnectionStatus`](tickpath_gateway_protocol::ConnectionStatus).
    pub status: Counter,
    /// What it speaks, a [`Transport`](tickpath_gateway_protocol::Transport).
    pub transport: Counter,
    /// 1 where orders go by it.
    pub is_trading: Counter,
    /// 1 where it brings market data.
    pub is_market_data: Counter,
    /// How often it was lost.
    pub losses: Counter,
    /// How long the venue took to answer the last ping, both ways, in nanoseconds; 0 before the first.
    pub round_trip_ns: Counter,
}

impl AccountView {
    /// How far it is.
    #[must_use]
    pub fn step(&self) -> Step {
        let place = usize::try_from(self.step.read()).unwrap_or(0);
        Step::ALL.get(place).copied().unwrap_or(Step::Down)
    }
}

impl GatewayView {
    /// Of a gateway that was built at a time, with a core's accounts and connections.
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

    /// Shows how accounts and connections stand. Only the one writer may call this.
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

    /// Accounts that can be traded with.
    #[must_use]
    pub fn accounts_ready(&self) -> usize {
        self.accounts.iter().filter(|account| account.step() == Step::Ready).count()
    }
}

/// Samples of how a gateway and its parts stand.
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
