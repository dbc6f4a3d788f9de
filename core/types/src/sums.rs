//! A macro that implements addition and subtraction for newtypes.

/// Implements `Add`, `AddAssign`, `Sub`, `SubAssign`, `Neg` and `Sum` for a newtype of a signed number.
///
/// ```
/// #[derive(Clone, Copy, Debug, PartialEq)]
/// struct Cents(i64);
///
/// tickpath_types::impl_sums!(Cents);
/// assert_eq!([Cents(5), -Cents(7)].into_iter().sum::<Cents>(), Cents(-2));
/// ```
#[macro_export]
macro_rules! impl_sums {
    ($amount:ident) => {
        $crate::impl_sums!($amount: Add add AddAssign add_assign +, Sub sub SubAssign sub_assign -);

        impl ::core::ops::Neg for $amount {
            type Output = $amount;

            #[inline]
            fn neg(self) -> $amount {
                $amount(-self.0)
            }
        }

        impl ::core::iter::Sum for $amount {
            fn sum<I: Iterator<Item = $amount>>(amounts: I) -> $amount {
                $amount(amounts.map(|amount| amount.0).sum())
            }
        }
    };
    ($amount:ident: $($trait:ident $method:ident $assign:ident $assign_method:ident $op:tt),*) => { $(
        impl ::core::ops::$trait for $amount {
            type Output = $amount;

            fn $method(self, other: $amount) -> $amount {
                $amount(self.0 $op other.0)
            }
        }

        impl ::core::ops::$assign for $amount {
            fn $assign_method(&mut self, other: $amount) {
                *self = *self $op other;
            }
        }
    )* };
}
