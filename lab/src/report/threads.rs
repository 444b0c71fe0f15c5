//! The source threads: who wrote what, when, and where.

/// A thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Source {
    /// Its name in ids: `jander-rfc`.
    pub name: &'static str,
    /// Its author.
    pub author: &'static str,
    /// Its title.
    pub title: &'static str,
    /// Where and when.
    pub place: &'static str,
    /// A link, where it has a lasting one.
    pub link: Option<&'static str>,
}

/// All, in the order of `figures.csv`.
pub const SOURCES: [Source; 5] = [
    Source {
        name: "jander-rfc",
        author: "David Jander",
        title: "[RFC] A new SPI API for fast, low-latency regmap peripheral access",
        place: "linux-spi, 12 May 2022",
        link: None,
    },
    Source {
        name: "ellis",
        author: "Scott Ellis",
        title: "Analyzing SPI driver performance on the Raspberry Pi",
        place: "jumpnowtek.com, 15 February 2017",
        link: None,
    },
    Source {
        name: "ranjan",
        author: "Sai Prakash Ranjan",
        title: "[PATCHv3] iommu/arm-smmu: Optimize ->tlb_flush_walk() for qcom implementation",
        place: "linux-arm-kernel, 23 June 2021",
        link: Some(
            "https://lore.kernel.org/r/20210623134201.16140-1-saiprakash.ranjan@codeaurora.org",
        ),
    },
    Source {
        name: "jander-v2",
        author: "David Jander",
        title: "[RFC] [PATCH v2 00/11] Optimize spi_sync path",
        place: "linux-spi, 15 June 2022",
        link: Some("https://lore.kernel.org/r/20220615124634.3302867-1-david@protonic.nl"),
    },
    Source {
        name: "pitchen",
        author: "Cyrille Pitchen",
        title: "SPI: performance regression when using the common message queuing infrastructure",
        place: "linux-arm-kernel, 6 July 2016",
        link: None,
    },
];

/// The thread of a name.
#[must_use]
pub fn source(name: &str) -> Option<&'static Source> {
    SOURCES.iter().find(|source| source.name == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_published_figure_has_a_source_and_they_have_one_order() {
        let mut threads: Vec<String> =
            crate::figure::published().into_iter().map(|figure| figure.thread).collect();
        threads.dedup();
        assert_eq!(threads, SOURCES.map(|source| source.name));
        assert_eq!(source("ellis").map(|source| source.author), Some("Scott Ellis"));
        assert_eq!(source("nobody"), None);
    }
}
