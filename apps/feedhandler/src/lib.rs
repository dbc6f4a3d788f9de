//! The feed handler: two multicast lines in, books and market updates out.
