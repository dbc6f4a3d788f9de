//! Line arbitration, gap recovery and book health for multicast market data.
