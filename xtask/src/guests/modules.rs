//! Kernel modules: found by name, and in the order in which they can be loaded.
//!
//! A module names what it needs in its `.modinfo` section, as `depends=a,b` between NULs; no
//! `modules.dep` and no kmod is needed for that. Debian's 6.1 modules are not compressed; its 6.12
//! ones are, by xz.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::tool;

/// A module's name, with `_` for `-`, and its content.
pub(super) type Module = (String, Vec<u8>);

/// A module's content; `None` if there is no such file.
type ModuleContent = Result<Option<Vec<u8>>, String>;

/// Where the modules of a kernel lie, by name.
#[derive(Debug)]
pub(super) struct Index(BTreeMap<String, PathBuf>);

impl Index {
    /// Looks through a kernel's `lib/modules/VERSION`.
    pub(super) fn read(dir: &Path) -> Result<Self, String> {
        let mut found = BTreeMap::new();
        let mut dirs = vec![dir.to_owned()];
        while let Some(dir) = dirs.pop() {
            let listed = std::fs::read_dir(&dir)
                .map_err(|e| format!("cannot read {}: {e}", dir.display()))?;
            for path in listed.flatten().map(|entry| entry.path()) {
                if path.is_dir() && !path.is_symlink() {
                    dirs.push(path);
                } else if let Some(name) = module_name(&path) {
                    found.insert(name, path);
                }
            }
        }
        Ok(Self(found))
    }

    /// The modules `names` and all they need, each after what it needs.
    ///
    /// A name without a file is built into the kernel, or does not exist there: it is left out, and
    /// the check that needs it will say so.
    pub(super) fn closure(&self, names: &[&str]) -> Result<Vec<Module>, String> {
        in_order(names, |name| match self.0.get(name) {
            Some(path) => content(path).map(Some),
            None => Ok(None),
        })
    }
}

/// Depth first: a module is put behind all that it depends on.
fn in_order(
    names: &[&str],
    mut load: impl FnMut(&str) -> ModuleContent,
) -> Result<Vec<Module>, String> {
    fn visit(
        name: &str,
        load: &mut dyn FnMut(&str) -> ModuleContent,
        seen: &mut Vec<String>,
        modules: &mut Vec<Module>,
    ) -> Result<(), String> {
        let name = name.replace('-', "_");
        if seen.contains(&name) {
            return Ok(());
        }
        seen.push(name.clone());
        let Some(bytes) = load(&name)? else { return Ok(()) };
        for needed in depends(&bytes) {
            visit(&needed, load, seen, modules)?;
        }
        modules.push((name, bytes));
        Ok(())
    }
    let (mut seen, mut modules) = (Vec::new(), Vec::new());
    for name in names {
        visit(name, &mut load, &mut seen, &mut modules)?;
    }
    Ok(modules)
}

/// `spi_imx` of `…/spi-imx.ko` or `…/spi-imx.ko.xz`.
fn module_name(path: &Path) -> Option<String> {
    let name = path.file_name()?.to_str()?;
    let stem = name.strip_suffix(".ko").or_else(|| name.strip_suffix(".ko.xz"))?;
    Some(stem.replace('-', "_"))
}

fn content(path: &Path) -> Result<Vec<u8>, String> {
    if path.extension().is_some_and(|ending| ending == "xz") {
        return tool::answer(Command::new("xz").arg("-dc").arg(path));
    }
    std::fs::read(path).map_err(|e| format!("cannot read {}: {e}", path.display()))
}

/// The modules that a module needs, by its `.modinfo`.
fn depends(module: &[u8]) -> Vec<String> {
    const KEY: &[u8] = b"\0depends=";
    let Some(at) = module.windows(KEY.len()).position(|window| window == KEY) else {
        return Vec::new();
    };
    let value = module[at + KEY.len()..].split(|byte| *byte == 0).next().unwrap_or_default();
    let value = String::from_utf8_lossy(value);
    value.split(',').filter(|name| !name.is_empty()).map(|name| name.replace('-', "_")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn module(depends: &str) -> Vec<u8> {
        format!("\x7fELF\0license=GPL\0depends={depends}\0name=x\0").into_bytes()
    }

    #[test]
    fn each_module_comes_after_what_it_needs_and_once() {
        let load = |name: &str| {
            Ok(match name {
                "spi_imx" => Some(module("spi-bitbang")),
                "spi_bitbang" => Some(module("")),
                "spi_nor" => Some(module("mtd")),
                "mtdblock" => Some(module("mtd,mtd_blkdevs")),
                "mtd_blkdevs" => Some(module("mtd")),
                "mtd" => Some(module("")),
                _ => None,
            })
        };
        let loaded = in_order(&["spi-imx", "spi_nor", "mtdblock", "built-in"], load);
        let names: Vec<String> = loaded.expect("all").into_iter().map(|(name, _)| name).collect();
        assert_eq!(names, ["spi_bitbang", "spi_imx", "mtd", "spi_nor", "mtd_blkdevs", "mtdblock"]);
    }

    #[test]
    fn a_circle_ends_and_an_unreadable_module_is_an_error() {
        let load = |name: &str| Ok(Some(module(if name == "a" { "b" } else { "a" })));
        assert_eq!(in_order(&["a"], load).expect("both").len(), 2);
        assert!(in_order(&["a"], |_| Err("no xz".to_owned())).is_err());
    }

    #[test]
    fn files_are_known_by_name() {
        assert_eq!(module_name(Path::new("k/spi-imx.ko")), Some("spi_imx".into()));
        assert_eq!(module_name(Path::new("k/mtd.ko.xz")), Some("mtd".into()));
        assert_eq!(module_name(Path::new("k/modules.builtin")), None);
        assert!(depends(b"no such key").is_empty());
    }
}
