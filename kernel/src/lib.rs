//! The Rust half of the kernel module `barewire`: controllers behind the functions that `module/bind.c` and its kin call.
//!
//! # Read first
//! `module/barewire.h`, whose structures and functions these are; `Documentation/spi/spi-summary.rst` of Linux.
//!
//! # How it works
//! The C half knows the kernel: it binds, keeps clocks and power, and registers the controller with Linux's SPI core.
//! The core serialises messages and calls them one by one, in their caller's context; so no
//! [`Bus`](barewire::bus::Bus) stands between it and the [`Controller`](barewire::controller::Controller) here, and there is no second lock.
//! The C half gives all memory: nothing is allocated here.
//!
//! # Ordering
//! 1. [`abi::bw_init`] before all else, and again whenever the block may have lost its registers (power, clock).
//! 2. [`abi::bw_configure`] before a chip's first message, and again after each `bw_init`.
//! 3. [`abi::bw_run`] is one message. If it returns [`abi::PENDING`], only `bw_arm` and `bw_resume` may follow, one at a
//!    time, until `bw_resume` returns something else.
//!
//! # Safety
//! Each function's contract is its C caller's promise: pointers are those of `bw_init`'s host, of memory as large as
//! `bw_sizes` said, and calls for one host never overlap.
#![no_std]

mod abi;
mod host;
mod linux;
mod panic;
mod prepared;
mod registers;
