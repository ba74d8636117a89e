#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| sealane_fuzz::frame::frame(bytes));
