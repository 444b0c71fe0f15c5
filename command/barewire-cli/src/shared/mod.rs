//! What the commands share.
//!
//! | room | has |
//! |---|---|
//! | [`bus_name`] | what stands after `--bus`, parsed |
//! | [`session`] | a command's time on a bus: opened, used, closed on every path; its figures, for people and as JSON |
//! | [`text`] | numbers, hex and near names in; figures with units out |
//! | [`output`] | results on stdout, notes on stderr |
//! | [`failure`] | why a command ended, and its exit code |
//! | [`interrupt`] | Ctrl-C |
//! | [`costs`] | which end of its ranges a simulated board charges |
//! | [`out_file`] | a file that exists under its name only when it is whole |
//! | [`progress`] | a progress bar |
//! | [`processors`] | threads that stay on their processors |

pub(crate) mod bus_name;
pub(crate) mod costs;
pub(crate) mod failure;
pub(crate) mod interrupt;
pub(crate) mod out_file;
pub(crate) mod output;
pub(crate) mod processors;
pub(crate) mod progress;
pub(crate) mod session;
pub(crate) mod text;
