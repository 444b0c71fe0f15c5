//! The price list: what each thing that is counted costs, as a range, with its source (`guests/prices.txt`).

use std::fmt::Write;

/// The list, from the workspace.
pub(super) const LIST: &str = "guests/prices.txt";

/// Which end of each price's range is charged.
#[derive(Clone, Copy, Debug, Default, PartialEq, clap::ValueEnum)]
pub(super) enum Level {
    /// The cheapest that the sources allow
    Low,
    /// The prices that all tables use
    #[default]
    Used,
    /// The dearest that the sources allow
    High,
}

impl Level {
    pub(super) const ALL: [Self; 3] = [Self::Low, Self::Used, Self::High];
}

/// Declares the fields of [`Prices`] and how they are called in the list.
macro_rules! prices {
    ($($(#[$about:meta])* $field:ident = $name:literal,)*) => {
        /// A board's prices at one level, in picoseconds unless the name says otherwise.
        #[derive(Clone, Copy, Debug, Default, PartialEq)]
        pub(super) struct Prices {
            $($(#[$about])* pub(super) $field: u64,)*
        }

        impl Prices {
            /// The names in the list.
            const NAMES: &'static [&'static str] = &[$($name),*];

            fn field(&mut self, name: &str) -> Option<&mut u64> {
                match name {
                    $($name => Some(&mut self.$field),)*
                    _ => None,
                }
            }
        }
    };
}

prices! {
    /// An instruction whose line L1 has.
    instruction_ps = "instruction-ps",
    /// A line of code that L2 has.
    code_l2_ps = "code-l2-ps",
    code_memory_ps = "code-memory-ps",
    load_l2_ps = "load-l2-ps",
    load_memory_ps = "load-memory-ps",
    store_l2_ps = "store-l2-ps",
    store_memory_ps = "store-memory-ps",
    /// A page that the TLB lacks.
    walk_ps = "walk-ps",
    dmb_ps = "dmb-ps",
    dsb_ps = "dsb-ps",
    isb_ps = "isb-ps",
    exclusive_ps = "exclusive-ps",
    gic_ps = "gic-ps",
    controller_read_ps = "controller-read-ps",
    controller_write_ps = "controller-write-ps",
    gpio_read_ps = "gpio-read-ps",
    gpio_write_ps = "gpio-write-ps",
    /// Registers of other blocks: clocks, timers, the interrupt controller where it has registers.
    other_read_ps = "other-read-ps",
    other_write_ps = "other-write-ps",
    /// What a DSB waits for after a write.
    write_ack_ps = "write-ack-ps",
    /// An exception's way into the vector and back, its instructions apart.
    exception_ps = "exception-ps",
    /// From the block's line to the vector.
    interrupt_ps = "interrupt-ps",
    /// Instructions from the end of an interrupt that a thread waited for until that thread runs.
    wake_instructions = "wake-instructions",
    /// The processor's way out of idling.
    idle_exit_ps = "idle-exit-ps",
    /// Clocks of SCK for eight bits, in thousandths.
    byte_milliclocks = "byte-milliclocks",
}

/// A line of the list.
#[derive(Clone, Debug, PartialEq)]
struct Price {
    board: String,
    name: String,
    range: [u64; 3],
    source: String,
}

/// The list.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct List(Vec<Price>);

impl List {
    /// Reads the list: a line each of board, name, low, used, high and source.
    ///
    /// # Errors
    /// A line that is none of a list, a name that is unknown or twice there, a range that is none, or no source.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let mut all: Vec<Price> = Vec::new();
        let lines = text.lines().filter(|line| !line.starts_with('#') && !line.trim().is_empty());
        for line in lines {
            let price = price(line).ok_or_else(|| {
                format!("{LIST}: no price: `{line}`; a line has board, name, low, used, high and a source")
            })?;
            if all.iter().any(|other| (&other.board, &other.name) == (&price.board, &price.name)) {
                return Err(format!("{LIST}: {} has {} twice", price.board, price.name));
            }
            all.push(price);
        }
        Ok(Self(all))
    }

    /// A board's prices at a level.
    ///
    /// # Errors
    /// A price that the list lacks.
    pub(super) fn of(&self, board: &str, level: Level) -> Result<Prices, String> {
        let mut prices = Prices::default();
        for name in Prices::NAMES {
            let found = self.0.iter().find(|price| price.board == board && price.name == *name);
            let price = found.ok_or_else(|| format!("{LIST}: {board} has no {name}"))?;
            let field = prices.field(name).ok_or_else(|| format!("{LIST}: no {name}"))?;
            *field = price.range[level as usize];
        }
        Ok(prices)
    }

    /// For people.
    pub(super) fn table(&self, board: &str) -> String {
        let mut text = format!("{:<22}{:>9}{:>9}{:>9}\n", "price", "low", "used", "high");
        for Price { name, range: [low, used, high], .. } in
            self.0.iter().filter(|p| p.board == board)
        {
            let _ = writeln!(text, "{name:<22}{low:>9}{used:>9}{high:>9}");
        }
        text
    }
}

fn price(line: &str) -> Option<Price> {
    let mut words = line.split_whitespace();
    let (board, name) = (words.next()?, words.next()?);
    let mut number = || words.next()?.parse::<u64>().ok();
    let range = [number()?, number()?, number()?];
    let source = words.collect::<Vec<_>>().join(" ");
    let is_known = Prices::NAMES.contains(&name);
    (is_known && range.is_sorted() && range[0] > 0 && source.len() > 10).then(|| Price {
        board: board.to_owned(),
        name: name.to_owned(),
        range,
        source,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = include_str!("../../../../guests/prices.txt");

    #[test]
    fn the_list_has_all_prices_of_each_board_that_is_priced() {
        let list = List::parse(TEXT).expect("a list");
        for board in
            super::super::super::board::BOARDS.iter().filter(|b| !b.priced_boots.is_empty())
        {
            let [low, used, high] =
                Level::ALL.map(|level| list.of(board.name, level).expect("all prices"));
            assert!(
                low.instruction_ps < used.instruction_ps
                    && used.instruction_ps < high.instruction_ps
            );
            assert!(list.table(board.name).lines().count() > Prices::NAMES.len());
        }
        assert!(list.of("highbank", Level::Used).is_err());
    }

    #[test]
    fn what_is_no_price_is_refused() {
        let line = "evk dmb-ps 1 2 3 assumption: of a test";
        assert!(List::parse(line).is_ok());
        assert!(List::parse(&format!("{line}\n{line}")).is_err(), "twice");
        for wrong in [
            "evk dmb-ps 1 2 assumption: of a test",
            "evk dmb-ps 3 2 1 assumption: of a test",
            "evk dmb-ps 0 2 3 assumption: of a test",
            "evk dmb-ns 1 2 3 assumption: of a test",
            "evk dmb-ps 1 2 3",
        ] {
            assert!(List::parse(wrong).is_err(), "{wrong}");
        }
    }

    /// The page says which list was there before it was compared with anything.
    #[test]
    fn the_page_has_the_list_s_hash() {
        let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        let mut sum = std::process::Command::new("sha256sum");
        let Ok(output) = sum.arg(root.join(LIST)).output() else { return };
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        let hash = said.split(' ').next().expect("a hash");
        assert_eq!(hash.len(), 64, "{said}");
        let page = std::fs::read_to_string(root.join("docs/priced.md")).expect("the page");
        assert!(page.contains(&format!("`{hash}`")), "docs/priced.md lacks {hash}");
    }
}
