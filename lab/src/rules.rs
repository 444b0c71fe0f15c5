//! The rules of `scoring.toml`: which differences count, what costs may be fitted to, what is assumed.
