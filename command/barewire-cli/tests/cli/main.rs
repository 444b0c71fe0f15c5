//! The `barewire` command as its users run it: bytes, words, exit codes and files.

mod adc;
mod bad_input;
mod can;
mod can_echo;
mod command;
mod costs;
mod doctor;
mod flash;
mod interrupt;
mod iommu;
mod iommu_bench;
mod iommu_devices;
mod lab;
mod loses_nothing;
mod measure;
mod qemu;
mod real_time;
mod regs;
mod run;
mod run_gpio;
mod selftest;
mod serve;
mod simulated;
mod spidev;
mod wire;
