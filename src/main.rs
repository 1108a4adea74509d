//! The `tenon` binary: everything it does is in the library.

fn main() -> std::process::ExitCode {
    tenon::cli::main()
}
