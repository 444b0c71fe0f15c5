//! QEMU's log: the commands that the flash model decoded, and complaints.
//!
//! # How it works
//! With `-trace m25p80_*` the chip's model writes a line for each select, byte and decoded command.
//! A command extends from its opcode to the next opcode: the bytes after the opcode are counted.
//! When the model reports that the address is complete, the count restarts.
//!
//! Some of QEMU's complaints lack their newline, so a trace line may begin in the middle of one.
//! Every other line is a complaint about this process: no other process accesses the board.

/// A command as the flash model decoded it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlashCommand {
    /// Its opcode.
    pub opcode: u8,
    /// The address, if the command has one and it was complete.
    pub address: Option<u32>,
    /// Bytes clocked after opcode, address and dummy bytes, in either direction.
    pub data_bytes: usize,
}

/// Write status register: QEMU collects its data in the same way as an address.
const WRSR: u8 = 0x01;
/// The prefix of all trace events of the chip.
const EVENT: &str = "m25p80_";

/// A piece of a line.
#[derive(Debug, PartialEq)]
enum Entry<'l> {
    /// The event's name after `m25p80_`, and its values.
    Event(&'l str, &'l str),
    Complaint(&'l str),
}

/// Splits a line into a complaint, an event, or both if they are joined.
fn entries(line: &str) -> impl Iterator<Item = Entry<'_>> {
    let (before, event) = match line.find(EVENT) {
        Some(at) => (&line[..at], line[at + EVENT.len()..].split_once(' ')),
        None => (line, None),
    };
    // With `-msg timestamp` a trace line begins `pid@seconds:`.
    let before = before.trim();
    let stamp = before.ends_with(':') && before.contains('@') && !before.contains(' ');
    let complaint = (!before.is_empty() && !stamp).then_some(Entry::Complaint(before));
    complaint.into_iter().chain(event.map(|(name, values)| Entry::Event(name, values)))
}

/// The flash chip's commands, in order.
pub(crate) fn commands(log: &str) -> Vec<FlashCommand> {
    let mut commands: Vec<FlashCommand> = Vec::new();
    // Whether bytes belong to the last command: from its opcode until the chip is deselected.
    let mut open = false;
    for entry in log.lines().flat_map(entries) {
        match entry {
            Entry::Event("select", _) => open = false,
            Entry::Event("command_decoded", values) => {
                // QEMU takes a byte after a finished command for an opcode. The line of that byte
                // came first and was counted for the previous command.
                if let Some(before) = commands.last_mut().filter(|_| open) {
                    before.data_bytes = before.data_bytes.saturating_sub(1);
                }
                let opcode = hex_after(values, "command:").and_then(|v| u8::try_from(v).ok());
                if let Some(opcode) = opcode {
                    commands.push(FlashCommand { opcode, address: None, data_bytes: 0 });
                    open = true;
                }
            }
            Entry::Event("complete_collecting", values) => {
                if let Some(last) = commands.last_mut().filter(|last| last.opcode != WRSR) {
                    last.address = hex_after(values, " addr ");
                    last.data_bytes = 0;
                }
            }
            Entry::Event("transfer", _) if open => {
                if let Some(last) = commands.last_mut() {
                    last.data_bytes += 1;
                }
            }
            Entry::Event(..) | Entry::Complaint(_) => {}
        }
    }
    commands
}

/// QEMU's complaints about accesses to the board, without those that contain one of `tolerated`.
pub(crate) fn complaints(log: &str, tolerated: &[&str]) -> Vec<String> {
    let found = log.lines().flat_map(entries).filter_map(|entry| match entry {
        Entry::Complaint(text) if !tolerated.iter().any(|known| text.contains(known)) => {
            Some(text.to_owned())
        }
        _ => None,
    });
    found.collect()
}

/// The hexadecimal number after `mark`.
fn hex_after(values: &str, mark: &str) -> Option<u32> {
    let (_, rest) = values.split_once(mark)?;
    let rest = rest.strip_prefix("0x")?;
    let end = rest.find(|c: char| !c.is_ascii_hexdigit()).unwrap_or(rest.len());
    u32::from_str_radix(&rest[..end], 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As QEMU 7.2 wrote it, shortened: an erase, a status read, a write of the status register
    /// in the middle of an AAI run.
    const LOG: &str = "\
m25p80_binding [0x5610b4df8700] Binding to IF_MTD drive
m25p80_reset_done [0x5610b4df8700] Reset done.
m25p80_select [0x5610b4df8700] deselect
[imx.spi]imx_spi_write: burst length 1 not supported: rounding up to next multiple of 8
m25p80_select [0x5610b4df8700] select
m25p80_transfer [0x5610b4df8700] Transfer state 0x0 len 0x0 needed 0x0 pos 0x0 addr 0x0 tx 0x20
m25p80_command_decoded [0x5610b4df8700] new command:0x20
m25p80_transfer [0x5610b4df8700] Transfer state 0x3 len 0x0 needed 0x3 pos 0x0 addr 0x0 tx 0x0
m25p80_transfer [0x5610b4df8700] Transfer state 0x3 len 0x1 needed 0x3 pos 0x0 addr 0x0 tx 0x10
m25p80_transfer [0x5610b4df8700] Transfer state 0x3 len 0x2 needed 0x3 pos 0x0 addr 0x0 tx 0x0
m25p80_complete_collecting [0x5610b4df8700] decode cmd: 0x20 len 3 ear 0x0 addr 0x1000
m25p80_flash_erase [0x5610b4df8700] offset = 0x1000, len = 4096
m25p80_select [0x5610b4df8700] deselect
m25p80_select [0x5610b4df8700] select
m25p80_transfer [0x5610b4df8700] Transfer state 0x0 len 0x0 needed 0x3 pos 0x0 addr 0x1000 tx 0x5
m25p80_command_decoded [0x5610b4df8700] new command:0x5
m25p80_transfer [0x5610b4df8700] Transfer state 0x5 len 0x1 needed 0x3 pos 0x0 addr 0x1000 tx 0x0
m25p80_read_data [0x5610b4df8700] Read data 0x0=0x2
m25p80_select [0x5610b4df8700] deselect
m25p80_select [0x5610b4df8700] select
m25p80_transfer [0x5610b4df8700] Transfer state 0x0 len 0x0 needed 0x3 pos 0x0 addr 0x1004 tx 0x1
m25p80_command_decoded [0x5610b4df8700] new command:0x1
M25P80: Invalid cmd within AAI programming sequencem25p80_transfer [0x5610b4df8700] Transfer state 0x3 len 0x0 needed 0x1 pos 0x0 addr 0x1004 tx 0x1c
m25p80_complete_collecting [0x5610b4df8700] decode cmd: 0x1 len 3 ear 0x0 addr 0x1c1002
m25p80_select [0x5610b4df8700] deselect
[imx.spi]imx_spi_read: Trying to read from TX FIFO
";

    #[test]
    fn commands_carry_address_and_length() {
        let command = |opcode, address, data_bytes| FlashCommand { opcode, address, data_bytes };
        assert_eq!(
            commands(LOG),
            [command(0x20, Some(0x1000), 0), command(0x05, None, 1), command(0x01, None, 1)]
        );
    }

    #[test]
    fn complaints_are_found_even_glued_to_an_event() {
        assert_eq!(
            complaints(LOG, &["burst length 1 not supported"]),
            [
                "M25P80: Invalid cmd within AAI programming sequence",
                "[imx.spi]imx_spi_read: Trying to read from TX FIFO",
            ]
        );
    }

    #[test]
    fn a_second_opcode_in_one_selection_is_a_command_of_its_own() {
        let log = "m25p80_select [0x1] select\nm25p80_transfer [0x1] Transfer tx 0x6\n\
                   m25p80_command_decoded [0x1] new command:0x6\n\
                   m25p80_transfer [0x1] Transfer tx 0x5\n\
                   m25p80_command_decoded [0x1] new command:0x5\n\
                   m25p80_transfer [0x1] Transfer tx 0x0\n";
        let found: Vec<_> = commands(log).iter().map(|c| (c.opcode, c.data_bytes)).collect();
        assert_eq!(found, [(0x06, 0), (0x05, 1)]);
    }

    #[test]
    fn time_stamps_are_no_complaints_and_broken_lines_no_panic() {
        let log = "42@1700000000.123:m25p80_command_decoded [0x1] new command:0x9f\n\
                   m25p80_\nm25p80_command_decoded\nm25p80_command_decoded [0x1] new command:0x1ff\n";
        assert_eq!(commands(log).len(), 1);
        assert_eq!(complaints(log, &[]), [""; 0]);
    }
}
