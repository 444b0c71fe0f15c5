//! Fake registers: a script of accesses, each asserted in order.
//!
//! Reads have side effects in real blocks, so a test must check the *order* of a driver's accesses,
//! not only the final values.

use super::Registers;

/// One expected access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// A read of `.0` which returns `.1`.
    Read(u32, u32),
    /// A write of `.1` to `.0`.
    Write(u32, u32),
    /// A [`Registers::barrier`]. Barriers that are not in the script are ignored: only those it
    /// names are checked.
    Barrier,
}

/// Registers that assert a script of accesses.
#[derive(Debug)]
pub struct Fake<'s> {
    script: &'s [Access],
    next: usize,
}

impl<'s> Fake<'s> {
    /// Creates registers that expect exactly `script`.
    #[must_use]
    pub fn new(script: &'s [Access]) -> Self {
        Self { script, next: 0 }
    }

    /// The number of accesses of the script still to come.
    #[must_use]
    pub fn remaining(&self) -> usize {
        self.script.len() - self.next
    }

    fn step(&mut self, what: &str, offset: u32) -> Access {
        let index = self.next;
        self.next += 1;
        match self.script.get(index) {
            Some(&access) => access,
            None => panic!("access {index}: {what} of {offset:#x} after the script's end"),
        }
    }
}

/// # Panics
/// On any access that is not the next one in the script.
impl Registers for Fake<'_> {
    fn read(&mut self, offset: u32) -> u32 {
        let index = self.next;
        match self.step("read", offset) {
            Access::Read(expected, value) if expected == offset => value,
            expected => panic!("access {index}: read of {offset:#x}, expected {expected:x?}"),
        }
    }

    fn write(&mut self, offset: u32, value: u32) {
        let index = self.next;
        let actual = Access::Write(offset, value);
        let expected = self.step("write", offset);
        assert_eq!(actual, expected, "access {index}: {actual:x?}, expected {expected:x?}");
    }

    fn barrier(&mut self) {
        if let Some(Access::Barrier) = self.script.get(self.next) {
            self.next += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_script_followed_is_silent_and_counted() {
        let script = [Access::Write(4, 7), Access::Read(8, 9)];
        let mut fake = Fake::new(&script);
        fake.write(4, 7);
        assert_eq!(fake.remaining(), 1);
        assert_eq!(fake.read(8), 9);
        assert_eq!(fake.remaining(), 0);
    }

    #[test]
    #[should_panic(expected = "access 0")]
    fn another_order_is_caught() {
        Fake::new(&[Access::Write(4, 7), Access::Read(8, 9)]).read(8);
    }

    #[test]
    fn a_barrier_is_held_where_the_script_has_one_and_let_pass_elsewhere() {
        let mut fake = Fake::new(&[Access::Write(4, 7), Access::Barrier, Access::Read(8, 9)]);
        fake.barrier();
        fake.write(4, 7);
        assert_eq!(fake.remaining(), 2);
        fake.barrier();
        fake.barrier();
        assert_eq!(fake.read(8), 9);
        assert_eq!(fake.remaining(), 0);
    }

    #[test]
    #[should_panic(expected = "expected Barrier")]
    fn a_barrier_left_out_is_caught() {
        let mut fake = Fake::new(&[Access::Write(4, 7), Access::Barrier, Access::Write(8, 9)]);
        fake.write(4, 7);
        fake.write(8, 9);
    }

    #[test]
    #[should_panic(expected = "after the script's end")]
    fn one_access_too_many_is_caught() {
        Fake::new(&[]).write(0, 0);
    }
}
