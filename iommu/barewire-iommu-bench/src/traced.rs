//! Counts what an Arm processor would execute, by running a static program under `qemu-aarch64`.
//!
//! # How it works
//! QEMU translates blocks of instructions. Its log has each block's instructions when the block is
//! translated (`in_asm`), and a line each time the block is executed (`exec`; with `nochain`, each
//! time indeed). So the log determines every executed instruction. Counting begins where a function
//! is entered, and ends where control is back behind the call. An instruction is classified by its
//! encoding (Arm ARM, DDI 0487, C6.2).
//!
//! Counted, not measured: QEMU has no caches and no pipeline, so this says how often a barrier is
//! executed and not how long it waits.

use std::collections::HashMap;
use std::path::Path;
use std::process::{Command, Stdio};

/// The emulator.
const QEMU: &str = "qemu-aarch64";

/// The processor: Armv8.0, without atomics in one instruction.
const PROCESSOR: &str = "cortex-a53";

/// Executed instructions.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct InstructionCount {
    /// All of them.
    pub instructions: u64,
    /// Store-releases: STLR.
    pub store_releases: u64,
    /// Stores of a read-modify-write: STXR, STLXR.
    pub exclusives: u64,
    /// DMB.
    pub dmb: u64,
    /// DSB.
    pub dsb: u64,
    /// Cleaned cache lines: DC CVAC.
    pub cleaned_lines: u64,
}

impl InstructionCount {
    fn add(&mut self, word: u32) {
        let counter = match word {
            word if word & 0xffff_f0ff == 0xd503_309f => &mut self.dsb,
            word if word & 0xffff_f0ff == 0xd503_30bf => &mut self.dmb,
            word if word & 0xffff_ffe0 == 0xd50b_7a20 => &mut self.cleaned_lines,
            // The upper two bits are the size.
            word if word & 0x3fff_fc00 == 0x089f_fc00 => &mut self.store_releases,
            word if word & 0x3fe0_7c00 == 0x0800_7c00 => &mut self.exclusives,
            _ => {
                self.instructions += 1;
                return;
            }
        };
        *counter += 1;
        self.instructions += 1;
    }
}

/// Why nothing can be counted here, or `None` if it can. `toolchain` is the content of
/// `rust-toolchain.toml`.
pub fn why_not(toolchain: &str) -> Option<String> {
    if Command::new(QEMU).arg("--version").stdout(Stdio::null()).status().is_err() {
        return Some(format!(
            "instruction counts of aarch64 need {QEMU} (sudo apt-get install qemu-user)"
        ));
    }
    crate::callgrind::other_compiler(toolchain)
}

/// Runs `program` with `arguments` and counts what the last call of the function whose name contains
/// `symbol` executes, including its callees.
///
/// # Errors
/// A message for the user: why it could not be counted.
pub fn last_call(
    program: &Path,
    symbol: &str,
    arguments: &[&str],
) -> Result<InstructionCount, String> {
    let place = tempfile::tempdir().map_err(|error| format!("a temporary directory: {error}"))?;
    let log = place.path().join("log");
    let output = Command::new(QEMU)
        .args(["-cpu", PROCESSOR, "-d", "in_asm,exec,nochain", "-D"])
        .arg(&log)
        .arg(program)
        .args(arguments)
        .stdin(Stdio::null())
        .output()
        .map_err(|error| format!("{QEMU} does not run: {error}"))?;
    if !output.status.success() {
        let report = String::from_utf8_lossy(&output.stderr);
        return Err(format!("{QEMU} failed: {}", report.lines().last().unwrap_or_default()));
    }
    let log = std::fs::read_to_string(&log).map_err(|error| format!("{QEMU}'s log: {error}"))?;
    executed(&log, symbol)
}

/// The last whole call in a log.
fn executed(log: &str, symbol: &str) -> Result<InstructionCount, String> {
    let mut blocks: HashMap<u64, Vec<u32>> = HashMap::new();
    // The block that is being listed; where control will be back, and what the call has executed.
    let mut listed: Option<u64> = None;
    let mut call: Option<(u64, InstructionCount)> = None;
    let (mut last, mut behind) = (None, None);
    for line in log.lines() {
        if line.starts_with("IN:") {
            listed = None;
        } else if let Some((address, word)) = instruction(line) {
            let begin = *listed.get_or_insert_with(|| {
                blocks.insert(address, Vec::new());
                address
            });
            blocks.entry(begin).or_default().push(word);
        } else if let Some((address, name)) = execution(line) {
            if call.is_some_and(|(back, _)| back == address) {
                last = call.take().map(|(_, executed)| executed);
            } else if call.is_none() && name.contains(symbol) {
                let back = behind.ok_or("the function is the program's first block")?;
                call = Some((back, InstructionCount::default()));
            }
            let words = blocks.get(&address).ok_or("a block was executed that was not listed")?;
            behind = Some(address + 4 * words.len() as u64);
            if let Some((_, executed)) = &mut call {
                words.iter().for_each(|&word| executed.add(word));
            }
        }
    }
    last.ok_or_else(|| format!("no call of {symbol} in {QEMU}'s log: is the program stripped?"))
}

/// A line of a listing: `0x00221510:  d280001d  movz     x29, #0`.
fn instruction(line: &str) -> Option<(u64, u32)> {
    let (address, rest) = line.strip_prefix("0x")?.split_once(':')?;
    let word = rest.split_whitespace().next()?;
    Some((u64::from_str_radix(address, 16).ok()?, u32::from_str_radix(word, 16).ok()?))
}

/// The address and symbol of an executed block:
/// `Trace 0: 0x7fe9 [0000000000001001/0000000000221510/00000001/00000200] name`.
fn execution(line: &str) -> Option<(u64, &str)> {
    let (state, name) = line.strip_prefix("Trace ")?.split_once('[')?.1.split_once(']')?;
    let address = u64::from_str_radix(state.split('/').nth(1)?, 16).ok()?;
    Some((address, name.trim()))
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOG: &str = "\
----------------
IN: main
0x00001000:  d2800000  mov      x0, #0
0x00001004:  94000003  bl       #0x1010

Trace 0: 0x7f00 [0000000000001001/0000000000001000/00000001/00000200] main
----------------
IN: counted
0x00001010:  d5033f9f  dsb      sy
0x00001014:  d5033abf  dmb      ishst
0x00001018:  c89ffc20  stlr     x0, [x1]
0x0000101c:  d50b7a28  dc       cvac, x8
0x00001020:  c802fc20  stlxr    w2, x0, [x1]
0x00001024:  c8dffc20  ldar     x0, [x1]
0x00001028:  889ffc20  stlr     w0, [x1]
0x0000102c:  d65f03c0  ret

Trace 0: 0x7f10 [0000000000001001/0000000000001010/00000001/00000200] counted
----------------
IN: main
0x00001008:  17fffffe  b        #0x1000

Trace 0: 0x7f20 [0000000000001001/0000000000001008/00000001/00000200] main
Trace 0: 0x7f00 [0000000000001001/0000000000001000/00000001/00000200] main
Trace 0: 0x7f10 [0000000000001001/0000000000001010/00000001/00000200] counted
";

    const ONE: InstructionCount = InstructionCount {
        instructions: 8,
        store_releases: 2,
        exclusives: 1,
        dmb: 1,
        dsb: 1,
        cleaned_lines: 1,
    };

    #[test]
    fn the_last_call_that_came_back_is_counted_by_kind() {
        assert_eq!(executed(LOG, "counted"), Ok(ONE));
        let twice = format!(
            "{LOG}Trace 0: 0x7f20 [0000000000001001/0000000000001008/00000001/00000200] main\n"
        );
        assert_eq!(executed(&twice, "counted"), Ok(ONE), "each call by itself");
    }

    #[test]
    fn what_is_not_there_is_not_counted() {
        assert!(executed(LOG, "other").is_err_and(|why| why.contains("no call of other")));
        let unlisted = LOG.replace("0x00001010:", "0x00001110:");
        assert!(executed(&unlisted, "counted").is_err());
    }
}
