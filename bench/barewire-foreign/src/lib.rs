//! Nothing but tests: drivers and devices for `embedded-hal` by other authors, unmodified
//! from crates.io, and barewire on the other side.
//!
//! *Read first*: `barewire::hal`.
//!
//! A crate of its own, because the dependencies of these drivers must not reach the core, which
//! builds without an operating system, or the simulator, which builds quickly. They are
//! dev-dependencies, so users of barewire build none of them.
//!
//! | crate | is | runs on |
//! |---|---|---|
//! | `w25q32jv` 0.5.1 | a flash driver, blocking and async | our device; embedded-hal-bus's on our bus |
//! | `max7219` 0.5.0 | a display driver | our device |
//! | `ssd1306` 0.9.0 with `display-interface-spi` 0.5.0 | a display driver with D/C# and RES# | our device and pins |
//! | `embedded-devices` 0.10.3 | MCP3204 and MCP3208, blocking and async | our device |
//! | `mcp2517` 0.4.1 | a driver of MCP2517FD and MCP2518FD | our device; its chip and ours on one CAN bus |
//! | `mcp25xx` 0.4.0 | a driver of MCP2515 | our device; its chip and ours on one CAN bus |
//! | `embedded-sdmmc` 0.10.0 | an SD card driver | our device, on QEMU's PL022 and card |
//! | `tsc2046` 0.1.0 | a touch screen driver | our device |
//! | `embedded-hal-mock` 0.11 | a device that expects every byte | under our flash driver |
//! | `linux-embedded-hal` 0.5.0 | a spidev node as a device | under our flash driver, where there is a node |
