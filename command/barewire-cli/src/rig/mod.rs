//! Test rigs: commands for those who work on barewire. `barewire --help` does not list them;
//! `docs/testing.md` describes them.

pub(crate) mod stress;
