//! The registers, as SPI accesses them.

use super::core::{Core, Mode, RAM_BYTES};
use super::fifo::Kind;
use super::options::PartKind;
use super::regs::*;
use crate::chip::Ps;

/// The distance in bytes from one FIFO's registers to the next one's.
const FIFO_STRIDE: u16 = 12;

/// C1VEC's code for no pending interrupt.
const NONE_PENDING: u32 = 0x40;

/// The FIFO that an address belongs to, and which of its three registers it is.
fn fifo_register(address: u16) -> (usize, u16) {
    let offset = address - C1TXQCON;
    (usize::from(offset / FIFO_STRIDE), offset % FIFO_STRIDE)
}

impl Core {
    /// Whether an address is in RAM.
    pub(super) fn is_ram(address: u16) -> bool {
        (RAM..RAM_END).contains(&address)
    }

    /// The value of a word, without side effects.
    pub(super) fn peek(&self, address: u16) -> Option<u32> {
        if !address.is_multiple_of(4) || address > 0xffc {
            return None;
        }
        Some(match Self::is_ram(address) {
            true => self.peek_ram(address - RAM),
            false => self.sfr(address),
        })
    }

    /// Reads a word by SPI, with side effects.
    pub(super) fn read_word(&mut self, address: u16) -> u32 {
        if Self::is_ram(address) {
            return self.ram_word(address - RAM);
        }
        let value = self.sfr(address);
        self.with_fifoci_erratum(address, value)
    }

    /// DS80000789: FIFOCI one too large.
    fn with_fifoci_erratum(&self, address: u16, value: u32) -> u32 {
        let wrong_for_ps = self.options.errata.fifoci_wrong_for_ps;
        if wrong_for_ps == 0 || !(C1TXQCON..=C1FIFOUA31).contains(&address) {
            return value;
        }
        let (index, register) = fifo_register(address);
        let fifo = &self.fifos[index];
        let recent = fifo.filled_at.is_some_and(|at| self.now < at + wrong_for_ps);
        if register != 4 || fifo.sends() || !recent {
            return value;
        }
        let wrong = (value >> sta::FIFOCI & 0x1f) + 1;
        let wrong = wrong % u32::from(fifo.size());
        value & 0xff | wrong << sta::FIFOCI
    }

    fn sfr(&self, address: u16) -> u32 {
        let all = |asks: fn(&super::fifo::Fifo) -> bool, sends: Option<bool>| {
            let one = |index: usize| {
                let fifo = &self.fifos[index];
                asks(fifo) && sends.is_none_or(|sends| sends == fifo.sends())
            };
            (0..self.fifos.len()).map(|index| u32::from(one(index)) << index).sum::<u32>()
        };
        use super::fifo::Fifo;
        match address {
            C1CON => {
                let busy = if self.in_frame { con::BUSY } else { 0 };
                self.con | (self.opmod as u32) << con::OPMOD | busy
            }
            C1NBTCFG => self.nbtcfg,
            C1DBTCFG => self.dbtcfg,
            C1TDC => self.tdc,
            C1TBC => self.tbc_at(self.now),
            C1TSCON => self.tscon,
            C1VEC => self.read_vec(),
            C1INT => self.int_enables | self.flags(),
            C1RXIF => all(Fifo::asks, Some(false)),
            C1TXIF => all(Fifo::asks, Some(true)),
            C1RXOVIF => all(Fifo::overflow_asks, None),
            C1TXATIF => all(Fifo::attempts_ask, None),
            C1TXREQ => all(|fifo| fifo.txreq, None),
            C1TREC => self.read_trec(),
            C1BDIAG0 => self.bdiag[0],
            C1BDIAG1 => self.bdiag[1],
            C1TEFCON => self.tef.con | self.in_reset(),
            C1TEFSTA => self.tef.status(),
            C1TEFUA => self.tef.place(self.tef.user_index()).into(),
            C1TXQCON..=C1FIFOUA31 => self.read_fifo(address),
            C1FLTCON0..C1FLTOBJ0 => {
                let first = usize::from(address - C1FLTCON0);
                let con = |place: usize| self.filters[first + place].con;
                u32::from_le_bytes([con(0), con(1), con(2), con(3)])
            }
            C1FLTOBJ0..=C1MASK31 => {
                let offset = address - C1FLTOBJ0;
                let filter = &self.filters[usize::from(offset / 8)];
                if offset.is_multiple_of(8) { filter.object } else { filter.mask }
            }
            OSC => self.read_osc(),
            // The pins follow the latches.
            IOCON => self.iocon | (self.iocon & iocon::LATS) << 8,
            CRC => self.crc,
            ECCCON => self.ecccon,
            ECCSTAT => self.eccstat,
            DEVID if self.options.part == PartKind::Mcp2518Fd => self.options.devid,
            _ => 0,
        }
    }

    /// FRESET: in Configuration mode all FIFOs are held in reset.
    fn in_reset(&self) -> u32 {
        if self.opmod == Mode::Configuration { fifocon::FRESET } else { 0 }
    }

    fn read_fifo(&self, address: u16) -> u32 {
        let (index, register) = fifo_register(address);
        let fifo = &self.fifos[index];
        let txreq = if fifo.txreq { fifocon::TXREQ } else { 0 };
        match register {
            0 => fifo.con | txreq | self.in_reset(),
            4 => fifo.status() | u32::from(self.next_attempt(index)) << sta::FIFOCI,
            _ => fifo.place(fifo.user_index()).into(),
        }
    }

    fn read_vec(&self) -> u32 {
        let lowest = |bits: u32| if bits == 0 { NONE_PENDING } else { bits.trailing_zeros() };
        let (rx, tx) = (self.sfr(C1RXIF), self.sfr(C1TXIF));
        // The interrupt codes other than those of FIFOs, in ascending order, each with its flag.
        let codes = [
            (int::CERRIF, 0x41),
            (int::WAKIF, 0x42),
            (int::RXOVIF, 0x43),
            (int::ECCIF | int::SPICRCIF, 0x44),
            (int::SERRIF, 0x45),
            (int::TBCIF, 0x46),
            (int::MODIF, 0x47),
            (int::IVMIF, 0x48),
            (int::TEFIF, 0x49),
            (int::TXATIF, 0x4a),
        ];
        let flags = self.flags();
        let icode = if rx | tx != 0 {
            lowest(rx | tx)
        } else {
            let pending = codes.iter().find(|(flag, _)| flags & flag != 0);
            pending.map_or(NONE_PENDING, |&(_, code)| code)
        };
        lowest(rx) << 24 | lowest(tx) << 16 | self.filhit << 8 | icode
    }

    /// Writes the bytes of a word that `mask` selects.
    pub(super) fn write_sfr(&mut self, address: u16, value: u32, mask: u32, at: Ps) {
        let merge = |old: u32, writable: u32| {
            let writable = writable & mask;
            old & !writable | value & writable
        };
        let configuration = self.opmod == Mode::Configuration;
        match address {
            C1CON => self.write_con(value, mask, at),
            C1NBTCFG => self.write_timing(address, merge(self.nbtcfg, 0xffff_7f7f)),
            C1DBTCFG => self.write_timing(address, merge(self.dbtcfg, 0xff1f_0f0f)),
            C1TDC => self.write_timing(address, merge(self.tdc, 0x0303_7f3f)),
            C1TBC => self.set_tbc(merge(self.tbc_at(at), u32::MAX), at),
            C1TSCON => self.write_tscon(merge(self.tscon, u32::MAX), at),
            C1INT => {
                self.int_enables = merge(self.int_enables, int::ENABLES);
                // Flags are cleared by writing 0.
                self.int_flags &= value | !(int::OWN & mask);
            }
            C1TXREQ => {
                for index in 0..self.fifos.len() {
                    if value & mask & 1 << index != 0 {
                        self.request_sending(index, at);
                    }
                }
            }
            C1BDIAG0 => self.bdiag[0] = merge(self.bdiag[0], u32::MAX),
            C1BDIAG1 => self.bdiag[1] = merge(self.bdiag[1], u32::MAX),
            C1TEFCON => {
                let mut writable = fifocon::TEF_ALWAYS;
                if configuration {
                    writable |= fifocon::TEF_CONFIGURATION;
                }
                self.check_configuration(self.tef.con, value, mask, fifocon::TEF_CONFIGURATION);
                self.tef.con = merge(self.tef.con, writable);
                self.act_tef(value & mask);
                self.lay_out_if(configuration);
            }
            C1TEFSTA => self.tef.flags &= value | !(sta::OVIF & mask),
            C1TXQCON..=C1FIFOUA31 => self.write_fifo(address, value, mask, at),
            C1FLTCON0..C1FLTOBJ0 => self.write_filter_con(address, value, mask),
            C1FLTOBJ0..=C1MASK31 => {
                let offset = address - C1FLTOBJ0;
                let filter = &mut self.filters[usize::from(offset / 8)];
                if filter.con & super::filter::FLTEN != 0 {
                    self.complain(|| "a filter is changed while it is enabled".into());
                    return;
                }
                let word =
                    if offset.is_multiple_of(8) { &mut filter.object } else { &mut filter.mask };
                *word = merge(*word, 0x7fff_ffff);
            }
            OSC => self.write_osc(merge(self.osc, u32::MAX), at),
            IOCON => self.iocon = merge(self.iocon, iocon::ALL),
            CRC => {
                self.crc = merge(self.crc, crc::ENABLES);
                self.crc &= value | !((crc::FERRIF | crc::CRCERRIF) & mask);
            }
            ECCCON => self.ecccon = merge(self.ecccon, ecc::CON_ALL),
            ECCSTAT => self.eccstat &= value | !((ecc::SECIF | ecc::DEDIF) & mask),
            _ => {}
        }
        self.update(at);
    }

    fn lay_out_if(&mut self, configuration: bool) {
        if configuration {
            self.lay_out();
        }
    }

    fn check_configuration(&mut self, old: u32, value: u32, mask: u32, bits: u32) {
        if self.opmod != Mode::Configuration && (old ^ value) & mask & bits != 0 {
            self.complain(|| {
                "bits that change in Configuration mode only were written in another".into()
            });
        }
    }

    fn write_con(&mut self, value: u32, mask: u32, at: Ps) {
        let mut writable = con::ALWAYS;
        if self.opmod == Mode::Configuration {
            writable |= con::CONFIGURATION;
        } else {
            self.check_configuration(self.con, value, mask, con::CONFIGURATION);
        }
        writable &= mask;
        self.con = self.con & !writable | value & writable;
        if value & mask & con::ABAT != 0 {
            self.con |= con::ABAT;
            (0..self.fifos.len()).for_each(|index| self.abort(index));
            self.finish_abort_all();
        }
        if mask >> con::REQOP & 7 != 0 {
            self.request(Mode::from_bits(value >> con::REQOP), at);
        }
        self.lay_out_if(self.opmod == Mode::Configuration);
    }

    fn write_timing(&mut self, address: u16, value: u32) {
        if self.opmod != Mode::Configuration {
            self.complain(|| {
                format!("bit timing at {address:#05x} written outside Configuration mode")
            });
            return;
        }
        match address {
            C1NBTCFG => self.nbtcfg = value,
            C1DBTCFG => self.dbtcfg = value,
            _ => self.tdc = value,
        }
    }

    fn write_filter_con(&mut self, address: u16, value: u32, mask: u32) {
        use super::filter::FLTEN;
        for place in 0..4_u16 {
            if mask >> (8 * place) & 0xff == 0 {
                continue;
            }
            let byte = (value >> (8 * place)) as u8 & 0x9f;
            let filter = &mut self.filters[usize::from(address - C1FLTCON0 + place)];
            let moved = (filter.con ^ byte) & 0x1f != 0;
            if filter.con & byte & FLTEN != 0 && moved {
                self.complain(|| "FLTBP is changed while its filter is enabled".into());
                continue;
            }
            filter.con = byte;
        }
    }

    /// The effect of C1TEFCON's command bits.
    fn act_tef(&mut self, bits: u32) {
        if bits & fifocon::FRESET != 0 {
            self.tef.reset();
        }
        if bits & fifocon::UINC != 0 {
            if self.tef.is_empty() {
                self.complain(|| "UINC of the transmit event FIFO, which is empty".into());
            } else {
                self.tef.pop();
            }
        }
    }

    fn write_fifo(&mut self, address: u16, value: u32, mask: u32, at: Ps) {
        let (index, register) = fifo_register(address);
        if register == 4 {
            let clearable = sta::OVIF | sta::TXATIF;
            self.fifos[index].flags &= value | !(clearable & mask);
            return;
        }
        if register != 0 {
            return;
        }
        let kind = self.fifos[index].kind;
        let fixed = if kind == Kind::Txq { fifocon::TXEN | fifocon::TSEN } else { 0 };
        let only_there = fifocon::CONFIGURATION & !fixed;
        self.check_configuration(self.fifos[index].con, value, mask, only_there);
        let configuration = self.opmod == Mode::Configuration;
        let mut writable = fifocon::ALWAYS;
        if configuration {
            writable |= only_there;
        }
        writable &= mask;
        let fifo = &mut self.fifos[index];
        fifo.con = fifo.con & !writable | value & writable;
        if mask >> 8 & 0xff != 0 {
            self.act(index, value, at);
        }
        self.lay_out_if(configuration);
    }

    /// The effect of the command bits in C1FIFOCONm's second byte: FRESET, then UINC, then TXREQ.
    fn act(&mut self, index: usize, bits: u32, at: Ps) {
        if self.opmod == Mode::Configuration {
            if bits & (fifocon::UINC | fifocon::TXREQ) != 0 {
                self.complain(|| "UINC or TXREQ in Configuration mode".into());
            }
            return;
        }
        if bits & fifocon::FRESET != 0 {
            if self.fifos[index].txreq {
                self.complain(|| "a FIFO is reset with messages to send".into());
            }
            self.fifos[index].reset();
            return;
        }
        let fifo = &mut self.fifos[index];
        if bits & fifocon::UINC != 0 {
            match (fifo.sends(), fifo.is_full(), fifo.is_empty()) {
                (true, true, _) => {
                    self.complain(|| format!("UINC of FIFO {index}, which is full"));
                }
                (false, _, true) => {
                    self.complain(|| format!("UINC of FIFO {index}, which is empty"));
                }
                (true, ..) => fifo.push(),
                (false, ..) => fifo.pop(),
            }
        }
        if !self.fifos[index].sends() {
            return;
        }
        if bits & fifocon::TXREQ != 0 {
            self.request_sending(index, at);
        } else {
            self.abort(index);
        }
    }

    fn request_sending(&mut self, index: usize, at: Ps) {
        if self.opmod == Mode::Configuration || !self.fifos[index].sends() {
            return;
        }
        let prepared_at = self.prepared_at(at);
        let fifo = &mut self.fifos[index];
        if fifo.is_empty() {
            return;
        }
        if !fifo.txreq {
            fifo.ready_at = prepared_at;
            fifo.flags &= !(sta::TXABT | sta::TXLARB | sta::TXERR);
        }
        fifo.txreq = true;
        fifo.aborting = false;
    }

    /// Writes a word of RAM. With the erratum, a clock above the limit corrupts it.
    pub(super) fn write_ram_by_spi(&mut self, address: u16, value: u32) {
        let corrupt = self.too_fast && self.options.errata.fast_clock_corrupts_ram;
        let offset = address - RAM;
        debug_assert!(usize::from(offset) < RAM_BYTES);
        self.write_ram(offset, value ^ u32::from(corrupt));
    }
}
