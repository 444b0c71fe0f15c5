//! QEMU's log: the commands that the SMMU's model received, and complaints.

/// The trace event that has a command's name.
pub(crate) const EVENTS: &str = "smmuv3_cmdq_opcode";
/// The prefix of a command's name in it.
const NAME: &str = "SMMU_CMD_";
/// Parts of lines that are not complaints about us.
const TOLERATED: [&str; 4] = [
    // Depending on the version, an access that was aborted is logged as a guest error at its
    // translation or at its target. If the SMMU recorded an event, that event already reports it.
    "translation failed for iova",
    "region '(null)', reason: rejected",
    // QEMU 7.2's SMMU has no GBPA.
    "32-bit access at 0x44 (RAZ)",
    "32-bit access to 0x44 (WI)",
];

/// The names of the commands that the model has received, in order, for example `TLBI_NH_VA`.
pub(crate) fn commands(log: &str) -> Vec<String> {
    let lines = log.lines().filter(|line| line.contains(EVENTS));
    let names = lines.filter_map(|line| line.split_once(NAME));
    names.map(|(_, name)| name.trim().to_owned()).collect()
}

/// All other lines, without the tolerated ones.
pub(crate) fn complaints(log: &str) -> Vec<String> {
    let others = log.lines().map(str::trim).filter(|line| !line.is_empty());
    let is_tolerated = |line: &str| TOLERATED.iter().any(|part| line.contains(part));
    let complaints = others.filter(|line| !line.contains(EVENTS) && !is_tolerated(line));
    complaints.map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As QEMU 7.2 and 10.0 write it.
    const LOG: &str = "\
smmuv3_cmdq_opcode <--- SMMU_CMD_CFGI_STE
smmuv3-iommu-memory-region-8-1 translation failed for iova=0x1000 (SMMU_EVT_F_TRANSLATION)
4177@1700000000.1:smmuv3_cmdq_opcode <--- SMMU_CMD_TLBI_NH_VA
Illegal command type: 255

Invalid read at addr 0x1234401004, size 4, region '(null)', reason: rejected
smmu_readl unhandled 32-bit access at 0x44 (RAZ)
smmu_readl unhandled 32-bit access at 0x48 (RAZ)
smmuv3_cmdq_opcode <--- SMMU_CMD_SYNC
";

    #[test]
    fn commands_and_complaints_are_told_apart() {
        assert_eq!(commands(LOG), ["CFGI_STE", "TLBI_NH_VA", "SYNC"]);
        assert_eq!(
            complaints(LOG),
            ["Illegal command type: 255", "smmu_readl unhandled 32-bit access at 0x48 (RAZ)"]
        );
    }
}
