//! All parts, by name.

use super::Part;

/// Every part. Its name in small letters is the name of the option `flash-part=`.
const ALL: [fn() -> Part; 21] = [
    Part::w25q32jv,
    Part::w25q256jv,
    Part::w25q256fv,
    Part::w25q01nw,
    Part::sst25vf016b,
    Part::sst26vf064b,
    Part::s25fl064l,
    Part::s25fl512s,
    Part::s25fs128s,
    Part::s25fs512s,
    Part::s25fs256t,
    Part::is25wp256,
    Part::mx25l3233f,
    Part::mx25r6435f,
    Part::mx25uw6345g,
    Part::gd25lb512me,
    Part::mt25qu256a,
    Part::mt25ql02g,
    Part::atxp032,
    Part::bh25q128as,
    Part::zd25q128c,
];

impl Part {
    /// All parts, vendor by vendor.
    pub fn all() -> impl Iterator<Item = Self> {
        ALL.into_iter().map(|part| part())
    }

    /// The part called `name`, in capital or small letters.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::maker(name).map(|part| part())
    }

    /// What makes the part called `name`, in capital or small letters.
    #[must_use]
    pub fn maker(name: &str) -> Option<fn() -> Self> {
        ALL.into_iter().find(|part| part().name.eq_ignore_ascii_case(name))
    }

    /// The name in small letters: the value of the option `flash-part=`.
    #[must_use]
    pub fn option_name(&self) -> String {
        self.name.to_ascii_lowercase()
    }

    /// The major and minor revision of the part's SFDP, as its header says; `None` if it has no SFDP.
    #[must_use]
    pub fn sfdp_revision(&self) -> Option<[u8; 2]> {
        let (bytes, _) = self.sfdp.bytes();
        let &[minor, major] = bytes.get(4..6)? else {
            return None;
        };
        Some([major, minor])
    }

    /// The bytes that the part answers to 5Ah from address 0; bytes past the end read FFh. Empty if it has no SFDP.
    #[must_use]
    pub fn sfdp_bytes(&self) -> Vec<u8> {
        self.sfdp.bytes().0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn opcodes_are_unique_and_sizes_powers_of_two() {
        for part in Part::all() {
            assert!(part.size.is_power_of_two());
            assert!(part.page_size.is_power_of_two());
            let mut opcodes: Vec<u8> = part.commands().map(|c| c.opcode).collect();
            let count = opcodes.len();
            opcodes.sort_unstable();
            opcodes.dedup();
            assert_eq!(opcodes.len(), count, "{}", part.name);
        }
    }

    #[test]
    fn each_part_is_found_by_its_name_and_no_two_share_one() {
        let names: Vec<&str> = Part::all().map(|part| part.name).collect();
        for name in &names {
            assert_eq!(names.iter().filter(|other| *other == name).count(), 1, "{name}");
            let part = Part::named(&name.to_ascii_lowercase()).expect("it is in the list");
            assert_eq!(part.name, *name);
            assert!(!part.source.is_empty(), "{name} names no source");
        }
        assert!(Part::named("sst26vf064").is_none());
    }

    #[test]
    fn a_part_with_sfdp_begins_with_its_signature() {
        for part in Part::all() {
            let bytes = part.sfdp_bytes();
            assert_eq!(bytes.is_empty(), part.sfdp_revision().is_none(), "{}", part.name);
            assert!(bytes.is_empty() || bytes.starts_with(b"SFDP"), "{}", part.name);
        }
    }
}
