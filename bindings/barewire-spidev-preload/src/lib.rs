//! `libbarewire_spidev.so`: gives a program that was written for `/dev/spidevB.C` a barewire bus there.
//! `barewire run` loads it by `LD_PRELOAD`.
//!
//! # How it works
//! It defines the C library's functions that open, use and look at files. Each asks whether it is about a
//! mapped node; if not, it calls the C library's own. An open node is a socket to the server, `barewire run`,
//! and each call on it is a request there ([`protocol`](barewire_spidev_abi::protocol)).
//!
//! * `config`: the configuration from `barewire run`. `start`: runs when the library is loaded.
//! * `paths`: the paths that are about a mapped node, and the files used in their place.
//! * `out_of_reach`: files by which a program would go around the mapped board's pins.
//! * `files`: which descriptors are open nodes.
//! * `server`: requests. `shared`: the memory in which most of them go; `connection`: the others, and open files.
//! * `memory`: the program's memory, whose addresses may be bad: `EFAULT`, not a crash; `good`: pages that were good before.
//! * `handlers`, `blocked`: whether the program handles signals, and how they are kept away.
//! * `real`: the C library's own functions.
//! * `calls`: the functions defined here, a file for each kind.
//!
//! The library uses system calls, not the C library, for its own work: else it would call itself. It has an
//! allocator of its own (`memory_pool`), because a signal handler may make any of these calls.
//!
//! # Fails closed
//! A program that the library cannot be loaded into finds no node, because `barewire run` hides it. Code that
//! uses an open node without going through the library finds a socket to the server. Bytes that it writes are
//! a message on the mapped bus, as they would be to the kernel's node. It finds nothing to read, and its
//! ioctls fail. Only a GPIO file can be read this way: it gives its events, as the kernel's structures.
//!
//! # Signals, threads, processes
//! A call to the server blocks signals while it lasts, like the kernel's own calls, which cannot be
//! interrupted either; in a program without a handler nothing needs to be blocked. Threads share the table of descriptors,
//! which is atomic, and the slots of `shared`, each of which one thread claims. A child made by `vfork` shares the table
//! with its parent, so it does not write it.
//!
//! # Safety
//! Each function here has the contract of the C library's function of that name: the program's arguments
//! fulfil that contract, and are passed on.
#![cfg(target_os = "linux")]
#![allow(unsafe_code, reason = "it stands in for functions of the C library")]

mod blocked;
mod calls;
mod config;
mod connection;
mod direct;
mod files;
mod good;
mod handlers;
mod memory;
mod memory_pool;
mod out_of_reach;
mod paths;
mod real;
mod say;
mod server;
mod shared;
mod start;
