//! What `guests/priced.c` wrote: operations, each a list of events with what ran before them.

/// What ran, in the order in which the plugin writes it.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Counts {
    pub(super) instructions: u64,
    /// Lines of code that L1 lacked and L2 had, and that L2 lacked too.
    pub(super) code_l2: u64,
    pub(super) code_memory: u64,
    pub(super) load_l2: u64,
    pub(super) load_memory: u64,
    pub(super) store_l2: u64,
    pub(super) store_memory: u64,
    /// Pages that the TLB lacked.
    pub(super) walks: u64,
    pub(super) dmb: u64,
    pub(super) dsb: u64,
    pub(super) isb: u64,
    pub(super) exclusives: u64,
    /// Accesses to the interrupt controller's interface that are system registers.
    pub(super) gic: u64,
}

impl Counts {
    fn parse(text: &str) -> Option<Self> {
        let numbers: Vec<u64> = text.split(' ').map(str::parse).collect::<Result<_, _>>().ok()?;
        let [
            instructions,
            code_l2,
            code_memory,
            load_l2,
            load_memory,
            store_l2,
            store_memory,
            walks,
            dmb,
            dsb,
            isb,
            exclusives,
            gic,
        ] = *numbers
        else {
            return None;
        };
        Some(Self {
            instructions,
            code_l2,
            code_memory,
            load_l2,
            load_memory,
            store_l2,
            store_memory,
            walks,
            dmb,
            dsb,
            isb,
            exclusives,
            gic,
        })
    }

    /// Adds another's.
    pub(super) fn add(&mut self, other: &Self) {
        self.instructions += other.instructions;
        self.code_l2 += other.code_l2;
        self.code_memory += other.code_memory;
        self.load_l2 += other.load_l2;
        self.load_memory += other.load_memory;
        self.store_l2 += other.store_l2;
        self.store_memory += other.store_memory;
        self.walks += other.walks;
        self.dmb += other.dmb;
        self.dsb += other.dsb;
        self.isb += other.isb;
        self.exclusives += other.exclusives;
        self.gic += other.gic;
    }
}

/// What happened.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Event {
    /// Of the register at that physical address.
    Read(u64),
    /// Of the register at that physical address, and the value.
    Write(u64, u32),
    Interrupt,
    /// A system call, or a fault.
    Exception,
    /// The end of an interrupt or another exception.
    Return,
    Switch,
    /// WFI.
    Idle,
    End,
}

/// What one operation did.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Operation {
    /// The path's name.
    pub(super) path: String,
    /// The payload.
    pub(super) bytes: u64,
    /// After idling, with empty caches.
    pub(super) is_cold: bool,
    /// The last one is [`Event::End`].
    pub(super) events: Vec<(Counts, Event)>,
}

impl Operation {
    pub(super) fn counts(&self) -> Counts {
        let mut all = Counts::default();
        self.events.iter().for_each(|(counts, _)| all.add(counts));
        all
    }

    /// How many events are of a kind.
    pub(super) fn count(&self, is: impl Fn(Event) -> bool) -> u64 {
        self.events.iter().filter(|(_, event)| is(*event)).count() as u64
    }
}

/// Reads a trace. What is labelled `-` warmed up, and is left out.
///
/// # Errors
/// A line that is none of a trace, an operation without an end, or none at all.
pub(super) fn parse(text: &str) -> Result<Vec<Operation>, String> {
    let mut all = Vec::new();
    let mut open: Option<Operation> = None;
    let mut ran = Counts::default();
    for line in text.lines() {
        let wrong = || format!("no line of a trace: `{line}`");
        let (kind, rest) = line.split_once(' ').unwrap_or((line, ""));
        if kind == "b" {
            if let Some(operation) = open {
                return Err(format!("`{} {}` has no end", operation.path, operation.bytes));
            }
            open = Some(labelled(rest).ok_or_else(wrong)?);
            ran = Counts::default();
            continue;
        }
        let number = |at: usize| {
            let text = rest.split(' ').nth(at).unwrap_or_default();
            u64::from_str_radix(text, 16).map_err(|_| wrong())
        };
        let event = match kind {
            "x" => {
                ran = Counts::parse(rest).ok_or_else(wrong)?;
                continue;
            }
            "r" => Event::Read(number(0)?),
            "w" => Event::Write(number(0)?, number(1)? as u32),
            "i" => Event::Interrupt,
            "y" => Event::Exception,
            "e" => Event::Return,
            "c" => Event::Switch,
            "z" => Event::Idle,
            "o" => Event::End,
            _ => return Err(wrong()),
        };
        let operation = open.as_mut().ok_or_else(wrong)?;
        operation.events.push((std::mem::take(&mut ran), event));
        if event == Event::End {
            all.extend(open.take().filter(|operation| operation.path != "-"));
        }
    }
    match open {
        Some(operation) => Err(format!("`{} {}` has no end", operation.path, operation.bytes)),
        None if all.is_empty() => Err("no operation was counted".to_owned()),
        None => Ok(all),
    }
}

/// `PATH BYTES warm`, `PATH BYTES cold` or `-`.
fn labelled(text: &str) -> Option<Operation> {
    if text == "-" {
        return Some(Operation { path: text.to_owned(), ..Operation::default() });
    }
    let (path, rest) = text.split_once(' ')?;
    let (bytes, state) = rest.split_once(' ')?;
    let is_cold = match state {
        "warm" => false,
        "cold" => true,
        _ => return None,
    };
    let bytes = bytes.parse().ok().filter(|&bytes| bytes > 0)?;
    Some(Operation { path: path.to_owned(), bytes, is_cold, events: Vec::new() })
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: &str = "x 10 1 2 3 4 5 6 7 8 9 10 11 12";

    #[test]
    fn a_trace_reads_back_as_operations_without_those_that_warm_up() {
        let text = format!(
            "b -\n{ONE}\no\nb sync 4 cold\n{ONE}\nr 3f204000\nw 3f204004 9f\ni\ne\n{ONE}\no\n"
        );
        let read = parse(&text).expect("a trace");
        assert_eq!(read.len(), 1);
        let one = &read[0];
        assert_eq!((&*one.path, one.bytes, one.is_cold), ("sync", 4, true));
        assert_eq!(one.events[0].1, Event::Read(0x3f20_4000));
        // Only what ran before an event is that event's.
        assert_eq!(one.events[1], (Counts::default(), Event::Write(0x3f20_4004, 0x9f)));
        assert_eq!((one.counts().instructions, one.counts().gic), (20, 24));
        assert_eq!(one.count(|event| matches!(event, Event::Interrupt)), 1);
    }

    #[test]
    fn what_is_no_trace_is_refused() {
        for text in ["", "b x 4 warm\n", "q\n", "r 10\n", "b x 4 hot\no\n", "b x 0 warm\no\n"] {
            assert!(parse(text).is_err(), "{text:?}");
        }
        assert!(parse("b x 4 warm\nx 1 2\no\n").is_err());
        assert!(parse("b x 4 warm\nb y 4 warm\no\n").is_err());
    }
}
