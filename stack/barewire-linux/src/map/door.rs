//! A controller that the kernel module's driver `barewire-user` gives to programs: `/dev/barewireN`.
//!
//! Read first: `kernel/module/barewire_door.h`; docs/kernel.md, *A door to user space*.
//!
//! The kernel keeps the block's clock, pins and GPIO chip selects, and says what it is: a bus's text has no need to. It masks the
//! interrupt when it comes, as UIO does, so [`MappedInterrupt`] is the same. Between programs that share the device the lock of
//! [`shared`](crate::shared) decides whose turn it is.
//!
//! # Ordering
//! 1. What the device says of itself is asked of a file that may only read: that takes nothing from others.
//! 2. The lock is opened, whose errors name the other program.
//! 3. The device is opened for writing, and shared at once if it is to be. Between these two calls it is this program's alone, so
//!    another that opens it then waits a moment ([`CLAIM_TIME`]).

use std::fs::File;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use barewire::reg::barrier;
use rustix::fs::{Mode, OFlags, open};
use rustix::io::Errno;

use super::{Block, CsLineAt, CsPin, MapError, MapSpec, MappedInterrupt, SpecError, open_device};
use crate::gpio::{Edge, Lines};
use crate::root::Root;
use crate::soc;
use crate::sys::door::{self, RawInfo, RawLine};
use crate::sys::{MappedRegisters, Window, page_size};

pub(crate) const CLASS: &str = "/sys/class/barewire";

/// How long a program that wants to share the device waits for one that is about to share it.
const CLAIM_TIME: Duration = Duration::from_millis(200);
const CLAIM_PAUSE: Duration = Duration::from_millis(2);

const HAS_INTERRUPT: u32 = 1;
const D0_SENDS: u32 = 2;
const NATIVE: u8 = 1;
const GPIO: u8 = 2;

/// The nodes under `root`.
#[must_use]
pub(crate) fn nodes(root: &Root) -> Vec<String> {
    root.names(CLASS).into_iter().map(|name| format!("/dev/{name}")).collect()
}

/// The node of the controller at `address`, by its device's name.
#[must_use]
pub(crate) fn at(root: &Root, address: u64) -> Option<String> {
    nodes(root).into_iter().find(|path| address_of(root, path) == Some(address))
}

/// The address of the controller of node `path`.
pub(crate) fn address_of(root: &Root, path: &str) -> Option<u64> {
    let name = path.strip_prefix("/dev/").unwrap_or(path);
    soc::address_of(&root.link_name(format!("{CLASS}/{name}/device"))?)
}

/// Why node `path` cannot be opened.
pub(crate) fn refusal(root: &Root, path: &str) -> Option<MapError> {
    let errno = open_device(root, path).err()?;
    Some(MapError::of_open(root, path, errno, || nodes(root)))
}

/// What the kernel says of a controller.
#[derive(Clone, Debug)]
pub(super) struct Door {
    path: String,
    pub(super) block: Block,
    info: RawInfo,
}

impl Door {
    /// Asks node `device`, as `barewire0`. Takes nothing from a program that has it.
    pub(super) fn ask(root: &Root, device: &str) -> Result<Self, MapError> {
        let path = format!("/dev/{device}");
        let opened = open(root.path(&path), OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty());
        let opened = opened.map_err(|errno| MapError::of_open(root, &path, errno, || nodes(root)));
        let info = door::info(opened?);
        let info = info.map_err(|errno| MapError::Os { path: path.clone(), what: ASKED, errno })?;
        Self::of(path, info)
    }

    fn of(path: String, info: RawInfo) -> Result<Self, MapError> {
        let end = info.block.iter().position(|&byte| byte == 0).unwrap_or(info.block.len());
        let name = String::from_utf8_lossy(&info.block[..end]).into_owned();
        match Block::named(&name) {
            Some(block) => Ok(Self { path, block, info }),
            None => Err(MapError::UnknownBlock { path, name }),
        }
    }

    pub(super) fn path(&self) -> &str {
        &self.path
    }

    pub(super) fn registers_at(&self) -> u64 {
        self.info.address
    }

    /// McSPI: whether MOSI is on SPIDAT\[0\].
    pub(super) fn d0_sends(&self) -> bool {
        self.info.flags & D0_SENDS != 0
    }

    /// The specification with what the kernel says: block, clock, and chip selects, all of them if it names none.
    pub(super) fn complete(&self, spec: &MapSpec) -> Result<MapSpec, SpecError> {
        let mut whole = spec.clone();
        (whole.block, whole.reference_hz) = (self.block, self.info.reference_hz);
        if whole.chip_selects.iter().all(Option::is_none) {
            let mut lines = (0..).zip(self.info.line);
            whole.chip_selects = [(); 4].map(|()| {
                let (number, line) = lines.next()?;
                pin(number, line)
            });
        }
        for place in whole.chip_selects.iter_mut().flatten() {
            if let CsLineAt::Door { line } = place.at {
                let known = self.info.line.get(usize::from(line));
                let known = known.and_then(|&known| pin(line, known));
                *place = known.ok_or(SpecError::NoSuchSelect { line })?;
            }
        }
        whole.check()?;
        Ok(whole)
    }

    /// Takes the device: alone, or with others who share it.
    pub(super) fn claim(&self, root: &Root, spec: &MapSpec) -> Result<Claim, MapError> {
        let os = |what| {
            let path = self.path.clone();
            move |errno| MapError::Os { path, what, errno }
        };
        let begun = Instant::now();
        let file = loop {
            match open_device(root, &self.path) {
                Err(Errno::BUSY) if !spec.exclusive && begun.elapsed() < CLAIM_TIME => {
                    thread::sleep(CLAIM_PAUSE);
                }
                Err(Errno::BUSY) => {
                    return Err(MapError::Taken { path: self.path.clone() });
                }
                opened => break opened,
            }
        };
        let file =
            file.map_err(|errno| MapError::of_open(root, &self.path, errno, || nodes(root)))?;
        if !spec.exclusive {
            door::share(&file).map_err(os("shared"))?;
        }
        Ok(Claim { file: Arc::new(file), door: self.clone() })
    }
}

const ASKED: &str = "asked what it is (is it the module's, of this version?)";

fn pin(line: u8, raw: RawLine) -> Option<CsPin> {
    let at = match raw.kind {
        NATIVE => CsLineAt::Native { channel: raw.channel },
        GPIO => CsLineAt::Door { line },
        _ => return None,
    };
    Some(CsPin { at, active_high: raw.active_high != 0 })
}

/// The device, taken by this process until all that was made of it is dropped.
#[derive(Debug)]
pub(super) struct Claim {
    file: Arc<File>,
    door: Door,
}

impl Claim {
    /// Maps the first `len` bytes of the registers.
    pub(super) fn map(&self, len: u32) -> Result<MappedRegisters, MapError> {
        let Door { path, info, .. } = &self.door;
        let range =
            || MapError::Range { address: info.address, len, available: Some(info.length.into()) };
        if len > info.length {
            return Err(range());
        }
        let window = Window::around(info.offset.into(), len, page_size()).ok_or_else(range)?;
        let path = path.clone();
        MappedRegisters::map(&*self.file, &window).map_err(|errno| match errno {
            Errno::PERM => MapError::SharedPage { path, page: page_size() },
            // A program that shares the device came first, and this one does not.
            Errno::BUSY => MapError::Taken { path },
            errno => MapError::Os { path, what: "mapped", errno },
        })
    }

    /// The GPIO chip selects of `pins`: those by the kernel module, in this order.
    pub(super) fn lines(&self, pins: &[Option<CsPin>]) -> DoorLines {
        let lines = pins.iter().flatten().filter_map(|pin| match pin.at {
            CsLineAt::Door { line } => Some((line, pin.active_high)),
            _ => None,
        });
        DoorLines { file: Arc::clone(&self.file), lines: lines.collect() }
    }

    /// Its interrupt, masked until a message needs it.
    pub(super) fn interrupt(&self) -> Result<MappedInterrupt, MapError> {
        let path = || self.door.path.clone();
        if self.door.info.flags & HAS_INTERRUPT == 0 {
            return Err(MapError::NoInterrupt { path: path() });
        }
        let file = self.file.try_clone();
        let file = file.map_err(|error| {
            let errno = Errno::from_io_error(&error).unwrap_or(Errno::IO);
            MapError::Os { path: path(), what: "duplicated", errno }
        })?;
        Ok(MappedInterrupt(Some(file)))
    }
}

/// GPIO chip selects that the kernel module drives: bit `n` is the `n`th of them, and its level that of the wire.
#[derive(Debug)]
pub(super) struct DoorLines {
    file: Arc<File>,
    /// By the device tree's number, and whether it is active high.
    lines: Vec<(u8, bool)>,
}

impl DoorLines {
    pub(super) fn is_empty(&self) -> bool {
        self.lines.is_empty()
    }

    /// The place of chip select `line` among them.
    pub(super) fn place_of(&self, line: u8) -> u8 {
        let place = self.lines.iter().position(|&(other, _)| other == line);
        place.unwrap_or_default() as u8
    }
}

impl Lines for DoorLines {
    /// The module has made them outputs.
    fn output(&mut self, mask: u64, high: u64) -> Result<(), Errno> {
        self.set(mask, high)
    }

    fn set(&mut self, mask: u64, high: u64) -> Result<(), Errno> {
        for (bit, &(line, active_high)) in self.lines.iter().enumerate() {
            if mask >> bit & 1 != 0 {
                let is_high = high >> bit & 1 != 0;
                door::select(&*self.file, line, is_high == active_high)?;
            }
        }
        barrier();
        Ok(())
    }

    fn levels(&mut self, _mask: u64) -> Result<u64, Errno> {
        Err(Errno::OPNOTSUPP)
    }

    fn edge(&mut self, _timeout: Duration) -> Result<Option<Edge>, Errno> {
        Err(Errno::OPNOTSUPP)
    }
}

#[cfg(test)]
mod tests {
    use super::super::Via;
    use super::*;

    fn said(block: &str, line: [RawLine; 4]) -> Result<Door, MapError> {
        let mut info = RawInfo { line, reference_hz: 80_000_000, ..RawInfo::default() };
        info.block[..block.len()].copy_from_slice(block.as_bytes());
        Door::of("/dev/barewire0".into(), info)
    }

    fn raw(kind: u8, channel: u8, active_high: u8) -> RawLine {
        RawLine { kind, channel, active_high, reserved: 0 }
    }

    fn asked(chip_selects: [Option<CsPin>; 4]) -> MapSpec {
        MapSpec::new(Block::DEFAULT, Via::Door { device: "barewire0".into() }, 0, chip_selects)
    }

    #[test]
    fn the_kernel_says_what_a_specification_leaves_out() {
        let lines = [raw(GPIO, 0, 0), raw(NATIVE, 1, 1), RawLine::default(), raw(GPIO, 3, 1)];
        let door = said("bcm2835", lines).expect("known");
        let whole = door.complete(&asked([const { None }; 4])).expect("complete");
        assert_eq!((whole.block, whole.reference_hz), (Block::Bcm2835, 80_000_000));
        let pin = |at, active_high| Some(CsPin { at, active_high });
        let all = [
            pin(CsLineAt::Door { line: 0 }, false),
            pin(CsLineAt::Native { channel: 1 }, true),
            None,
            pin(CsLineAt::Door { line: 3 }, true),
        ];
        assert_eq!(whole.chip_selects, all);
        let by_number = |line| pin(CsLineAt::Door { line }, false);
        let chosen = asked([by_number(3), by_number(1), None, None]);
        let whole = door.complete(&chosen).expect("complete");
        assert_eq!(whole.chip_selects[..2], [all[3].clone(), all[1].clone()]);
        let absent = asked([pin(CsLineAt::Door { line: 2 }, false), None, None, None]);
        assert_eq!(door.complete(&absent), Err(SpecError::NoSuchSelect { line: 2 }));
        let none = said("ecspi", [RawLine::default(); 4]).expect("known");
        let none = none.complete(&asked([const { None }; 4]));
        assert_eq!(none, Err(SpecError::NoChipSelect));
        let error = said("pl023", lines).expect_err("unknown").to_string();
        assert!(error.contains("\"pl023\"") && error.contains("/dev/barewire0"), "{error}");
    }

    #[test]
    fn selects_are_places_among_the_kernels_lines() {
        let file = Arc::new(File::open("/dev/null").expect("a file"));
        let mut lines = DoorLines { file, lines: vec![(0, false), (3, true)] };
        assert_eq!((lines.place_of(0), lines.place_of(3)), (0, 1));
        // Not a device of the module's.
        assert_eq!(lines.set(0b10, 0b10), Err(Errno::NOTTY));
        assert_eq!(lines.set(0, 0), Ok(()), "no line, no call");
    }
}
