//! Exchanges on mapped registers between marks, for a plugin of QEMU's that counts what runs between them.
//!
//! `priced BUS NAME`, as root: `cargo xtask guests --priced` runs it in a guest (docs/priced.md). BUS is a `mem:` text,
//! NAME what the rows begin with. Without that plugin the marks do nothing, and neither does it print anything.

#![allow(unsafe_code, reason = "a mark is an instruction that no compiler emits")]

use std::error::Error;
use std::hint::black_box;
use std::thread::sleep;
use std::time::Duration;

use barewire::bus::{Bus, Device};
use barewire::controller::Controller;
use barewire::spi::{Settings, Transfer};
use barewire_linux::Root;
use barewire_linux::bus_text::parse_mem;
use barewire_linux::map::{Mapped, MappedUser};
use barewire_linux::shared::ProcessShared;

type Failure = Box<dyn Error>;

/// As in `guests/priced/mark.h`.
const WARM_UP: usize = 40;
const WARM: usize = 10;
const COLD: usize = 4;
const IDLE: Duration = Duration::from_secs(5);

const READ_ID: u8 = 0x9f;
const SPEED_HZ: u32 = 20_000_000;

/// An operation begins: `orr x23,x23,x23`, with its label's address in x0.
#[inline(always)]
fn begin(label: &str) {
    debug_assert!(label.ends_with('\0'), "the plugin reads to that byte");
    #[cfg(target_arch = "aarch64")]
    // SAFETY: the instruction changes nothing, and x0 holds a pointer that the processor does not follow.
    unsafe {
        core::arch::asm!(".inst 0xaa1702f7", in("x0") label.as_ptr());
    }
}

/// It ends: `orr x24,x24,x24`.
#[inline(always)]
fn end() {
    #[cfg(target_arch = "aarch64")]
    // SAFETY: the instruction changes nothing.
    unsafe {
        core::arch::asm!(".inst 0xaa180318");
    }
}

/// Runs an operation as often as the marks' header says.
fn price(
    name: &str,
    bytes: usize,
    mut run: impl FnMut() -> Result<(), Failure>,
) -> Result<(), Failure> {
    let (warm, cold) = (format!("{name} {bytes} warm\0"), format!("{name} {bytes} cold\0"));
    let mut marked = |label: &str, times: usize, idle: Duration| {
        for _ in 0..times {
            if !idle.is_zero() {
                sleep(idle);
            }
            begin(label);
            let ran = run();
            end();
            ran?;
        }
        Ok::<(), Failure>(())
    };
    marked("-\0", WARM_UP, Duration::ZERO)?;
    marked(&warm, WARM, Duration::ZERO)?;
    marked(&cold, COLD, IDLE)
}

/// Prices both paths with N bytes.
fn lengths<C: Controller, const N: usize>(
    device: &Device<'_, C>,
    name: &str,
) -> Result<(), Failure> {
    let mut tx = [0; N];
    tx[0] = READ_ID;
    let mut prepared = device.prepare(tx)?;
    let id = prepared.run()?[1];
    if id == 0 || id == 0xff {
        return Err("no chip answers 9F with an identification".into());
    }
    price(&format!("{name}-prepared"), N, || {
        black_box(&mut prepared).run()?;
        Ok(())
    })?;
    let mut rx = [0; N];
    let mut message = [Transfer::exchange(&tx, &mut rx)];
    price(&format!("{name}-sync"), N, || {
        device.sync(black_box(&mut message))?;
        Ok(())
    })
}

struct Priced<'a> {
    name: &'a str,
    lock: Option<barewire_linux::shared::SharedLock>,
}

impl Priced<'_> {
    fn all<C: Controller>(name: &str, controller: C) -> Result<(), Failure> {
        let bus = Bus::new(controller);
        let device = bus.device(&Settings::new(0, SPEED_HZ))?;
        lengths::<_, 4>(&device, name)?;
        lengths::<_, 64>(&device, name)?;
        lengths::<_, 1024>(&device, name)
    }
}

impl MappedUser for Priced<'_> {
    type Output = Result<(), Failure>;

    fn run<C: Controller>(self, start: impl FnOnce() -> C) -> Result<(), Failure> {
        match self.lock {
            None => Self::all(self.name, start()),
            Some(lock) => Self::all(self.name, ProcessShared::bring_up(lock, start)?),
        }
    }
}

fn main() -> Result<(), Failure> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [text, name] = &*arguments else { return Err("priced BUS NAME".into()) };
    let spec = parse_mem(text.strip_prefix("mem:").ok_or("the bus is no mem:")?)?;
    let mut mapped = Mapped::open(&Root::system(), &spec)?;
    let lock = mapped.take_lock();
    mapped.start_each(Priced { name, lock })
}
