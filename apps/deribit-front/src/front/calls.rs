//! Request methods: their access rights, their cost and their handlers.

use tickpath_deribit::credits::CreditPool;
use tickpath_deribit::error_code::ErrorCode;
use tickpath_deribit::method::Method;
use tickpath_deribit::request::Request;
use tickpath_deribit::scan::Value;
use tickpath_types::Side;

use super::peers::PublicPool;
use super::{Answer, Front};
use crate::connection::Transport;
use crate::fault::Fault;
use crate::json::text_of;
use crate::pending::ReplyTo;
use crate::scope::{Access, Scope};

/// Access that a private method requires.
#[derive(Clone, Copy)]
pub(super) enum Need {
    /// Any login.
    Login,
    Account(Access),
    Trade(Access),
    Wallet(Access),
}

fn need(method: Method) -> Need {
    match method {
        Method::Logout
        | Method::PrivateSubscribe
        | Method::PrivateUnsubscribe
        | Method::PrivateUnsubscribeAll
        | Method::GetCancelOnDisconnect => Need::Login,
        Method::GetAccountSummary
        | Method::GetAccountSummaries
        | Method::GetSubaccounts
        | Method::GetTransactionLog => Need::Account(Access::Read),
        Method::EnableCancelOnDisconnect
        | Method::DisableCancelOnDisconnect
        | Method::SetSelfTradingConfig => Need::Account(Access::ReadWrite),
        Method::GetDeposits
        | Method::GetWithdrawals
        | Method::GetTransfers
        | Method::GetCurrentDepositAddress => Need::Wallet(Access::Read),
        Method::CreateDepositAddress
        | Method::SubmitTransferToUser
        | Method::SubmitTransferToSubaccount
        | Method::Withdraw => Need::Wallet(Access::ReadWrite),
        Method::SetMmpConfig | Method::ResetMmp => Need::Trade(Access::ReadWrite),
        method if method.is_matching() => Need::Trade(Access::ReadWrite),
        _ => Need::Trade(Access::Read),
    }
}

impl Front {
    /// Handles a request, if its client has the access right.
    pub(super) fn call(&mut self, number: u64, request: &Request<'_>, frame: &[u8], to: &ReplyTo) -> Answer {
        let method = request.method;
        let caller = match self.caller(number, request) {
            Ok(caller) => caller,
            Err(fault) => {
                // A rejected request costs credits too, which bounds the number of token guesses.
                let is_guess = fault.code == ErrorCode::Unauthorized && self.shows_token(number, request);
                let pool = if is_guess { PublicPool::RefusedLogin(None) } else { PublicPool::Any };
                self.charge_refused(number, pool)?;
                return Err(fault);
            }
        };
        let pool = match method {
            Method::CancelByLabel if !names_currency(request) => CreditPool::CancelAll,
            method => CreditPool::of(method),
        };
        // A login is charged to the account once the account is known.
        if method != Method::Auth {
            self.charge(number, caller, pool)?;
        } else if self.put_off_auth(request, frame, to)? {
            return Ok(None);
        }
        let Some(account) = caller.filter(|_| method.is_private()) else {
            return self.call_public(number, request);
        };
        if self.queue_call(account, request, frame, to)? {
            return Ok(None);
        }
        self.call_private(number, account, request, to)
    }

    /// Handles a request of an authenticated client that was charged for it.
    pub(super) fn call_private(
        &mut self,
        number: u64,
        account: usize,
        request: &Request<'_>,
        to: &ReplyTo,
    ) -> Answer {
        match request.method {
            Method::Logout => self.log_out(number, request),
            Method::EnableCancelOnDisconnect => self.set_cancel_on_disconnect(number, account, request, true),
            Method::DisableCancelOnDisconnect => {
                self.set_cancel_on_disconnect(number, account, request, false)
            }
            Method::GetCancelOnDisconnect => self.cancel_on_disconnect(number, account, request),
            Method::PrivateSubscribe => self.subscribe(number, Some(account), request),
            Method::PrivateUnsubscribe => self.unsubscribe(number, request),
            Method::PrivateUnsubscribeAll => self.unsubscribe_all(number),
            Method::Buy => self.place(account, Side::Buy, request, to),
            Method::Sell => self.place(account, Side::Sell, request, to),
            Method::Edit => self.edit(account, request, to),
            Method::EditByLabel => self.edit_by_label(account, request, to),
            Method::Cancel => self.cancel(account, request, to),
            Method::CancelByLabel
            | Method::CancelAll
            | Method::CancelAllByInstrument
            | Method::CancelAllByCurrency
            | Method::CancelAllByCurrencyPair
            | Method::CancelAllByKindOrType => self.cancel_many(account, request, to),
            Method::MassQuote => self.mass_quote(account, request, to),
            Method::CancelQuotes => self.cancel_quotes(account, request, to),
            Method::ClosePosition => self.close_position(account, request, to),
            Method::GetOpenOrders
            | Method::GetOpenOrdersByInstrument
            | Method::GetOpenOrdersByCurrency
            | Method::GetOpenOrdersByLabel => self.open_orders(account, request),
            Method::GetOrderState => self.order_state(account, request),
            Method::GetOrderStateByLabel => self.order_state_by_label(account, request),
            Method::GetOrderHistoryByInstrument | Method::GetOrderHistoryByCurrency => {
                self.order_history(account, request)
            }
            Method::GetTriggerOrderHistory => self.trigger_history(account, request),
            Method::GetUserTradesByInstrument
            | Method::GetUserTradesByInstrumentAndTime
            | Method::GetUserTradesByCurrency
            | Method::GetUserTradesByCurrencyAndTime => self.user_trades(account, request),
            Method::GetUserTradesByOrder => self.user_trades_by_order(account, request),
            Method::GetSettlementHistoryByInstrument | Method::GetSettlementHistoryByCurrency => {
                self.settlement_history(account, request)
            }
            Method::GetTransactionLog => self.transaction_log(account, request),
            Method::SetSelfTradingConfig => self.set_self_trading(account, request, to),
            Method::SetMmpConfig => self.set_protection(account, request),
            Method::GetMmpConfig => self.protection(account, request),
            Method::GetMmpStatus => self.protection_status(account, request),
            Method::ResetMmp => self.reset_protection(account, request),
            Method::GetPosition => self.position(account, request),
            Method::GetPositions => self.positions(account, request),
            Method::GetAccountSummary => self.account_summary(account, request),
            Method::GetAccountSummaries => self.account_summaries(account, request),
            Method::GetSubaccounts => self.subaccounts(account, request),
            Method::GetMargins => self.margins(request),
            Method::GetDeposits | Method::GetWithdrawals => self.payments(account, request),
            Method::GetTransfers => self.transfers(account, request),
            Method::GetCurrentDepositAddress | Method::CreateDepositAddress => {
                self.deposit_address(account, request)
            }
            Method::SubmitTransferToUser | Method::SubmitTransferToSubaccount | Method::Withdraw => {
                self.send_money(account, request)
            }
            _ => Err(ErrorCode::MethodNotFound.into()),
        }
    }

    fn call_public(&mut self, number: u64, request: &Request<'_>) -> Answer {
        match request.method {
            Method::Auth => self.authenticate(number, request),
            Method::ForkToken => self.fork_token(number, request),
            Method::ExchangeToken => self.exchange_token(number, request),
            Method::SetHeartbeat => self.set_heartbeat(number, request),
            Method::DisableHeartbeat => self.disable_heartbeat(number),
            Method::Test => self.test(request),
            Method::Hello => self.hello(request),
            Method::GetTime => self.time(),
            Method::Status => self.status(),
            Method::PublicSubscribe => self.subscribe(number, None, request),
            Method::PublicUnsubscribe => self.unsubscribe(number, request),
            Method::PublicUnsubscribeAll => self.unsubscribe_all(number),
            Method::GetInstruments => self.instruments(request),
            Method::GetInstrument => self.instrument(request),
            Method::GetCurrencies => self.currencies(),
            Method::GetContractSize => self.contract_size(request),
            Method::GetOrderBook | Method::GetOrderBookByInstrumentId => self.order_book(request),
            Method::Ticker => self.ticker(request),
            Method::GetIndexPrice => self.index_price(request),
            Method::GetBookSummaryByCurrency | Method::GetBookSummaryByInstrument => {
                self.book_summary(request)
            }
            Method::GetFundingRateValue => self.funding_rate(request),
            Method::GetFundingRateHistory => self.funding_history(request),
            Method::GetTradingviewChartData => self.chart_data(request),
            Method::GetFundingChartData => self.funding_chart(request),
            Method::GetVolatilityIndexData => self.volatility_index(request),
            Method::GetHistoricalVolatility => self.historical_volatility(request),
            Method::GetMarkPriceHistory => self.mark_history(request),
            Method::GetIndexPriceNames => self.index_names(request),
            Method::GetExpirations => self.expirations(request),
            Method::GetTradeVolumes => self.trade_volumes(request),
            Method::GetAnnouncements => self.announcements(request),
            Method::GetCombos => self.combos(request),
            Method::GetDeliveryPrices => self.delivery_prices(request),
            Method::GetLastSettlementsByInstrument | Method::GetLastSettlementsByCurrency => {
                self.last_settlements(request)
            }
            Method::GetLastTradesByInstrument
            | Method::GetLastTradesByInstrumentAndTime
            | Method::GetLastTradesByCurrency
            | Method::GetLastTradesByCurrencyAndTime => self.last_trades(request),
            _ => Err(ErrorCode::MethodNotFound.into()),
        }
    }

    /// Returns the scope that applies to the request.
    pub(super) fn scope_of(&self, number: u64, request: &Request<'_>) -> Scope {
        let params: Option<Value<'_>> = request.params().ok();
        let token = params.and_then(|params| text_of(&params, "access_token"));
        let grant = token.and_then(|token| self.auth.find(&token, false, number, self.now_us));
        match (grant, self.connections.get(&number)) {
            (Some(grant), _) => grant.scope.clone(),
            (None, Some(connection)) => connection.scope.clone(),
            (None, None) => Scope::default(),
        }
    }

    /// Returns the account of the request: the connection's, or that of the token in the params.
    fn caller(&self, number: u64, request: &Request<'_>) -> Result<Option<usize>, Fault> {
        let Some(connection) = self.connections.get(&number) else { return Ok(None) };
        // A logout is accepted with an expired token.
        let is_over = self.now_us >= connection.login_until_us && request.method != Method::Logout;
        let mut caller = connection.account.filter(|_| !is_over).map(|account| (account, &connection.scope));
        if request.method.is_private() {
            let params: Option<Value<'_>> = request.params().ok();
            if let Some(token) = params.and_then(|params| text_of(&params, "access_token")) {
                let grant = self.auth.find(&token, false, number, self.now_us);
                let grant =
                    grant.ok_or(Fault::because(ErrorCode::Unauthorized, "invalid or expired token"))?;
                caller = Some((grant.account, &grant.scope));
            }
            let (_, scope) = caller.ok_or(Fault::because(ErrorCode::Unauthorized, "missing token"))?;
            if !allows(scope, need(request.method)) {
                return Err(ErrorCode::Forbidden.into());
            }
        }
        Ok(caller.map(|(account, _)| account))
    }

    fn shows_token(&self, number: u64, request: &Request<'_>) -> bool {
        let params: Option<Value<'_>> = request.params().ok();
        let is_known = self.connections.get(&number).is_some_and(|connection| connection.account.is_some());
        !is_known && params.is_some_and(|params| text_of(&params, "access_token").is_some())
    }

    /// Consumes credits; disconnects a client without any left.
    pub(super) fn charge(
        &mut self,
        number: u64,
        caller: Option<usize>,
        pool: CreditPool,
    ) -> Result<(), Fault> {
        let now = self.now();
        let Some(connection) = self.connections.get(&number) else { return Ok(()) };
        let is_paid = match (caller, pool) {
            (None, CreditPool::GetInstruments) => {
                self.peers.try_take(connection.peer, PublicPool::GetInstruments, now)
            }
            (None, _) => self.peers.try_take(connection.peer, PublicPool::Any, now),
            (Some(account), pool) => self.accounts[account].credits(pool).try_take(now).is_ok(),
        };
        if is_paid { Ok(()) } else { Err(self.send_away(number)) }
    }

    /// Consumes the credits of a request that is rejected before its caller is known: those of the
    /// connection's account, or of its address.
    pub(super) fn charge_refused(&mut self, number: u64, pool: PublicPool) -> Result<(), Fault> {
        let now = self.now();
        let Some(connection) = self.connections.get(&number) else { return Ok(()) };
        let is_paid = match (connection.account, pool) {
            (Some(account), PublicPool::Any) => {
                self.accounts[account].credits(CreditPool::NonMatching).try_take(now).is_ok()
            }
            _ => self.peers.try_take(connection.peer, pool, now),
        };
        if is_paid { Ok(()) } else { Err(self.send_away(number)) }
    }

    pub(super) fn send_away(&mut self, number: u64) -> Fault {
        self.counters.over_rate.add(1);
        if let Some(connection) = self.connections.get_mut(&number) {
            connection.end = Some("too_many_requests");
        }
        ErrorCode::TooManyRequests.into()
    }

    /// Returns an error over HTTP, for methods that only make sense on a WebSocket.
    pub(super) fn needs_websocket(&self, number: u64) -> Result<(), Fault> {
        let connection = self.connections.get(&number);
        if connection.is_some_and(|connection| connection.transport == Transport::WebSocket) {
            Ok(())
        } else {
            Err(ErrorCode::MustBeWebsocketRequest.into())
        }
    }
}

fn names_currency(request: &Request<'_>) -> bool {
    let params: Option<Value<'_>> = request.params().ok();
    params.is_some_and(|params| text_of(&params, "currency").is_some())
}

pub(super) fn allows(scope: &Scope, need: Need) -> bool {
    match need {
        Need::Login => true,
        Need::Account(access) => scope.account >= access,
        Need::Trade(access) => scope.trade >= access,
        Need::Wallet(access) => scope.wallet >= access,
    }
}
