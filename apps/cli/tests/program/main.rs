//! The program as its users meet it: the built binary, its exit codes and what it prints.
#![allow(clippy::unwrap_used)] // a failed step of a test is a failed test

mod admin;
mod config_docs;
mod configs;
mod demo;
mod failed_disk;
mod full_disk;
mod gateway;
mod generate;
mod help;
mod interrupts;
mod journal;
mod lab;
mod publish;
mod replay;
mod shm;
mod sim;
mod support;
mod ticks;
mod venue_and_traders;
