//! Atomics: the processor's, or under `cfg(loom)` the model checker's.

#[cfg(loom)]
pub(crate) use loom::sync::atomic;

#[cfg(not(loom))]
pub(crate) use core::sync::atomic;
