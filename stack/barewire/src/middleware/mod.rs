//! Middleware: controllers that wrap any controller.
//!
//! * [`Tracer`] reports each message and its times to a [`Sink`](crate::trace::Sink).
//! * [`FaultInjector`] injects faults into chosen transfers.
//! * [`Pointer`] is a controller behind a pointer.
//!
//! The first two handle whole messages, which every controller accepts, and can be stacked in any order. To
//! write another wrapper, implement [`Layer`]; [`wrapped_controller!`](crate::wrapped_controller) writes a
//! part of it.

mod fault;
mod layer;
mod pointer;
mod tracer;

pub use fault::{Fault, FaultInjector, When};
pub use layer::Layer;
pub use pointer::Pointer;
pub use tracer::Tracer;
