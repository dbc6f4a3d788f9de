//! The output of `tickpath ticks watch`: a full screen on a terminal, or a line a second.

mod board;
mod data;
mod keys;
mod plain;
mod screen;
mod viewer;

pub use board::{Board, Sort};
pub use data::TicksView;
pub use keys::Action;
pub use plain::plain_line;
pub use screen::render;
pub use viewer::{Canvas, Viewer};
