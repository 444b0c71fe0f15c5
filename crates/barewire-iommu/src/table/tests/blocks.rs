//! Leaves as large as address, size and alignment permit, and their parts.
