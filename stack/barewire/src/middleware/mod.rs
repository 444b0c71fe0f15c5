//! Middleware: controllers that wrap any controller.
//!
//! * [`Tracer`] tells a [`Sink`](crate::trace::Sink) what each message did, and when.
//! * [`FaultInjector`] makes chosen transfers go wrong.
//!
//! They work on whole messages, which every controller takes, and stack in any order. A wrapper of
//! one's own is a [`Layer`].

mod fault;
mod layer;
mod tracer;

pub use fault::{Fault, FaultInjector, When};
pub use layer::Layer;
pub use tracer::Tracer;
