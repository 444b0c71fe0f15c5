//! The commands that `barewire --help` lists, a module each. Code that they share is in
//! [`crate::shared`].

pub(crate) mod adc;
pub(crate) mod bench;
pub(crate) mod board;
pub(crate) mod bound;
pub(crate) mod can;
pub(crate) mod completions;
pub(crate) mod demo;
pub(crate) mod diff;
pub(crate) mod doctor;
pub(crate) mod flash;
pub(crate) mod iommu;
pub(crate) mod lab;
pub(crate) mod list;
pub(crate) mod man;
pub(crate) mod measure;
pub(crate) mod regs;
pub(crate) mod restore;
pub(crate) mod run;
pub(crate) mod scope;
pub(crate) mod selftest;
pub(crate) mod serve;
pub(crate) mod xfer;
