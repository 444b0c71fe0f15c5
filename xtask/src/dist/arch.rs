//! The architectures that are shipped.

use crate::ci::Context;
use crate::static_build;
use crate::tool;
use crate::tools;

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Arch {
    Amd64,
    Arm64,
    Armhf,
}

impl Arch {
    pub(crate) const ALL: [Self; 3] = [Self::Arm64, Self::Armhf, Self::Amd64];

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

    /// The architecture of the machine that packs.
    pub(super) fn of_this_machine() -> Option<Self> {
        match std::env::consts::ARCH {
            "x86_64" => Some(Self::Amd64),
            "aarch64" => Some(Self::Arm64),
            _ => None,
        }
    }

    /// What is missing to build for it.
    pub(super) fn lacks(self, cx: &Context) -> Option<String> {
        let target = self.target();
        if !tools::has_target(cx, target) {
            return Some(format!("no standard library for {target} (rustup target add {target})"));
        }
        let linker = "arm-linux-gnueabihf-gcc";
        (self == Self::Armhf && tool::on_path(linker).is_none()).then(|| format!("no {linker}"))
    }
}
