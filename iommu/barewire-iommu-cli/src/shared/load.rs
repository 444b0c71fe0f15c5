//! The machine's load: what the system says waits for a processor.

use serde::Serialize;

/// The load averages of the last minute, before and after a measurement.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub(crate) struct Load {
    /// Before.
    pub(crate) begin: f64,
    /// After.
    pub(crate) end: f64,
}

impl Load {
    /// The larger of the two.
    pub(crate) fn most(self) -> f64 {
        self.begin.max(self.end)
    }
}

/// The load average of the last minute; `None` where the system does not tell.
pub(crate) fn average() -> Option<f64> {
    parse(&std::fs::read_to_string("/proc/loadavg").ok()?)
}

/// The first number of `/proc/loadavg`.
fn parse(text: &str) -> Option<f64> {
    text.split(' ').next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_number_is_the_last_minute_s() {
        assert_eq!(parse("0.52 1.30 2.06 1/389 19664\n"), Some(0.52));
        assert_eq!(parse(""), None);
        assert!(average().is_some_and(|load| load >= 0.0));
        assert_eq!(Load { begin: 1.0, end: 3.0 }.most(), 3.0);
    }
}
