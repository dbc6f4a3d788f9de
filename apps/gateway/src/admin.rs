//! Commands to a running gateway over its Unix socket: the kill switch, limits of accounts, how it stands.
//!
//! A line of words in, a line of JSON out. The socket can be used by its owner and by root alone. Threads of their own talk
//! with whoever calls; a command crosses a ring to the duty cycle, which carries it out between two requests and answers by
//! another ring.
//!
//! | line | what it does |
//! |---|---|
//! | `status` | how the gateway stands: why it does, accounts, connections, clients, limits |
//! | `kill` | no new order leaves, all open ones are cancelled; stays so when the gateway starts anew |
//! | `release NAME` | orders are taken again; the word that it needs is the gateway's name |
//! | `limits ACCOUNT KEY=VALUE ...` | publishes limits: `order_size_max`, `notional_max`, `open_orders_max` |
//! | `limits ACCOUNT none` | withdraws them |

mod by_name;
mod command;
mod door;
mod standing;

pub use by_name::{AdminName, admin_socket_of};
pub use command::{AdminCommand, AdminPort};
pub use door::{AdminDoor, AdminError, call};
pub use standing::{AccountWords, Standing};
