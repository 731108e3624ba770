//! Assertions that stop tests and simulation, and only take note in release.

/// Checks what must hold. Panics under debug assertions; in release it yields
/// `false` and the caller takes the safe branch.
#[macro_export]
macro_rules! invariant {
    ($condition:expr, $($expected:tt)+) => {{
        let held: bool = $condition;
        debug_assert!(held, $($expected)+);
        held
    }};
}
