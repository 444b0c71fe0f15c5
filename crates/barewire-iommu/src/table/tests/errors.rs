//! Each error, with what it names.
