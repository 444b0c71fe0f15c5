//! Code that several verbs use. It depends on no verb.

pub(crate) mod failure;
pub(crate) mod figure;
pub(crate) mod interrupt;
pub(crate) mod load;
pub(crate) mod number;
pub(crate) mod output;
pub(crate) mod processors;
pub(crate) mod progress;
