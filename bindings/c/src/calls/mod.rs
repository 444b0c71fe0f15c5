//! The functions of the library, a file for each kind of object.

pub(crate) mod bus;
pub(crate) mod device;
pub(crate) mod general;
pub(crate) mod lock;
pub(crate) mod message;
pub(crate) mod prepared;
