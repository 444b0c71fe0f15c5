//! The verbs, a module each. Code that they share is in [`crate::shared`].

pub(crate) mod bench;
mod descriptor;
pub(crate) mod explain;
pub(crate) mod replay;
mod shape;
pub(crate) mod walk;
