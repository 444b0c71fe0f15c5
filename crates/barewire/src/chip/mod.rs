//! Drivers of chips behind the bus.
