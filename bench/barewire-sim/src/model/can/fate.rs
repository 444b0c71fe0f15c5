//! The fate of a frame: decided when it begins, by the nodes present and the future faults.

use super::bits::{ACK_TO_END_BITS, Shape};
use super::carry::Bus;
use super::confine::ErrorState;
use super::fault::Fault;
use super::flight::{Fate, Flight, near};
use super::node::{ErrorKind, FdSupport, Role};

/// The bit at which a node with another bit rate loses synchronisation: somewhere in the
/// identifier.
const LOST_BIT: u32 = 10;

impl Bus {
    /// The error of a frame, if it has one.
    pub(super) fn fate(
        &self,
        flight: &Flight,
        shape: &Shape,
        collision: Option<u32>,
    ) -> Option<Fate> {
        let at_bit = |bit: u32, sender, receiver, flag_bits| Fate {
            at: flight.span.sof + shape.until(bit, self.times),
            sender,
            receiver,
            data_phase: shape.data_bits > 0
                && (shape.before_switch..shape.before_switch + shape.data_bits).contains(&bit),
            flag_bits,
        };
        let within = |bit: u32, sender| at_bit(bit, sender, ErrorKind::Stuff, 12);
        let last_bit = shape.nominal_bits + shape.data_bits - 1;
        let mut fates: Vec<Fate> = Vec::new();
        if let Some(bit) = collision {
            fates.push(within(bit + 1, ErrorKind::Bit1));
        }
        let everybody = flight.receivers.iter().chain([&flight.sender]).chain(&flight.others);
        for &index in everybody {
            let link = self.link(index);
            // A node that only listens cannot disturb.
            let disturbs = !matches!(link.role, Role::Listen | Role::Restricted);
            let Some(times) = link.times else { continue };
            if !near(times.nominal_ps, self.times.nominal_ps) && disturbs {
                fates.push(within(LOST_BIT, ErrorKind::Bit1));
            } else if shape.data_bits > 0 && !near(times.data_ps, self.times.data_ps) && disturbs {
                fates.push(within(shape.before_switch + LOST_BIT, ErrorKind::Bit1));
            }
        }
        let classic = flight.receivers.iter().any(|&index| {
            let link = self.link(index);
            link.fd == FdSupport::ErrorFlag && matches!(link.role, Role::Active | Role::Loopback)
        });
        if flight.frame.fd && classic {
            fates.push(at_bit(shape.fdf_end, ErrorKind::Bit1, ErrorKind::Form, 7));
        }
        let number = self.frames;
        let acknowledge_end = flight.span.eof - self.bits(ACK_TO_END_BITS);
        let not_acknowledged = |receiver| Fate {
            at: acknowledge_end,
            sender: ErrorKind::Ack,
            receiver,
            data_phase: false,
            flag_bits: 7,
        };
        for fault in &self.faults {
            match *fault {
                Fault::Crc { frame } if frame == number => {
                    fates.push(not_acknowledged(ErrorKind::Crc));
                }
                Fault::ErrorFlag { frame, bit } if frame == number => {
                    fates.push(within(bit.min(last_bit) + 1, ErrorKind::Bit1));
                }
                Fault::ErrorFlags { first, every, bit }
                    if number >= first && (number - first).is_multiple_of(every.max(1)) =>
                {
                    fates.push(within(bit.min(last_bit) + 1, ErrorKind::Bit1));
                }
                _ => {}
            }
        }
        let acknowledges = |index: &usize| {
            let link = self.link(*index);
            let hears = !flight.frame.fd || link.fd == FdSupport::Full;
            hears && !matches!(link.role, Role::Listen | Role::Off)
        };
        let acknowledged = flight.receivers.iter().any(acknowledges)
            || self.link(flight.sender).role == Role::Loopback;
        if !acknowledged {
            let mut fate = not_acknowledged(ErrorKind::Form);
            let passive = self.state(flight.sender) == ErrorState::Passive;
            fate.flag_bits = if passive && flight.receivers.is_empty() { 6 } else { 7 };
            fates.push(fate);
        }
        fates.into_iter().min_by_key(|fate| fate.at)
    }
}
