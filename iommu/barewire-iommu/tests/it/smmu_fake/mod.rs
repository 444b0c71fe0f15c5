//! An SMMUv3 and its memory, written from IHI 0070 apart from the driver: strict where the manual
//! leaves room, and with no constant of the driver's.

pub(crate) mod ram;

pub(crate) use ram::Ram;

use std::sync::{Mutex, MutexGuard};

use barewire_iommu::PhysAddr;
use barewire_iommu::smmu::Registers;

/// The SMMU's properties and behaviour.
#[derive(Clone, Debug)]
pub(crate) struct Options {
    pub(crate) idr0: u32,
    pub(crate) idr1: u32,
    pub(crate) idr3: u32,
    pub(crate) idr5: u32,
    /// SMMU_IIDR: ProductID, Variant, Revision, Implementer.
    pub(crate) iidr: u32,
    /// SMMU_CR0 as firmware leaves it.
    pub(crate) cr0: u32,
    /// How many commands a look at CMDQ_CONS lets it execute.
    pub(crate) pace: usize,
    /// How many looks at CR0ACK, IRQ_CTRLACK and GBPA it takes until they agree.
    pub(crate) slow: u32,
    /// Opcodes that it takes for illegal.
    pub(crate) illegal: Vec<u8>,
    /// The reason that CMDQ_CONS.ERR has for them; 1 is CERROR_ILL.
    pub(crate) reason: u32,
    /// How often a command fetch is aborted.
    pub(crate) aborts: u32,
}

impl Default for Options {
    /// Both stages, 16-bit tags, coherent, 2-level stream tables; 16 StreamID bits, 4 SubstreamID
    /// bits, queues of up to 128 and 64 entries; ranges, BBML 2; 44 bits, all granules.
    fn default() -> Self {
        Self {
            idr0: 1 | 1 << 1 | 0b10 << 2 | 1 << 4 | 1 << 12 | 1 << 18 | 1 << 27,
            idr1: 16 | 4 << 6 | 6 << 16 | 7 << 21,
            idr3: 1 << 10 | 2 << 11,
            idr5: 4 | 0b111 << 4,
            iidr: 0,
            cr0: 1,
            pace: 3,
            slow: 2,
            illegal: Vec::new(),
            reason: 1,
            aborts: 0,
        }
    }
}

impl Options {
    /// Options of an SMMU that does not snoop caches.
    pub(crate) fn not_coherent(mut self) -> Self {
        self.idr0 &= !(1 << 4);
        self
    }
}

/// The registers, and what happened.
#[derive(Debug, Default)]
pub(crate) struct State {
    pub(crate) cr0: u32,
    pub(crate) cr0ack: u32,
    pub(crate) cr1: u32,
    pub(crate) cr2: u32,
    pub(crate) gbpa: u32,
    pub(crate) irq_ctrl: u32,
    pub(crate) gerror: u32,
    pub(crate) gerrorn: u32,
    pub(crate) strtab_base: u64,
    pub(crate) strtab_base_cfg: u32,
    cmdq_base: u64,
    pub(crate) cmdq_prod: u32,
    pub(crate) cmdq_cons: u32,
    eventq_base: u64,
    eventq_prod: u32,
    pub(crate) eventq_cons: u32,
    /// Looks until CR0ACK, GBPA and IRQ_CTRLACK agree.
    waits: u32,
    /// Not all bits of CR0ACK agree yet.
    is_late: bool,
    irq_ack: u32,
    /// A configuration was invalidated since the last CMD_SYNC.
    invalidated: bool,
    /// Commands executed.
    pub(crate) executed: Vec<[u64; 2]>,
    /// Offsets written, in order.
    pub(crate) writes: Vec<(u32, u64)>,
    /// Writes of CMDQ_PROD.
    pub(crate) doorbells: usize,
}

impl State {
    /// Bits of GERROR that are not acknowledged.
    pub(crate) fn active_errors(&self) -> u32 {
        self.gerror ^ self.gerrorn
    }
}

/// An SMMU on that memory.
pub(crate) struct Fake<'r> {
    ram: &'r Ram,
    pub(crate) options: Mutex<Options>,
    state: Mutex<State>,
}

impl<'r> Fake<'r> {
    pub(crate) fn new(ram: &'r Ram, options: Options) -> Self {
        // As firmware may leave it: translating by a table that is not ours.
        let state = State {
            cr0: options.cr0,
            cr0ack: options.cr0,
            gerror: 1 << 2,
            cmdq_prod: 5,
            cmdq_cons: 3,
            ..State::default()
        };
        Self { ram, options: Mutex::new(options), state: Mutex::new(state) }
    }

    pub(crate) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap()
    }

    /// Commands executed since this was last asked, without CMD_SYNC.
    pub(crate) fn take_executed(&self) -> Vec<[u64; 2]> {
        let executed = std::mem::take(&mut self.state().executed);
        executed.into_iter().filter(|command| command[0] != 0x46).collect()
    }

    /// The SMMU records an event, or loses it.
    pub(crate) fn record(&self, record: [u64; 4]) {
        let mut state = self.state();
        assert!(state.cr0ack & 1 << 2 != 0, "the event queue is not enabled");
        let log2 = (state.eventq_base & 0x1f) as u32;
        let wrap = (2 << log2) - 1;
        let (prod, cons) = (state.eventq_prod & wrap, state.eventq_cons & wrap);
        if prod ^ cons == 1 << log2 {
            // Full: OVFLG differs from OVACKFLG until the driver acknowledges it.
            if (state.eventq_prod ^ state.eventq_cons) >> 31 == 0 {
                state.eventq_prod ^= 1 << 31;
            }
            return;
        }
        let base = state.eventq_base & 0x000f_ffff_ffff_ffe0;
        let at = base + u64::from(prod & ((1 << log2) - 1)) * 32;
        for (word, value) in (0..).zip(record) {
            self.ram.device_write(at + 8 * word, value, self.snoops());
        }
        state.eventq_prod = state.eventq_prod & 1 << 31 | (prod + 1) & wrap;
    }

    /// A word as the SMMU reads it.
    pub(crate) fn word(&self, at: u64) -> u64 {
        self.ram.device_read(at, self.snoops())
    }

    /// An entry, or descriptor, of eight words.
    pub(crate) fn words(&self, at: u64) -> [u64; 8] {
        std::array::from_fn(|word| self.word(at + 8 * word as u64))
    }

    /// Where the entry of a stream is, as the SMMU finds it.
    pub(crate) fn stream_entry(&self, sid: u32) -> Option<u64> {
        let state = self.state();
        let base = state.strtab_base & 0x000f_ffff_ffff_ffc0;
        let config = state.strtab_base_cfg;
        if u64::from(sid) >> (config & 0x3f) != 0 {
            return None;
        }
        if config >> 16 & 0b11 == 0 {
            return Some(base + u64::from(sid) * 64);
        }
        let split = config >> 6 & 0x1f;
        assert!(matches!(split, 6 | 8 | 10), "SPLIT {split}");
        let descriptor = self.word(base + u64::from(sid >> split) * 8);
        let span = descriptor as u32 & 0x1f;
        let index = sid & ((1 << split) - 1);
        if span == 0 || span > split + 1 || index >= 1 << (span - 1) {
            return None;
        }
        Some((descriptor & 0x00ff_ffff_ffff_ffc0) + u64::from(index) * 64)
    }

    fn snoops(&self) -> bool {
        self.options.lock().unwrap().idr0 & 1 << 4 != 0
    }

    /// Executes up to `pace` commands.
    fn execute(&self, state: &mut State) {
        let (pace, illegal, reason) = {
            let options = self.options.lock().unwrap();
            (options.pace, options.illegal.clone(), options.reason)
        };
        let log2 = (state.cmdq_base & 0x1f) as u32;
        let wrap = (2 << log2) - 1;
        for _ in 0..pace {
            let index = state.cmdq_cons & wrap;
            if state.cr0ack & 1 << 3 == 0
                || index == state.cmdq_prod
                || (state.gerror ^ state.gerrorn) & 1 != 0
            {
                return;
            }
            let base = state.cmdq_base & 0x000f_ffff_ffff_ffe0;
            let at = base + u64::from(index & ((1 << log2) - 1)) * 16;
            let command = [self.word(at), self.word(at + 8)];
            let aborted = {
                let mut options = self.options.lock().unwrap();
                let left = options.aborts.checked_sub(1);
                options.aborts = left.unwrap_or(0);
                left.is_some()
            };
            let opcode = command[0] as u8;
            let error = if aborted {
                2
            } else if illegal.contains(&opcode) || !is_legal(command) {
                reason
            } else {
                0
            };
            if error != 0 {
                state.cmdq_cons = index | error << 24;
                state.gerror ^= 1;
                return;
            }
            state.executed.push(command);
            match opcode {
                0x03..=0x06 => state.invalidated = true,
                0x46 if std::mem::take(&mut state.invalidated) => self.ram.mark(),
                _ => {}
            }
            // The reason of an error that is no longer active may stay.
            state.cmdq_cons = state.cmdq_cons & 0x7f00_0000 | (index + 1) & wrap;
        }
    }
}

/// Whether the reserved fields of a command are 0, for those there are.
fn is_legal([low, high]: [u64; 2]) -> bool {
    let is_within = |low_mask: u64, high_mask: u64| low & !low_mask == 0 && high & !high_mask == 0;
    // NUM, SCALE; TG, TTL: with TG 0 the others are reserved, and so is TG alone.
    let by_address = |tags: u64, address: u64| {
        let (num, scale) = (low >> 12 & 0x1f, low >> 20 & 0x1f);
        let (tg, ttl) = (high >> 10 & 0b11, high >> 8 & 0b11);
        let is_alone = num == 0 && scale == 0 && ttl == 0;
        let level_shift = |level: u64| 3 + 9 * (4 - level) + 2 * (tg - 1) * (4 - level);
        let is_aligned = tg == 0
            || high & !0xfff & ((1 << level_shift(if ttl == 0 { 3 } else { ttl })) - 1) == 0;
        (tg != 0) != is_alone
            && is_aligned
            && is_within(0xff | 0x1f << 12 | 0x1f << 20 | tags, 1 | 0xf << 8 | address)
    };
    match low as u8 {
        0x03 => is_within(0xffff_ffff_0000_00ff, 1),
        0x04 => is_within(0xffff_ffff_0000_00ff, 0x1f),
        0x05 => is_within(0xffff_ffff_ffff_f0ff, 1),
        0x06 => is_within(0xffff_ffff_0000_00ff, 0),
        0x10 | 0x28 => is_within(0x0000_ffff_0000_00ff, 0),
        0x11 => is_within(0xffff_ffff_0000_00ff, 0),
        0x12 => by_address(0xffff_ffff_0000_0000, 0xffff_ffff_ffff_f000),
        0x2a => by_address(0x0000_ffff_0000_0000, 0x000f_ffff_ffff_f000),
        0x30 => is_within(0xff, 0),
        // CS: no MSI, no SEV.
        0x46 => is_within(0xff, 0),
        _ => false,
    }
}

impl Registers for Fake<'_> {
    fn read32(&self, offset: u32) -> u32 {
        self.ram.interrupt();
        let mut state = self.state();
        let options = self.options.lock().unwrap().clone();
        let mut still_waits = || {
            state.waits = state.waits.saturating_sub(1);
            state.waits != 0
        };
        match offset {
            0x00 => options.idr0,
            0x04 => options.idr1,
            0x0c => options.idr3,
            0x14 => options.idr5,
            0x18 => options.iidr,
            0x24 => {
                if !still_waits() {
                    // PRIQEN, ATSCHK and VMW take a look more than the others.
                    let late = if state.is_late { 0b1_1101_0010 } else { 0 };
                    state.is_late = false;
                    state.cr0ack = state.cr0 & !late | state.cr0ack & late;
                }
                state.cr0ack
            }
            0x44 => {
                if !still_waits() {
                    state.gbpa &= !(1 << 31);
                }
                state.gbpa
            }
            0x54 => {
                if !still_waits() {
                    state.irq_ack = state.irq_ctrl;
                }
                state.irq_ack
            }
            0x60 => state.gerror,
            0x64 => state.gerrorn,
            0x9c => {
                self.execute(&mut state);
                state.cmdq_cons
            }
            0x1_00a8 => state.eventq_prod,
            0x1_00ac => state.eventq_cons,
            other => panic!("read of {other:#x}"),
        }
    }

    fn write32(&self, offset: u32, value: u32) {
        self.ram.interrupt();
        let slow = self.options.lock().unwrap().slow;
        let mut state = self.state();
        let is_enabled = |state: &State, bit: u32| (state.cr0 | state.cr0ack) & 1 << bit != 0;
        state.writes.push((offset, value.into()));
        match offset {
            0x20 => {
                assert_eq!(state.cr0, state.cr0ack, "CR0 written before the last change was made");
                state.cr0 = value;
                state.waits = slow + 1;
                state.is_late = true;
            }
            0x28 => {
                assert!(!is_enabled(&state, 0) && !is_enabled(&state, 2) && !is_enabled(&state, 3));
                state.cr1 = value;
            }
            0x2c => {
                assert!(!is_enabled(&state, 0));
                state.cr2 = value;
            }
            0x44 => {
                assert!(state.gbpa >> 31 == 0, "GBPA written during an update");
                assert!(value >> 31 == 1, "GBPA written without UPDATE is ignored");
                state.gbpa = value;
                state.waits = slow + 1;
            }
            0x50 => {
                state.irq_ctrl = value;
                state.waits = slow + 1;
            }
            0x64 => {
                let toggled = state.gerrorn ^ value;
                let active = state.gerror ^ state.gerrorn;
                assert_eq!(toggled & !active, 0, "acknowledges an error that is not active");
                state.gerrorn = value;
            }
            0x88 => {
                assert!(!is_enabled(&state, 0));
                state.strtab_base_cfg = value;
            }
            0x98 => {
                let log2 = (state.cmdq_base & 0x1f) as u32;
                let wrap = (2 << log2) - 1;
                assert!(value <= wrap, "PROD {value:#x} of a queue of {}", 1 << log2);
                if is_enabled(&state, 3) {
                    let ahead = |to: u32, from: u32| to.wrapping_sub(from) & wrap;
                    let cons = state.cmdq_cons & wrap;
                    assert!(ahead(value, cons) <= 1 << log2, "the queue overflows");
                    let before = ahead(state.cmdq_prod, cons);
                    assert!(ahead(value, cons) > before, "PROD goes back, or stands");
                    state.doorbells += 1;
                }
                state.cmdq_prod = value;
            }
            0x9c => {
                assert!(!is_enabled(&state, 3));
                state.cmdq_cons = value;
            }
            0x1_00a8 => {
                assert!(!is_enabled(&state, 2));
                state.eventq_prod = value;
            }
            0x1_00ac => {
                if is_enabled(&state, 2) {
                    let wrap = (2 << (state.eventq_base & 0x1f)) - 1;
                    let behind = |cons: u32| state.eventq_prod.wrapping_sub(cons) & wrap;
                    assert!(behind(value) <= behind(state.eventq_cons), "CONS goes back");
                }
                state.eventq_cons = value;
            }
            other => panic!("write of {value:#x} to {other:#x}"),
        }
    }

    fn write64(&self, offset: u32, value: u64) {
        let mut state = self.state();
        state.writes.push((offset, value));
        let enables = state.cr0 | state.cr0ack;
        let (guard, slot, entry) = match offset {
            0x80 => (0, &mut state.strtab_base, 0),
            0x90 => (3, &mut state.cmdq_base, 16),
            0xa0 => (2, &mut state.eventq_base, 32),
            other => panic!("64-bit write of {value:#x} to {other:#x}"),
        };
        assert_eq!(enables & 1 << guard, 0, "a base is written while in use");
        *slot = value;
        if entry != 0 {
            let size = entry << (value & 0x1f);
            let base = value & 0x000f_ffff_ffff_ffe0;
            assert_eq!(base % size, 0, "a queue is aligned to its size");
            assert!(self.ram.is_allocated(PhysAddr(base), size as usize));
        }
    }
}
