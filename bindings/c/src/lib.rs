//! `libbarewire`: barewire's buses for C and C++. `include/barewire.h` is made from this crate.
//!
//! # How it works
//! Each function of the library checks its arguments, does one thing of [`barewire_open`]'s or the core's, and
//! returns a [`bw_error`]. The error's text is kept per thread, for `bw_last_error`.
//!
//! * `handle`: handles are numbers in a table, so that a stale one is an error.
//! * `border`: no panic crosses it; text, and structs that grow.
//! * `error`: the codes. `failure`: what went wrong last, for each thread.
//! * `types`: the structs of the header.
//! * `shared`: a bus with its lock, and the objects that its callbacks freed. `transfers`: transfers from C.
//! * `calls`: the functions, a file for each kind of object.
//!
//! # Handles
//! A handle is no address: it holds a place in a table, a kind and a generation. So a handle that was closed, one of
//! another kind, and rubbish are told apart, while other threads may still be inside a call with it: the object lives until
//! they have returned. It costs a compare-and-swap to enter a call and a subtraction to leave it.
//!
//! # Fork
//! In a child that has a copy of the memory the worker threads are missing, and a bus may be held by a thread that is not
//! there. So the first call that uses a table of handles there makes all that it has fail with `BW_ERROR_FORKED`. It notices the child by the
//! [process's number](barewire_linux::process_number), however the child was made. A child that shares the memory is refused
//! at the border (`border::guard`), each time: its parent's handles stay as they are.
//!
//! # Not supported
//! Exceptions and `longjmp` that leave a callback. A C++ exception ends the program with a message;
//! `barewire.hpp` catches it before and throws it in `wait`. A `longjmp` is undefined.
//!
//! # Safety
//! Handles may be anything. Other pointers are null or as the function's documentation says; that is the caller's
//! promise. Each function with such pointers is unsafe for callers in Rust.
#![cfg(target_os = "linux")]
#![allow(non_camel_case_types, reason = "the names are those of the C header")]

mod border;
mod calls;
mod error;
mod failure;
mod handle;
mod shared;
mod transfers;
mod types;

pub use calls::bus::*;
pub use calls::device::*;
pub use calls::general::*;
pub use calls::lock::*;
pub use calls::message::*;
pub use calls::prepared::*;
pub use error::bw_error;
pub use types::*;
