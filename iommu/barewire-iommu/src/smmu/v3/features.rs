//! The features of an implementation: SMMU_IDR0, 1, 3 and 5.

use super::error::{SmmuError, Unsupported};
use super::registers::{
    IDR0, IDR0_ASID16, IDR0_COHACC, IDR0_HYP, IDR0_S1P, IDR0_S2P, IDR0_ST_LEVEL_SHIFT,
    IDR0_STALL_MODEL_SHIFT, IDR0_TTENDIAN_SHIFT, IDR0_TTF_AARCH64, IDR0_VMID16, IDR1,
    IDR1_CMDQS_SHIFT, IDR1_EVENTQS_SHIFT, IDR1_QUEUES_PRESET, IDR1_SSIDSIZE_SHIFT,
    IDR1_TABLES_PRESET, IDR3, IDR3_BBML_SHIFT, IDR3_RIL, IDR5, IDR5_GRAN4K, IDR5_GRAN16K,
    IDR5_GRAN64K,
};
use crate::address::PhysAddr;
use crate::format::{Config, Geometry, Granule, Stage};
use crate::smmu::Registers;

/// The largest output size this crate supports.
const OUTPUT_BITS_MAX: u8 = 48;

/// The alignment of the smallest table that a register or entry leads to.
const ALIGNMENT_MIN: u64 = 64;

/// The features of an implementation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Features {
    /// S1P.
    pub stage1: bool,
    /// S2P.
    pub stage2: bool,
    /// COHACC: it snoops the CPUs' caches for tables and queues.
    pub coherent: bool,
    /// HYP: it tags EL2's translations; this driver makes none.
    pub hyp: bool,
    /// ASID16: 8 or 16.
    pub asid_bits: u8,
    /// VMID16: 8 or 16.
    pub vmid_bits: u8,
    /// STALL_MODEL is 0b00: faults may stall, unless configured otherwise.
    pub may_stall: bool,
    /// ST_LEVEL: 2-level stream tables.
    pub two_level_streams: bool,
    /// SIDSIZE.
    pub stream_bits: u8,
    /// SSIDSIZE; 0 without substreams.
    pub substream_bits: u8,
    /// CMDQS: log2 of the maximum length of a command queue.
    pub command_queue_log2: u8,
    /// EVENTQS.
    pub event_queue_log2: u8,
    /// RIL: range invalidation and level hints.
    pub ranges: bool,
    /// BBML.
    pub bbm_level: u8,
    /// OAS in bits, 32 to 48. Larger sizes are used as 48.
    pub output_bits: u8,
    /// GRAN4K.
    pub granule_4k: bool,
    /// GRAN16K.
    pub granule_16k: bool,
    /// GRAN64K.
    pub granule_64k: bool,
}

impl Features {
    /// Reads the identification registers.
    ///
    /// # Errors
    /// [`SmmuError::Unsupported`].
    pub fn read(registers: &impl Registers) -> Result<Self, SmmuError> {
        let idr0 = registers.read32(IDR0);
        let idr1 = registers.read32(IDR1);
        let idr3 = registers.read32(IDR3);
        let idr5 = registers.read32(IDR5);
        let needs = |there: bool, what| {
            if there { Ok(()) } else { Err(SmmuError::Unsupported(what)) }
        };
        let stall_model = idr0 >> IDR0_STALL_MODEL_SHIFT & 0b11;
        needs(idr0 & IDR0_TTF_AARCH64 != 0, Unsupported::NoAarch64Tables)?;
        needs(idr0 >> IDR0_TTENDIAN_SHIFT & 0b11 != 0b11, Unsupported::BigEndian)?;
        needs(stall_model != 0b10, Unsupported::StallForced)?;
        needs(idr1 & (IDR1_QUEUES_PRESET | IDR1_TABLES_PRESET) == 0, Unsupported::Preset)?;
        let idr1_bits = |shift: u32, bits: u32| (idr1 >> shift & ((1 << bits) - 1)) as u8;
        Ok(Self {
            stage1: idr0 & IDR0_S1P != 0,
            stage2: idr0 & IDR0_S2P != 0,
            coherent: idr0 & IDR0_COHACC != 0,
            hyp: idr0 & IDR0_HYP != 0,
            asid_bits: if idr0 & IDR0_ASID16 != 0 { 16 } else { 8 },
            vmid_bits: if idr0 & IDR0_VMID16 != 0 { 16 } else { 8 },
            may_stall: stall_model == 0,
            two_level_streams: idr0 >> IDR0_ST_LEVEL_SHIFT & 0b11 == 0b01,
            stream_bits: idr1_bits(0, 6).min(32),
            substream_bits: idr1_bits(IDR1_SSIDSIZE_SHIFT, 5),
            command_queue_log2: idr1_bits(IDR1_CMDQS_SHIFT, 5),
            event_queue_log2: idr1_bits(IDR1_EVENTQS_SHIFT, 5),
            ranges: idr3 & IDR3_RIL != 0,
            bbm_level: (idr3 >> IDR3_BBML_SHIFT & 0b11) as u8,
            output_bits: match idr5 & 0b111 {
                0 => 32,
                1 => 36,
                2 => 40,
                3 => 42,
                4 => 44,
                _ => OUTPUT_BITS_MAX,
            },
            granule_4k: idr5 & IDR5_GRAN4K != 0,
            granule_16k: idr5 & IDR5_GRAN16K != 0,
            granule_64k: idr5 & IDR5_GRAN64K != 0,
        })
    }

    /// The configuration of the largest table it can walk: the widest input and output at `stage`.
    ///
    /// # Errors
    /// [`SmmuError::Stage`], [`SmmuError::Granule`].
    pub fn config(&self, stage: Stage, granule: Granule) -> Result<Config, SmmuError> {
        self.check_stage(stage)?;
        self.check_granule(granule)?;
        Ok(Config {
            granule,
            stage,
            input_bits: self.input_bits(stage),
            output_bits: self.output_bits,
            bbml2: self.has_bbml2(),
        })
    }

    /// BBML 3 is reserved.
    fn has_bbml2(&self) -> bool {
        self.bbm_level == 2
    }

    /// Stage 1 takes 48 bits. Stage 2 takes the output of stage 1 or of a device.
    fn input_bits(&self, stage: Stage) -> u8 {
        match stage {
            Stage::One => 48,
            Stage::Two => self.output_bits,
        }
    }

    fn check_stage(&self, stage: Stage) -> Result<(), SmmuError> {
        let has = match stage {
            Stage::One => self.stage1,
            Stage::Two => self.stage2,
        };
        if has { Ok(()) } else { Err(SmmuError::Stage(stage)) }
    }

    fn check_granule(&self, granule: Granule) -> Result<(), SmmuError> {
        let has = match granule {
            Granule::Size4K => self.granule_4k,
            Granule::Size16K => self.granule_16k,
            Granule::Size64K => self.granule_64k,
        };
        if has { Ok(()) } else { Err(SmmuError::Granule(granule)) }
    }

    /// Checks that it can walk such a table at `stage`.
    pub(crate) fn check(&self, geometry: &Geometry, stage: Stage) -> Result<(), SmmuError> {
        let config = geometry.config();
        if config.stage != stage {
            return Err(SmmuError::Stage(stage));
        }
        self.check_stage(stage)?;
        self.check_granule(config.granule)?;
        let has = self.input_bits(stage);
        if config.input_bits > has {
            return Err(SmmuError::InputBits { asked: config.input_bits, has });
        }
        if config.output_bits > self.output_bits {
            let (asked, has) = (config.output_bits, self.output_bits);
            return Err(SmmuError::OutputBits { asked, has });
        }
        if config.bbml2 && !self.has_bbml2() {
            return Err(SmmuError::Bbml2);
        }
        Ok(())
    }
}

/// Checks that an address has no more than `output_bits`, and that `field` holds it: it leads to `bytes` that are
/// aligned to their size. The bits below are other fields, or ignored: then the walk begins elsewhere. A root
/// has no more bits than its table's output addresses, whose size is in the same entry: else that is illegal
/// (5.2 STE.S2TTB, 5.4 CD.TTB0).
pub(crate) fn check_address(
    field: &'static str,
    at: PhysAddr,
    bytes: u64,
    output_bits: u8,
) -> Result<(), SmmuError> {
    let asked = (u64::BITS - at.0.leading_zeros()) as u8;
    if asked > output_bits {
        return Err(SmmuError::OutputBits { asked, has: output_bits });
    }
    let to = bytes.max(ALIGNMENT_MIN);
    if !at.0.is_multiple_of(to) {
        return Err(SmmuError::Unaligned { field, at, to });
    }
    Ok(())
}

/// CD.IPS and STE.S2PS.
pub(crate) const fn physical_size(output_bits: u8) -> u64 {
    match output_bits {
        32 => 0,
        36 => 1,
        40 => 2,
        42 => 3,
        44 => 4,
        _ => 5,
    }
}

/// CD.TG0 and STE.S2TG.
pub(crate) const fn granule_code(granule: Granule) -> u64 {
    match granule {
        Granule::Size4K => 0b00,
        Granule::Size64K => 0b01,
        Granule::Size16K => 0b10,
    }
}

/// IR, OR and SH, adjacent as in CD and STE: the attributes of the SMMU's table walks.
pub(crate) const fn walk_attributes(coherent: bool) -> u64 {
    if coherent { 0b11_01_01 } else { 0b10_00_00 }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::Features;
    use crate::format::{Granule, Stage};
    use crate::smmu::Registers;
    use crate::smmu::v3::{Settings, Smmu, SmmuError, Unsupported};
    use crate::testing::with_arena;

    /// All features this driver knows.
    pub(crate) fn all() -> Features {
        Features {
            stage1: true,
            stage2: true,
            coherent: true,
            hyp: false,
            asid_bits: 16,
            vmid_bits: 16,
            may_stall: true,
            two_level_streams: true,
            stream_bits: 16,
            substream_bits: 8,
            command_queue_log2: 19,
            event_queue_log2: 19,
            ranges: true,
            bbm_level: 2,
            output_bits: 48,
            granule_4k: true,
            granule_16k: true,
            granule_64k: true,
        }
    }

    /// IDR0, IDR1, IDR3, IDR5.
    struct Identity([u32; 4]);

    impl Registers for Identity {
        fn read32(&self, offset: u32) -> u32 {
            match offset {
                0x0 => self.0[0],
                0x4 => self.0[1],
                0xc => self.0[2],
                0x14 => self.0[3],
                other => panic!("no identification register at {other:#x}"),
            }
        }

        fn write32(&self, offset: u32, _value: u32) {
            panic!("{offset:#x} is read only");
        }
    }

    /// Encoded by hand from 6.3.1 to 6.3.6: VMID16, ASID16, COHACC, TTF 2, S1P, S2P, 2-level;
    /// SIDSIZE 16, SSIDSIZE 8, EVENTQS and CMDQS 19; RIL, BBML 2; OAS 48 bits, all granules.
    const ALL: [u32; 4] = [0x0804_101b, 0x0273_0210, 0x0000_1400, 0x0000_0075];

    #[test]
    fn fields_are_where_the_manual_has_them() {
        assert_eq!(Features::read(&Identity(ALL)), Ok(all()));
        // Flips each bit on its own, so that no field is read from a neighbour.
        let with = |register: usize, flip: u32| {
            let mut words = ALL;
            words[register] ^= flip;
            Features::read(&Identity(words)).unwrap()
        };
        assert_eq!(with(0, 1), Features { stage2: false, ..all() });
        assert_eq!(with(0, 2), Features { stage1: false, ..all() });
        assert_eq!(with(0, 1 << 4), Features { coherent: false, ..all() });
        assert_eq!(with(0, 1 << 9), Features { hyp: true, ..all() });
        assert_eq!(with(0, 1 << 12), Features { asid_bits: 8, ..all() });
        assert_eq!(with(0, 1 << 18), Features { vmid_bits: 8, ..all() });
        assert_eq!(with(0, 1 << 24), Features { may_stall: false, ..all() });
        assert_eq!(with(0, 1 << 27), Features { two_level_streams: false, ..all() });
        assert_eq!(with(1, 1 << 3), Features { stream_bits: 24, ..all() });
        assert_eq!(with(1, 1 << 10), Features { substream_bits: 24, ..all() });
        assert_eq!(with(1, 1 << 18), Features { event_queue_log2: 23, ..all() });
        assert_eq!(with(1, 1 << 23), Features { command_queue_log2: 23, ..all() });
        assert_eq!(with(2, 1 << 10), Features { ranges: false, ..all() });
        assert_eq!(with(2, 1 << 11), Features { bbm_level: 3, ..all() });
        assert_eq!(with(3, 1 << 4), Features { granule_4k: false, ..all() });
        assert_eq!(with(3, 1 << 5), Features { granule_16k: false, ..all() });
        assert_eq!(with(3, 1 << 6), Features { granule_64k: false, ..all() });
        for (code, bits) in [(0, 32), (1, 36), (2, 40), (3, 42), (4, 44), (5, 48), (6, 48)] {
            assert_eq!(with(3, 5 ^ code), Features { output_bits: bits, ..all() });
        }
    }

    #[test]
    fn what_this_driver_cannot_drive_is_refused() {
        let read = |register: usize, flip: u32| {
            let mut words = ALL;
            words[register] ^= flip;
            Features::read(&Identity(words)).unwrap_err()
        };
        let refused = SmmuError::Unsupported;
        assert_eq!(read(0, 1 << 3), refused(Unsupported::NoAarch64Tables));
        assert_eq!(read(0, 3 << 21), refused(Unsupported::BigEndian));
        assert_eq!(read(0, 2 << 24), refused(Unsupported::StallForced));
        assert_eq!(read(1, 1 << 29), refused(Unsupported::Preset));
        assert_eq!(read(1, 1 << 30), refused(Unsupported::Preset));
        // Its pool says that walkers snoop.
        with_arena(Granule::Size4K, 1, |arena| {
            let identity = Identity([ALL[0] ^ 1 << 4, ALL[1], ALL[2], ALL[3]]);
            let made = Smmu::new(identity, arena, Settings::default());
            assert_eq!(made.err(), Some(refused(Unsupported::Coherent)));
        });
    }

    #[test]
    fn the_largest_table() {
        let features = Features { output_bits: 40, bbm_level: 1, ..all() };
        let one = features.config(Stage::One, Granule::Size4K).unwrap();
        assert_eq!((one.input_bits, one.output_bits, one.bbml2), (48, 40, false));
        let two = features.config(Stage::Two, Granule::Size64K).unwrap();
        assert_eq!((two.input_bits, two.output_bits), (40, 40));
        let none = Features { stage2: false, granule_16k: false, ..all() };
        assert_eq!(none.config(Stage::Two, Granule::Size4K), Err(SmmuError::Stage(Stage::Two)));
        assert_eq!(
            none.config(Stage::One, Granule::Size16K),
            Err(SmmuError::Granule(Granule::Size16K))
        );
        assert!(none.config(Stage::One, Granule::Size4K).unwrap().bbml2);
    }
}
