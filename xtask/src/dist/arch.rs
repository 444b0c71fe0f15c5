//! The architectures that are shipped.

use crate::needs::Need;
use crate::static_build;

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Arch {
    Amd64,
    Arm64,
    Armhf,
}

impl Arch {
    /// Debian's name.
    pub(super) fn debian(self) -> &'static str {
        match self {
            Self::Amd64 => "amd64",
            Self::Arm64 => "arm64",
            Self::Armhf => "armhf",
        }
    }

    /// The compiler's target: static, so that it runs on any Linux of the architecture.
    pub(super) fn target(self) -> &'static str {
        match self {
            Self::Amd64 => static_build::AMD64,
            Self::Arm64 => static_build::ARM64,
            Self::Armhf => static_build::ARMHF,
        }
    }

    /// The target of the library that `barewire run` loads, and its linker.
    pub(super) fn library(self) -> (&'static str, &'static str) {
        let own = Self::of_this_machine() == Some(self);
        let linker = |other| if own { "cc" } else { other };
        match self {
            Self::Amd64 => (static_build::LIBRARY_AMD64, linker("x86_64-linux-gnu-gcc")),
            Self::Arm64 => (static_build::LIBRARY_ARM64, linker("aarch64-linux-gnu-gcc")),
            Self::Armhf => (static_build::LIBRARY_ARMHF, "arm-linux-gnueabihf-gcc"),
        }
    }

    /// The architecture of the machine that packs.
    pub(super) fn of_this_machine() -> Option<Self> {
        match std::env::consts::ARCH {
            "x86_64" => Some(Self::Amd64),
            "aarch64" => Some(Self::Arm64),
            _ => None,
        }
    }

    /// The tools needed to build for it.
    pub(super) fn needs(self) -> [Need; 3] {
        let (library, linker) = self.library();
        let package = match linker {
            "x86_64-linux-gnu-gcc" => "gcc-x86-64-linux-gnu",
            "aarch64-linux-gnu-gcc" => "gcc-aarch64-linux-gnu",
            "arm-linux-gnueabihf-gcc" => "gcc-arm-linux-gnueabihf",
            _ => "gcc",
        };
        [Need::Target(self.target()), Need::Target(library), Need::program(package, linker)]
    }
}
