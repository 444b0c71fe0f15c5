//! McSPI's exchange: the arbiter, words and their times.
//!
//! *Read first*: the module page of [`super`], whose *Ordering* this file implements.

use super::Mcspi;
use super::regs::{CHANNELS, Conf, PIN34, SINGLE, irq};
use crate::check::Rule;
use crate::chip::{PS_PER_S, Ps};
use crate::model::block::sck_period;
use crate::model::shifter::{Phase, Shift, Shifter, Word};
use crate::wire::Wire;

impl Mcspi {
    /// Rules 1 to 3 of the manual.
    fn may_send(&self, index: usize) -> bool {
        let channel = &self.channels[index];
        let has_word = channel.primed.is_some() || !channel.tx.is_empty();
        let has_room = channel.conf.trm() == Conf::SENDS_ONLY || !channel.rx.is_full();
        channel.enabled() && has_word && has_room && channel.words_left != Some(0)
    }

    /// The next channel in rotation that may send.
    fn scheduled(&self) -> Option<usize> {
        let after = self.sending + 1;
        let mut rotation = (after..after + CHANNELS).map(|index| index % CHANNELS);
        let found = rotation.find(|&index| self.may_send(index));
        found.filter(|_| self.is_controller())
    }

    /// A word is loaded soon, if there is one and none is sent.
    pub(super) fn start(&mut self, now: Ps) {
        if self.shifter.is_idle() && self.scheduled().is_some() {
            self.shifter.enter(Phase::Lead, now + PS_PER_S.div_ceil(self.fclk_hz));
        }
    }
}

impl Shift for Mcspi {
    fn shifter(&self) -> &Shifter {
        &self.shifter
    }

    fn shifter_mut(&mut self) -> &mut Shifter {
        &mut self.shifter
    }

    /// Ordering 1.
    fn load(&mut self, at: Ps, wire: &mut Wire) {
        self.shifter.rest();
        let Some(index) = self.scheduled() else { return };
        self.sending = index;
        let channel = &mut self.channels[index];
        let (conf, divisor) = (channel.conf, channel.divisor());
        let Some(word) = channel.primed.or_else(|| channel.tx.pop()) else { return };
        channel.eot = false;
        self.sent_from(index);
        let by_force = self.modulctrl & SINGLE != 0 && conf.has(Conf::FORCE);
        if conf.word_bits() < 4 || !(by_force || self.modulctrl & PIN34 != 0) {
            let detail = format!("CH{index}CONF {:#x}: without FORCE, or WL is reserved", conf.0);
            wire.log().report(at, Rule::BadAccess, None, detail);
            return;
        }
        let period = sck_period(divisor, self.fclk_hz);
        let word = if conf.has(Conf::DPE1) { 0 } else { word };
        let word = Word::new(word, conf.word_bits(), (conf.0 & 3) as u8, period);
        self.shifter.begin(Word { loopback: conf.has(Conf::IS), ..word }, at, wire);
    }

    /// Ordering 2.
    fn receive(&mut self, word: u32, _at: Ps, _wire: &mut Wire) {
        let index = self.sending;
        let channel = &mut self.channels[index];
        let receives = channel.conf.trm() != Conf::SENDS_ONLY;
        if !receives {
            // "Always overwritten with the new SPI word", and RX_FULL is not raised.
            channel.rx.clear();
        }
        // A word that was under way when the channel was enabled anew may find no room.
        if channel.rx.push(word) && receives {
            self.received_into(index);
        }
    }

    /// Ordering 3.
    fn boundary(&mut self, at: Ps, wire: &mut Wire) {
        let index = self.sending;
        let channel = &mut self.channels[index];
        channel.eot = true;
        if let Some(left) = &mut channel.words_left {
            *left = left.saturating_sub(1);
            if *left == 0 {
                self.irqstatus |= irq::EOW;
            }
        }
        self.load(at, wire);
    }
}
