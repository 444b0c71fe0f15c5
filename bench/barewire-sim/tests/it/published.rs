//! The threads' figures, and ours on the same chip, board and clock in simulation: reviewed tables.
//!
//! Set `BAREWIRE_BLESS=1` to write them anew, then review the difference.

use std::fmt::Write as _;

use barewire_sim::scenario::nor_reads;
use barewire_sim::scenario::sampling::{Sampling, Software, run};

use crate::snapshot;

const SAMPLING: &str = "\
MCP3008 samples on a Raspberry Pi 3 at 3.571 MHz (400 MHz / 112), one channel, 3 bytes a sample.
ours: SIMULATED on rpi3 with its cost profile, prepared messages of so many conversions.
spidev: published, measured on silicon (Ellis 2017): with Linux's 10 us at each cs_change, and with
it removed. clocks, lead, lag, gap, software: microseconds of one sample, which add up to it; gap is
CS inactive inside a message, software between two.
ceiling by clocks, tSUCS 100 ns and tCSH 270 ns: 126,103 samples/s with the clock after the last
byte, 130,718 without it.

                batch  samples/s  clocks   lead    lag    gap  software   spidev   patched
";

const BATCHES: [(usize, &str); 4] = [
    (1, "69,800    69,600"),
    (10, "52,500    98,300"),
    (100, "51,200   105,200"),
    (500, "51,100   105,500"),
];

fn grouped(count: f64) -> String {
    let count = count as u64;
    format!("{},{:03}", count / 1_000, count % 1_000)
}

#[test]
fn samples_are_as_fast_as_reviewed() {
    let mut table = String::from(SAMPLING);
    for (name, software) in
        [("linux process", Software::LinuxProcess), ("bare metal", Software::BareMetal)]
    {
        for (batch, published) in BATCHES {
            let Sampling { samples_per_s, parts } = run(software, batch, 20_000 / batch);
            let bar = if batch == 1 { 115_000.0 } else { 120_000.0 };
            assert!(samples_per_s >= bar, "{name}, batch {batch}: {samples_per_s}");
            let _ = writeln!(
                table,
                "{name:<15}{batch:>6}{:>11}{:>8.3}{:>7.3}{:>7.3}{:>7.3}{:>10.3}   {published}",
                grouped(samples_per_s),
                parts.clocks_us,
                parts.lead_us,
                parts.lag_us,
                parts.gap_us,
                parts.software_us,
            );
        }
    }
    snapshot::check("mcp3008.txt", &table);
}

const NOR: &str = "\
S25FL512S reads on a SAMA5D36-EK: Read Status, then the data by 4-byte READ, CS fall to CS rise.
ours: SIMULATED on sama5d36 with its cost profile, polled, one word of 16 bits at a time; MCK 132 MHz.
published: measured on silicon (Pitchen 2016), Linux 3.14 with the message queue, and with the
tasklet before it; DMA. Its clock is not printed: the figures imply 23 MHz or more. Beside the block's
bytes its long figure has what mtd and dd do between two blocks.

                      clock     ours   SCK running   queue   tasklet
";

#[test]
fn nor_reads_are_as_fast_as_reviewed() {
    let mut table = String::from(NOR);
    for speed_hz in [22_000_000, 26_400_000, 33_000_000, 44_000_000] {
        for (what, block_bytes, blocks, unit_ns, published) in [
            ("512 bytes, us", 512, 1, 1e3, "305       242"),
            ("1000 x 1024, ms", 1_024, 1_000, 1e6, "435       361"),
        ] {
            let reads = nor_reads::run(speed_hz, block_bytes, blocks);
            let _ = writeln!(
                table,
                "{what:<16}{:>7.1} MHz{:>9.1}{:>14.1}     {published}",
                f64::from(reads.speed_hz) / 1e6,
                reads.time_ns as f64 / unit_ns,
                reads.clock_ns as f64 / unit_ns,
            );
        }
    }
    snapshot::check("sama5d36_nor.txt", &table);
}
