//! Counted instructions beside the cost table: Linux 6.12's steps beside 6.1's, and the kernel's drivers beside barewire's module.

use std::collections::BTreeMap;

use serde::Deserialize;

use crate::cost::Costs;
use crate::own::{Client, Driver, OwnExperiment};

/// `lab/gain.toml`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    /// Under 6.1 and under 6.12.
    newest: BTreeMap<String, [f64; 2]>,
    module: Vec<ModuleCount>,
}

/// An operation of 4 bytes, with the kernel's driver and with the module.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct ModuleCount {
    /// The board that QEMU emulated.
    pub(super) guest: String,
    /// Under Linux 6.12, not 6.1.
    pub(super) newest: bool,
    spidev: Option<[f64; 2]>,
    in_kernel: Option<[f64; 2]>,
    in_kernel_optimized: Option<[f64; 2]>,
    /// `spi_sync`, and a prepared access by the module's interface.
    api: Option<[f64; 2]>,
    /// Register accesses of spidev's row.
    accesses: [f64; 2],
}

fn file() -> File {
    toml::from_str(include_str!("../../gain.toml")).expect("gain.toml")
}

/// `costs` with what an upgrade to Linux 6.12 makes of them: each times the factor that was counted on one processor.
pub(super) fn upgraded(costs: &Costs) -> Costs {
    let mut upgraded = costs.fresh();
    for (name, [stock, newest]) in file().newest {
        upgraded.set(&name, costs.get(&name) * newest / stock);
    }
    upgraded
}

impl ModuleCount {
    /// The count nearest to an experiment: of the same driver, and of its processor if there is one; under Linux 6.12 where the
    /// experiment was `upgraded` to its counts, else under 6.1, whose counts the lab's costs are.
    pub(super) fn of(own: &OwnExperiment, upgraded: bool) -> Option<Self> {
        let guest = match own.driver {
            Driver::Bcm2835 => "raspi3b",
            Driver::Imx if own.profile.name == "imx8mp" => "imx8mp-evk",
            Driver::Imx => "sabrelite",
            Driver::Mcspi => return None,
        };
        let all = file().module;
        let mut of_guest: Vec<Self> = all.into_iter().filter(|one| one.guest == guest).collect();
        of_guest.sort_by_key(|one| one.newest != upgraded);
        of_guest.into_iter().find(|one| one.client(own.client).is_some())
    }

    /// A prepared message was counted under 6.12 alone: else it is as any client's.
    fn client(&self, client: Client) -> Option<[f64; 2]> {
        match client {
            Client::Spidev => self.spidev,
            Client::InKernel => self.in_kernel,
            Client::InKernelOptimized => self.in_kernel_optimized.or(self.in_kernel),
        }
    }

    /// The instructions and the register accesses that the module leaves out, or its interface for clients in the kernel.
    pub(super) fn saved(&self, client: Client, by_api: bool) -> (f64, f64) {
        let counts = if by_api { self.api } else { self.client(client) };
        let [linux, module] = counts.expect("the measure is for this client");
        (linux - module, self.accesses[0] - self.accesses[1])
    }

    /// Where the counts are from.
    pub(super) fn source(&self) -> String {
        let version = if self.newest { "6.12" } else { "6.1" };
        format!(
            "counted for 4 bytes in the guest {} under Linux {version}: guests/kernel.txt",
            self.guest
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_upgrade_changes_a_cost_that_is_not_the_counted_one_by_the_counted_factor() {
        let mut costs = Costs::assumed();
        costs.set("spidev", 202.1);
        assert!((upgraded(&costs).get("spidev") - 166.4).abs() < 0.01);
    }

    /// The numbers of a row of a reviewed file, after its first words.
    fn row(text: &str, words: &[&str]) -> Option<Vec<f64>> {
        let found = text.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
        let found = found.into_iter().find(|line| {
            line.len() > words.len()
                && line.iter().zip(words).all(|(is, begins)| is.starts_with(begins))
                && line[words.len() - 1] == words[words.len() - 1]
        })?;
        Some(found[words.len()..].iter().filter_map(|word| word.parse().ok()).collect())
    }

    #[test]
    fn the_counts_are_those_of_the_guests() {
        let steps = include_str!("../../../guests/steps.txt");
        let File { newest, module } = file();
        for (name, counts) in &newest {
            let counted = ["6.1.0", "6.12"]
                .map(|kernel| row(steps, &["imx8mp-evk", kernel, name]).expect(name)[0]);
            assert_eq!(counted, *counts, "{name}");
            assert_eq!(Costs::assumed().cost(name).unit, "instructions");
        }
        let kernel = include_str!("../../../guests/kernel.txt");
        for one in &module {
            let newest = if one.newest { "-6.12" } else { "" };
            let clients = [
                ("spidev-4", one.spidev),
                ("sync-4", one.in_kernel),
                ("optimized-4", one.in_kernel_optimized),
                ("run-4", one.api),
            ];
            for (name, counts) in clients {
                let name = format!("{name}{newest}");
                let counted = row(kernel, &[&one.guest, &name]);
                assert_eq!(
                    counted.as_ref().map(|row| &row[..2]),
                    counts.as_ref().map(|two| &two[..]),
                    "{name}"
                );
            }
            let accesses = row(kernel, &[&one.guest, "spidev-4-accesses"]).expect("a row");
            assert_eq!(accesses[..2], one.accesses);
        }
    }
}
