//! Runs that several figures share, each made once.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

/// Results by what made them.
#[derive(Debug)]
pub(crate) struct Memo<R>(RefCell<BTreeMap<String, Rc<R>>>);

impl<R> Default for Memo<R> {
    fn default() -> Self {
        Self(RefCell::default())
    }
}

impl<R> Memo<R> {
    /// The result of `key`, which `run` makes the first time. A failure is not kept.
    pub(crate) fn run<E>(
        &self,
        key: String,
        run: impl FnOnce() -> Result<R, E>,
    ) -> Result<Rc<R>, E> {
        if let Some(found) = self.0.borrow().get(&key) {
            return Ok(found.clone());
        }
        let made = Rc::new(run()?);
        self.0.borrow_mut().insert(key, made.clone());
        Ok(made)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_is_made_once_and_a_failure_again() {
        let (memo, mut made) = (Memo::default(), 0);
        let mut run = |key: &str, result| {
            memo.run(key.into(), || {
                made += 1;
                result
            })
        };
        assert_eq!(run("a", Err("no")), Err("no"));
        assert_eq!(run("a", Ok(1)), Ok(Rc::new(1)));
        assert_eq!(run("a", Ok(2)), Ok(Rc::new(1)));
        assert_eq!(run("b", Ok(3)), Ok(Rc::new(3)));
        assert_eq!(made, 3);
    }
}
