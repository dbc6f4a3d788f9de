//! The strategies included with the engine.

mod maker;
mod random;
mod taker;

pub use maker::{MakerConfig, MarketMaker};
pub use random::{RandomConfig, RandomStrategy};
pub use taker::LiquidityTaker;
