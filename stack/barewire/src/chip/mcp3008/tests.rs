//! The driver against a port that answers by a script.

use std::vec::Vec;

use super::*;
use crate::bus::Bus;
use crate::controller::null::Null;
use crate::spi::{Effective, Error, MessageError, Settings, Transfer};

/// Answers each transfer as scripted, and records the sent bytes.
struct Scripted {
    answers: Vec<Vec<u8>>,
    sent: Vec<Vec<u8>>,
    messages: Vec<Vec<bool>>,
}

impl Port for Scripted {
    fn run(&mut self, message: &mut [Transfer<'_>]) -> Result<(), MessageError> {
        if self.answers.is_empty() {
            return Err(MessageError::refused(Error::Busy, 0));
        }
        self.messages.push(message.iter().map(|transfer| transfer.cs_change).collect());
        for transfer in message {
            self.sent.push(transfer.data.tx().expect("sends").to_vec());
            let answer = self.answers.remove(0);
            transfer.data.rx_mut().expect("receives").copy_from_slice(&answer);
        }
        Ok(())
    }

    fn speed_hz(&self) -> u32 {
        1_000_000
    }
}

fn scripted(answers: &[&[u8]]) -> Scripted {
    let answers = answers.iter().map(|answer| answer.to_vec()).collect();
    Scripted { answers, sent: Vec::new(), messages: Vec::new() }
}

fn command(part: &Part, input: Input) -> Vec<u8> {
    part.command(input).expect("a good input").bytes().to_vec()
}

/// The data sheets' figures of an exchange in 8-bit segments.
#[test]
fn what_is_sent_is_as_the_data_sheets_draw_it() {
    assert_eq!(command(&MCP3008, Input::Single(0)), [0x01, 0x80, 0x00]);
    assert_eq!(command(&MCP3008, Input::Single(7)), [0x01, 0xf0, 0x00]);
    assert_eq!(command(&MCP3004, Input::Single(3)), [0x01, 0xb0, 0x00]);
    assert_eq!(command(&MCP3008, Input::Differential { plus: 2, minus: 3 }), [0x01, 0x20, 0x00]);
    assert_eq!(command(&MCP3008, Input::Differential { plus: 7, minus: 6 }), [0x01, 0x70, 0x00]);
    assert_eq!(command(&MCP3208, Input::Single(0)), [0x06, 0x00, 0x00]);
    assert_eq!(command(&MCP3208, Input::Single(5)), [0x07, 0x40, 0x00]);
    assert_eq!(command(&MCP3204, Input::Differential { plus: 1, minus: 0 }), [0x04, 0x40, 0x00]);
    assert_eq!(command(&MCP3002, Input::Single(0)), [0x68, 0x00]);
    assert_eq!(command(&MCP3002, Input::Single(1)), [0x78, 0x00]);
    assert_eq!(command(&MCP3002, Input::Differential { plus: 1, minus: 0 }), [0x58, 0x00]);
}

#[test]
fn codes_stand_at_the_end_whatever_stands_before_the_null_bit() {
    assert_eq!(MCP3008.decode(&[0xff, 0xfa, 0xa5]), Ok(0x2a5));
    assert_eq!(MCP3008.decode(&[0xff, 0xfb, 0xff]), Ok(MCP3008.code_max()));
    assert_eq!(MCP3208.decode(&[0xff, 0xea, 0xbc]), Ok(0xabc));
    assert_eq!(MCP3002.decode(&[0xfb, 0xff]), Ok(0x3ff));
}

#[test]
fn a_floating_miso_is_no_chip() {
    let missing = |received: [u8; 3]| Err(AdcError::NoChip { received });
    assert_eq!(MCP3008.decode(&[0xff; 3]), missing([0xff; 3]));
    assert_eq!(MCP3208.decode(&[0xff; 3]), missing([0xff; 3]));
    assert_eq!(MCP3002.decode(&[0xff; 2]), missing([0, 0xff, 0xff]));
    let mut adc = Mcp3008::new(scripted(&[&[0xff; 3]]), &MCP3008);
    assert_eq!(adc.read(Input::Single(0)), missing([0xff; 3]));
}

#[test]
fn a_scan_is_one_message_with_cs_changes_up_to_eight() {
    let answers: Vec<[u8; 3]> = (0..10).map(|code| [0xff, 0xf8, code]).collect();
    let answers: Vec<&[u8]> = answers.iter().map(|answer| &answer[..]).collect();
    let mut adc = Mcp3008::new(scripted(&answers), &MCP3008);
    let inputs: Vec<Input> = (0..10).map(|index| Input::Single(index % 8)).collect();
    let mut codes = [0; 10];
    adc.scan(&inputs, &mut codes).expect("scans");
    assert_eq!(codes, [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]);
    let port = adc.release();
    assert_eq!(
        port.messages,
        [&[true, true, true, true, true, true, true, false][..], &[true, false]]
    );
    let sent: Vec<Vec<u8>> = inputs.iter().map(|&input| command(&MCP3008, input)).collect();
    assert_eq!(port.sent, sent);
    Mcp3008::new(port, &MCP3008).scan(&[], &mut []).expect("nothing to do");
}

#[test]
fn a_channel_that_is_not_there_is_refused_before_anything_is_clocked() {
    let mut adc = Mcp3008::new(scripted(&[&[0; 3], &[0; 3]]), &MCP3004);
    let refused = Err(AdcError::NoSuchChannel { channel: 4, channels: 4 });
    assert_eq!(adc.scan(&[Input::Single(0), Input::Single(4)], &mut [0; 2]), refused);
    let pair = |plus, minus| MCP3004.command(Input::Differential { plus, minus }).map(|_| ());
    assert_eq!(pair(1, 2), Err(AdcError::NoPair { plus: 1, minus: 2 }));
    assert_eq!(pair(1, 1), Err(AdcError::NoPair { plus: 1, minus: 1 }));
    assert_eq!(pair(4, 5), Err(AdcError::NoSuchChannel { channel: 5, channels: 4 }));
    assert_eq!(pair(3, 255), Err(AdcError::NoSuchChannel { channel: 255, channels: 4 }));
    assert!(adc.release().sent.is_empty());
}

#[test]
fn the_clock_is_held_against_the_supply() {
    let speed = |part: &Part, supply_mv| part.max_speed_hz(supply_mv);
    assert_eq!(speed(&MCP3008, 5_000), Ok(3_600_000));
    assert_eq!(speed(&MCP3008, 3_300), Ok(1_000_000));
    assert_eq!(speed(&MCP3208, 5_000), Ok(2_000_000));
    assert_eq!(speed(&MCP3002, 2_700), Ok(1_200_000));
    let supply = |supply_mv| AdcError::Supply { supply_mv, min_mv: 2_700, max_mv: 5_500 };
    assert_eq!(speed(&MCP3008, 1_800), Err(supply(1_800)));
    assert_eq!(speed(&MCP3008, 12_000), Err(supply(12_000)));
    assert_eq!(
        MCP3008.settings(0, 3_600_001, 5_000),
        Err(AdcError::TooFast { speed_hz: 3_600_001, max_hz: 3_600_000, supply_mv: 5_000 })
    );
    assert!(MCP3008.settings(0, 1_000_001, 3_300).is_err());
}

#[test]
fn half_a_clock_is_set_up_time_already() {
    let setup_ns = |part: &Part, hz| part.settings(1, hz, 5_000).expect("in range").cs_setup_ns;
    // 138 ns and 500 ns: both cover tSUCS.
    assert_eq!(setup_ns(&MCP3008, 3_600_000), 0);
    assert_eq!(setup_ns(&MCP3008, 1_000_000), 0);
    let settings = MCP3208.settings(1, 2_000_000, 5_000).expect("in range");
    assert_eq!((settings.chip_select, settings.cs_inactive_ns), (1, 500));
    assert!(MCP3008.settings(0, 0, 5_000).is_ok(), "refused by the bus");
}

/// The maximum rate on a Raspberry Pi: 26 clocks of 280 ns, and 270 ns.
#[test]
fn the_ceiling_is_made_of_clocks_and_times() {
    let bus = Bus::new(Null::new());
    let device = bus.device(&Settings::new(0, 3_571_428)).expect("opens");
    let pi = Effective { word_rest_clocks: 1, ..*device.effective() };
    assert_eq!(MCP3008.conversion_ps(&pi), 7_280_002 + 270_000);
    assert_eq!(MCP3008.max_rate_hz(&pi), 132_450);
    assert_eq!(MCP3008.max_rate_hz(device.effective()), 143_061, "24 clocks");
    let slow = Effective { speed_hz: 1, ..pi };
    assert_eq!(MCP3008.max_rate_hz(&slow), 0);
}

#[test]
fn parts_are_found_by_name() {
    for part in PARTS {
        assert_eq!(Part::find(part.name), Some(part));
        assert_eq!(part.exchange_bytes(), if part.channels == 2 { 2 } else { 3 });
    }
    assert_eq!(Part::find("mcp3208"), Some(&MCP3208));
    assert_eq!(Part::find("mcp3001"), None);
}

#[test]
fn errors_name_the_remedy() {
    for (error, part) in [
        (AdcError::TooFast { speed_hz: 2, max_hz: 1, supply_mv: 3_300 }, "lower the clock"),
        (AdcError::NoSuchChannel { channel: 8, channels: 8 }, "it has 0 to 7"),
        (AdcError::NoChip { received: [0xff; 3] }, "MISO"),
        (AdcError::TooOften { asked_hz: 200_000, max_hz: 126_000 }, "is 126000"),
        (AdcError::NoPair { plus: 1, minus: 2 }, "0 and 1"),
        (AdcError::Supply { supply_mv: 1, min_mv: 2, max_mv: 3 }, "2 to 3"),
    ] {
        let text = std::format!("{error}");
        assert!(text.contains(part), "{text}");
    }
}
