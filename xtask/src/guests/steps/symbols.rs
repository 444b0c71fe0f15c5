//! The functions of a guest's kernel, by address: the text of `/proc/kallsyms`.

use std::collections::HashMap;

/// A function, as an index into the names.
pub(super) type Function = u32;

/// All functions, in the order of their addresses.
#[derive(Debug, Default)]
pub(super) struct Symbols {
    starts: Vec<(u64, Function)>,
    names: Vec<String>,
    known: HashMap<String, Function>,
}

impl Symbols {
    /// Reads lines of `address kind name [module]`.
    ///
    /// The names of a compiler's copies (`f.constprop.0`, `f.isra.0`, `f.part.0`) are cut to the function's. A label
    /// that is no function (`$x`) is left out. Of several names at an address, the first is kept.
    ///
    /// # Errors
    /// A line that has no address; no line; or addresses that the kernel hides (all zero).
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let mut all = Self::default();
        for line in text.lines() {
            let mut words = line.split_whitespace();
            let address = words.next().and_then(|word| u64::from_str_radix(word, 16).ok());
            let (Some(address), Some(_), Some(name)) = (address, words.next(), words.next()) else {
                return Err(format!("no line of kallsyms: `{line}`"));
            };
            if name.starts_with('$') || name.starts_with(".L") {
                continue;
            }
            let function = all.name(name.split('.').next().unwrap_or(name));
            all.starts.push((address, function));
        }
        all.starts.sort_by_key(|start| start.0);
        all.starts.dedup_by_key(|start| start.0);
        match all.starts.last() {
            None | Some((0, _)) => Err("kallsyms has no addresses".to_owned()),
            Some(_) => Ok(all),
        }
    }

    /// The function of that name, which may be one that kallsyms lacks.
    pub(super) fn name(&mut self, name: &str) -> Function {
        if let Some(function) = self.known.get(name) {
            return *function;
        }
        let function = self.names.len() as Function;
        self.names.push(name.to_owned());
        self.known.insert(name.to_owned(), function);
        function
    }

    /// The name of a function.
    pub(super) fn of(&self, function: Function) -> &str {
        &self.names[function as usize]
    }

    /// The function of that name, if there is one.
    pub(super) fn find(&self, name: &str) -> Option<Function> {
        self.known.get(name).copied()
    }

    /// The function that an address lies in, and whether it is its first.
    pub(super) fn at(&self, address: u64) -> Option<(Function, bool)> {
        let behind = self.starts.partition_point(|start| start.0 <= address);
        let (start, function) = *self.starts.get(behind.checked_sub(1)?)?;
        Some((function, start == address))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_lies_in_the_function_that_begins_last_before_it() {
        let text =
            "00000100 T f\n00000180 t g.constprop.0\t[spi_imx]\n00000180 t $x\n00000180 t h\n";
        let symbols = Symbols::parse(text).expect("symbols");
        let at = |address| symbols.at(address).map(|(f, first)| (symbols.of(f), first));
        assert_eq!(at(0xff), None);
        assert_eq!(at(0x100), Some(("f", true)));
        assert_eq!(at(0x17f), Some(("f", false)));
        assert_eq!(at(0x180), Some(("g", true)));
        assert_eq!(at(0x1000), Some(("g", false)));
        assert!(symbols.find("g").is_some() && symbols.find("k").is_none());
    }

    #[test]
    fn hidden_addresses_and_other_texts_are_errors() {
        assert!(Symbols::parse("00000000 T f\n00000000 t g\n").is_err());
        assert!(Symbols::parse("").is_err());
        assert!(Symbols::parse("Linux version 6.1\n").is_err());
    }
}
