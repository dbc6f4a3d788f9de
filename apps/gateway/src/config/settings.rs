//! The settings of the gateway core that follow from a configuration.

use tickpath_config::ConfigError;
use tickpath_gateway_core::{AccountSettings, RequestLimit, RiskLimit, Settings, UserSettings};
use tickpath_gateway_protocol::{Text, Transport};

use super::{AccountConfig, GatewayConfig, UserConfig};

impl GatewayConfig {
    /// Derives the settings of the gateway core.
    ///
    /// # Errors
    /// [`ConfigError`] with a pattern that is not a regular expression.
    pub fn settings(&self) -> Result<Settings, ConfigError> {
        let GatewayConfig { venue, clients, .. } = self;
        let is_by_fix = venue.transport == super::Transport::Fix;
        Ok(Settings {
            name: self.name.clone(),
            exchange: Text::cut(&venue.exchange),
            uri: Text::cut(&venue.ws_uri),
            fix_uri: venue.fix_uri.as_ref().map_or(Text::EMPTY, |uri| Text::cut(&uri.to_string())),
            trading: if is_by_fix { Transport::FIX } else { Transport::WEB_SOCKET },
            is_production: self.production,
            is_dry_run: self.dry_run,
            filter: self.symbols.filter()?,
            accounts: self
                .accounts
                .iter()
                .map(|named| self.account_settings(named))
                .collect::<Result<_, _>>()?,
            users: self.users.iter().map(|named| self.user_settings(named)).collect::<Result<_, _>>()?,
            feeds: venue.feeds.settings(),
            depth: venue.depth as usize,
            subscriptions_max: venue.subscriptions_max as usize,
            interval: venue.book_interval.name(),
            ticker_interval: venue.ticker_interval.name(),
            book_timeout: venue.book_timeout.0,
            request_timeout: venue.request_timeout.0,
            orders_max: clients.orders_max as usize,
            ping_interval: venue.ws_ping_interval.0,
            matching: (venue.matching_rate, venue.matching_burst),
            cancels: clients.cancel_on_disconnect,
            return_patience: clients.return_patience.0,
            trades_beside_unreadable: venue.trade_beside_unreadable,
        })
    }

    fn account_settings(
        &self,
        (name, account): (&String, &AccountConfig),
    ) -> Result<AccountSettings, ConfigError> {
        let caps = self.caps_of(account);
        Ok(AccountSettings {
            name: name.clone(),
            symbols: account.symbols.compile(&format!("accounts.{name}.symbols"))?,
            caps: RiskLimit {
                order_size_max: caps.order_size_max.map(|amount| amount.0),
                notional_max: caps.notional_max.map(|amount| amount.0),
                open_orders_max: caps.open_orders_max,
            },
            waits_for_limits: caps.wait_for_risk_limits == Some(true),
        })
    }

    fn user_settings(&self, (name, user): (&String, &UserConfig)) -> Result<UserSettings, ConfigError> {
        let has = |account: &String| user.accounts.contains(account);
        let places = self.accounts.keys().enumerate().filter(|(_, account)| has(account));
        Ok(UserSettings {
            name: name.clone(),
            accounts: places.fold(0, |all, (place, _)| all | 1 << place),
            symbols: user.symbols.compile(&format!("users.{name}.symbols"))?,
            has_mmp: user.mmp,
            mmp_group: user.mmp_group.as_deref().map(Text::cut),
            is_risk_manager: user.risk_manager,
            requests: RequestLimit {
                max: user.request_limit,
                monitor_period: user.monitor_period.0,
                ban_period: user.ban_period.0,
            },
        })
    }
}
