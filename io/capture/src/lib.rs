//! Recorded order-by-order market data: ITCH files, DBN and LOBSTER.
