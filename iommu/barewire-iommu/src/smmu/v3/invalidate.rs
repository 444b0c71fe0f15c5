//! Translates operations into commands.
//!
//! # How it works
//! An SMMU with range invalidation gets range fields in every command that is not for leaves alone. A
//! command without them is legal, but it is the path that errata concern: Linux keeps to a range command
//! there "for various errata reasons" and covers one granule more rather than none too many (Robin Murphy,
//! *iommu/arm-smmu-v3: Avoid constructing invalid range commands*, September 2023, commit eb6c97647be2,
//! <https://lore.kernel.org/r/b99cfe71af2bd93a8a2930f20967fb2a4f7748dd.1694432734.git.robin.murphy@arm.com>).
//! One granule has no encoding without a level: NUM, SCALE and TTL would all be 0, which is reserved
//! (4.4.1.1). So such a command covers two granules, from its own on.

use super::command::{Command, Scope};
use super::device::Smmu;
use super::range::Pieces;
use crate::address::Iova;
use crate::format::Granule;
use crate::pool::Pool;
use crate::smmu::{Patience, Registers};
use crate::tlbi::{Context, FlushError, Invalidate, Tlbi};

/// The VMID of stage 1 streams. They have no stage 2 here.
pub(super) const STAGE1_VMID: u16 = 0;

impl<R: Registers, P: Pool, W: Patience> Invalidate for Smmu<'_, R, P, W> {
    fn flush(&self, context: Context, operations: &[Tlbi]) -> Result<(), FlushError> {
        if operations.is_empty() {
            return Ok(());
        }
        let ranges = self.has_ranges();
        let commands = operations
            .iter()
            .flat_map(|operation| CommandIter::new(operation, ranges))
            .map(|what| what.command(context));
        self.run_counted(self.commands(operations), commands)
    }

    fn has_ranges(&self) -> bool {
        self.features().ranges
    }

    fn commands(&self, operations: &[Tlbi]) -> u64 {
        let ranges = self.has_ranges();
        operations.iter().map(|operation| CommandIter::new(operation, ranges).count_all()).sum()
    }
}

/// The addresses of one command.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum What {
    Context,
    Address { iova: Iova, leaf: bool, scope: Option<Scope> },
}

impl What {
    fn command(self, context: Context) -> Command {
        match (self, context) {
            (Self::Context, Context::Asid(asid)) => Command::tlbi_nh_asid(STAGE1_VMID, asid),
            (Self::Context, Context::Vmid(vmid)) => Command::tlbi_s12_vmall(vmid),
            (Self::Address { iova, leaf, scope }, Context::Asid(asid)) => {
                Command::tlbi_nh_va(STAGE1_VMID, asid, iova, leaf, scope)
            }
            (Self::Address { iova, leaf, scope }, Context::Vmid(vmid)) => {
                Command::tlbi_s2_ipa(vmid, iova, leaf, scope)
            }
        }
    }
}

/// An operation as an iterator of commands.
#[derive(Clone, Debug)]
enum CommandIter {
    Context(u64),
    /// One command per address, `1 << stride` bytes apart, all with the same scope.
    Pages {
        iova: u64,
        stride: u32,
        left: u64,
        leaf: bool,
        scope: Option<Scope>,
    },
    Range {
        iova: u64,
        granule: Granule,
        pieces: Pieces,
        leaf: bool,
        level: Option<u8>,
    },
}

impl CommandIter {
    fn new(operation: &Tlbi, ranges: bool) -> Self {
        match *operation {
            Tlbi::Context => Self::Context(1),
            Tlbi::Pages { iova, stride, count, leaf, level } => {
                let scope = if leaf {
                    let level = level.filter(|_| ranges);
                    level.and_then(|level| leaf_scope(stride, level, iova.0))
                } else {
                    // A walk may be cached for any granule, so the distance is a granule.
                    granule(stride).filter(|_| ranges).map(one_granule)
                };
                Self::Pages { iova: iova.0, stride, left: count, leaf, scope }
            }
            Tlbi::Range { iova, page_shift, pages, leaf, level } => {
                let Some(granule) = granule(page_shift).filter(|_| ranges) else {
                    let stride = page_shift;
                    return Self::Pages { iova: iova.0, stride, left: pages, leaf, scope: None };
                };
                let iova = iova.0 & !(granule.bytes() - 1);
                // A level hint is wrong if its leaves do not begin at our addresses: the behaviour
                // is unpredictable.
                let fits = |level: &u8| {
                    leaf_shift(granule, *level)
                        .is_some_and(|shift| (iova | pages << page_shift) & ((1 << shift) - 1) == 0)
                };
                let level = level.filter(|_| leaf).filter(fits);
                Self::Range { iova, granule, pieces: Pieces::new(pages), leaf, level }
            }
        }
    }

    /// The number of remaining commands, without making each.
    fn count_all(self) -> u64 {
        match self {
            Self::Context(left) | Self::Pages { left, .. } => left,
            Self::Range { pieces, .. } => pieces.count() as u64,
        }
    }
}

impl Iterator for CommandIter {
    type Item = What;

    fn next(&mut self) -> Option<What> {
        match self {
            Self::Context(left) => {
                *left = left.checked_sub(1)?;
                Some(What::Context)
            }
            Self::Pages { iova, stride, left, leaf, scope } => {
                *left = left.checked_sub(1)?;
                let what = What::Address { iova: Iova(*iova), leaf: *leaf, scope: *scope };
                *iova = iova.wrapping_add(1 << *stride);
                Some(what)
            }
            Self::Range { iova, granule, pieces, leaf, level } => {
                let piece = pieces.next()?;
                let iova = Iova(iova.wrapping_add(piece.skip << granule.shift()));
                let (num, scale) = (piece.num, piece.scale);
                let scope = match (num, scale, *level) {
                    // A leaf at any level is encoded without range and level.
                    (0, 0, None) if *leaf => None,
                    (0, 0, None) => Some(one_granule(*granule)),
                    (num, scale, level) => Some(Scope { granule: *granule, num, scale, level }),
                };
                Some(What::Address { iova, leaf: *leaf, scope })
            }
        }
    }
}

/// The scope of one granule at any level: two, since one has no encoding.
fn one_granule(granule: Granule) -> Scope {
    Scope { granule, num: 1, scale: 0, level: None }
}

/// The scope of a single leaf of `1 << shift` bytes at `level`, by which its granule is known.
fn leaf_scope(shift: u32, level: u8, iova: u64) -> Option<Scope> {
    let granules = [Granule::Size4K, Granule::Size16K, Granule::Size64K];
    let granule = granules.into_iter().find(|&size| leaf_shift(size, level) == Some(shift))?;
    let aligned = iova & ((1 << shift) - 1) == 0;
    let scale = (shift - granule.shift()) as u8;
    aligned.then_some(Scope { granule, num: 0, scale, level: Some(level) })
}

/// log2 of the size in bytes of a leaf at `level`, if the granule has leaves there.
fn leaf_shift(granule: Granule, level: u8) -> Option<u32> {
    let index_bits = granule.shift() - 3;
    match level {
        3 => Some(granule.shift()),
        2 => Some(granule.shift() + index_bits),
        1 if matches!(granule, Granule::Size4K) => Some(granule.shift() + 2 * index_bits),
        _ => None,
    }
}

fn granule(shift: u32) -> Option<Granule> {
    match shift {
        12 => Some(Granule::Size4K),
        14 => Some(Granule::Size16K),
        16 => Some(Granule::Size64K),
        _ => None,
    }
}
