//! The initial inputs of each fuzz target.

use crate::seeds;

macro_rules! inputs {
    ($($target:ident)*) => {
        /// Every target's name and its [`seeds`].
        #[must_use]
        pub fn inputs() -> Vec<(&'static str, Vec<Vec<u8>>)> {
            vec![$((stringify!($target), seeds::$target())),*]
        }
    };
}

inputs! {
    itch mold soup_server soup_client ouch_inbound ouch_outbound binaryfile dbn lobster lobster_book
    itch_blocks compressed replay_file journal command glimpse drop_copy xdp ticks_requests segment ticks
    packets iex_recovery iex_books itch_books iex_segment fix fix_door fix_session gateway_frame gateway_log
    deribit_inbound deribit_request deribit_front web
}
