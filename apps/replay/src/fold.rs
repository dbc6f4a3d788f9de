//! Every field of every message in one number.

use tickpath_capture::{EventKind, Level, RecordedEvent};
use tickpath_nasdaq::itch50::{
    AddOrder, AddOrderMpid, BrokenTrade, CrossTrade, DirectListing, IpoQuotingPeriod, Listener,
    LuldAuctionCollar, MarketParticipantPosition, MwcbDeclineLevel, MwcbStatus, NetOrderImbalance,
    NonCrossTrade, OperationalHalt, OrderCancel, OrderDelete, OrderExecuted, OrderExecutedWithPrice,
    OrderReplace, RegShoRestriction, RetailPriceImprovement, StockDirectory, StockTradingAction, SystemEvent,
};
use tickpath_types::Side;
use zerocopy::IntoBytes;

/// A decoder's listener that only folds what it is given, so that decoding alone can be timed and cannot
/// be optimised away.
///
/// Of the messages about orders and trades (`A F E C X D U P`) every field is read as its value and folded;
/// of all other messages every byte is, in words of eight. The type byte has chosen the handler. The checksum
/// of the same messages is the same on every machine.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Fold {
    /// The checksum so far.
    pub checksum: u64,
}

/// An odd number with many ones, so that each fold spreads what was there before.
const MULTIPLIER: u64 = 0x9e37_79b9_7f4a_7c15;

impl Fold {
    #[inline(always)]
    fn add(&mut self, value: u64) {
        self.checksum = (self.checksum ^ value).rotate_left(5).wrapping_mul(MULTIPLIER);
    }

    /// Several fields of one message: summed with rotations first, which do not wait for each other.
    #[inline(always)]
    fn fields<const N: usize>(&mut self, fields: [u64; N]) {
        let mut sum = 0_u64;
        for (index, field) in fields.into_iter().enumerate() {
            sum = sum.wrapping_add(field.rotate_left(index as u32 * 11));
        }
        self.add(sum);
    }

    #[inline(always)]
    fn bytes(&mut self, bytes: &[u8]) {
        let (words, rest) = bytes.as_chunks::<8>();
        for word in words {
            self.add(u64::from_be_bytes(*word));
        }
        let mut last = [0; 8];
        last[..rest.len()].copy_from_slice(rest);
        self.add(u64::from_be_bytes(last));
    }

    /// Folds an event of another format, all its fields.
    #[inline]
    pub fn event(&mut self, event: &RecordedEvent) {
        self.fields([event.ts_ns, u64::from(event.instrument), u64::from(event.ends_transaction)]);
        let place = |level: Level| level.price.0.cast_unsigned() ^ (level.side as u64) << 63;
        let side = |side: Option<Side>| side.map_or(2, |side| side as u64);
        match event.kind {
            EventKind::Add { order_id, level, qty } => self.fields([1, order_id, place(level), qty.0]),
            EventKind::Delete { order_id, level, qty } => {
                self.fields([2, order_id, level.map_or(0, place), qty.map_or(0, |qty| qty.0)]);
            }
            EventKind::Reduce { order_id, by, level } => {
                self.fields([3, order_id, level.map_or(0, place), by.0]);
            }
            EventKind::Modify { order_id, level, qty } => self.fields([4, order_id, place(level), qty.0]),
            EventKind::Replace { order_id, new_order_id, price, qty } => {
                self.fields([5, order_id, new_order_id, price.0.cast_unsigned(), qty.0]);
            }
            EventKind::Fill { order_id, qty, side: resting, price, in_auction } => {
                let price = price.map_or(0, |price| price.0.cast_unsigned());
                self.fields([6, order_id, qty.0, side(resting), price, u64::from(in_auction)]);
            }
            EventKind::Trade { order_id, price, qty, aggressor, is_hidden } => {
                let price = price.0.cast_unsigned();
                self.fields([7, order_id, qty.0, side(aggressor), price, u64::from(is_hidden)]);
            }
            EventKind::Clear => self.fields([8]),
            EventKind::Status(_) => self.fields([9]),
            EventKind::Ignored(_) => self.fields([10]),
        }
    }
}

/// Handlers that fold the bytes of messages that are rare.
macro_rules! fold_bytes {
    ($($handler:ident: $message:ty,)*) => {
        $(
            #[inline]
            fn $handler(&mut self, message: &$message) {
                self.bytes(message.as_bytes());
            }
        )*
    };
}

/// Locate, tracking number and time, which every message has: 80 bits in one word, turned so that all of
/// them count.
macro_rules! common {
    ($message:expr) => {
        (u64::from($message.stock_locate.get().0) << 48 | $message.timestamp.get().0)
            .wrapping_add(u64::from($message.tracking_number.get()).rotate_right(24))
    };
}

impl Listener for Fold {
    #[inline]
    fn on_add_order(&mut self, m: &AddOrder) {
        let side = u64::from(m.side.0);
        let (price, shares) = (m.price.get().0.cast_unsigned(), m.shares.get().0);
        let stock = u64::from_be_bytes(m.stock.0);
        self.fields([common!(m), m.order_ref.get().0, side, shares, stock, price]);
    }

    #[inline]
    fn on_add_order_mpid(&mut self, m: &AddOrderMpid) {
        let side = u64::from(m.side.0);
        let (price, shares) = (m.price.get().0.cast_unsigned(), m.shares.get().0);
        let stock = u64::from_be_bytes(m.stock.0);
        let attribution = u64::from(u32::from_be_bytes(m.attribution.0));
        self.fields([common!(m), m.order_ref.get().0, side, shares, stock, price, attribution]);
    }

    #[inline]
    fn on_order_executed(&mut self, m: &OrderExecuted) {
        let shares = m.executed_shares.get().0;
        self.fields([common!(m), m.order_ref.get().0, shares, m.match_number.get().0]);
    }

    #[inline]
    fn on_order_executed_with_price(&mut self, m: &OrderExecutedWithPrice) {
        let (shares, price) = (m.executed_shares.get().0, m.execution_price.get().0.cast_unsigned());
        let printable = u64::from(m.printable.0);
        self.fields([common!(m), m.order_ref.get().0, shares, m.match_number.get().0, printable, price]);
    }

    #[inline]
    fn on_order_cancel(&mut self, m: &OrderCancel) {
        self.fields([common!(m), m.order_ref.get().0, m.canceled_shares.get().0]);
    }

    #[inline]
    fn on_order_delete(&mut self, m: &OrderDelete) {
        self.fields([common!(m), m.order_ref.get().0]);
    }

    #[inline]
    fn on_order_replace(&mut self, m: &OrderReplace) {
        let (price, shares) = (m.price.get().0.cast_unsigned(), m.shares.get().0);
        self.fields([common!(m), m.original_order_ref.get().0, m.new_order_ref.get().0, shares, price]);
    }

    #[inline]
    fn on_non_cross_trade(&mut self, m: &NonCrossTrade) {
        let side = u64::from(m.side.0);
        let (price, shares) = (m.price.get().0.cast_unsigned(), m.shares.get().0);
        let stock = u64::from_be_bytes(m.stock.0);
        let number = m.match_number.get().0;
        self.fields([common!(m), m.order_ref.get().0, side, shares, stock, price, number]);
    }

    fold_bytes! {
        on_system_event: SystemEvent,
        on_stock_directory: StockDirectory,
        on_stock_trading_action: StockTradingAction,
        on_reg_sho_restriction: RegShoRestriction,
        on_market_participant_position: MarketParticipantPosition,
        on_mwcb_decline_level: MwcbDeclineLevel,
        on_mwcb_status: MwcbStatus,
        on_ipo_quoting_period: IpoQuotingPeriod,
        on_luld_auction_collar: LuldAuctionCollar,
        on_operational_halt: OperationalHalt,
        on_cross_trade: CrossTrade,
        on_broken_trade: BrokenTrade,
        on_net_order_imbalance: NetOrderImbalance,
        on_retail_price_improvement: RetailPriceImprovement,
        on_direct_listing: DirectListing,
    }

    fn on_unknown(&mut self, _message_type: u8, message: &[u8]) {
        self.bytes(message);
    }
}

#[cfg(test)]
mod tests {
    use tickpath_nasdaq::itch50::{BuySell, decode};
    use tickpath_nasdaq::wire::Stock;
    use tickpath_types::Nanos;

    use super::*;

    fn checksum(message: &[u8]) -> u64 {
        let mut fold = Fold::default();
        decode(message, &mut fold).unwrap();
        fold.checksum
    }

    #[test]
    fn every_field_of_an_add_counts() {
        let stock = Stock::new("AAPL").unwrap();
        let add = AddOrder::new(7, 3, Nanos(34_200_000_000_123), 1001, BuySell::BUY, 300, stock, 1_891_234);
        let plain = checksum(add.as_bytes());
        assert_eq!(checksum(add.as_bytes()), plain);
        for byte in 1..AddOrder::LEN {
            let mut changed = add.as_bytes().to_vec();
            changed[byte] ^= 1;
            assert_ne!(checksum(&changed), plain, "byte {byte}");
        }
    }

    #[test]
    fn every_byte_of_a_rare_message_counts() {
        let action = SystemEvent::new(0, 0, Nanos(5), tickpath_nasdaq::itch50::EventCode(b'O'));
        let plain = checksum(action.as_bytes());
        for byte in 1..SystemEvent::LEN {
            let mut changed = action.as_bytes().to_vec();
            changed[byte] ^= 1;
            assert_ne!(checksum(&changed), plain, "byte {byte}");
        }
    }
}
