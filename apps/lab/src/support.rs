//! Code shared by several measurements: connections, measured programs, venues, their clients and their load.

pub(crate) mod bare_tls;
pub(crate) mod client_group;
pub(crate) mod deribit_serde;
pub(crate) mod deribit_venue;
pub(crate) mod gateway_clients;
pub(crate) mod load;
pub(crate) mod loopback;
pub(crate) mod no_sockets;
pub(crate) mod order_venue;
pub(crate) mod paced;
pub(crate) mod process;
pub(crate) mod venue;
