//! One byte for each value of the small enums: what logs and snapshots keep.
//!
//! A number, once given, keeps its meaning for as long as logs are kept: new values get new numbers, and a
//! number is never used again. They are not the letters of any protocol.

use crate::{
    BrokenReason, CancelReason, CrossKind, RejectReason, SelfTradePrevention, Side, SystemEventCode,
    TimeInForce, TradingState,
};

macro_rules! codes {
    ($($name:ident { $($value:ident = $code:literal),* $(,)? })*) => { $(
        impl $name {
            /// The byte that logs and snapshots keep for it.
            #[inline]
            #[must_use]
            pub const fn code(self) -> u8 {
                match self {
                    $($name::$value => $code,)*
                }
            }

            /// What a byte stands for; `None` for one that stands for nothing.
            #[inline]
            #[must_use]
            pub const fn from_code(code: u8) -> Option<$name> {
                Some(match code {
                    $($code => $name::$value,)*
                    _ => return None,
                })
            }
        }
    )* };
}

codes! {
    Side { Buy = 0, Sell = 1 }
    TimeInForce { Day = 0, Ioc = 1, Gtt = 2, Gtc = 3 }
    CancelReason {
        User = 1,
        ImmediateOrCancel = 2,
        PostOnly = 3,
        System = 4,
        Supervisory = 5,
        Expired = 6,
        EndOfDay = 7,
        Halted = 8,
        SelfTrade = 9,
    }
    RejectReason {
        UnknownInstrument = 1,
        PriceNotOnTick = 2,
        PriceOutsideCollar = 3,
        InvalidQty = 4,
        InvalidMinQty = 5,
        TimeInForceNotOffered = 6,
        DisplayNotOffered = 7,
        CrossNotOffered = 8,
        InvalidSide = 9,
        Halted = 10,
        UnknownOrder = 11,
        BookFull = 12,
        NotAuthorised = 13,
        OptionNotOffered = 14,
        NotConnected = 15,
        Unanswered = 16,
        RateAboveLimit = 17,
        OpenOrdersAboveLimit = 18,
        QtyAboveLimit = 19,
        NotionalAboveLimit = 20,
        InstrumentNotAllowed = 21,
        Killed = 22,
        OrderEntryDisabled = 23,
        InvalidDisplayQty = 24,
        InvalidStopPrice = 25,
        InvalidExpireTime = 26,
        JournalFull = 27,
        UserRefsExhausted = 28,
    }
    SystemEventCode {
        StartOfMessages = b'O',
        StartOfSystemHours = b'S',
        StartOfMarketHours = b'Q',
        EndOfMarketHours = b'M',
        EndOfSystemHours = b'E',
        EndOfMessages = b'C',
    }
    TradingState { Halted = b'H', QuotationOnly = b'Q', Paused = b'P', Trading = b'T' }
    SelfTradePrevention { None = 0, CancelNewest = 1, CancelOldest = 2, CancelBoth = 3, Decrement = 4 }
    BrokenReason { Erroneous = b'E', Consent = b'C', Supervisory = b'S', External = b'X' }
    CrossKind { Opening = b'O', Closing = b'C', Halt = b'H', Intraday = b'I' }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_lead_back_to_what_they_stand_for() {
        let mut known = 0;
        for code in 0..=u8::MAX {
            for back in [
                Side::from_code(code).map(Side::code),
                TimeInForce::from_code(code).map(TimeInForce::code),
                CancelReason::from_code(code).map(CancelReason::code),
                RejectReason::from_code(code).map(RejectReason::code),
                SystemEventCode::from_code(code).map(SystemEventCode::code),
                TradingState::from_code(code).map(TradingState::code),
                SelfTradePrevention::from_code(code).map(SelfTradePrevention::code),
                BrokenReason::from_code(code).map(BrokenReason::code),
                CrossKind::from_code(code).map(CrossKind::code),
            ]
            .into_iter()
            .flatten()
            {
                assert_eq!(back, code);
                known += 1;
            }
        }
        assert!(known >= 39, "{known}");
        assert_eq!(RejectReason::from_code(0), None);
    }
}
