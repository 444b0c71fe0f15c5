//! MCP2518FD and MCP2517FD: CAN FD controllers behind SPI.
#![allow(dead_code, reason = "the driver comes next")]

mod regs;

pub use regs::MAP;
