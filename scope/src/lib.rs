//! SPI messages in logic-analyzer captures: what was on the wire, when, and how it is distributed.
//!
//! The command `barewire scope` is built on it; docs/scope.md has what it prints.
//!
//! # How it works
//! 1. [`Capture`] reads a file of sigrok, a VCD, or Saleae's exports as changes of levels ([`capture`]).
//! 2. Short pulses are left out, if asked for.
//! 3. [`find::find`] looks at the beginning and decides which wire is which, the mode and the words.
//! 4. [`decode::Decoder`] turns changes into messages, [`chip::Chip`] names them, and they are counted by [`Kind`].
//!
//! [`Scope`] does all of it, a piece of the file at a time: memory does not grow with the file.
//!
//! # Not supported
//! Dual and quad data lines. A message of more than 1,048,576 words keeps the values of these; all words are counted.
//!
//! # Example
//! ```
//! use barewire_scope::{Options, Scope};
//!
//! let dir = tempfile::tempdir()?;
//! let path = dir.path().join("one.vcd");
//! // One byte in mode 0, 5A.
//! let mut vcd = String::from("$timescale 1 us $end $var wire 1 c sck $end $var wire 1 d mosi $end \
//!                             $var wire 1 s cs $end $enddefinitions $end #0 0c 0d 1s #9 0s ");
//! for (bit, level) in [0, 1, 0, 1, 1, 0, 1, 0].iter().enumerate() {
//!     let at = 10 + 4 * bit;
//!     vcd += &format!("#{at} {level}d #{} 1c #{} 0c ", at + 1, at + 3);
//! }
//! std::fs::write(&path, vcd + "#50 1s #60")?;
//!
//! let mut scope = Scope::open(&path, Options::default())?;
//! let mut words: Vec<u32> = Vec::new();
//! while scope.step(&mut |_, message, _| words.extend(&message.mosi))? {}
//! assert_eq!(words, [0x5a]);
//! assert_eq!(scope.finish().expect("wires were found").wires.mode, 0);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub mod capture;
pub mod chip;
mod counts;
pub mod decode;
pub mod diff;
mod error;
pub mod find;
mod glitch;
pub mod joined;
mod kinds;
pub mod meaning;
pub mod picture;
mod scope;
pub mod trace;

pub use capture::Capture;
pub use counts::Counts;
pub use error::ScopeError;
pub use kinds::Kind;
pub use scope::{Options, Scope, Summary};
