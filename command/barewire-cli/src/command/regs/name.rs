//! Registers and fields as the command line names them: `C1CON`, `0xe04`, `C1CON.REQOP`.

use barewire::regmap::{Field, Location, Map, Register};

use crate::shared::text::{near, number};

/// A register, or the field of it that is meant.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct NamedRegister {
    pub(super) at: Location<'static>,
    pub(super) field: Option<&'static Field>,
}

/// The registers that `text` names: one, or all elements of an array named without a number.
pub(super) fn parse(map: &'static Map, text: &str) -> Result<Vec<NamedRegister>, String> {
    let (register, field) = match text.split_once('.') {
        Some((register, field)) => (register, Some(field)),
        None => (text, None),
    };
    let locations = match register.starts_with(|first: char| first.is_ascii_digit()) {
        true => vec![at_address(map, register)?],
        false => by_name(map, register)?,
    };
    let named = |at: Location<'static>| {
        let field = field.map(|field| field_of(at, field)).transpose()?;
        Ok(NamedRegister { at, field })
    };
    locations.into_iter().map(named).collect()
}

fn at_address(map: &'static Map, text: &str) -> Result<Location<'static>, String> {
    let address = number::bytes(text).map_err(|error| format!("{text:?}: {error}"))?;
    if let Some(at) = u32::try_from(address).ok().and_then(|address| map.at(address)) {
        return Ok(at);
    }
    let distance = |at: &Location<'_>| u64::from(at.address()).abs_diff(address);
    let nearest = map
        .locations()
        .min_by_key(distance)
        .map_or(String::new(), |at| format!(": the nearest is {at} at {:#x}", at.address()));
    Err(format!("the {} has no register at {address:#x}{nearest}", map.name()))
}

fn by_name(map: &'static Map, name: &str) -> Result<Vec<Location<'static>>, String> {
    let elements = |register: &'static Register| (0..register.count()).map(|n| register.nth(n));
    let whole = |register: &&Register| register.name().eq_ignore_ascii_case(name);
    if let Some(register) = map.registers().iter().find(whole) {
        return Ok(elements(register).collect());
    }
    if let Some(at) = map.find(name) {
        return Ok(vec![at]);
    }
    let base = name.trim_end_matches(|c: char| c.is_ascii_digit() || matches!(c, '[' | ']'));
    let array =
        |register: &&Register| register.count() > 1 && register.name().eq_ignore_ascii_case(base);
    if let Some(array) = map.registers().iter().find(array) {
        let last = array.nth(array.count() - 1);
        return Err(format!("there is no {name}: there are {} to {last}", array.nth(0)));
    }
    let has = |register: &&Register| register.field(name).is_some();
    if let Some(register) = map.registers().iter().find(has) {
        return Err(format!(
            "there is no register {name:?}: write {}.{name} for the field",
            register.nth(0)
        ));
    }
    let names: Vec<&str> = map.registers().iter().map(Register::name).collect();
    // A number behind the name is checked separately.
    let word = if base.is_empty() { name } else { base };
    Err(near::unknown("register", word, &names))
}

fn field_of(at: Location<'static>, name: &str) -> Result<&'static Field, String> {
    let register = at.register();
    register.field(name).ok_or_else(|| {
        let names: Vec<&str> = register.all_fields().iter().map(Field::name).collect();
        match names.is_empty() {
            true => format!("{at} has no fields"),
            false => near::unknown(&format!("field of {at}"), name, &names),
        }
    })
}

#[cfg(test)]
mod tests {
    use barewire::chip::mcp251xfd::MAP;

    use super::*;

    fn named(text: &str) -> Vec<(u32, Option<&'static str>)> {
        let found = parse(&MAP, text).unwrap_or_else(|error| panic!("{text}: {error}"));
        found.iter().map(|it| (it.at.address(), it.field.map(Field::name))).collect()
    }

    #[test]
    fn names_addresses_and_fields_are_found() {
        assert_eq!(named("c1con"), [(0, None)]);
        assert_eq!(named("C1CON.reqop"), [(0, Some("REQOP"))]);
        assert_eq!(named("0xe04"), [(0xe04, None)]);
        assert_eq!(named("0XE00.osCrdy"), [(0xe00, Some("OSCRDY"))]);
        assert_eq!(named("3588"), [(0xe04, None)]);
        assert_eq!(named("c1fifocon2.UINC"), [(0x068, Some("UINC"))]);
        let all = named("C1MASK");
        assert_eq!((all.len(), all[0].0, all[31].0), (32, 0x1f4, 0x2ec));
        assert_eq!(named("C1FLTCON.F0BP").len(), 8);
    }

    #[test]
    fn what_is_not_there_has_a_near_name() {
        for (text, part) in [
            ("C1CONN", "did you mean \"C1CON\"?"),
            ("c1fifocn3", "did you mean \"C1FIFOCON\"?"),
            ("c1fifocon32", "there are C1FIFOCON1 to C1FIFOCON31"),
            ("c1fifocon0", "there are C1FIFOCON1 to C1FIFOCON31"),
            ("REQOP", "write C1CON.REQOP for the field"),
            ("C1CON.REQ", "did you mean \"REQOP\"?"),
            ("C1TBC.X", "C1TBC has no fields"),
            ("0x4c", "no register at 0x4c: the nearest is"),
            ("0x1_0000_0000", "no register at 0x100000000"),
            ("0xg", "not a number"),
            ("", "there is no register"),
        ] {
            let error = parse(&MAP, text).expect_err(text);
            assert!(error.contains(part), "{text}: {error}");
        }
    }
}
