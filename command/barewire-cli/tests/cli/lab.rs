//! `barewire lab`.
