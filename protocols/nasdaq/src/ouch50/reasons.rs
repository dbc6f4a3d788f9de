//! Reasons of the vocabulary and their codes. Every reason that an OUCH client can be told has a code of its own, so that
//! it reads back the reason that the venue meant.

use tickpath_types::{CancelReason, RejectReason};

use super::codes::{CancelReasonCode, RejectCode};

/// Declares both directions of a table in one place.
macro_rules! reasons {
    ($reason:ident <-> $code:ident, otherwise $other:ident { $( $name:ident <-> $value:ident, )+ }) => {
        impl From<$reason> for $code {
            /// The code; a reason that this table does not know becomes the general one.
            #[inline]
            fn from(reason: $reason) -> Self {
                match reason {
                    $( $reason::$name => $code::$value, )+
                    _ => $code::$other,
                }
            }
        }

        impl $code {
            /// The reason, or `None` for a code that this project's venue never sends.
            #[inline]
            #[must_use]
            pub const fn reason(self) -> Option<$reason> {
                match self {
                    $( $code::$value => Some($reason::$name), )+
                    _ => None,
                }
            }
        }
    };
}

reasons! {
    CancelReason <-> CancelReasonCode, otherwise SYSTEM {
        User <-> USER,
        ImmediateOrCancel <-> IMMEDIATE_OR_CANCEL,
        PostOnly <-> POST_ONLY,
        System <-> SYSTEM,
        Supervisory <-> SUPERVISORY,
        Expired <-> TIMEOUT,
        EndOfDay <-> CLOSED,
        Halted <-> HALTED,
        SelfTrade <-> SELF_MATCH,
    }
}

reasons! {
    RejectReason <-> RejectCode, otherwise OTHER {
        UnknownInstrument <-> INVALID_SYMBOL,
        PriceNotOnTick <-> INVALID_PRICE,
        PriceOutsideCollar <-> FAT_FINGER,
        InvalidQty <-> INVALID_QUANTITY,
        InvalidMinQty <-> INVALID_MIN_QTY,
        TimeInForceNotOffered <-> DESTINATION_CLOSED,
        DisplayNotOffered <-> INVALID_DISPLAY,
        CrossNotOffered <-> INVALID_CROSS_ORDER,
        InvalidSide <-> INVALID_SIDE,
        Halted <-> HALTED,
        UnknownOrder <-> REPLACE_NOT_ALLOWED,
        BookFull <-> PROCESSING_ERROR,
        NotAuthorised <-> FIRM_NOT_AUTHORIZED,
        OptionNotOffered <-> OTHER,
        RateAboveLimit <-> PORT_MESSAGE_RATE,
        OpenOrdersAboveLimit <-> AGGREGATE_EXPOSURE_EXCEEDED,
        QtyAboveLimit <-> ORDER_QUANTITY_EXCEEDED,
        NotionalAboveLimit <-> ORDER_NOTIONAL_EXCEEDED,
        InstrumentNotAllowed <-> RESTRICTED_STOCK,
        Killed <-> MARKET_IMPACT,
        OrderEntryDisabled <-> INVALID_DESTINATION,
        InvalidDisplayQty <-> INVALID_MAX_FLOOR,
        InvalidExpireTime <-> POST_MARKET_NOT_ALLOWED,
        JournalFull <-> QUOTE_UNAVAILABLE,
        UserRefsExhausted <-> SHARES_EXCEED_THRESHOLD,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_reason_comes_back_from_its_code() {
        for reason in [
            CancelReason::User,
            CancelReason::ImmediateOrCancel,
            CancelReason::PostOnly,
            CancelReason::System,
            CancelReason::Supervisory,
            CancelReason::Expired,
            CancelReason::EndOfDay,
            CancelReason::Halted,
            CancelReason::SelfTrade,
        ] {
            assert_eq!(CancelReasonCode::from(reason).reason(), Some(reason));
        }
        for reason in [
            RejectReason::UnknownInstrument,
            RejectReason::PriceNotOnTick,
            RejectReason::PriceOutsideCollar,
            RejectReason::InvalidQty,
            RejectReason::InvalidMinQty,
            RejectReason::TimeInForceNotOffered,
            RejectReason::DisplayNotOffered,
            RejectReason::CrossNotOffered,
            RejectReason::InvalidSide,
            RejectReason::Halted,
            RejectReason::UnknownOrder,
            RejectReason::BookFull,
            RejectReason::NotAuthorised,
            RejectReason::OptionNotOffered,
            RejectReason::RateAboveLimit,
            RejectReason::OpenOrdersAboveLimit,
            RejectReason::QtyAboveLimit,
            RejectReason::NotionalAboveLimit,
            RejectReason::InstrumentNotAllowed,
            RejectReason::Killed,
            RejectReason::OrderEntryDisabled,
            RejectReason::InvalidDisplayQty,
            RejectReason::InvalidExpireTime,
            RejectReason::JournalFull,
            RejectReason::UserRefsExhausted,
        ] {
            assert_eq!(RejectCode::from(reason).reason(), Some(reason));
        }
    }

    #[test]
    fn codes_of_other_venues_have_no_reason_and_keep_their_meaning() {
        assert_eq!(CancelReasonCode::REGULATORY.reason(), None);
        assert_eq!(CancelReasonCode::REGULATORY.meaning(), Some("regulatory restriction"));
        assert_eq!(RejectCode::from(0x1f).reason(), None);
        assert_eq!(format!("{:?}", RejectCode::from(0x1f)), "0x1f (notional value exceeds the threshold)");
        assert_eq!(format!("{:?}", RejectCode::from(0x999)), "0x999");
    }
}
