//! The recipes for Buildroot and Yocto in `contrib/`: each is read as far as it can be without its build system, and
//! compared with the workspace.
//!
//! How it works: GNU make itself reads the Buildroot package, with stand-ins for what Buildroot defines, and prints its
//! variables. The Yocto recipe's assignments are read here. Then the version, the licences and their checksums, the
//! packages of the workspace and the files that are installed must be those of this tree.

use std::collections::BTreeMap;
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::tool;

const BUILDROOT: &str = "contrib/buildroot/package/barewire";
const YOCTO: &str = "contrib/yocto/recipes-barewire/barewire";
const LICENSES: [&str; 2] = ["LICENSE-MIT", "LICENSE-APACHE"];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

fn text(path: &str) -> String {
    fs::read_to_string(root().join(path)).unwrap_or_else(|e| panic!("{path}: {e}"))
}

/// A value that all crates of the workspace share.
fn of_workspace(name: &str) -> String {
    let manifest = text("Cargo.toml");
    let line = manifest.lines().find_map(|line| line.strip_prefix(&format!("{name} = \"")));
    line.expect("a value").trim_end_matches('"').to_owned()
}

/// What `sha256sum` or `md5sum` prints of a file of the workspace; `None` without the program.
fn checksum(program: &str, file: &str) -> Option<String> {
    tool::on_path(program)?;
    let out = Command::new(program).arg(root().join(file)).output().expect("it starts");
    let said = String::from_utf8_lossy(&out.stdout);
    said.split_whitespace().next().map(str::to_owned)
}

/// The packages that a command line names by `--package`, and the folders of the workspace's crates with those names.
fn assert_packages_exist(line: &str) {
    let words: Vec<&str> = line.split_whitespace().collect();
    let named = words.windows(2).filter(|pair| pair[0] == "--package").map(|pair| pair[1]);
    let mut count = 0;
    for name in named {
        let found = ["command", "bindings"].iter().any(|folder| {
            fs::read_dir(root().join(folder)).expect("a folder").flatten().any(|entry| {
                let manifest = fs::read_to_string(entry.path().join("Cargo.toml"));
                manifest.is_ok_and(|text| text.contains(&format!("\nname = \"{name}\"\n")))
            })
        });
        assert!(found, "no package {name}: {line}");
        count += 1;
    }
    assert!(count > 0, "no package is named: {line}");
}

/// The files behind `prefix` in a text, which must be there.
fn assert_files_exist(text: &str, prefix: &str) {
    let mut count = 0;
    for (at, _) in text.match_indices(prefix) {
        let path = &text[at + prefix.len()..];
        let path = path.split([' ', '\n']).next().unwrap_or_default();
        // What is built is in `target`.
        if !path.starts_with("target/") {
            assert!(root().join(path).is_file(), "{prefix}{path}");
            count += 1;
        }
    }
    assert!(count > 0, "nothing behind {prefix}");
}

/// The variables that Buildroot's make would have of the package.
fn buildroot() -> Option<BTreeMap<String, String>> {
    tool::on_path("make")?;
    // What Buildroot defines: the macros that the package calls, and a toolchain with glibc.
    let stand_in = "github = https://github.com/$(1)/$(2)/archive/$(3)\n\
        INSTALL = install\nBR2_TOOLCHAIN_USES_GLIBC = y\nRUSTC_TARGET_NAME = TARGET\nTARGET_DIR = ROOT\n\
        cargo-package = PACKAGE_IS_CARGO = y\n\
        include barewire.mk\n\
        $(foreach v,$(sort $(filter BAREWIRE_% PACKAGE_%,$(.VARIABLES))),$(info $(v)=$(subst $(newline), ,$($(v)))))\n\
        all:\n\t@true\n";
    // A macro's lines stay in one.
    let stand_in = format!("define newline\n\n\nendef\n{stand_in}");
    let mut make = Command::new("make");
    make.args(["--no-print-directory", "-f", "-"]).current_dir(root().join(BUILDROOT));
    make.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut make = make.spawn().expect("make starts");
    make.stdin.take().expect("piped").write_all(stand_in.as_bytes()).expect("make reads");
    let out = make.wait_with_output().expect("make ends");
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    let said = String::from_utf8(out.stdout).expect("text");
    let lines = said.lines().filter_map(|line| line.split_once('='));
    Some(lines.map(|(name, value)| (name.to_owned(), value.trim().to_owned())).collect())
}

/// The assignments of a recipe, by name. A line that ends with a backslash goes on; functions are left out.
fn yocto(text: &str) -> BTreeMap<String, String> {
    let joined = text.replace("\\\n", " ");
    let mut found = BTreeMap::new();
    let mut in_function = false;
    for line in joined.lines() {
        in_function = (in_function || line.ends_with("() {")) && line != "}";
        let value = line.strip_suffix('"').and_then(|line| line.split_once('"'));
        if let (false, Some((name, value))) = (in_function || line.starts_with('#'), value) {
            let name = name.trim().trim_end_matches('=').trim_end_matches('+').trim();
            assert!(
                found.insert(name.to_owned(), value.trim().to_owned()).is_none(),
                "{name} twice"
            );
        }
    }
    found
}

#[test]
fn the_buildroot_package_is_of_this_tree() {
    let Some(of) = buildroot() else {
        println!("SKIPPED: no make");
        return;
    };
    assert_eq!(of["PACKAGE_IS_CARGO"], "y");
    assert_eq!(of["BAREWIRE_VERSION"], env!("CARGO_PKG_VERSION"));
    assert!(of["BAREWIRE_SITE"].starts_with(&format!("{}/archive/v", of_workspace("repository"))));
    assert!(of["BAREWIRE_SITE"].ends_with(&of["BAREWIRE_VERSION"]), "{}", of["BAREWIRE_SITE"]);
    assert_eq!(of["BAREWIRE_LICENSE"], of_workspace("license").replace("OR", "or"));
    assert_eq!(of["BAREWIRE_LICENSE_FILES"], LICENSES.join(" "));
    let manifest = text(&format!("{}/Cargo.toml", of["BAREWIRE_SUBDIR"]));
    assert!(manifest.contains("name = \"barewire-cli\""), "{}", of["BAREWIRE_SUBDIR"]);
    assert_packages_exist(&of["BAREWIRE_CARGO_BUILD_OPTS"]);
    let hooks = &of["BAREWIRE_POST_INSTALL_TARGET_HOOKS"];
    assert!(hooks.split(' ').all(|hook| of.contains_key(hook)), "{hooks}");
    assert_files_exist(&text(&format!("{BUILDROOT}/barewire.mk")), "$(@D)/");

    let hashes = text(&format!("{BUILDROOT}/barewire.hash"));
    for file in LICENSES {
        let Some(sum) = checksum("sha256sum", file) else { continue };
        assert!(hashes.contains(&format!("sha256  {sum}  {file}\n")), "{file}: {sum}");
    }
}

#[test]
fn the_buildroot_menu_is_as_kconfig_wants_it() {
    let menu = text(&format!("{BUILDROOT}/Config.in"));
    let (first, rest) = menu.split_once('\n').expect("lines");
    assert_eq!(first, "config BR2_PACKAGE_BAREWIRE");
    let (options, help) = rest.split_once("\thelp\n").expect("a help");
    for option in options.lines() {
        let option = option.strip_prefix('\t').expect("a tab");
        let known = ["bool \"barewire\"", "depends on BR2_", "select BR2_PACKAGE_"];
        assert!(known.iter().any(|begin| option.starts_with(begin)), "{option}");
    }
    // Buildroot's check-package: a tab and two spaces, at most 72 columns with a tab of 8.
    for line in help.lines().filter(|line| !line.is_empty()) {
        assert!(line.starts_with("\t  ") && line.len() + 7 <= 72, "{line:?}");
    }
    assert!(help.ends_with(&format!("{}\n", of_workspace("repository"))), "{help}");
    for (file, part) in [
        ("Config.in", "$BR2_EXTERNAL_BAREWIRE_PATH/package/barewire/Config.in"),
        ("external.mk", "$(BR2_EXTERNAL_BAREWIRE_PATH)/package/*/*.mk"),
        ("external.desc", "name: BAREWIRE\n"),
    ] {
        assert!(text(&format!("contrib/buildroot/{file}")).contains(part), "{file}");
    }
}

#[test]
fn the_yocto_recipe_is_of_this_tree() {
    let name = format!("barewire_{}.bb", env!("CARGO_PKG_VERSION"));
    let folder = fs::read_dir(root().join(YOCTO)).expect("a folder").flatten();
    let recipes: Vec<_> = folder.map(|entry| entry.file_name()).collect();
    assert_eq!(recipes, [name.as_str()], "a recipe's name has its version");
    let recipe = text(&format!("{YOCTO}/{name}"));
    let of = yocto(&recipe);
    assert_eq!(of["LICENSE"], of_workspace("license").replace("OR", "|"));
    assert_eq!(of["HOMEPAGE"], of_workspace("repository"));
    let repository = of_workspace("repository").replace("https", "git");
    assert!(
        of["SRC_URI"].starts_with(&format!("{repository}.git;protocol=https")),
        "{}",
        of["SRC_URI"]
    );
    for file in LICENSES {
        let Some(sum) = checksum("md5sum", file) else { continue };
        let uri = format!("file://{file};md5={sum}");
        assert!(of["LIC_FILES_CHKSUM"].split_whitespace().any(|word| word == uri), "{uri}");
    }
    assert!(recipe.contains("\ninherit cargo cargo-update-recipe-crates"), "{recipe}");
    let built = recipe.lines().find(|line| line.trim().starts_with("oe_cargo_build "));
    assert_packages_exist(built.expect("a build"));
    assert_files_exist(&recipe, "${S}/");
    // A function's lines are shell.
    let functions = recipe.split("() {\n").skip(1);
    for body in functions.filter_map(|rest| rest.split_once("\n}\n")) {
        let body = body.0.replace("${", "${_");
        let shell = Command::new("sh").args(["-n", "-c", &body]).status().expect("sh starts");
        assert!(shell.success(), "{body}");
    }
}

#[test]
fn the_recipes_install_what_the_package_installs() {
    let [make, recipe] = [
        format!("{BUILDROOT}/barewire.mk"),
        format!("{YOCTO}/barewire_{}.bb", env!("CARGO_PKG_VERSION")),
    ];
    for (file, text) in [(&make, text(&make)), (&recipe, text(&recipe))] {
        for part in [
            "contrib/udev/60-barewire.rules",
            "udev/rules.d/60-barewire.rules",
            "contrib/limits.d/60-barewire.conf",
            "security/limits.d/60-barewire.conf",
            "barewire/libbarewire_spidev.so",
        ] {
            assert!(text.contains(part), "{file}: {part}");
        }
        // The groups of contrib/sysusers.d.
        for line in self::text("contrib/sysusers.d/barewire.conf").lines() {
            if let Some(group) = line.strip_prefix("g ").and_then(|rest| rest.split(' ').next()) {
                assert!(
                    text.contains(&format!(" {group} "))
                        || text.contains(&format!("--system {group}")),
                    "{group}"
                );
            }
        }
    }
}
