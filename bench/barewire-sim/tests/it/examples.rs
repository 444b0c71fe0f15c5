//! The examples do what they say: they are run, not only built.

#[path = "../../examples/async_two_devices.rs"]
mod async_two_devices;
#[path = "../../examples/hal_driver.rs"]
mod hal_driver;
#[path = "../../examples/own_chip.rs"]
mod own_chip;

#[test]
fn a_driver_for_embedded_hal_reads_an_adc() {
    hal_driver::main().expect("runs");
}

#[test]
fn two_devices_share_a_bus_as_futures() {
    async_two_devices::main().expect("runs");
}

#[test]
fn a_chip_of_ones_own_runs_on_a_board() {
    own_chip::main().expect("runs");
}

/// Its lines without indentation and without those that are empty.
fn lines(text: &str) -> Vec<&str> {
    text.lines().map(str::trim).filter(|line| !line.is_empty()).collect()
}

#[test]
fn the_page_on_chip_models_shows_the_example_as_it_is() {
    let page = include_str!("../../../../docs/chip-models.md");
    let example = lines(include_str!("../../examples/own_chip.rs"));
    let blocks: Vec<Vec<&str>> = page
        .split("```rust\n")
        .skip(1)
        .map(|rest| lines(rest.split("```").next().unwrap_or_default()))
        .collect();
    for block in &blocks {
        let found = example.windows(block.len()).any(|window| window == block);
        assert!(found, "not in the example as it stands there:\n{}", block.join("\n"));
    }
    let shown: usize = blocks.iter().map(Vec::len).sum();
    let whole =
        lines(include_str!("../../examples/own_chip.rs").split_once("use ").unwrap().1).len();
    assert!(shown + 5 >= whole, "{shown} of {whole} lines: the page shows the whole example");
}
