#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| tenon::linux::fuzz::http(data));
