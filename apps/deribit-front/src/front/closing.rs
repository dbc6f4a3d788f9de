//! Orders that close positions, and the quantity that is left to close.

use tickpath_deribit::codes::{CancelReason, OrderType};
use tickpath_deribit::error_code::ErrorCode;
use tickpath_deribit::messages::ClosePosition;
use tickpath_deribit::request::Request;
use tickpath_types::{Qty, Side};

use super::{ACCOUNT_REQUESTS_MAX, Answer, Front, REQUESTS_MAX};
use crate::fault::Fault;
use crate::order::{Order, Terms};
use crate::pending::{Intent, ReplyTo, Work};

impl Front {
    pub(super) fn close_position(&mut self, account: usize, request: &Request<'_>, to: &ReplyTo) -> Answer {
        let close: ClosePosition<'_> = request.params()?;
        let listing = self.find_traded(&close.instrument_name.to_cow())?;
        let size = self.accounts[account].position(listing).size;
        let side = match size.signum() {
            1 => Side::Sell,
            -1 => Side::Buy,
            _ => return Err(Fault::because(ErrorCode::AlreadyClosed, "there is no position")),
        };
        if !matches!(close.order_type, OrderType::Limit | OrderType::Market) {
            return Err(Fault::param("type", "value must be limit or market"));
        }
        if close.order_type == OrderType::Limit {
            self.check_not_liquidated(account, listing)?;
        }
        let price = self.price_of(listing, side, close.order_type, close.price)?;
        let terms = Terms { order_type: close.order_type, is_reduce_only: true, ..Terms::default() };
        let is_meant =
            |order: &Order| (order.listing, order.side) == (listing, side) && order.terms.is_reduce_only;
        let open = self.accounts[account].open.values().filter(|order| is_meant(order));
        let open: Vec<u64> = open.map(|order| order.number).collect();
        // A market order closes the position now and replaces pending close orders. Others are added to them.
        let gives_way: &[u64] = if close.order_type == OrderType::Market { &open } else { &[] };
        let closing = self.closing(account, listing, side, gives_way);
        let left = size.unsigned_abs().saturating_sub(closing);
        if left == 0 {
            let why = "open reduce_only orders close the whole position: cancel them first";
            return Err(Fault::because(ErrorCode::AlreadyClosed, why));
        }
        // For a position above the maximum order size, further requests close the rest.
        let qty = Qty(left).min(self.settings.listings[listing].max_qty);
        let intent = Intent { listing, side, qty, price, terms, display: Qty::ZERO, moves: 0 };
        self.check_closing(account, &intent, gives_way)?;
        let own = self.accounts[account].pending.len() + gives_way.len();
        if own >= ACCOUNT_REQUESTS_MAX || self.requests.len() + gives_way.len() >= REQUESTS_MAX {
            return Err(ErrorCode::MatchingEngineQueueFull.into());
        }
        for number in gives_way {
            if !self.accounts[account].is_cancelling(*number) {
                self.send_cancel(account, *number, None, None, CancelReason::UserRequest)?;
            }
        }
        self.enter(account, intent, Some(to.connection), Some(to.clone()))?;
        Ok(None)
    }

    /// Returns the quantity of a position that open and in-flight reduce-only orders close.
    fn closing(&self, account: usize, listing: usize, side: Side, but: &[u64]) -> u64 {
        let known = &self.accounts[account];
        let is_meant =
            |place: usize, own: Side, terms: &Terms| (place, own) == (listing, side) && terms.is_reduce_only;
        let open = known.open.values().filter(|order| !but.contains(&order.number));
        let open = open.filter(|order| is_meant(order.listing, order.side, &order.terms));
        let pending = known.pending.iter().filter_map(|pending| match pending.work {
            Work::Place(intent) if is_meant(intent.listing, intent.side, &intent.terms) => Some(intent.qty.0),
            _ => None,
        });
        open.map(|order| order.leaves().0).chain(pending).fold(0, u64::saturating_add)
    }

    /// Checks the funds for the order as if the orders `gone` were cancelled already.
    fn check_closing(&mut self, account: usize, intent: &Intent, gone: &[u64]) -> Result<(), Fault> {
        let open = &mut self.accounts[account].open;
        let aside: Vec<Order> = gone.iter().filter_map(|number| open.remove(number)).collect();
        let checked = self.check_held(account, intent, intent.qty, None);
        let aside = aside.into_iter().map(|order| (order.number, order));
        self.accounts[account].open.extend(aside);
        checked
    }
}
