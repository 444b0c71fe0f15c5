//! The `barewire` command as its users run it: bytes, words, exit codes and files.

mod adc;
mod bad_input;
mod boards;
mod bound;
mod can;
mod can_echo;
mod command;
mod costs;
mod doctor;
mod doctor_tree;
mod flash;
mod interrupt;
mod lab;
mod lab_own;
mod loses_nothing;
mod measure;
mod outputs;
mod pages;
#[path = "../program/mod.rs"]
mod program;
mod qemu;
mod real_time;
mod regs;
mod run;
mod run_as;
mod run_gpio;
mod run_identity;
mod run_notes;
mod run_selects;
mod run_served;
mod run_wire;
mod selftest;
mod serve;
mod simulated;
mod spidev;
mod wire;
