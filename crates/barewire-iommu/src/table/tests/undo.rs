//! What a failed call leaves behind.
