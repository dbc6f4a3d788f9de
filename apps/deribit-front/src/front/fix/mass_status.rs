//! Mass status over FIX: first the number of orders, then a report of each as fast as the client reads.

use std::collections::VecDeque;

use tickpath_deribit::error_code::ErrorCode;
use tickpath_fix::deribit::{ExecType, ExecutionReport, OrdStatus, OrderMassStatusRequest};
use tickpath_fix::session::Refusal;
use tickpath_fix::{Body, FieldError, Message, SessionRejectReason, tag};

use super::orders::Name;
use super::{Caller, Front, Outgoing, out_of_range, text, written};
use crate::connection::OUT_BYTES_MAX;
use crate::front::orders::Selection;
use crate::order::Order;

/// MassStatusReqType (585).
const ALL: u64 = 7;
const ONE_ORDER: u64 = 1;
/// MassStatusIDType (9014).
const BY_ORDER_ID: u64 = 0;
const BY_CLIENT_ID: u64 = 1;
const BY_LABEL: u64 = 2;
/// Maximum number of queued reports, as many as an account has orders; a request beyond it is rejected.
const WAITING_MAX: usize = 1 << 17;
/// Output bytes that these reports may fill; the other half is for notifications.
const OUTPUT_SHARE: usize = OUT_BYTES_MAX / 2;
/// Maximum number of reports written at once.
const REPORTS_PER_TURN: usize = 256;

/// Reports still to be sent for one request.
pub(super) struct StatusReports {
    account: usize,
    request_id: String,
    request_type: u64,
    /// Total number of reports, including those already sent.
    count: u64,
    orders: VecDeque<u64>,
}

impl Front {
    pub(super) fn mass_status(&mut self, caller: Caller, message: &Message<'_>) -> Result<(), Refusal> {
        let account = caller.account;
        let request = OrderMassStatusRequest::decode(message)?;
        let is_by_name = matches!(request.id_type, Some(BY_CLIENT_ID | BY_LABEL));
        let orders: Vec<u64> = match request.request_type {
            ALL if !is_by_name => {
                let listing = request
                    .symbol
                    .map(|symbol| self.listing(symbol).ok_or(out_of_range(tag::SYMBOL)))
                    .transpose()?;
                let currencies = request.currency.map(str::to_owned).into_iter().collect();
                let selection = Selection { listing, currencies, ..Selection::default() };
                let meant = self.live(account).filter(|order| self.is_selected(&selection, order));
                meant.map(|order| order.number).collect()
            }
            // Deribit accepts either type for a single name.
            ALL | ONE_ORDER => {
                let id = Some(request.request_id);
                let mut name = Name { symbol: request.symbol, currency: request.currency, ..Name::default() };
                match request.id_type.unwrap_or(BY_ORDER_ID) {
                    BY_ORDER_ID => name.order_id = id,
                    BY_CLIENT_ID => name.client_id = id,
                    BY_LABEL => name.label = id,
                    _ => return Err(out_of_range(tag::MASS_STATUS_ID_TYPE).into()),
                }
                self.orders_named(account, &name)
            }
            _ => return Err(out_of_range(tag::MASS_STATUS_REQ_TYPE).into()),
        };
        self.begin_mass_status(caller, &request, orders)
    }

    /// Returns the named orders: for a label all open ones, or the closed ones if none is open.
    fn orders_named(&self, account: usize, name: &Name<'_>) -> Vec<u64> {
        let Some(label) = name.label else {
            return self.find_order(account, name).into_iter().collect();
        };
        let is_meant = |order: &&Order| name.has(self, order) && self.labels.name(order.terms.label) == label;
        let open: Vec<u64> = self.live(account).filter(is_meant).map(|order| order.number).collect();
        match open.is_empty() {
            true => {
                let closed = self.accounts[account].closed.iter().filter(is_meant);
                closed.map(|order| order.number).collect()
            }
            false => open,
        }
    }

    /// Replies with the number of orders; their reports follow as the output has capacity.
    fn begin_mass_status(
        &mut self,
        caller: Caller,
        request: &OrderMassStatusRequest<'_>,
        orders: Vec<u64>,
    ) -> Result<(), Refusal> {
        let Some(link) = self.link(caller.number) else { return Ok(()) };
        let waiting: usize = link.status_reports.iter().map(|own| own.orders.len()).sum();
        if waiting > 0 && waiting + orders.len() > WAITING_MAX {
            let error = FieldError { tag: 0, reason: SessionRejectReason::OTHER };
            let text = Some("too many reports wait to be sent: ask again once they came");
            return Err(Refusal::Field { error, text });
        }
        let (is_empty, count) = (orders.is_empty(), orders.len() as u64);
        let total = count.to_string();
        link.status_reports.push_back(StatusReports {
            account: caller.account,
            request_id: request.request_id.to_owned(),
            request_type: request.request_type,
            count,
            orders: orders.into(),
        });
        let first = written(&ExecutionReport {
            ord_status: if is_empty { OrdStatus::REJECTED } else { OrdStatus::NEW },
            exec_type: Some(ExecType::ORDER_STATUS),
            transact_time: Some(self.now()),
            text: Some(if is_empty { ErrorCode::OrderNotFound.message() } else { &total }),
            mass_status_req_id: text(request.request_id),
            mass_status_req_type: Some(request.request_type),
            tot_num_reports: Some(count),
            ..ExecutionReport::default()
        });
        self.send_fix(caller.number, first);
        self.send_status_reports(caller.number);
        Ok(())
    }

    /// Sends queued reports while the output has capacity, each with the current state of its order.
    pub(super) fn send_status_reports(&mut self, number: u64) {
        for _ in 0..REPORTS_PER_TURN {
            let Some(link) = self.link(number) else { return };
            if link.session.output().len() >= OUTPUT_SHARE {
                return;
            }
            let Some(mut asked) = link.status_reports.pop_front() else { return };
            let Some(order) = asked.orders.pop_front() else { continue };
            let report = self.status_report_of(&asked, order);
            if let Some(link) = self.link(number) {
                link.status_reports.push_front(asked);
            }
            self.send_fix(number, report);
        }
    }

    fn status_report_of(&mut self, asked: &StatusReports, number: u64) -> Option<Outgoing> {
        let mass_status = (asked.request_id.as_str(), asked.request_type, asked.count);
        if let Some(order) = self.accounts[asked.account].order(number).cloned() {
            return self.status_report(&order, mass_status);
        }
        // The order has ended and is no longer stored, because too many others ended after it.
        written(&ExecutionReport {
            ord_status: OrdStatus::REJECTED,
            exec_type: Some(ExecType::ORDER_STATUS),
            transact_time: Some(self.now()),
            order_id: Some(&number.to_string()),
            text: Some(ErrorCode::OrderNotFound.message()),
            mass_status_req_id: text(&asked.request_id),
            mass_status_req_type: Some(asked.request_type),
            tot_num_reports: Some(asked.count),
            ..ExecutionReport::default()
        })
    }
}
