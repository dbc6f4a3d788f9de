//! What keeps an order from a real market: caps, the dry run, the kill switch.
