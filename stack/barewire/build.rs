//! Tells the core whether its 32-bit Arm has DSB: the compiler has no stable `cfg` for the version of
//! the architecture, and ARMv6 (Raspberry Pi 1 and Zero) and older know no such instruction.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rustc-check-cfg=cfg(barewire_dsb)");
    let target = std::env::var("TARGET").unwrap_or_default();
    if ["armv7", "armv8", "armebv7", "thumbv"].iter().any(|with| target.starts_with(with)) {
        // Thumb with DSB begins with ARMv6-M.
        if !["thumbv4", "thumbv5"].iter().any(|without| target.starts_with(without)) {
            println!("cargo:rustc-cfg=barewire_dsb");
        }
    }
}
