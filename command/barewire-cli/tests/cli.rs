//! The `barewire` command as its users run it: bytes, words, exit codes and files.

// Modules of a test's root file are looked for beside it, where they would be tests themselves;
// inside a module of this name they lie in `cli/`.
mod cli {
    mod adc;
    mod bad_input;
    mod can;
    mod can_echo;
    mod command;
    mod costs;
    mod flash;
    mod interrupt;
    mod iommu;
    mod iommu_bench;
    mod measure;
    mod qemu;
    mod regs;
    mod selftest;
    mod spidev;
    mod stress;
    mod wire;
}
