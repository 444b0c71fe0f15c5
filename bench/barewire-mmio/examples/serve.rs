//! Serves a simulated board to one client: `serve SOCKET TREE BOARD [CHIP…]`.
//!
//! It writes the board's device tree to the file TREE, serves one client, and then says what it counted, a
//! line each; HARM for each rule of the wire that was broken, the first time. With the environment's `BAREWIRE_TRACE=FILE` it
//! writes the first accesses of the controller to that file.
//! `cargo xtask linux-on-sim` runs it; `barewire serve --mmio` is its likeness for users.

use std::error::Error;
use std::fs::{self, File};
use std::io::{BufWriter, Write as _};
use std::os::unix::net::UnixListener;

use barewire_mmio::{Machine, Server, tree as device_tree};
use barewire_sim::{Board, BoardOptions, BoardSpec};

/// How many accesses are written at most. Only a client's first accesses are shown.
const TRACED: usize = 65_536;

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let [Some(socket), Some(tree), Some(board)] = std::array::from_fn(|_| arguments.next()) else {
        return Err("usage: serve SOCKET TREE BOARD [CHIP…]".into());
    };
    let chips = arguments.map(|chip| chip.parse()).collect::<Result<Vec<_>, _>>()?;
    let board = Board::new(BoardSpec::find(&board)?, BoardOptions::default());
    let machine = Machine::new(board, &chips)?;
    let trace = std::env::var_os("BAREWIRE_TRACE");
    if trace.is_some() {
        machine.board().start_accesses(TRACED);
    }
    // Any process that can open the socket may connect.
    fs::write(tree, device_tree::source(&machine)?)?;
    let listener = UnixListener::bind(&socket)?;
    let (client, _) = listener.accept()?;
    fs::remove_file(&socket)?;
    let mut server = Server::new(machine);
    let end = server.serve(&client, || false)?;
    let machine = server.machine();
    if let Some(path) = trace {
        let mut file = BufWriter::new(File::create(path)?);
        let board = machine.board();
        // The controller's: a client's pads are not driven by the registers that its own driver would write.
        for access in board.take_accesses().iter().filter(|access| access.block == 0) {
            writeln!(file, "{}", access.told(board.spec()))?;
        }
        file.flush()?;
    }
    for line in machine.chips().iter().flat_map(|chip| chip.told()) {
        println!("TOLD {line}");
    }
    let (requests, refused) = server.counts();
    println!("REQUESTS {requests} {refused} {end:?}");
    let mut rules = Vec::new();
    for violation in machine.board().violations() {
        if violation.rule.harms() && !rules.contains(&violation.rule) {
            println!("HARM {violation}");
            rules.push(violation.rule);
        }
    }
    Ok(())
}
