//! QEMU's log: what the SMMU's model says it was told, and complaints.

/// The event that has a command's name.
pub(super) const EVENTS: &str = "smmuv3_cmdq_opcode";
/// What stands before a command's name in it.
const NAME: &str = "SMMU_CMD_";
/// A translation that ends in an event is logged as a guest's error, in one version or another. The
/// event says the same.
const TRANSLATION: &str = "translation failed for iova";

/// The names of the commands that the model has taken, in order: `TLBI_NH_VA`, say.
pub(super) fn commands(log: &str) -> Vec<String> {
    let lines = log.lines().filter(|line| line.contains(EVENTS));
    let names = lines.filter_map(|line| line.split_once(NAME));
    names.map(|(_, name)| name.trim().to_owned()).collect()
}

/// All other lines, but those about translations.
pub(super) fn complaints(log: &str) -> Vec<String> {
    let others = log.lines().map(str::trim).filter(|line| !line.is_empty());
    let complaints = others.filter(|line| !line.contains(EVENTS) && !line.contains(TRANSLATION));
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

smmuv3_cmdq_opcode <--- SMMU_CMD_SYNC
";

    #[test]
    fn commands_and_complaints_are_told_apart() {
        assert_eq!(commands(LOG), ["CFGI_STE", "TLBI_NH_VA", "SYNC"]);
        assert_eq!(complaints(LOG), ["Illegal command type: 255"]);
    }
}
