//! Seeded generators of order flow, and packet-loss models.
