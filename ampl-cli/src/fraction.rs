//! Fractions on the command line.

/// A fraction inside (0, 1), as a number or in percent.
///
/// # Errors
/// The message that `clap` prints.
pub fn inside(text: &str) -> Result<f64, String> {
    let value = ampl_core::config::fraction(text).filter(|&value| value > 0.0 && value < 1.0);
    value.ok_or_else(|| "a fraction between 0 and 1 is needed, such as 0.05 or 5%".into())
}
