//! Features, order manager, pre-trade risk, positions, and the Strategy trait with its strategies.
