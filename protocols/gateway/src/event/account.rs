//! Positions, funds, caps.

use super::bodies;
use crate::field::structures;
use crate::{Fixed, Money, Reserved, Text, UpdateKind};

structures! {
    /// A position of the header's account in the header's instrument.
    PositionUpdate "position_update" {
        /// How much; below 0 when it was sold.
        quantity: Fixed,
        /// Mean price of what is held.
        average_price: Fixed,
        /// Mark price of the same moment; 0 when it is not known.
        mark_price: Fixed,
        /// Profit that is not settled, in the settlement currency.
        floating_profit: Money,
        /// Profit that is settled in this session.
        realized_profit: Money,
        /// Margin that opening it took.
        initial_margin: Money,
        /// Margin that keeping it takes.
        maintenance_margin: Money,
        /// A state, a change, or no longer true.
        update: UpdateKind,
        /// Zero.
        reserved: Reserved<7>,
    }

    /// What the header's account holds of a currency.
    FundsUpdate "funds_update" {
        /// Which currency.
        currency: Text<8>,
        /// What is there.
        balance: Money,
        /// The same with profits and losses that are not settled.
        equity: Money,
        /// What new orders can use.
        available: Money,
        /// Margin that is taken.
        initial_margin: Money,
        /// Margin below which positions are closed.
        maintenance_margin: Money,
        /// What could be taken out.
        withdrawable: Money,
        /// A state, a change, or no longer true.
        update: UpdateKind,
        /// Zero.
        reserved: Reserved<7>,
    }

    /// The caps that the gateway holds the header's account to, in the header's instrument or in all.
    RiskLimits "risk_limits" {
        /// Largest quantity of one order.
        max_order_quantity: Fixed,
        /// Largest notional of one order in the quote currency.
        max_order_notional: Money,
        /// Open orders at most.
        max_open_orders: u32,
        /// Open orders now.
        open_orders: u32,
        /// 1 when the kill switch is on.
        is_killed: u8,
        /// Which of the three hold: 1, 2 and 4. One that does not is 0; one of 0 that does lets nothing pass.
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
