//! Test rigs: commands for developers of barewire. `barewire --help` does not list them;
//! `docs/testing.md` describes them.

pub(crate) mod stress;
