//! Names used in most rows.

pub(super) use std::hint::black_box;

pub(super) use anyhow::{Context as _, bail, ensure};
pub(super) use tickpath_agent::StopSignal;
pub(super) use tickpath_types::Nanos;

pub(super) use crate::context::{Context, wait_for};
pub(super) use crate::measurement::{
    Goal, Lab, Measurement, Missing, Round, Sample, each_round, in_turn, on_one_core, on_two_cores, once, row,
};
pub(super) use crate::statistics::quantile;
