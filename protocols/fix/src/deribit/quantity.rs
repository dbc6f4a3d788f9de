//! Conversion of quantities to units.

use super::QtyType;
use crate::decimal::Decimal;

/// Converts a quantity to units: USD of inverse instruments, coins of the others. `contract_size` is
/// ContractMultiplier (231), the number of units per contract.
///
/// `None` if the result does not fit or the type is unknown. Without a type, quantities are contracts.
#[must_use]
pub fn to_units(qty: Decimal, qty_type: Option<QtyType>, contract_size: Decimal) -> Option<Decimal> {
    match qty_type {
        None | Some(QtyType::CONTRACTS) => qty.times(contract_size),
        Some(QtyType::UNITS) => Some(qty),
        Some(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn contracts_convert_to_units_exactly() {
        let decimal = |text: &str| Decimal::parse(text.as_bytes()).unwrap();
        let (contracts, units) = (Some(QtyType::CONTRACTS), Some(QtyType::UNITS));
        // A contract of BTC-PERPETUAL is 10 USD, one of an ETH_USDC option 0.01 ETH.
        assert_eq!(to_units(decimal("35"), None, decimal("0.0100")), Some(decimal("0.35")));
        assert_eq!(to_units(decimal("35"), contracts, decimal("10")), Some(decimal("350")));
        assert_eq!(to_units(decimal("35"), units, decimal("10")), Some(decimal("35")));
        assert_eq!(to_units(decimal("35"), Some(QtyType(b'9')), decimal("10")), None);
    }
}
