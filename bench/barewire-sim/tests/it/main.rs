//! The integration tests of this crate: one program, so that the crate and what it needs are linked once.
//!
//! A module a subject: `cargo test -p barewire-sim --test it messages::` runs one of them.

mod accesses;
mod accesses_page;
mod atmel;
mod awaiting;
mod bcm2835;
mod blocks;
mod bound;
mod bring_up;
mod can;
mod conformance;
mod converter;
mod driver;
mod examples;
mod flash;
mod flash_faults;
mod flash_parts;
mod flights;
mod hal;
mod interrupts;
mod interrupts_anywhere;
mod kept;
mod leftovers;
mod lines;
mod mcp251xfd;
mod messages;
mod native_select;
mod poll_limits;
mod processors;
mod processors_reference;
mod published;
mod random;
mod readings;
mod readout;
mod recorded;
mod scenarios;
mod scripts;
mod selects;
mod settings;
mod short;
mod shorter;
mod snapshot;
mod threads;
mod threads_that_panic;
mod touch;
mod trouble;
mod uses;
mod vcd_edges;
mod waiting;

use std::pin::pin;
use std::task::{Context, Poll, Waker};

use barewire_sim::{Board, BoardOptions, BoardSpec};

/// Whether tests that take minutes in a debug build run in full. They do in an optimised build,
/// and if `BAREWIRE_WHOLE` is set. CI sets it, since its tests are optimised and keep the debug
/// checks.
fn runs_whole() -> bool {
    !cfg!(debug_assertions) || std::env::var_os("BAREWIRE_WHOLE").is_some()
}

/// A shipped board, with its usual options.
fn board(name: &str) -> Board {
    let spec = BoardSpec::find(name).expect("a board");
    Board::new(spec, BoardOptions::default())
}

/// Polls a future until it is ready. Simulated time passes in the calls that it makes.
fn block_on<F: Future>(future: F) -> F::Output {
    let mut future = pin!(future);
    loop {
        if let Poll::Ready(output) = future.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
            return output;
        }
    }
}
