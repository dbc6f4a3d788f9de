//! Encoded fixed members of order requests, kept for each instrument.

use tickpath_deribit::codes::{OrderType, TimeInForce};
use tickpath_deribit::messages::PlaceOrder;
use tickpath_deribit::prepared::OrderTemplate;
use tickpath_types::Side;

use super::orders::Terms;

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
