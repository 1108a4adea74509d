//! Which change is on: part of the judge, not of this program.

use std::sync::LazyLock;

static ON: LazyLock<u32> = LazyLock::new(|| {
    // The first test that fails is enough.
    let tell = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |info| {
        tell(info);
        std::process::exit(101);
    }));
    std::env::var("TENON_MUTANT").ok().and_then(|number| number.parse().ok()).unwrap_or(0)
});

/// Whether this change is the one.
pub fn on(number: u32) -> bool {
    *ON == number
}
