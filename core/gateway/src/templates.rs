//! Params of order requests, and their fixed members as text, which each instrument keeps.

use tickpath_deribit::codes::{OrderType, TimeInForce};
use tickpath_deribit::messages::PlaceOrder;
use tickpath_deribit::prepared::{OrderTemplate, PlainLabel};
use tickpath_deribit::text::Text;
use tickpath_types::Side;

use super::convert::{decimal, has_price, optional};
use super::orders::{Order, Terms};

/// Capacity of the buffer that [`Templates::find`] encodes a template in, in bytes.
pub(super) const TEMPLATE_BUFFER: usize = 1 << 10;

/// Order parameters that a template has encoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Fixed {
    order_type: OrderType,
    time_in_force: TimeInForce,
    post_only: bool,
    reject_post_only: bool,
    reduce_only: bool,
    mmp: bool,
}

/// Templates of one instrument: for each side that of the last order, since the next one mostly differs from it
/// only in price and quantity.
#[derive(Debug, Default)]
pub struct Templates([Option<(Fixed, OrderTemplate)>; 2]);

impl Templates {
    /// Returns the template for an order with these parameters. If the last order of its side had others, the
    /// template is encoded from the params that `params` returns. `None` for an order with a displayed quantity
    /// or a trigger.
    #[inline]
    pub(super) fn find<'a>(
        &mut self,
        terms: &Terms,
        buffer: &mut Vec<u8>,
        params: impl FnOnce() -> PlaceOrder<'a>,
    ) -> Option<&OrderTemplate> {
        if terms.shown != 0 || terms.stop_price != 0 || terms.trigger.is_some() {
            return None;
        }
        let Terms { order_type, time_in_force, post_only, reject_post_only, reduce_only, mmp, .. } = *terms;
        let fixed = Fixed { order_type, time_in_force, post_only, reject_post_only, reduce_only, mmp };
        let place = &mut self.0[usize::from(terms.side == Side::Sell)];
        if place.as_ref().is_none_or(|(known, _)| *known != fixed) {
            *place = OrderTemplate::new(&params(), buffer).map(|template| (fixed, template));
        }
        place.as_ref().map(|(_, template)| template)
    }
}

/// Params of an order's request.
#[cold]
pub(super) fn order_params<'a>(order: &'a Order, label: &'a PlainLabel) -> PlaceOrder<'a> {
    let Terms { order_type, time_in_force, price, quantity, stop_price, shown, .. } = order.terms;
    let is_trailing = order_type == OrderType::TrailingStop;
    let has_time = has_price(order_type) && time_in_force != TimeInForce::GoodTilCancelled;
    PlaceOrder {
        order_type: Some(order_type),
        price: has_price(order_type).then(|| decimal(price)),
        label: Some(Text::new(label.as_str())),
        time_in_force: has_time.then_some(time_in_force),
        post_only: order.terms.post_only,
        reject_post_only: order.terms.reject_post_only,
        reduce_only: order.terms.reduce_only,
        mmp: order.terms.mmp,
        display_amount: optional(shown),
        trigger: order.terms.trigger,
        trigger_price: if is_trailing { None } else { optional(stop_price) },
        trigger_offset: if is_trailing { optional(stop_price) } else { None },
        valid_until: Some(order.valid_until_ms),
        ..PlaceOrder::market(order.symbol_name.as_str(), decimal(quantity))
    }
}
