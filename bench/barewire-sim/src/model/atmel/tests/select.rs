//! NPCS lines: when they fall, stay and rise, and the three delays.

use super::*;

#[test]
fn npcs_rises_when_spi_tdr_is_empty_at_the_end() {
    let mut rig = Rig::on(0, CSR);
    rig.write(SPI_TDR, 0x11);
    rig.at(8 * PERIOD).read(SPI_RDR);
    // One period of MCK too late; NPCS is high for 6 of them.
    rig.write(SPI_TDR, 0x22);
    assert!(!rig.sr(sr::TDRE), "not before NPCS falls again");
    assert_eq!(rig.until(|rig| rig.sr(sr::TDRE)), 8 * PERIOD + 7 * MCK);
    rig.done();
    assert_eq!(rig.both_selections(), [2, 0]);
    rig.now += 1_000_000;
    assert_eq!(rig.selected_ps(), 2 * (8 * PERIOD + MCK));
    assert!(rig.rules().is_empty());
}

#[test]
fn dlybs_is_the_time_to_the_first_edge() {
    for mode in 0..4 {
        // As short as a period of MCK, which is less than half a period of SPCK.
        for dlybs in [1, 2, 3, 100, 255] {
            let mut rig = Rig::on(0, csr(mode, 8) | dlybs << 16);
            rig.at(1_000_000).write(SPI_TDR, 0);
            let first_edge = 1_000_000 + u64::from(dlybs) * MCK;
            let begin = if mode & 1 == 1 { first_edge } else { first_edge - HALF };
            assert_eq!(rig.done(), begin + 8 * PERIOD, "mode {mode}, DLYBS {dlybs}");
            assert!(rig.rules().is_empty());
        }
    }
}

#[test]
fn dlybct_follows_each_word() {
    let mut rig = Rig::on(0, CSR | 3 << 24);
    let gap = 96 * MCK;
    rig.write(SPI_TDR, 0x11);
    rig.write(SPI_TDR, 0x22);
    rig.at(8 * PERIOD).read(SPI_RDR);
    assert_eq!(rig.until(|rig| rig.sr(sr::TDRE)), 8 * PERIOD + gap);
    assert_eq!(rig.done(), 16 * PERIOD + 2 * gap, "TXEMPTY after the delay");
    assert_eq!(rig.both_selections(), [1, 0]);
    rig.now += 1_000_000;
    assert_eq!(rig.selected_ps(), 16 * PERIOD + 2 * gap);
    let used = rig.wire.wire_use(rig.now);
    assert_eq!((used.clock_ps, used.span_ps), (16 * PERIOD, 16 * PERIOD + gap));
    // A word that comes within the delay still belongs to the selection.
    let begun = rig.now;
    rig.read(SPI_RDR);
    rig.write(SPI_TDR, 0x33);
    rig.at(begun + 8 * PERIOD + gap - 1).read(SPI_RDR);
    rig.write(SPI_TDR, 0x44);
    rig.done();
    assert_eq!(rig.both_selections(), [2, 0]);
    assert!(rig.rules().is_empty());
}

#[test]
fn dlybcs_stands_between_selections_and_is_6_at_least() {
    for (dlybcs, inactive) in [(0, 6), (5, 6), (7, 7), (255, 255)] {
        let mut rig = Rig::on(dlybcs << 24, CSR | CSNAAT);
        rig.write(SPI_TDR, 0x11);
        rig.write(SPI_TDR, 0x22);
        rig.at(8 * PERIOD).read(SPI_RDR);
        assert_eq!(rig.done(), 16 * PERIOD + (1 + inactive) * MCK);
        assert_eq!(rig.both_selections(), [2, 0], "CSNAAT: NPCS rises after each word");
        assert!(rig.rules().is_empty());
    }
    // With CSAAT it is ignored.
    let mut rig = Rig::on(0, CSR | CSNAAT | CSAAT);
    rig.write(SPI_TDR, 0x11);
    rig.write(SPI_TDR, 0x22);
    rig.done();
    assert_eq!(rig.both_selections(), [1, 0]);
}

#[test]
fn csaat_keeps_npcs_until_lastxfer() {
    let mut rig = Rig::on(0, CSR | CSAAT);
    rig.write(SPI_TDR, 0x11);
    let end = rig.done();
    rig.at(end + 1_000_000).read(SPI_RDR);
    rig.write(SPI_TDR, 0x22);
    assert_eq!(rig.done(), end + 1_000_000 + 8 * PERIOD);
    assert_eq!((rig.received(0), rig.both_selections()), (vec![0x11, 0x22], [1, 0]));
    // With nothing in the pipe it rises at once.
    rig.now += PERIOD;
    let risen = rig.now;
    rig.write(SPI_CR, LASTXFER);
    rig.now += 1_000_000;
    assert_eq!(rig.selected_ps(), risen);
    // LASTXFER is not kept for the next selection.
    rig.read(SPI_RDR);
    rig.write(SPI_TDR, 0x33);
    rig.done();
    rig.read(SPI_RDR);
    rig.now += 1_000_000;
    rig.write(SPI_TDR, 0x44);
    // After the last word in the pipe, when words are in it.
    rig.now += PERIOD;
    rig.write(SPI_TDR, 0x55);
    rig.write(SPI_CR, LASTXFER);
    rig.now += 8 * PERIOD;
    rig.read(SPI_RDR);
    let end = rig.done();
    rig.now += 1_000_000;
    rig.read(SPI_RDR);
    assert_eq!(rig.both_selections(), [2, 0]);
    rig.write(SPI_TDR, 0x66);
    assert_eq!(rig.done(), end + 1_000_000 + 8 * PERIOD, "NPCS was high long enough");
    assert_eq!(rig.both_selections(), [3, 0]);
    assert_eq!(rig.received(0), [0x11, 0x22, 0x33, 0x44, 0x55, 0x66]);
    assert!(rig.rules().is_empty());
}

#[test]
fn fixed_select_moves_with_the_next_transfer() {
    let mut rig = Rig::on(0, CSR | CSAAT);
    rig.write(SPI_TDR, 0x11);
    rig.done();
    rig.read(SPI_RDR);
    rig.now += 1_000_000;
    rig.write(SPI_MR, 0x000d_0011);
    let selected = rig.selected_ps();
    rig.now += 1_000_000;
    assert_eq!(rig.selected_ps(), selected + 1_000_000, "NPCS0 stays until then");
    let begun = rig.now;
    rig.write(SPI_TDR, 0x22);
    assert_eq!(rig.done(), begun + 6 * MCK + 8 * PERIOD);
    assert_eq!(rig.read(SPI_RDR), 0x000d_0000);
    assert_eq!((rig.received(0), rig.received(1)), (vec![0x11], vec![0x22]));
    assert_eq!(rig.both_selections(), [1, 1]);
    assert!(rig.rules().is_empty());
}

#[test]
fn variable_select_takes_pcs_and_lastxfer_from_spi_tdr() {
    let mut rig = Rig::on(PS, CSR | CSAAT);
    rig.write(0x34, csr(3, 16) | CSAAT);
    let words = [
        (0x000e_0011, 0),
        // PCS = xx01 is NPCS1, whatever the higher bits are.
        (0x0001_2233, 1),
        (0x010d_4455, 1),
        (0x000d_6677, 1),
        (0x010e_0088, 0),
    ];
    for (index, (word, line)) in words.into_iter().enumerate() {
        rig.write(SPI_TDR, word);
        rig.until(|rig| rig.sr(sr::RDRF));
        let levels = [0xe, 0xd][line];
        assert_eq!(rig.read(SPI_RDR) >> 16, levels, "word {index}");
        rig.done();
        rig.now += 1_000_000;
    }
    assert_eq!(rig.received(0), [0x11, 0x88]);
    assert_eq!(rig.received(1), [0x22, 0x33, 0x44, 0x55, 0x66, 0x77]);
    // LASTXFER between 4455 and 6677 ended a selection.
    assert_eq!(rig.both_selections(), [2, 2]);
    let selected = rig.selected_ps();
    rig.now += 1_000_000;
    assert_eq!(rig.selected_ps(), selected, "the selection ended with the last word");
    assert!(rig.rules().is_empty());
    // With PS = 0 SPI_TDR's own bits are ignored.
    rig.write(SPI_MR, MR);
    rig.write(SPI_TDR, 0x010d_0099);
    rig.done();
    assert_eq!(rig.received(0), [0x11, 0x88, 0x99]);
    rig.now += 1_000_000;
    assert!(rig.selected_ps() > selected + 1_000_000, "NPCS0 stays");
}
