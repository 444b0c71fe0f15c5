//! The boards that are shipped: their files, read when they are first asked for. Also those of users, which may be like them.
//!
//! *Read first*: the SoC's reference manual, memory map; the board's schematic or Linux device
//! tree, for what stands behind each chip select.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, OnceLock, PoisonError};

use super::file::{self, BoardFileError, KnownBoards};
use super::spec::{BoardSpec, ControllerKind};
use crate::near;

/// A board's name and file.
struct Shipped {
    name: &'static str,
    text: &'static str,
    spec: OnceLock<BoardSpec>,
}

macro_rules! shipped {
    ($($name:literal),+ $(,)?) => {
        [$(Shipped {
            name: $name,
            text: include_str!(concat!("../../boards/", $name, ".toml")),
            spec: OnceLock::new(),
        }),+]
    };
}

static SHIPPED: [Shipped; 10] = shipped![
    "beaglebone",
    "highbank",
    "imx6dl",
    "imx8mp",
    "rpi3",
    "rpi5",
    "sabrelite",
    "sama5d36",
    "unleashed",
    "zynq",
];

/// What a file's `like` can name.
pub(super) const KNOWN: KnownBoards =
    KnownBoards { names: || board_names().into(), find: |name| BoardSpec::find(name).ok() };

impl Shipped {
    fn spec(&'static self) -> &'static BoardSpec {
        self.spec.get_or_init(|| {
            let spec = file::parse(self.name, self.text, Path::new(""), KNOWN);
            spec.unwrap_or_else(|error| panic!("boards/{}.toml: {error}", self.name))
        })
    }
}

/// The boards' names, in the order of the alphabet.
#[must_use]
pub fn board_names() -> [&'static str; SHIPPED.len()] {
    SHIPPED.each_ref().map(|shipped| shipped.name)
}

/// All boards, in the order of their names.
pub fn boards() -> impl ExactSizeIterator<Item = &'static BoardSpec> + Clone {
    SHIPPED.iter().map(Shipped::spec)
}

/// The kinds of controller that [`boards`] have and none of the boards called `names` has: for a test
/// that runs on one board of each kind, and is to fail when a kind is added.
#[must_use]
pub fn kinds_without(names: &[&str]) -> Vec<&'static str> {
    let has = |kind: &ControllerKind| {
        boards().any(|board| *board.kind == *kind && names.contains(&board.name))
    };
    boards().map(|board| board.kind).filter(|kind| !has(kind)).map(|kind| kind.name).collect()
}

/// There is no such board.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownBoard {
    /// The name asked for.
    pub name: String,
    /// The board whose name is nearest, if any is near.
    pub near: Option<&'static str>,
}

impl fmt::Display for UnknownBoard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "no simulated board is called {:?}", self.name)?;
        match self.near {
            Some(near) => write!(f, "; did you mean {near:?}?"),
            None => write!(f, "; there are {}", board_names().join(", ")),
        }
    }
}

impl std::error::Error for UnknownBoard {}

/// The boards that were read from files of users: the key is the name, the folder and the text.
static READ: Mutex<Vec<(String, PathBuf, String, &'static BoardSpec)>> = Mutex::new(Vec::new());

impl BoardSpec {
    /// The board that `text` describes, under the name that messages give it. Paths in it begin at `folder`. The board
    /// lives as long as the program; the same arguments give the same one.
    ///
    /// # Errors
    /// [`BoardFileError`] at the first thing that is wrong.
    pub fn from_toml(
        name: &str,
        text: &str,
        folder: &Path,
    ) -> Result<&'static Self, BoardFileError> {
        let mut read = READ.lock().unwrap_or_else(PoisonError::into_inner);
        let known = read.iter().find(|(its_name, its_folder, its_text, _)| {
            its_name == name && its_folder == folder && its_text == text
        });
        if let Some((.., spec)) = known {
            return Ok(spec);
        }
        let spec: &'static Self =
            Box::leak(Box::new(file::parse(name.to_owned().leak(), text, folder, KNOWN)?));
        read.push((name.into(), folder.into(), text.into(), spec));
        Ok(spec)
    }

    /// The shipped board called `name`.
    ///
    /// # Errors
    /// If there is no such board. The message has the most similar name.
    pub fn find(name: &str) -> Result<&'static Self, UnknownBoard> {
        match SHIPPED.iter().find(|shipped| shipped.name == name) {
            Some(shipped) => Ok(shipped.spec()),
            None => {
                let near = near::nearest(name, &board_names());
                Err(UnknownBoard { name: name.into(), near })
            }
        }
    }

    /// Whether it is a shipped board, not a user's own.
    #[must_use]
    pub fn is_shipped(&self) -> bool {
        Self::find(self.name).is_ok_and(|shipped| std::ptr::eq(shipped, self))
    }

    /// The file of the shipped board called `name`; `None` if there is no such board.
    #[must_use]
    pub fn text_of(name: &str) -> Option<&'static str> {
        SHIPPED.iter().find(|shipped| shipped.name == name).map(|shipped| shipped.text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::atmel;
    use crate::wire::Driver;

    #[test]
    fn each_board_has_a_flash_and_no_two_chips_of_a_kind() {
        for board in boards() {
            assert!(board.first_flash().is_some(), "{}", board.name);
            let kinds: Vec<_> = board.chips.iter().map(std::mem::discriminant).collect();
            for (index, kind) in kinds.iter().enumerate() {
                assert!(!kinds[..index].contains(kind), "{}: two of a kind", board.name);
            }
        }
    }

    #[test]
    fn a_kind_that_no_board_has_is_named() {
        assert_eq!(kinds_without(&board_names()), [""; 0]);
        let other: Vec<&str> =
            boards().filter(|board| *board.kind != atmel::KIND).map(|board| board.name).collect();
        assert_eq!(kinds_without(&other), ["Atmel SPI"]);
    }

    #[test]
    fn a_board_is_found_by_its_name_or_its_near_name_told() {
        for board in boards() {
            assert_eq!(BoardSpec::find(board.name).unwrap().name, board.name);
            assert!(board.profile.name == board.name);
            for cs in board.cs {
                if let Driver::Gpio { block, bit } = cs.driver {
                    assert!(usize::from(block) < board.gpio.len() && bit < 32);
                }
            }
        }
        let near = |name| BoardSpec::find(name).unwrap_err().near;
        assert_eq!(near("imx8m"), Some("imx8mp"));
        assert_eq!(near("sabrelight"), Some("sabrelite"));
        assert_eq!(near("zzz"), None);
        assert_eq!(near(""), None);
        let told = BoardSpec::find("zzz").unwrap_err().to_string();
        let start =
            "no simulated board is called \"zzz\"; there are beaglebone, highbank, imx6dl, ";
        assert!(told.starts_with(start), "{told}");
        assert!(boards().all(|board| told.contains(board.name)), "{told}");
    }
}
