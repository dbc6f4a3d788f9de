//! Message types by name.

use crate::message::MsgType;

macro_rules! msg_types {
    ($($constant:ident = $code:literal $name:literal,)*) => {
        impl MsgType {
            $(
                #[doc = concat!($name, " (`", $code, "`).")]
                pub const $constant: MsgType = MsgType::new($code);
            )*

            /// Name of the message in the specification; `None` if not listed.
            #[must_use]
            pub fn name(self) -> Option<&'static str> {
                match self {
                    $(MsgType::$constant => Some($name),)*
                    _ => None,
                }
            }
        }
    };
}

msg_types! {
    HEARTBEAT = "0" "Heartbeat",
    TEST_REQUEST = "1" "Test Request",
    RESEND_REQUEST = "2" "Resend Request",
    REJECT = "3" "Reject",
    SEQUENCE_RESET = "4" "Sequence Reset",
    LOGOUT = "5" "Logout",
    EXECUTION_REPORT = "8" "Execution Report",
    ORDER_CANCEL_REJECT = "9" "Order Cancel Reject",
    LOGON = "A" "Logon",
    NEW_ORDER_SINGLE = "D" "New Order Single",
    ORDER_CANCEL_REQUEST = "F" "Order Cancel Request",
    ORDER_CANCEL_REPLACE_REQUEST = "G" "Order Cancel/Replace Request",
    MARKET_DATA_REQUEST = "V" "Market Data Request",
    MARKET_DATA_SNAPSHOT = "W" "Market Data Snapshot/Full Refresh",
    MARKET_DATA_INCREMENTAL = "X" "Market Data Incremental Refresh",
    MARKET_DATA_REJECT = "Y" "Market Data Request Reject",
    QUOTE_CANCEL = "Z" "Quote Cancel",
    MASS_QUOTE_ACK = "b" "Mass Quote Acknowledgement",
    SECURITY_DEFINITION_REQUEST = "c" "Security Definition Request",
    SECURITY_DEFINITION = "d" "Security Definition",
    SECURITY_STATUS_REQUEST = "e" "Security Status Request",
    SECURITY_STATUS_MESSAGE = "f" "Security Status",
    MASS_QUOTE = "i" "Mass Quote",
    BUSINESS_MESSAGE_REJECT = "j" "Business Message Reject",
    ORDER_MASS_CANCEL_REQUEST = "q" "Order Mass Cancel Request",
    ORDER_MASS_CANCEL_REPORT = "r" "Order Mass Cancel Report",
    SECURITY_LIST_REQUEST = "x" "Security List Request",
    SECURITY_LIST = "y" "Security List",
    TRADE_CAPTURE_REQUEST = "AD" "Trade Capture Report Request",
    TRADE_CAPTURE_REPORT = "AE" "Trade Capture Report",
    ORDER_MASS_STATUS_REQUEST = "AF" "Order Mass Status Request",
    REQUEST_FOR_POSITIONS = "AN" "Request For Positions",
    POSITION_REPORT = "AP" "Position Report",
    TRADE_CAPTURE_ACK = "AQ" "Trade Capture Report Request Ack",
    USER_REQUEST = "BE" "User Request",
    USER_RESPONSE = "BF" "User Response",
    PROTECTION_LIMITS = "MM" "MMProtection Limits",
    PROTECTION_RESULT = "MR" "MMProtection Limits Result",
    PROTECTION_RESET = "MZ" "MMProtection Reset",
}
