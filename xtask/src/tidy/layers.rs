//! Which module may import which, inside a crate: only downward, and never in a circle.
//!
//! # How it works
//! [`LAYERS`] has a line for each crate, or for a folder in it, from its top layer to its lowest. `a, b > c` says that `a` and
//! `b` may import `c`, and that neither `c` imports them nor they each other. A module may skip layers.
//! The same lines stand in ARCHITECTURE.md, where people read them.
//!
//! Below the crate's own modules there is no table. There the rule is that the files and folders of one
//! folder do not import each other in a circle. A `mod.rs` may name its children, and they may name
//! items of it: they are one unit, not a circle.

use std::collections::{BTreeMap, BTreeSet};

use super::imports::{Import, read};
use super::{Finding, Source};

const ARCHITECTURE: &str = "ARCHITECTURE.md";

/// The layers of a crate, or of a folder in it.
struct Layers {
    /// Its sources, or the folder.
    folder: &'static str,
    /// The line as in ARCHITECTURE.md, top layer first.
    line: &'static str,
}

/// The layers of each crate that has several modules and no circle.
const LAYERS: &[Layers] = &[
    Layers {
        folder: "stack/barewire/src/",
        line: "barewire: hal > chip > regmap, middleware > bus, trace > controller > reg > spi, time",
    },
    Layers {
        folder: "stack/barewire-linux/src/",
        line: "barewire-linux: bus_text, discover, survey > map > gpio, spidev > iomem, node, platform, \
               release, rights, shared, soc, timer, worker > root, sys",
    },
    Layers {
        folder: "bench/barewire-sim/src/",
        line: "barewire-sim: bound, scenario > bring_up > board > model > wire > line, platform, profile, vcd > \
               check, engine, run, selection > chip, near, random",
    },
    Layers {
        folder: "bench/barewire-mmio/src/",
        line: "barewire-mmio: client, server, tree > machine, socket > fitting, page > message",
    },
    Layers {
        folder: "bench/barewire-qemu/src/",
        line: "barewire-qemu: bring_up > board > flash_file, watched > spec > driver > interrupt, registers > \
               timer, trace > error",
    },
    Layers {
        folder: "iommu/barewire-iommu/src/",
        line: "barewire-iommu: domain > strategy, table > deferred, explain, gather, iova, smmu > \
               pool > lock > few, format, sync, tlbi",
    },
    Layers {
        folder: "iommu/barewire-iommu-model/src/",
        line: "barewire-iommu-model: machine > memory, naive, tlb, walker > violation > descriptor > shape",
    },
    Layers {
        folder: "iommu/barewire-qtest/src/",
        line: "barewire-qtest: process > link, program > private_dir > error",
    },
    Layers {
        folder: "iommu/barewire-iommu-qemu/src/",
        line: "barewire-iommu-qemu: machine > edu, log, pool, registers > ram",
    },
    Layers {
        folder: "iommu/barewire-iommu-cli/src/",
        line: "barewire-iommu-cli: command > shared",
    },
    Layers {
        folder: "iommu/barewire-iommu-cli/src/shared/",
        line: "barewire-iommu-cli/shared: interrupt, output > failure, figure, load, number, processors, progress",
    },
    Layers {
        folder: "lab/src/",
        line: "barewire-lab: report > lab > gain, held_out > fit, limits, messages, predict, sweep > ours > replay > outcome, workload > \
               experiment > own > kernel, score, walk > machine, rules > regime > cost, figure, measured > \
               band, error, memo",
    },
    Layers {
        folder: "iommu/barewire-iommu-bench/src/",
        line: "barewire-iommu-bench: bars, measure > counted, row, scaling, thread_table > published, \
               subject > cleaned, floors, traced > callgrind, counting, fit, list, pool, stats",
    },
    Layers {
        folder: "bindings/barewire-open/src/",
        line: "barewire-open: any_bus, local_bus > kind, options > sim_board > display, first_read, wiring > confined, flash_file, \
               layers, name, out_file, owned_message, waiting > costs > files, number > error",
    },
    Layers {
        folder: "bindings/c/src/",
        line: "barewire-c: calls > shared, transfers > handle, types > border > failure > error",
    },
    Layers {
        folder: "bindings/python/src/",
        line: "barewire-python: chip, scope, spidev > bus > registers > port > shared > buffer > error",
    },
    Layers {
        folder: "bench/barewire-stress/src/",
        line: "barewire-stress: report > context > message, slot > account, platform > judge > \
               frame, sabotage",
    },
    Layers {
        folder: "scope/src/",
        line: "barewire-scope: diff, meaning, picture > joined, scope > find, glitch, kinds > chip > decode > capture, trace > counts, error",
    },
    Layers { folder: "command/barewire-cli/src/", line: "barewire-cli: command > shared" },
    Layers {
        folder: "command/barewire-cli/src/shared/",
        line: "barewire-cli/shared: session > costs, files, interrupt, real_time > \
               output > failure, no_bus, processors, progress, sysfs, text > beside",
    },
];

/// A module: its path from the crate's root.
type Module = Vec<String>;

/// A crate's modules, and what each says.
struct Crate<'s> {
    modules: BTreeMap<Module, (&'s Source, Vec<Import>)>,
}

/// One module of a folder imports another of the same folder.
struct Arrow<'s> {
    from: String,
    to: String,
    source: &'s Source,
    line: usize,
}

/// Every rule of this file.
pub(super) fn check(sources: &[Source]) -> Vec<Finding> {
    check_by(sources, LAYERS)
}

fn check_by(sources: &[Source], layers: &[Layers]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for folder in crates(sources) {
        let modules = Crate::read(sources, &folder);
        findings.extend(circles(&modules));
        for layers in layers {
            if let Some(within) = layers.folder.strip_prefix(folder.as_str()) {
                let within: Module = within.split_terminator('/').map(String::from).collect();
                findings.extend(upward(&modules, &within, layers));
                findings.extend(unwritten(sources, layers));
            }
        }
    }
    findings
}

/// The folders of sources: `…/src/`.
fn crates(sources: &[Source]) -> BTreeSet<String> {
    let root = |source: &Source| {
        let path = source.path.as_str();
        let crate_file = path.strip_suffix("src/lib.rs").or(path.strip_suffix("src/main.rs"))?;
        Some(format!("{crate_file}src/"))
    };
    sources.iter().filter_map(root).collect()
}

impl<'s> Crate<'s> {
    fn read(sources: &'s [Source], folder: &str) -> Self {
        let mut modules = BTreeMap::new();
        let mut tests: Vec<Module> = Vec::new();
        for source in sources.iter().filter(|source| source.is_rust()) {
            let Some(path) = source.path.strip_prefix(folder) else { continue };
            // Programs beside the library: crates of their own.
            if path.starts_with("bin/") {
                continue;
            }
            let module = module_of(path);
            let reading = read(&source.text);
            tests.extend(reading.test_modules.into_iter().map(|name| child(&module, &name)));
            modules.insert(module, (source, reading.imports));
        }
        modules.retain(|module, _| !tests.iter().any(|test| module.starts_with(test)));
        Self { modules }
    }

    /// The modules through which `path`, named in `from`, reaches the module that has its name,
    /// which comes last; none if it is another crate's.
    fn resolve(&self, from: &[String], path: &[String], depth: usize) -> Vec<Module> {
        // A name that is re-exported in a circle leads nowhere.
        let (Some(depth), Some((first, mut rest))) = (depth.checked_sub(1), path.split_first())
        else {
            return Vec::new();
        };
        let mut at = match first.as_str() {
            "crate" => Vec::new(),
            "self" => from.to_vec(),
            "super" => parent(from),
            _ if self.modules.contains_key(&child(from, first)) => child(from, first),
            _ => return self.renamed(from, first, rest, depth).unwrap_or_default(),
        };
        while let Some((name, further)) = rest.split_first() {
            if name == "super" {
                at = parent(&at);
            } else if self.modules.contains_key(&child(&at, name)) {
                at.push(name.clone());
            } else {
                let further = self.renamed(&at, name, further, depth).unwrap_or_default();
                return [at].into_iter().chain(further).collect();
            }
            rest = further;
        }
        vec![at]
    }

    /// Where `name` leads if `module` brings it in by a `use`.
    fn renamed(
        &self,
        module: &[String],
        name: &str,
        rest: &[String],
        depth: usize,
    ) -> Option<Vec<Module>> {
        let (_, imports) = self.modules.get(module)?;
        let import = imports.iter().find(|import| import.alias.as_deref() == Some(name))?;
        let path: Vec<String> = import.path.iter().chain(rest).cloned().collect();
        Some(self.resolve(module, &path, depth))
    }

    /// The arrows between the modules of each folder.
    fn arrows(&self) -> BTreeMap<Module, Vec<Arrow<'s>>> {
        let mut arrows: BTreeMap<Module, Vec<Arrow<'s>>> = BTreeMap::new();
        for (from, (source, imports)) in &self.modules {
            for import in imports {
                for to in self.resolve(from, &import.path, 16) {
                    let common = from.iter().zip(&to).take_while(|(a, b)| a == b).count();
                    if let (Some(below), Some(above)) = (from.get(common), to.get(common)) {
                        let (below, above) = (below.clone(), above.clone());
                        let arrow = Arrow { from: below, to: above, source, line: import.line };
                        arrows.entry(from[..common].to_vec()).or_default().push(arrow);
                    }
                }
            }
        }
        arrows
    }
}

fn parent(module: &[String]) -> Module {
    module.split_last().map(|(_, parent)| parent.to_vec()).unwrap_or_default()
}

fn child(module: &[String], name: &str) -> Module {
    module.iter().map(String::as_str).chain([name]).map(String::from).collect()
}

/// The module of the file at `path` in its crate.
fn module_of(path: &str) -> Module {
    let path = path.trim_end_matches(".rs");
    let path = path.strip_suffix("/mod").unwrap_or(path);
    path.split('/').filter(|part| !matches!(*part, "lib" | "main")).map(String::from).collect()
}

/// Circles among the modules of each folder.
fn circles(known: &Crate<'_>) -> Vec<Finding> {
    let mut findings = Vec::new();
    for arrows in known.arrows().values() {
        let mut reach: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
        for arrow in arrows {
            reach.entry(&arrow.from).or_default().insert(&arrow.to);
        }
        // Warshall's transitive closure: adds, for each module in turn, the paths through it.
        let names: Vec<&str> = reach.keys().copied().collect();
        for by in names {
            let further = reach[by].clone();
            for reached in reach.values_mut().filter(|reached| reached.contains(by)) {
                reached.extend(&further);
            }
        }
        let round = |one: &str, other: &str| {
            let reaches = |a: &str, b: &str| reach.get(a).is_some_and(|to| to.contains(b));
            reaches(one, other) && reaches(other, one)
        };
        let mut told: BTreeSet<&str> = BTreeSet::new();
        for arrow in arrows.iter().filter(|arrow| round(&arrow.from, &arrow.to)) {
            if told.contains(arrow.from.as_str()) {
                continue;
            }
            let members: Vec<&str> =
                reach.keys().copied().filter(|name| round(&arrow.from, name)).collect();
            told.extend(&members);
            let message = format!(
                "`{}` import each other in a circle; move what both need below both",
                members.join("`, `")
            );
            findings.push(arrow.source.finding(arrow.line, message));
        }
    }
    findings
}

/// The layers of a line, top first.
fn rows(line: &str) -> Vec<Vec<&str>> {
    let (_, layers) = line.split_once(": ").unwrap_or(("", line));
    layers.split(" > ").map(|row| row.split(", ").collect()).collect()
}

/// Imports that do not go down, modules without a layer, and layers without a module.
fn upward(known: &Crate<'_>, within: &Module, layers: &Layers) -> Vec<Finding> {
    let rows = rows(layers.line);
    let layer = |name: &str| rows.iter().position(|row| row.contains(&name));
    let mut findings = Vec::new();
    let mut top: BTreeMap<&str, &Source> = BTreeMap::new();
    for (module, (source, _)) in &known.modules {
        if module.starts_with(within)
            && let Some(name) = module.get(within.len())
        {
            top.entry(name).or_insert(source);
        }
    }
    for (name, source) in &top {
        if layer(name).is_none() {
            let message =
                format!("`{name}` has no layer; give it one in xtask's tidy and {ARCHITECTURE}");
            findings.push(source.finding(1, message));
        }
    }
    for name in rows.iter().flatten().filter(|name| !top.contains_key(*name)) {
        let path = layers.folder.to_string();
        let message = format!("there is no module `{name}`; take it out of the layers");
        findings.push(Finding { path, line: 1, message });
    }
    let arrows = known.arrows();
    for arrow in arrows.get(within).into_iter().flatten() {
        if let (Some(from), Some(to)) = (layer(&arrow.from), layer(&arrow.to))
            && to <= from
        {
            let (from, to) = (&arrow.from, &arrow.to);
            let message =
                format!("`{from}` imports `{to}`, which is not below it; see {ARCHITECTURE}");
            findings.push(arrow.source.finding(arrow.line, message));
        }
    }
    // Several names of one `use`.
    findings.dedup();
    findings
}

/// A line that ARCHITECTURE.md does not have.
fn unwritten(sources: &[Source], layers: &Layers) -> Option<Finding> {
    let architecture = sources.iter().find(|source| source.path == ARCHITECTURE)?;
    let stands = architecture.lines().any(|(_, line)| line == layers.line);
    let message = format!("the layers of a crate are missing; write the line `{}`", layers.line);
    (!stands).then(|| architecture.finding(1, message))
}

#[cfg(test)]
mod tests {
    use super::super::tests::{found, source};
    use super::*;

    const TABLE: [Layers; 1] =
        [Layers { folder: "x/src/", line: "x: top > middle, side > ground" }];

    /// The findings in a crate of these files beside its `lib.rs` and a module for each layer.
    fn check_files(files: &[(&str, &str)]) -> Vec<String> {
        let mut sources = vec![source(ARCHITECTURE, "# x\nx: top > middle, side > ground\n")];
        for name in ["lib", "top", "middle", "side", "ground"] {
            let path = format!("{name}.rs");
            let own = files.iter().find(|(other, _)| *other == path);
            sources.push(source(&format!("x/src/{path}"), own.map_or("", |(_, text)| text)));
        }
        let standing: Vec<String> = sources.iter().map(|source| source.path.clone()).collect();
        for (path, text) in files {
            let path = format!("x/src/{path}");
            if !standing.contains(&path) {
                sources.push(source(&path, text));
            }
        }
        found(&check_by(&sources, &TABLE))
    }

    #[test]
    fn imports_go_down() {
        assert!(check_files(&[]).is_empty());
        for good in ["use crate::middle::A;", "use crate::{ground, side::B};"] {
            assert!(check_files(&[("top.rs", good)]).is_empty(), "{good}");
        }
        let wrong = check_files(&[("ground.rs", "\nuse crate::middle::A;\n")]);
        assert_eq!(wrong, ["x/src/ground.rs:2: `ground` imports `middle`"]);
        let wrong = check_files(&[("side.rs", "fn f() { crate::middle::g() }")]);
        assert_eq!(wrong, ["x/src/side.rs:1: `side` imports `middle`"]);
    }

    #[test]
    fn a_file_in_a_folder_belongs_to_its_layer() {
        let files = [("middle.rs", "mod part;"), ("middle/part.rs", "use super::super::top::A;")];
        assert_eq!(check_files(&files), ["x/src/middle/part.rs:1: `middle` imports `top`"]);
    }

    #[test]
    fn a_name_is_followed_to_where_it_stands() {
        let lib = ("lib.rs", "pub use top::A;\npub use ground::B;\n");
        let wrong = check_files(&[lib, ("middle.rs", "use crate::A;")]);
        assert_eq!(wrong, ["x/src/middle.rs:1: `middle` imports `top`"]);
        assert!(check_files(&[lib, ("middle.rs", "use crate::B;")]).is_empty());
        // An import by way of a higher module is upward, wherever the name is defined.
        let files = [("top.rs", "pub use crate::ground::B;"), ("middle.rs", "use crate::top::B;")];
        assert_eq!(check_files(&files), ["x/src/middle.rs:1: `middle` imports `top`"]);
    }

    #[test]
    fn tests_may_look_up() {
        let inside = "#[cfg(test)]\nmod tests { use crate::top::A; }";
        assert!(check_files(&[("ground.rs", inside)]).is_empty());
        let files =
            [("ground.rs", "#[cfg(test)]\nmod tests;"), ("ground/tests.rs", "use crate::top::A;")];
        assert!(check_files(&files).is_empty());
    }

    #[test]
    fn the_table_has_every_module_and_no_other() {
        assert_eq!(check_files(&[("new.rs", "")]), ["x/src/new.rs:1: `new` has no layer"]);
        let sources = [source("x/src/lib.rs", ""), source("x/src/top.rs", "")];
        let gone = found(&check_by(&sources, &TABLE));
        assert_eq!(gone.len(), 3, "{gone:?}");
        assert_eq!(gone[0], "x/src/:1: there is no module `middle`");
    }

    #[test]
    fn a_folder_may_have_layers_of_its_own() {
        let table = [Layers { folder: "x/src/in/", line: "x/in: a > b" }];
        let sources = [
            source(ARCHITECTURE, "x/in: a > b\n"),
            source("x/src/lib.rs", ""),
            source("x/src/in/mod.rs", ""),
            source("x/src/in/a.rs", ""),
            source("x/src/in/b.rs", "use super::a::A;"),
        ];
        let wrong = found(&check_by(&sources, &table));
        assert_eq!(wrong, ["x/src/in/b.rs:1: `b` imports `a`"]);
    }

    #[test]
    fn people_read_the_same_table() {
        let architecture = source(ARCHITECTURE, "x: top > ground\n");
        let missing = unwritten(&[architecture], &TABLE[0]).expect("another line");
        assert!(missing.message.contains(TABLE[0].line));
    }

    #[test]
    fn files_of_a_folder_do_not_import_each_other_in_a_circle() {
        let files = [
            ("top.rs", "mod a;\nmod b;\nmod c;\npub use c::C;\n"),
            ("top/a.rs", "use super::b::B;\n"),
            ("top/b.rs", "use super::C;\n"),
            ("top/c.rs", "\nuse super::a::A;\n"),
        ];
        let circle = "x/src/top/a.rs:1: `a`, `b`, `c` import each other in a circle";
        // `found` cuts at a comma.
        assert_eq!(check_files(&files), [circle.split(',').next().expect("some")]);
        assert!(check_files(&files[..3]).is_empty());
    }

    #[test]
    fn a_folder_and_its_own_file_are_one() {
        let files = [
            ("top.rs", "mod a;\nuse a::A;\npub struct B;\n"),
            ("top/a.rs", "use super::B;\npub struct A;\n"),
        ];
        assert!(check_files(&files).is_empty());
    }
}
