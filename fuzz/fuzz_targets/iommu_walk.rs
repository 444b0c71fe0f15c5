//! A walk through any bytes ends in an address, in a fault, or at an entry that cannot be read. The
//! list of all mappings agrees with it.
#![no_main]

use barewire_iommu::explain::{Kind, Outcome, Walker, What, fields};
use barewire_iommu::{Config, Geometry, Granule, Iova, PhysAddr, Stage};
use libfuzzer_sys::fuzz_target;

/// Entries read for a list, and spans of it that are walked to: more find no more, only later.
const ENTRIES_MAX: u64 = 3_000;
const SPANS_MAX: usize = 16;

fuzz_target!(|bytes: &[u8]| {
    let Some((head, image)) = bytes.split_first_chunk::<16>() else { return };
    let [granule, stage, input_bits, output_bits, folded, root, ..] = *head;
    let config = Config {
        granule: [Granule::Size4K, Granule::Size16K, Granule::Size64K][granule as usize % 3],
        stage: if stage & 1 == 0 { Stage::One } else { Stage::Two },
        input_bits,
        output_bits,
        bbml2: false,
    };
    let Ok(geometry) = Geometry::new(config) else { return };
    let Ok(walker) = Walker::new(geometry, PhysAddr(u64::from(root) << 12)) else { return };
    let words = image.len() as u64 / 8;
    let read = |at: PhysAddr| {
        // Folded, every pointer leads to something; else most lead nowhere.
        let word = if folded & 1 == 0 { at.0 / 8 } else { (at.0 / 8).checked_rem(words)? };
        let begin = usize::try_from(word).ok()?.checked_mul(8)?;
        image.get(begin..begin.checked_add(8)?)?.try_into().ok().map(u64::from_le_bytes)
    };
    let mut iovas = vec![u64::from_le_bytes(*head.last_chunk().expect("16 bytes"))];
    let spans: Vec<_> = walker.spans(read, ENTRIES_MAX).collect();
    for span in &spans {
        assert!(span.size > 0 && span.iova.0 + span.size <= geometry.input_end(), "{span:?}");
    }
    for span in spans.iter().rev().step_by(spans.len() / SPANS_MAX + 1) {
        iovas.extend([span.iova.0, span.iova.0 + span.size - 1]);
    }
    for pair in spans.windows(2) {
        assert!(pair[0].iova.0 + pair[0].size <= pair[1].iova.0, "{pair:?}");
    }
    for iova in iovas {
        let walk = walker.explain(Iova(iova), read);
        assert!(walk.steps().len() <= 4);
        for (step, level) in walk.steps().iter().zip(geometry.start_level()..) {
            assert_eq!(step.level, level);
            assert!(step.index < geometry.entries(level));
            assert_eq!(step.entry.0, step.table.0 + 8 * step.index as u64);
            assert_eq!(read(step.entry), Some(step.descriptor.0));
            let named = fields(step.descriptor, step.kind, config.stage).count();
            assert_eq!(named == 0, matches!(step.kind, Kind::Invalid | Kind::Reserved)
                || (step.kind == Kind::Table && stage & 1 == 1));
        }
        let after = spans.partition_point(|span| span.iova.0 <= iova);
        let over = after.checked_sub(1).and_then(|index| spans.get(index));
        let over = over.filter(|span| iova - span.iova.0 < span.size);
        match (over.map(|span| (span.iova.0, span.what)), walk.outcome) {
            (Some((start, What::Mapped { phys, permits, .. })), Outcome::Mapped(to)) => {
                assert_eq!((phys.0 + (iova - start), permits), (to.phys.0, to.permits));
                assert!(to.phys.0 < geometry.output_end());
            }
            (Some((_, What::Fault { fault, level, .. })), outcome) => {
                assert_eq!(outcome, Outcome::Fault { fault, level });
            }
            (Some((_, What::Unreadable { .. })), Outcome::Unreadable { .. })
            | (Some((_, What::Loop { .. } | What::Stopped)), _)
            | (None, Outcome::Fault { .. }) => {}
            other => panic!("{iova:#x}: {other:?}"),
        }
    }
});
