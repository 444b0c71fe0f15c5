//! `barewire can`: a CAN controller of the MCP2518FD's kind: listen, send, bridge to a socket.
//!
//! # How it works
//! Our chip is on a CAN bus that other nodes share. On a simulated board the far node is simulated too,
//! and sends what its options say; on spidev, UIO and `/dev/mem` it is any real node there. [`node::Node`]
//! is our chip in use, and how its interrupt is waited for: by the line where there is one, by asking
//! every half millisecond elsewhere.

mod args;
mod bridge;
mod candump;
mod dump;
mod echo;
mod far;
mod frame;
mod generate;
mod node;
#[cfg(test)]
mod rig;

use crate::shared::failure::Failure;

/// `barewire can`.
#[derive(clap::Subcommand, Debug)]
pub(crate) enum Verb {
    /// Print the frames that come, as candump does
    Dump(dump::Args),
    /// Echo the frames of another node on a simulated board, and report the time it takes
    Echo(echo::Args),
    /// Send frames, as cangen does, and see that all of them arrive
    Gen(generate::Args),
    /// Carry frames between the chip's bus and a SocketCAN interface, both ways
    Bridge(bridge::Args),
}

/// Runs it.
pub(crate) fn run(verb: &Verb) -> Result<(), Failure> {
    match verb {
        Verb::Dump(args) => dump::run(args),
        Verb::Echo(args) => echo::run(args),
        Verb::Gen(args) => generate::run(args),
        Verb::Bridge(args) => bridge::run(args),
    }
}
