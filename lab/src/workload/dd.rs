//! A flash read by dd.
