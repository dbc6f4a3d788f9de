//! Commands to a running gateway over its Unix socket: the kill switch, limits of accounts, its status.
//!
//! A request is a line of words, the reply a line of JSON. Only the socket's owner and root can use it.
//! A separate thread serves it. A ring takes each command to the duty cycle, which executes it between two
//! requests and answers through another ring.
//!
//! | line | effect |
//! |---|---|
//! | `status` | none: state and its reason, accounts, connections, clients, limits |
//! | `kill` | no new order leaves, all open ones are cancelled; holds after a restart |
//! | `release NAME` | orders are accepted again; the argument is the gateway's name |
//! | `limits ACCOUNT KEY=VALUE ...` | publishes limits: `order_size_max`, `notional_max`, `open_orders_max` |
//! | `limits ACCOUNT none` | withdraws them |

mod by_name;
mod socket;
mod status;

pub use by_name::{AdminName, admin_socket_of};
pub use socket::{AdminError, AdminPort, call, open_socket};
pub use status::GatewayStatus;
