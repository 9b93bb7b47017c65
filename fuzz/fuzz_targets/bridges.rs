#![no_main]
//! `cargo +nightly fuzz run bridges`: see `bridges` in dialect/layout/tests/fuzz/mod.rs.

#[path = "../../dialect/layout/tests/fuzz/mod.rs"]
#[allow(dead_code, reason = "one target of several")]
mod fuzz;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| fuzz::bridges(bytes));
