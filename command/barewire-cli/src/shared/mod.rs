//! Code that several commands use. It depends on no command.
//!
//! | module | has |
//! |---|---|
//! | [`bus_name`] | the argument of `--bus`, parsed: it is barewire-open's |
//! | [`session`] | runs a command on a bus: opens it, closes it on every path, prints the figures as text or JSON |
//! | [`text`] | parses numbers and hex, suggests near names; prints figures with units |
//! | [`no_bus`] | the error where no bus is named |
//! | [`output`] | results on stdout, notes on stderr |
//! | [`failure`] | why a command ended, and its exit code |
//! | [`interrupt`] | Ctrl-C |
//! | [`beside`] | published figures and barewire's beside them, by the lab's costs |
//! | [`costs`] | whether a simulated board charges low, usual or high costs |
//! | [`files`] | refuses an output that is another file of the command |
//! | [`progress`] | a progress bar |
//! | [`processors`] | pins threads to processors |
//! | [`real_time`] | priority, processor and locked memory of a command |
//! | [`sysfs`] | lines for the kernel's files, which bind drivers |

pub(crate) mod beside;
pub(crate) mod costs;
pub(crate) mod failure;
pub(crate) mod files;
pub(crate) mod interrupt;
pub(crate) mod no_bus;
pub(crate) mod output;
pub(crate) mod processors;
pub(crate) mod progress;
pub(crate) mod real_time;
pub(crate) mod session;
pub(crate) mod sysfs;
pub(crate) mod text;

pub(crate) use barewire_open::name as bus_name;
