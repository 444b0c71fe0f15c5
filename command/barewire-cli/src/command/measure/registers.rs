//! Register accesses, one by one.
//!
//! *Read first*: [`Harmless`](barewire_linux::map::Harmless), on what may be read and written.

use std::hint::black_box;

use barewire::reg::Registers;
use barewire_linux::map::Harmless;

use super::rounds::{Collected, Effort, Now};
use crate::shared::failure::Failure;

/// The figures of a block: a read, a write in a row of writes, and a write with the barrier behind it.
pub(super) struct Ids {
    read: &'static str,
    write: &'static str,
    barrier: Option<&'static str>,
}

/// Of the controller.
pub(super) const CONTROLLER: Ids =
    Ids { read: "register-read", write: "register-write", barrier: Some("register-write-barrier") };
/// Of the GPIO bank.
pub(super) const BANK: Ids = Ids { read: "gpio-read", write: "gpio-write", barrier: None };

/// Times accesses that have no effect.
pub(super) fn time(
    registers: &mut impl Registers,
    harmless: Harmless,
    ids: &Ids,
    (now, effort): (Now<'_>, Effort),
    collected: &mut Collected,
) -> Result<(), Failure> {
    let Harmless { read: (_, read), write: (_, write), value } = harmless;
    let value = value.unwrap_or_else(|| registers.read(write));
    let each = (effort.rounds, effort.accesses);
    collected.time(ids.read, now, each, || {
        black_box(registers.read(read));
        Ok(())
    })?;
    collected.time(ids.write, now, each, || {
        registers.write(write, value);
        Ok(())
    })?;
    if let Some(id) = ids.barrier {
        collected.time(id, now, each, || {
            registers.write(write, value);
            registers.barrier();
            Ok(())
        })?;
    }
    Ok(())
}
