//! Reasons for rejecting a request.

use tickpath_deribit::error_code::ErrorCode;
use tickpath_deribit::number::Decimal;
use tickpath_deribit::request::Refusal;
use tickpath_types::RejectReason;

/// A request rejection that owns its data.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Fault {
    pub(crate) code: ErrorCode,
    pub(crate) reason: &'static str,
    pub(crate) param: &'static str,
    /// Limit to append to the error message, if the message has one.
    pub(crate) limit: Option<Decimal>,
}

impl Fault {
    pub(crate) const fn new(code: ErrorCode) -> Fault {
        Fault { code, reason: "", param: "", limit: None }
    }

    pub(crate) const fn because(code: ErrorCode, reason: &'static str) -> Fault {
        Fault { code, reason, param: "", limit: None }
    }

    pub(crate) const fn param(param: &'static str, reason: &'static str) -> Fault {
        Fault { code: ErrorCode::InvalidParams, reason, param, limit: None }
    }

    pub(crate) const fn beyond(code: ErrorCode, limit: Decimal) -> Fault {
        Fault { code, reason: "", param: "", limit: Some(limit) }
    }
}

impl From<Refusal<'_>> for Fault {
    fn from(refusal: Refusal<'_>) -> Fault {
        Fault { code: refusal.code, reason: refusal.reason, param: refusal.param, limit: None }
    }
}

impl From<ErrorCode> for Fault {
    fn from(code: ErrorCode) -> Fault {
        Fault::new(code)
    }
}

/// Maps the engine's reject reasons to Deribit's error codes.
impl From<RejectReason> for Fault {
    fn from(reason: RejectReason) -> Fault {
        let (code, text) = match reason {
            RejectReason::UnknownInstrument => (ErrorCode::InvalidOrUnsupportedInstrument, ""),
            RejectReason::PriceNotOnTick => (ErrorCode::PriceWrongTick, ""),
            RejectReason::PriceOutsideCollar => (ErrorCode::PriceNotAllowed, "outside the venue's collar"),
            RejectReason::InvalidQty | RejectReason::InvalidMinQty => (ErrorCode::InvalidAmount, ""),
            RejectReason::Halted => (ErrorCode::BookClosed, ""),
            RejectReason::UnknownOrder => (ErrorCode::NotOpenOrder, ""),
            RejectReason::BookFull => {
                (ErrorCode::TemporarilyUnavailable, "the venue holds as many orders as it may")
            }
            RejectReason::RateAboveLimit => (ErrorCode::TooManyRequests, ""),
            RejectReason::OpenOrdersAboveLimit => (ErrorCode::OtherReject, "too many open orders"),
            RejectReason::QtyAboveLimit => (ErrorCode::OtherReject, "amount above the account's limit"),
            RejectReason::NotionalAboveLimit => (ErrorCode::OtherReject, "value above the account's limit"),
            RejectReason::InstrumentNotAllowed => (ErrorCode::PermissionDenied, "instrument not allowed"),
            RejectReason::Killed => (ErrorCode::LockedByAdmin, ""),
            RejectReason::JournalFull => (ErrorCode::SystemMaintenance, ""),
            RejectReason::UserRefsExhausted => {
                (ErrorCode::OtherReject, "the account has used all order numbers of the day")
            }
            RejectReason::InvalidDisplayQty => (ErrorCode::InvalidMaxShowAmount, ""),
            _ => (ErrorCode::OtherReject, "the venue refused the order"),
        };
        Fault::because(code, text)
    }
}
