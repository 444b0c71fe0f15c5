//! The `barewire-iommu` command as its users run it: words, JSON, exit codes.

mod bench;
mod command;
mod devices;
mod documents;
mod explain;
mod general;
mod walk_and_replay;
