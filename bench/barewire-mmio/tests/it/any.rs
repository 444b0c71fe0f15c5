//! Requests of any client to a simulated board: the server answers each, and never panics.
//!
//! The first byte is the board and its chips, the others are messages of 32 bytes. In half of the messages the kind
//! is mapped to a valid one, so that most messages do something.

use barewire_mmio::message::{self, Answer, BYTES, NEVER, Request, VERSION};
use barewire_mmio::{Machine, Server};
use barewire_sim::board::boards;
use barewire_sim::{Board, BoardOptions};

/// The most virtual time that one request may take: a chip's operation, but not hours.
const STEP_NS: u64 = 2_000_000;

/// Sends what the bytes say.
pub(crate) fn drive(data: &[u8]) {
    let Some((first, messages)) = data.split_first() else { return };
    let spec = boards().nth(usize::from(*first) % boards().len()).expect("a board");
    let board = Board::new(spec, BoardOptions::default());
    let kinds = ["flash", "can", "touch", "adc", "jumper"];
    let chip = |cs: usize| format!("{}@{cs}", kinds[(cs + usize::from(*first >> 4)) % kinds.len()]);
    let chips: Vec<_> = (0..2).map(|cs| chip(cs).parse().expect("a chip")).collect();
    let machine = Machine::new(board, &chips).expect("it fits").with_longest_step_ns(STEP_NS);
    let mut server = Server::new(machine);
    let mut now_ns = 0;
    for bytes in messages.as_chunks::<BYTES>().0 {
        let mut words = message::words(bytes);
        if words[0] & 1 << 15 != 0 {
            // A kind from 2 to 8, a whole register among the first, block 0 or 1, near the present.
            let kind = 2 + words[0] % 7;
            words[0] = words[0] & (0xfc << 32 | 1 << 24) | kind | 4 << 16;
            words[2] = now_ns + words[2] % STEP_NS;
        }
        let (answer, last) = server.answer(words);
        let parsed = Answer::parse(answer).expect("the server's answers are messages");
        if let Answer::Done { now_ns: now, due_ns, .. } = parsed {
            assert!(now >= now_ns && (due_ns > now || due_ns == NEVER), "{parsed:?}");
            now_ns = now;
        }
        if last {
            break;
        }
    }
    let hello = Request::Hello { version: VERSION, page: false };
    let (answer, _) = server.answer(hello.emit());
    assert!(matches!(Answer::parse(answer), Ok(Answer::Refused { .. })), "Hello comes once");
}
