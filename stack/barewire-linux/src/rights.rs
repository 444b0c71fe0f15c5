//! Permissions of device nodes: which group may open one, and what the user can do about it.

use std::fmt;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use crate::root::Root;

/// The group of a device node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Group {
    /// Its number; 0 is root's group, to which no user should be added.
    pub gid: u32,
    /// Its name, if `/etc/group` has one.
    pub name: Option<String>,
}

impl Group {
    /// The group of the node at `path`.
    pub(crate) fn of(root: &Root, path: &Path) -> Option<Self> {
        let gid = std::fs::metadata(path).ok()?.gid();
        let groups = root.text("/etc/group").unwrap_or_default();
        Some(Self { gid, name: name_of(&groups, gid) })
    }
}

/// The name of group `gid` in the text of `/etc/group`.
fn name_of(groups: &str, gid: u32) -> Option<String> {
    groups.lines().find_map(|line| {
        let mut fields = line.split(':');
        let name = fields.next()?;
        (fields.nth(1)?.parse() == Ok(gid)).then(|| name.to_owned())
    })
}

/// How a user gets access to nodes of one kind without being root.
pub(crate) struct Remedy<'a> {
    /// The group that may open the node now, if known.
    pub(crate) group: Option<&'a Group>,
    /// The condition of the udev rule, in udev's syntax.
    pub(crate) matches: &'a str,
    /// The group that the rule assigns.
    pub(crate) wanted: &'a str,
}

impl fmt::Display for Remedy<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.group {
            Some(Group { gid, name }) if *gid != 0 => {
                match name {
                    Some(name) => write!(f, "it belongs to group {name}: ")?,
                    None => write!(f, "it belongs to group {gid}, which has no name: ")?,
                }
                let group = name.clone().unwrap_or_else(|| gid.to_string());
                write!(f, "`usermod -aG {group} USER` and log in again; ")?;
                f.write_str("if the group may not write it, by a udev rule as ")?;
            }
            _ => write!(
                f,
                "only root may open it: `groupadd -f {0}; usermod -aG {0} USER` and a udev rule as ",
                self.wanted
            )?,
        }
        write!(
            f,
            "`{}, GROUP=\"{}\", MODE=\"0660\"` in /etc/udev/rules.d/60-barewire.rules, then `udevadm control --reload; udevadm trigger`",
            self.matches, self.wanted
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GROUPS: &str = "root:x:0:\ndialout:x:20:ada\nspi:x:993:ada,bob\nbad line\n";

    #[test]
    fn a_group_is_named_by_its_number() {
        assert_eq!(name_of(GROUPS, 993).as_deref(), Some("spi"));
        assert_eq!(name_of(GROUPS, 0).as_deref(), Some("root"));
        assert_eq!(name_of(GROUPS, 7), None);
        assert_eq!(name_of("", 0), None);
    }

    #[test]
    fn the_remedy_names_the_group_there_is_and_the_rule() {
        let matches = "SUBSYSTEM==\"spidev\"";
        let remedy = |group| Remedy { group, matches, wanted: "spi" }.to_string();
        let spi = Group { gid: 993, name: Some("spi".into()) };
        let text = remedy(Some(&spi));
        assert!(text.contains("belongs to group spi: `usermod -aG spi USER`"), "{text}");
        assert!(text.contains("`SUBSYSTEM==\"spidev\", GROUP=\"spi\", MODE=\"0660\"`"), "{text}");

        let root = Group { gid: 0, name: Some("root".into()) };
        let text = remedy(Some(&root));
        assert!(text.starts_with("only root may open it: `groupadd -f spi;"), "{text}");
        assert!(!text.contains("-aG root"), "nobody is put into root's group: {text}");
        assert!(remedy(None).starts_with("only root may open it"));

        let nameless = Group { gid: 7, name: None };
        assert!(remedy(Some(&nameless)).contains("usermod -aG 7 USER"));
    }
}
