//! The status of a gateway as JSON.

use std::sync::Arc;

use serde_json::{Value, json};
use tickpath_agent::TscClock;
use tickpath_gateway_core::{
    AccountSettings, Bans, Control, RiskLimit, Settings,
    account::{Step, words},
};
use tickpath_gateway_protocol::{ConnectionStatus, GatewayState, Transport};
use tickpath_types::Nanos;

use crate::config::{Amount, GatewayConfig};
use crate::metrics::{ClientMetrics, GatewayMetrics};
use crate::view::{ConnectionView, GatewayView};

/// Everything that a gateway's status is built from.
#[derive(Debug)]
pub struct GatewayStatus {
    /// The gateway's name.
    pub name: String,
    /// Name of the venue.
    pub exchange: String,
    /// WebSocket address of the venue.
    pub uri: String,
    /// Whether orders trade real money.
    pub is_production: bool,
    /// Whether this is a dry run: no order reaches the venue.
    pub is_dry_run: bool,
    /// The accounts, sorted by name.
    pub accounts: Vec<AccountSettings>,
    /// The gateway's state, as its duty cycle publishes it.
    pub view: Arc<GatewayView>,
    /// The gateway's metrics.
    pub metrics: Arc<GatewayMetrics>,
    /// The kill switch and the published limits.
    pub control: Control,
    /// Bans, by index into `users`.
    pub bans: Bans,
    /// The users, sorted by name.
    pub users: Vec<String>,
}

impl GatewayStatus {
    /// Creates the status of a gateway from its configuration and the core's settings.
    #[must_use]
    pub fn new(
        config: &GatewayConfig,
        settings: &Settings,
        view: Arc<GatewayView>,
        metrics: Arc<GatewayMetrics>,
        control: Control,
        bans: Bans,
    ) -> GatewayStatus {
        GatewayStatus {
            name: config.name.clone(),
            exchange: config.venue.exchange.clone(),
            uri: config.venue.ws_uri.clone(),
            is_production: config.production,
            is_dry_run: config.dry_run,
            accounts: settings.accounts.clone(),
            view,
            metrics,
            control,
            bans,
            users: config.users.keys().cloned().collect(),
        }
    }

    /// Returns the status as JSON: `is_trading` is true if any account can trade; `why` is the reason if not.
    #[must_use]
    pub fn json(&self) -> Value {
        let view = &self.view;
        let state = GatewayState(view.state.read() as u8);
        let why = self.why();
        let used = view.connections.iter().zip(view.loss_texts.iter());
        let connections: Vec<Value> = used
            .filter(|(connection, _)| connection.is_used.read() == 1)
            .map(|(connection, loss)| of_connection(connection, &loss.read()))
            .collect();
        json!({
            "gateway": self.name,
            "exchange": self.exchange,
            "venue": self.uri,
            "transport": self.transport().and_then(Transport::name),
            "state": state.name(),
            "is_trading": why.is_none(),
            "why": why.unwrap_or_else(|| view.text.read()),
            "started_ns": view.started_ns.read(),
            "state_since_ns": view.state_since_ns.read(),
            "is_production": self.is_production,
            "is_dry_run": self.is_dry_run,
            "is_killed": self.control.is_killed(),
            "open_orders": view.open_orders.read(),
            "foreign_orders": view.foreign.read(),
            "unreadable_orders": view.unreadable.read(),
            "orders_elsewhere": view.elsewhere.read(),
            "instruments": view.instruments.read(),
            "instruments_listed": view.listed.read(),
            "accounts_ready": view.accounts_ready(),
            "accounts": (0..self.accounts.len()).map(|place| self.of_account(place)).collect::<Vec<_>>(),
            "connections": connections,
            "banned": self.banned(TscClock::shared().now()),
            "clients": view.clients.read(),
            "client_list": self.metrics.clients().filter_map(of_client).collect::<Vec<_>>(),
        })
    }

    /// Returns the users whose requests and logins are refused for a while, with the end of each ban.
    fn banned(&self, now: Nanos) -> Vec<Value> {
        let until = |(place, user): (usize, &String)| {
            let until = self.bans.until(now, place)?;
            Some(json!({ "user": user, "until_ns": until.0 }))
        };
        self.users.iter().enumerate().filter_map(until).collect()
    }

    /// Transport of the order connection.
    fn transport(&self) -> Option<Transport> {
        let found = self.view.connections.iter().find(|connection| connection.is_trading.read() == 1)?;
        Some(Transport(found.transport.read() as u8))
    }

    /// Reason why no account can send an order; `None` if one can.
    fn why(&self) -> Option<String> {
        let view = &self.view;
        let is_killed = self.control.is_killed();
        let state = GatewayState(view.state.read() as u8);
        if state == GatewayState::STOPPING {
            return Some("the gateway is stopping".to_owned());
        }
        if is_killed {
            return Some(format!(
                "the kill switch is on: no order leaves until tickpath gateway release {0} --confirm {0}",
                self.name
            ));
        }
        if self.is_dry_run {
            return Some("a dry run: no order leaves".to_owned());
        }
        if view.accounts_ready() == 0 {
            let text = view.text.read();
            let is_told = !text.is_empty();
            return Some(if is_told { text } else { "no account is ready: orders are refused".to_owned() });
        }
        let can_trade = |(place, account): (usize, &AccountSettings)| {
            let is_ready = view.accounts.get(place).is_some_and(|account| account.step() == Step::Ready);
            let watches = view.accounts.get(place).is_some_and(|account| account.watches.read() == 1);
            is_ready && !watches && !(account.waits_for_limits && self.control.published(place).is_none())
        };
        if view.listed.read() > 0 && view.instruments.read() == 0 {
            return Some("no instrument of the venue matches symbols.include".to_owned());
        }
        if self.accounts.iter().enumerate().any(can_trade) {
            return None;
        }
        let text = view.text.read();
        let watches = view.accounts.iter().any(|account| account.watches.read() == 1) && !text.is_empty();
        let waits = |(place, account): (usize, &AccountSettings)| {
            account.waits_for_limits && self.control.published(place).is_none()
        };
        let limits = format!(
            "no limits are published: tickpath gateway limits {} ACCOUNT order_size_max=N",
            self.name
        );
        match (watches, self.accounts.iter().enumerate().any(waits)) {
            (true, false) => Some(text),
            (true, true) => Some(format!("{text}; {limits}")),
            (false, _) => Some(limits),
        }
    }

    fn of_account(&self, place: usize) -> Value {
        let (account, view) = (&self.accounts[place], self.view.accounts.get(place));
        let published = self.control.published(place);
        let held_to = account.caps.and(&published.unwrap_or_default());
        let step = view.map_or(Step::Down, crate::view::AccountView::step);
        let may_trade = view.is_none_or(|view| view.watches.read() == 0);
        json!({
            "name": account.name,
            "step": step.name(),
            "is_ready": step == Step::Ready,
            "words": words(step, may_trade),
            "may_trade": may_trade,
            "open_orders": view.map_or(0, |view| view.open_orders.read()),
            "limits": of_limit(&held_to),
            "published": published.as_ref().map(of_limit),
            "waits_for_limits": account.waits_for_limits && published.is_none(),
        })
    }
}

fn of_limit(limit: &RiskLimit) -> Value {
    let amount = |units: Option<i64>| units.map(|units| Amount(units).to_string());
    json!({
        "order_size_max": amount(limit.order_size_max),
        "notional_max": amount(limit.notional_max),
        "open_orders_max": limit.open_orders_max,
    })
}

fn of_connection(connection: &ConnectionView, loss: &str) -> Value {
    let status = ConnectionStatus(connection.status.read() as u8);
    let round_trip = Some(connection.round_trip_ns.read()).filter(|ns| *ns != 0);
    json!({
        "name": connection.name,
        "transport": Transport(connection.transport.read() as u8).name(),
        "is_trading": connection.is_trading.read() == 1,
        "is_market_data": connection.is_market_data.read() == 1,
        "status": status.name(),
        "losses": connection.losses.read(),
        "last_loss": Some(loss).filter(|loss| !loss.is_empty()),
        "round_trip_ns": round_trip,
    })
}

/// Status of the client in this slot; `None` if the slot is free.
fn of_client(client: &ClientMetrics) -> Option<Value> {
    let name = client.name.read();
    let mean = |histogram: &crate::metrics::Histogram| histogram.sum().checked_div(histogram.count());
    (!name.is_empty()).then(|| {
        json!({
            "number": client.number.read(),
            "name": name,
            "user": client.user.read(),
            "may_trade": client.may_trade.read() == 1,
            "to_client_mean_ns": mean(&client.to_client),
            "to_gateway_mean_ns": mean(&client.to_gateway),
        })
    })
}
