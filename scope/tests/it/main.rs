//! Captures with a known truth, drawn by the tests; captures of others beside sigrok; files that are wrong.

mod any;
mod bad;
mod captures;
mod diff;
mod finding;
mod formats;
mod joined;
mod picture;
mod recorded;
mod wave;

use std::path::Path;

use barewire_scope::decode::Message;
use barewire_scope::{Options, Scope, ScopeError, Summary};

/// Reads a capture whole.
fn read(path: &Path, options: Options) -> Result<(Vec<Message>, Summary), ScopeError> {
    let (mut scope, mut messages) = (Scope::open(path, options)?, Vec::new());
    while scope.step(&mut |_, message, _| messages.push(message.clone()))? {}
    Ok((messages, scope.finish().expect("wires were found, or an error")))
}

/// Reads a VCD of a wave.
#[track_caller]
fn read_wave(wave: &wave::Wave, names: &[&str], options: Options) -> (Vec<Message>, Summary) {
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("wave.vcd");
    std::fs::write(&path, wave.vcd(names, wave.at + 500)).expect("written");
    read(&path, options).unwrap_or_else(|error| panic!("{error}"))
}
