//! Execution reports for FIX clients.

use tickpath_deribit::codes::{Advanced, CancelReason, OrderState, OrderType, TimeInForce, Trigger};
use tickpath_deribit::error_code::ErrorCode;
use tickpath_derivatives::Style;
use tickpath_fix::Decimal as FixDecimal;
use tickpath_fix::deribit::{
    AffectedOrder, ExecType, ExecutionReport, Fill, FillLiquidity, OrdStatus, OrdType, OrderCancelReject,
    OrderMassCancelReport, PegPriceType, QtyType, SideCode, TimeInForceCode, Trigger as TriggerCode,
};
use tickpath_fix::session::BusinessReject;
use tickpath_fix::{Group, SessionRejectReason};
use tickpath_types::{Nanos, Price, Qty};

use super::orders::{DUPLICATE, UNKNOWN_KIND};
use super::{FixDone, Front, Outgoing, decimal_of, figure_of, text, words_of, written};
use crate::account::Changes;
use crate::fault::Fault;
use crate::front::ELEMENTS_MAX;
use crate::listing::Listing;
use crate::order::{Order, UserTrade, hundredths};
use crate::pending::{FixKind, FixRequest, ReplyTo};

/// MassCancelRequestType (530) in the reply to a Quote Cancel.
const OF_QUOTES: u64 = 11;
const EXCHANGE: &str = "Deribit";
pub(super) const SUCCESS: &str = "success";
const NOTIFICATION: &str = "notification";
/// BusinessRejectReason (380): the application is not available.
const NOT_AVAILABLE: u64 = 4;
/// Maximum number of orders listed in a mass cancel report; all of them are counted.
const NAMED_MAX: usize = 10_000;

/// Kind and content of an execution report.
#[derive(Clone, Copy)]
struct Occasion<'a> {
    exec_type: ExecType,
    text: &'a str,
    /// Fills to list.
    fills: &'a [UserTrade],
    /// The reported fill.
    last: Option<&'a UserTrade>,
    /// Id and type of the mass status request, and the number of its reports.
    mass_status: Option<(&'a str, u64, u64)>,
}

impl<'a> Occasion<'a> {
    fn of(text: &'a str, fills: &'a [UserTrade]) -> Occasion<'a> {
        Occasion { exec_type: ExecType::ORDER_STATUS, text, fills, last: None, mass_status: None }
    }
}

impl Front {
    /// Replies to an order request.
    pub(in crate::front) fn answer_fix(
        &mut self,
        account: usize,
        to: &ReplyTo,
        asked: &FixRequest,
        outcome: Result<FixDone<'_>, Fault>,
    ) {
        let number = to.connection;
        let done = match outcome {
            Err(fault) => return self.refuse_fix(to, asked, fault),
            Ok(done) => done,
        };
        self.send_fix_reply(to, |front| match done {
            FixDone::Quotes(quoting) => {
                let ack = front.quote_ack(account, &asked.client_id, quoting);
                front.send_fix(number, ack);
            }
            FixDone::Many(orders) => {
                let report = front.mass_cancel_report(account, asked, orders);
                front.send_fix(number, report);
            }
            FixDone::Order { number: order, .. } if asked.kind == FixKind::Cancel => {
                let brief = front.brief_report(account, order);
                front.send_fix(number, brief);
            }
            FixDone::Order { number: order, trades } => {
                front.send_reports(number, account, order, trades, SUCCESS);
            }
        });
        // A lost reply is not sent as a notification either.
        if let FixDone::Order { number: order, .. } = done
            && asked.kind != FixKind::Cancel
        {
            self.fix.answered = Some((number, order));
        }
    }

    /// Reports the rejection of an order request.
    pub(in crate::front) fn refuse_fix(&mut self, to: &ReplyTo, asked: &FixRequest, fault: Fault) {
        self.counters.refused.add(1);
        let words = words_of(&fault);
        let refusal = match asked.kind {
            FixKind::Enter => self.rejected(asked, &fault, &words),
            FixKind::Replace | FixKind::Cancel => self.not_cancelled(to, asked, &fault, &words),
            FixKind::Quote => self.quotes_refused(asked, &fault, &words),
            FixKind::MassCancel(_) | FixKind::CancelQuotes(_) => written(&OrderMassCancelReport {
                response: Some(0),
                reject_reason: Some(match fault.code {
                    ErrorCode::InvalidOrUnsupportedInstrument => 1,
                    _ if fault.param == "instrument_name" => 1,
                    _ if fault.reason == UNKNOWN_KIND => 5,
                    _ => 99,
                }),
                text: Some(&words),
                ..mass_cancel_report(asked)
            }),
        };
        self.send_fix_reply(to, |front| front.send_fix(to.connection, refusal));
    }

    /// Reports an unknown outcome: the request may still be executed, so the order is not rejected.
    pub(in crate::front) fn give_up_fix(&mut self, number: u64, asked: &FixRequest) {
        let reject = written(&BusinessReject {
            ref_msg_type: match asked.kind {
                FixKind::Enter => "D",
                FixKind::Replace => "G",
                FixKind::Cancel => "F",
                FixKind::MassCancel(_) => "q",
                FixKind::Quote => "i",
                FixKind::CancelQuotes(_) => "Z",
            },
            reason: NOT_AVAILABLE,
            ref_seq_num: Some(asked.sequence),
            ref_id: text(&asked.client_id),
            text: Some("timed_out: ask for the state of the order"),
        });
        self.send_fix(number, reject);
    }

    /// Writes the rejection of a new order.
    fn rejected(&self, asked: &FixRequest, fault: &Fault, words: &str) -> Option<Outgoing> {
        let FixRequest { client_id, label, symbol, side, qty, price, .. } = asked;
        written(&ExecutionReport {
            ord_status: OrdStatus::REJECTED,
            exec_type: Some(ExecType::REJECTED),
            cl_ord_id: text(client_id),
            orig_cl_ord_id: text(client_id),
            side: Some(*side),
            transact_time: Some(self.now()),
            leaves_qty: Some(FixDecimal::ZERO),
            cum_qty: Some(FixDecimal::ZERO),
            order_qty: Some(*qty),
            price: *price,
            ord_rej_reason: Some(reject_reason(fault)),
            text: Some(words),
            security_exchange: Some(EXCHANGE),
            symbol: text(symbol),
            label: text(label),
            ..ExecutionReport::default()
        })
    }

    fn not_cancelled(
        &self,
        to: &ReplyTo,
        asked: &FixRequest,
        fault: &Fault,
        words: &str,
    ) -> Option<Outgoing> {
        let account = self.fix.up.get(&to.connection).map(|(account, _)| *account);
        let known = account.and_then(|account| {
            let number = self.order_number(account, &asked.order_id).ok()?;
            self.accounts[account].order(number)
        });
        let listing = known.map(|order| &self.settings.listings[order.listing]);
        written(&OrderCancelReject {
            ord_status: Some(known.map_or(OrdStatus::REJECTED, status_of)),
            cxl_rej_reason: Some(match fault.code {
                ErrorCode::AlreadyFilled | ErrorCode::NotOpenOrder | ErrorCode::TimedOut => 0,
                ErrorCode::OrderNotFound | ErrorCode::InvalidOrderId => 1,
                _ => 99,
            }),
            text: Some(words),
            orig_cl_ord_id: text(&asked.order_id),
            cl_ord_id: text(&asked.client_id),
            label: text(&asked.label),
            leaves_qty: known.zip(listing).map(|(order, listing)| contracts(listing, leaves(order))),
            avg_px: None,
        })
    }

    /// Confirms a cancel; a full report of the order follows separately.
    fn brief_report(&self, account: usize, order: u64) -> Option<Outgoing> {
        let order = self.accounts[account].order(order)?;
        let listing = &self.settings.listings[order.listing];
        written(&ExecutionReport {
            ord_status: OrdStatus::CANCELLED,
            exec_type: Some(ExecType::CANCELLED),
            cl_ord_id: Some(&order.id(listing)),
            orig_cl_ord_id: text(self.labels.client_id(order.terms.label)),
            text: Some(SUCCESS),
            ..ExecutionReport::default()
        })
    }

    fn mass_cancel_report(&self, account: usize, asked: &FixRequest, orders: &[u64]) -> Option<Outgoing> {
        let known = self.accounts[account].orders(&orders[..orders.len().min(NAMED_MAX)]);
        let ids: Vec<String> =
            known.into_iter().map(|order| order.id(&self.settings.listings[order.listing])).collect();
        let affected: Vec<AffectedOrder<'_>> =
            ids.iter().map(|id| AffectedOrder { orig_cl_ord_id: id }).collect();
        let report = mass_cancel_report(asked);
        written(&OrderMassCancelReport {
            order_id: report.cl_ord_id,
            response: report.request_type,
            total_affected_orders: Some(orders.len() as u64),
            text: Some(SUCCESS),
            affected_orders: Group::of(&affected),
            ..report
        })
    }

    /// Publishes changed orders of the account to a client, except the order that the current reply covers.
    pub(super) fn tell_reports(
        &mut self,
        number: u64,
        account: usize,
        changes: &Changes,
        answered: Option<(u64, u64)>,
    ) {
        let Some(link) = self.link(number) else { return };
        let (is_unsubscribed, is_own_only) = (link.is_unsubscribed, link.is_own_only);
        if is_unsubscribed {
            return;
        }
        for order in changes.orders.iter().filter(|order| answered != Some((number, **order))) {
            let connection = self.accounts[account].order(*order).and_then(|order| order.connection);
            if is_own_only && connection != Some(number) {
                continue;
            }
            let trades: Vec<UserTrade> =
                changes.trades.iter().filter(|trade| trade.order == *order).cloned().collect();
            self.send_reports(number, account, *order, &trades, NOTIFICATION);
        }
    }

    /// Sends one report with all fills, or first one report per fill if the client requested that.
    fn send_reports(&mut self, number: u64, account: usize, order: u64, trades: &[UserTrade], words: &str) {
        let is_apart = self.link(number).is_some_and(|link| link.has_fills_apart);
        if is_apart {
            for trade in trades {
                let occasion = Occasion {
                    exec_type: ExecType::TRADE,
                    last: Some(trade),
                    ..Occasion::of(NOTIFICATION, &[])
                };
                let report = self.report(account, order, &occasion);
                self.send_fix(number, report);
            }
        }
        // A report has limited capacity for fills, so further reports precede the one that replies.
        let further = trades.len().saturating_sub(1) / ELEMENTS_MAX * ELEMENTS_MAX;
        let (first, trades) = if is_apart { (&[][..], trades) } else { trades.split_at(further) };
        for fills in first.chunks(ELEMENTS_MAX) {
            let occasion = Occasion { last: fills.last(), ..Occasion::of(NOTIFICATION, fills) };
            let report = self.report(account, order, &occasion);
            self.send_fix(number, report);
        }
        let occasion = Occasion {
            last: trades.last().filter(|_| !is_apart),
            ..Occasion::of(words, if is_apart { &[] } else { trades })
        };
        if !(is_apart && !trades.is_empty() && words == NOTIFICATION) {
            let report = self.report(account, order, &occasion);
            self.send_fix(number, report);
        }
    }

    /// Writes the report of an order for a mass status request, given its id, type and number of reports.
    pub(super) fn status_report(&mut self, order: &Order, mass_status: (&str, u64, u64)) -> Option<Outgoing> {
        let occasion = Occasion { mass_status: Some(mass_status), ..Occasion::of(SUCCESS, &[]) };
        self.report_of(order, &occasion)
    }

    fn report(&mut self, account: usize, order: u64, occasion: &Occasion<'_>) -> Option<Outgoing> {
        let order = self.accounts[account].order(order)?.clone();
        self.report_of(&order, occasion)
    }

    fn report_of(&mut self, order: &Order, occasion: &Occasion<'_>) -> Option<Outgoing> {
        self.fix.reports += 1;
        let listing = &self.settings.listings[order.listing];
        let (id, report_id) = (order.id(listing), self.fix.reports.to_string());
        let fill_ids: Vec<String> =
            occasion.fills.iter().map(|trade| format!("{}#{}", listing.name, trade.public.seq)).collect();
        let fills: Vec<Fill<'_>> =
            occasion.fills.iter().zip(&fill_ids).map(|(trade, id)| fill(listing, trade, id)).collect();
        let instructions = instructions_of(order);
        let waits = order.trigger.is_some();
        let quote = order.extra.as_deref().filter(|_| order.terms.is_quote);
        let is_of_dollars = listing.contract.style == Style::Inverse;
        let advanced = order.terms.advanced;
        let advanced_as = |way| {
            advanced
                .filter(|(own, _)| *own == way)
                .map(|(_, value)| decimal_of(hundredths(value)).normalized())
        };
        written(&ExecutionReport {
            ord_status: status_of(order),
            exec_type: Some(match occasion.exec_type {
                ExecType::ORDER_STATUS => exec_type_of(order),
                other => other,
            }),
            secondary_exec_id: Some(&report_id),
            order_id: Some(&id),
            cl_ord_id: Some(&id),
            orig_cl_ord_id: text(self.labels.client_id(order.terms.label)),
            side: Some(SideCode::from(order.side)),
            transact_time: Some(Nanos::from_millis(order.updated_ms)),
            commission: Some(FixDecimal::ZERO),
            leaves_qty: Some(contracts(listing, leaves(order))),
            cum_qty: Some(contracts(listing, order.filled)),
            order_qty: Some(contracts(listing, order.qty)),
            ord_type: Some(ord_type_of(order)),
            price: (order.price.0 != 0).then(|| decimal_of(listing.price(order.price))),
            time_in_force: Some(time_of(order.terms.time_in_force)),
            exec_inst: text(&instructions),
            stop_px: order.trigger.map(|trigger| decimal_of(listing.price(trigger.price))),
            ord_rej_reason: Some(if order.state == OrderState::Rejected { 99 } else { 0 }),
            text: Some(occasion.text),
            security_exchange: Some(EXCHANGE),
            symbol: text(&listing.name),
            qty_type: Some(QtyType::CONTRACTS),
            contract_multiplier: Some(decimal_of(listing.contract_size)),
            avg_px: (!waits)
                .then(|| figure_of(listing.contract.mean_price(order.filled, order.filled_value))),
            display_qty: order.display.map(|display| contracts(listing, display)),
            max_show: Some(contracts(listing, order.display.unwrap_or(order.qty))),
            cash_order_qty: is_of_dollars.then(|| decimal_of(listing.amount(order.qty))),
            adv_order_type: order.terms.advanced.map(|(way, _)| advanced_code(way)),
            volatility: advanced_as(Advanced::ImpliedVolatility),
            pegged_price: advanced_as(Advanced::Usd),
            last_px: occasion.last.map(|trade| decimal_of(listing.price(trade.public.price))),
            last_qty: occasion.last.map(|trade| contracts(listing, trade.public.qty)),
            label: text(self.labels.name(order.terms.label)),
            mm_protection: (order.cancel_reason == Some(CancelReason::MmpTrigger)).then_some(true),
            trigger: order.trigger.map(|trigger| trigger_of(trigger.watched)),
            peg_offset_value: order
                .trigger
                .and_then(|trigger| trigger.offset)
                .map(|offset| decimal_of(listing.price(Price(offset)))),
            peg_price_type: order
                .trigger
                .and_then(|trigger| trigger.offset)
                .map(|_| PegPriceType::TRAILING_STOP),
            mass_status_req_id: occasion.mass_status.and_then(|(id, ..)| text(id)),
            mass_status_req_type: occasion.mass_status.map(|(_, kind, _)| kind),
            tot_num_reports: occasion.mass_status.map(|(.., count)| count),
            refresh_qty: order.display.map(|display| contracts(listing, display)),
            mmp_group: quote.and_then(|extra| text(&extra.mmp_group)),
            quote_id: quote.and_then(|extra| text(&extra.quote_id)),
            quote_set_id: quote.and_then(|extra| text(&extra.quote_set_id)),
            quote_entry_id: quote.and_then(|extra| text(&extra.quote_entry_id)),
            is_liquidation: (order.terms.order_type == OrderType::Liquidation).then_some(true),
            fills: if fills.is_empty() { Group::default() } else { Group::of(&fills) },
        })
    }
}

/// Returns the common fields of all mass cancel reports of a request.
fn mass_cancel_report(asked: &FixRequest) -> OrderMassCancelReport<'_> {
    let (request_type, quote_cancel_type) = match asked.kind {
        FixKind::CancelQuotes(cancel_type) => (Some(OF_QUOTES), Some(cancel_type)),
        FixKind::MassCancel(request_type) => (Some(request_type), None),
        _ => (None, None),
    };
    OrderMassCancelReport {
        cl_ord_id: text(&asked.client_id),
        request_type,
        quote_cancel_type,
        ..OrderMassCancelReport::default()
    }
}

fn fill<'a>(listing: &Listing, trade: &UserTrade, id: &'a str) -> Fill<'a> {
    Fill {
        fill_exec_id: id,
        fill_px: decimal_of(listing.price(trade.public.price)),
        fill_qty: contracts(listing, trade.public.qty),
        liquidity: Some(if trade.is_maker { FillLiquidity::ADDED } else { FillLiquidity::REMOVED }),
    }
}

/// Converts a quantity to contracts; a unit may be a fraction of a contract.
pub(super) fn contracts(listing: &Listing, qty: Qty) -> FixDecimal {
    FixDecimal::parse(listing.contracts(qty).as_bytes()).unwrap_or(FixDecimal::ZERO).normalized()
}

/// Returns the quantity that may still be executed.
fn leaves(order: &Order) -> Qty {
    let lives = matches!(order.state, OrderState::Open | OrderState::Untriggered);
    if lives { order.leaves() } else { Qty::ZERO }
}

fn status_of(order: &Order) -> OrdStatus {
    match order.state {
        OrderState::Filled => OrdStatus::FILLED,
        OrderState::Cancelled => OrdStatus::CANCELLED,
        OrderState::Rejected => OrdStatus::REJECTED,
        _ if order.filled.is_zero() => OrdStatus::NEW,
        _ => OrdStatus::PARTIALLY_FILLED,
    }
}

fn exec_type_of(order: &Order) -> ExecType {
    match order.state {
        OrderState::Triggered => ExecType::STOPPED,
        OrderState::Rejected => ExecType::REJECTED,
        OrderState::Cancelled if order.cancel_reason == Some(CancelReason::Settlement) => {
            match order.terms.time_in_force {
                TimeInForce::GoodTilDay => ExecType::DONE_FOR_DAY,
                _ => ExecType::EXPIRED,
            }
        }
        _ => ExecType::ORDER_STATUS,
    }
}

fn ord_type_of(order: &Order) -> OrdType {
    match order.shown_type() {
        OrderType::Market => OrdType::MARKET,
        OrderType::MarketLimit => OrdType::MARKET_LIMIT,
        OrderType::StopMarket => OrdType::STOP_MARKET,
        // Take orders exist only over JSON-RPC and have no OrdType.
        OrderType::StopLimit | OrderType::TakeLimit | OrderType::TakeMarket => OrdType::MARKET_IF_TOUCHED,
        OrderType::TrailingStop => OrdType::TRAILING_STOP,
        _ => OrdType::LIMIT,
    }
}

fn time_of(time: TimeInForce) -> TimeInForceCode {
    match time {
        TimeInForce::GoodTilDay => TimeInForceCode::GOOD_TIL_DAY,
        TimeInForce::FillOrKill => TimeInForceCode::FILL_OR_KILL,
        TimeInForce::ImmediateOrCancel => TimeInForceCode::IMMEDIATE_OR_CANCEL,
        _ => TimeInForceCode::GOOD_TIL_CANCEL,
    }
}

fn trigger_of(trigger: Trigger) -> TriggerCode {
    match trigger {
        Trigger::MarkPrice => TriggerCode::MARK,
        Trigger::LastPrice => TriggerCode::LAST,
        _ => TriggerCode::INDEX,
    }
}

fn instructions_of(order: &Order) -> String {
    let mut words = Vec::new();
    match (order.terms.is_post_only, order.terms.rejects_post_only) {
        (true, true) => words.push("6A"),
        (true, false) => words.push("6"),
        _ => {}
    }
    if order.terms.is_reduce_only {
        words.push("E");
    }
    words.join(" ")
}

/// DeribitAdvOrderType (100012).
const fn advanced_code(way: Advanced) -> &'static str {
    match way {
        Advanced::ImpliedVolatility => "0",
        _ => "1",
    }
}

/// OrdRejReason (103).
fn reject_reason(fault: &Fault) -> u64 {
    match fault.code {
        _ if fault.param == "instrument_name" => 1,
        _ if fault.reason == DUPLICATE => 6,
        ErrorCode::InvalidOrUnsupportedInstrument => 1,
        ErrorCode::BookClosed | ErrorCode::SettlementInProgress => 2,
        ErrorCode::NotEnoughFunds | ErrorCode::OtherReject | ErrorCode::NoMoreTriggers => 3,
        ErrorCode::TimedOut => 4,
        ErrorCode::NotImplemented => 11,
        ErrorCode::InvalidAmount | ErrorCode::QtyTooLow => 13,
        ErrorCode::PriceTooHigh | ErrorCode::PriceTooLow | ErrorCode::PriceNotAllowed => 16,
        ErrorCode::PriceWrongTick => 18,
        _ => u64::from(SessionRejectReason::OTHER.0),
    }
}
