//! A simulated chip on its bus, for tests.

use barewire::chip::mcp251xfd::Config;
use clap::Parser;
use serde::Serialize;

use super::args::CanArgs;
use super::node::Node;
use crate::shared::session::{self, Figures};

#[derive(Parser)]
struct Only {
    #[command(flatten)]
    can: CanArgs,
}

/// The empty report of a test.
#[derive(Serialize)]
struct Nothing;

impl session::Report for Nothing {
    fn text(&self, _: Option<&Figures>) -> String {
        String::new()
    }
}

/// Runs `with` on a chip that is the only node of a simulated bus.
pub(super) fn on_bus(change: impl FnOnce(Config) -> Config, with: impl FnOnce(&mut Node<'_>)) {
    let words = ["can", "--bus", "sim:imx8mp", "--quiet"];
    let Only { can: args } = Only::try_parse_from(words).expect("options");
    let done = session::run(&args.request().expect("a request"), |session| {
        let (mut node, _) = args.open(session, change(args.config()))?;
        node.start()?;
        with(&mut node);
        node.stop()?;
        Ok(Nothing)
    });
    assert_eq!(done, Ok(()));
}
