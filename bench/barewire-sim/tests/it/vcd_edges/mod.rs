//! How often each chip select of a recording moved.

/// Edges of cs0 to cs`lines - 1`, those at the very beginning of the recording not counted.
pub(crate) fn of_lines(vcd: &[u8], lines: usize) -> Vec<usize> {
    let text = std::str::from_utf8(vcd).expect("VCD is text");
    (0..lines)
        .map(|cs| {
            let name = format!("cs{cs}");
            let declared = text.lines().find(|line| {
                line.starts_with("$var") && line.split_whitespace().nth(4) == Some(&name)
            });
            let id = declared.and_then(|line| line.split_whitespace().nth(3)).expect("is declared");
            let levels = text.lines().filter(|line| {
                line.len() == id.len() + 1 && line.starts_with(['0', '1']) && &line[1..] == id
            });
            // The first is the level at which the recording began.
            levels.count() - 1
        })
        .collect()
}
