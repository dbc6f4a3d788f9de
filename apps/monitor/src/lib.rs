//! The live view of a running market, on a terminal or as plain lines.
