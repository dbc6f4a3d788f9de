//! Positions, funds and risk limits.

use super::bodies;
use crate::field::structures;
use crate::{Fixed, Money, Reserved, Text, UpdateKind};

structures! {
    /// A position of the header's account in the header's instrument.
    PositionUpdate "position_update" {
        /// Size of the position; negative when short.
        quantity: Fixed,
        /// Mean price of the open position.
        average_price: Fixed,
        /// Mark price at the same moment; 0 when unknown.
        mark_price: Fixed,
        /// Profit not yet settled, in the settlement currency.
        floating_profit: Money,
        /// Profit settled in this session.
        realized_profit: Money,
        /// Initial margin.
        initial_margin: Money,
        /// Maintenance margin.
        maintenance_margin: Money,
        /// Snapshot, change, or stale.
        update: UpdateKind,
        /// Zero.
        reserved: Reserved<7>,
    }

    /// Funds of the header's account in one currency.
    FundsUpdate "funds_update" {
        /// The currency.
        currency: Text<8>,
        /// Balance.
        balance: Money,
        /// Balance including profits and losses not yet settled.
        equity: Money,
        /// Funds available for new orders.
        available: Money,
        /// Initial margin in use.
        initial_margin: Money,
        /// Margin below which positions are liquidated.
        maintenance_margin: Money,
        /// Amount that can be withdrawn.
        withdrawable: Money,
        /// Snapshot, change, or stale.
        update: UpdateKind,
        /// Zero.
        reserved: Reserved<7>,
    }

    /// The limits that the gateway enforces for the header's account, in the header's instrument or in all.
    RiskLimits "risk_limits" {
        /// Largest quantity of one order.
        max_order_quantity: Fixed,
        /// Largest notional of one order in the quote currency.
        max_order_notional: Money,
        /// Maximum number of open orders.
        max_open_orders: u32,
        /// Open orders now.
        open_orders: u32,
        /// 1 when the kill switch is on.
        is_killed: u8,
        /// Bits of the three limits that apply: 1, 2 and 4. A limit that does not apply is 0; one that
        /// applies and is 0 rejects everything.
        caps: u8,
        /// Zero.
        reserved: Reserved<6>,
    }
}

bodies! {
    PositionUpdate = POSITION_UPDATE,
    FundsUpdate = FUNDS_UPDATE,
    RiskLimits = RISK_LIMITS,
}
