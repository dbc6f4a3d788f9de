//! Tests of the built program as a user runs it: its exit codes and its output.
#![allow(clippy::unwrap_used)] // a failed step of a test is a failed test

mod admin;
mod backtest;
mod config_docs;
mod configs;
mod demo;
mod failed_disk;
mod from_page;
mod full_disk;
mod gateway;
mod generate;
mod help;
mod interrupts;
mod journal;
mod lab;
mod pages;
mod publish;
mod readme;
mod replay;
mod shm;
mod sim;
mod support;
mod ticks;
mod tutorials;
mod venue_and_traders;
