//! The commands of pages that a guest, or this machine, follows.
//!
//! A block of commands belongs to the boot that the comment before it names:
//!
//! ````text
//! <!-- follow: imx8mp-evk/doctor -->
//! ```console
//! $ a command
//! a line that it prints
//! ```
//! ````

/// The pages with such blocks.
pub(super) const PAGES: [&str; 2] = ["docs/boards.md", "docs/kernel.md"];

/// The lines of all blocks that belong to `boot`, in order.
pub(super) fn blocks(page: &str, boot: &str) -> String {
    let (mut ours, mut within) = (false, false);
    let mut text = String::new();
    for line in page.lines() {
        if let Some(rest) = line.strip_prefix("<!-- follow: ") {
            ours = rest.trim_end_matches(" -->").split(", ").any(|name| name == boot);
        } else if line.starts_with("```") {
            within = !within;
            ours &= within;
        } else if within && ours {
            text.push_str(line);
            text.push('\n');
        }
    }
    text
}

/// The commands among them.
pub(super) fn commands(blocks: &str) -> String {
    let commands = blocks.lines().filter_map(|line| line.strip_prefix("$ "));
    commands.fold(String::new(), |text, command| text + command + "\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_boot_gets_its_own_blocks() {
        let page = "text\n<!-- follow: a/x, b/x -->\n```console\n$ one\nprinted\n```\n```\nnobody's\n```\n<!-- follow: a/x -->\n```console\n$ two\n```\n";
        assert_eq!(blocks(page, "a/x"), "$ one\nprinted\n$ two\n");
        assert_eq!(blocks(page, "b/x"), "$ one\nprinted\n");
        assert_eq!(blocks(page, "c/x"), "");
        assert_eq!(commands("$ one\nprinted\n$ two\n"), "one\ntwo\n");
    }

    #[test]
    fn the_pages_have_blocks_for_every_boot_that_follows_them() {
        let page = include_str!("../../../docs/boards.md");
        for boot in ["imx8mp-evk/doctor", "imx8mp-evk/overlay", "raspi3b/doctor", "raspi3b/overlay"]
        {
            assert!(!blocks(page, boot).is_empty(), "{boot}");
        }
        let page = include_str!("../../../docs/kernel.md");
        assert!(commands(&blocks(page, "imx8mp-evk/module")).contains("modprobe barewire"));
        let page = include_str!("../../../docs/boards.md");
        for board in ["imx8mp-evk", "raspi3b"] {
            let merge = commands(&blocks(page, &format!("{board}/merge")));
            assert!(merge.contains("dtc "), "{board}: {merge}");
        }
    }
}
