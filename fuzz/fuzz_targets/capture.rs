//! Any bytes as a logic analyzer's capture end in messages or in an error.
#![no_main]

use std::path::PathBuf;
use std::sync::LazyLock;

#[path = "../../scope/tests/it/any.rs"]
mod any;

use libfuzzer_sys::fuzz_target;

/// The file that is written anew for each input.
static FILE: LazyLock<PathBuf> =
    LazyLock::new(|| std::env::temp_dir().join(format!("barewire-capture-{}", std::process::id())));

fuzz_target!(|bytes: &[u8]| any::drive(&FILE, bytes));
