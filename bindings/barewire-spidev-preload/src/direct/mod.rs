//! Messages on a mapped controller in the program itself, without the server and without a system call.
//!
//! Read first: [`barewire_spidev_abi::direct`], what the server promises; `barewire_linux::shared`, the lock
//! between processes.
//!
//! # How it works
//! The first message on a descriptor asks the server which node the descriptor is. By the time the server
//! answers, every earlier close has taken effect. If the node's bus may be used by several processes, this
//! process maps it, as one more of its users ([`bus`]). From then on a plain message is copied from the
//! program's memory ([`crate::good`]), clocked under the lock between processes, and copied back.
//!
//! A message that is not plain, or not certain to be so, goes to the server instead, before anything is
//! clocked; `None` means that. So the program never gets an error from this path first.
//!
//! # Signals
//! A signal handler must not leave a message half done (by a `longjmp`), or start another message in the
//! middle of one. So signals are blocked in a program that has a handler ([`crate::handlers`]), which costs two
//! system calls. A program without one can only be killed; the next user of the lock then finds that its owner
//! has died.
//!
//! # Threads, processes
//! A thread that finds another one in a message asks the server, and waits there. A child begins anew, however it was
//! made: it forgets its parent's buses, which stay mapped. One that shares its parent's memory is served.
//!
//! The kernel is not asked which file a descriptor is: the table of [`files`] is right as long as every close and copy
//! goes through the library. If one goes around it, the server sees the end of the file, and says so on the node's page
//! ([`barewire_spidev_abi::direct`]). Then all descriptors are looked up anew.
//!
//! # Not supported
//! Asynchronous cancellation of a thread in a message: the thread ends as if it were killed.

mod bus;
mod gate;
mod node;

use core::ffi::c_int;
use core::sync::atomic::{AtomicPtr, AtomicU8, AtomicU32, Ordering};

use barewire_linux::{is_memory_borrowed, process_number};
use barewire_spidev_abi::protocol::OpenId;
use rustix::io::Errno;

use crate::{files, good, handlers, server};
pub(crate) use bus::wait_for_messages;
use node::Node;

/// Nodes that a process uses this way; more are served.
const NODES: usize = 8;
/// A descriptor of which nothing is known yet, and one that is served.
const UNKNOWN: u8 = files::UNKNOWN;
const SERVED: u8 = u8::MAX;

/// The names of the nodes, each as its number plus 1; 0 for none.
static NAMES: [AtomicU32; NODES] = [const { AtomicU32::new(0) }; NODES];
/// The nodes that were opened.
static OPEN: [AtomicPtr<Node>; NODES] = [const { AtomicPtr::new(core::ptr::null_mut()) }; NODES];

/// The process that opened them, by its number.
static OWNER: AtomicU32 = AtomicU32::new(0);

/// Whether the caller may use what was opened: it is no child, which has its own to open, and no child that shares the
/// memory and has changed its descriptors.
#[inline(always)]
fn is_owner() -> bool {
    OWNER.load(Ordering::Relaxed) == process_number() && !files::may_differ()
}

/// Forgets all that belongs to the process's parent, if it is a child; false for a child that shares the memory.
#[cold]
fn own() -> bool {
    if is_memory_borrowed() {
        return false;
    }
    let (before, now) = (OWNER.load(Ordering::Relaxed), process_number());
    // One thread forgets.
    let first =
        || OWNER.compare_exchange(before, now, Ordering::Relaxed, Ordering::Relaxed).is_ok();
    if before != now && first() {
        OPEN.iter().for_each(|place| place.store(core::ptr::null_mut(), Ordering::Relaxed));
        bus::begin_anew();
        good::forget_all();
    }
    true
}

/// The node behind a descriptor, if the caller has it open here already.
#[inline(always)]
fn known(fd: c_int) -> Option<&'static Node> {
    let index = files::direct(fd)?.load(Ordering::Relaxed);
    let node = OPEN.get(usize::from(index.wrapping_sub(1)))?.load(Ordering::Acquire);
    // SAFETY: null, or what is never freed.
    unsafe { node.as_ref() }.filter(|_| is_owner())
}

/// Runs a message of one transfer, which lies at `argument`, on a node that is open here already; `None` for
/// another message, or if the server must.
#[inline(never)]
pub(crate) fn exchange(fd: c_int, argument: u64) -> Option<Result<c_int, Errno>> {
    known(fd)?.exchange(argument)
}

/// Runs a message of that many transfers on a node that is open here already, as [`exchange`] does.
pub(crate) fn known_message(
    fd: c_int,
    transfers: usize,
    argument: u64,
) -> Option<Result<c_int, Errno>> {
    known(fd)?.message(transfers, argument)
}

/// Runs a message of that many transfers, which lie at `argument`; `None` if the server must.
pub(crate) fn message(
    fd: c_int,
    id: OpenId,
    transfers: usize,
    argument: u64,
) -> Option<Result<c_int, Errno>> {
    let place = files::direct(fd)?;
    // First, since whose memory it is may take a system call.
    if place.load(Ordering::Relaxed) == SERVED || (!is_owner() && !own()) {
        return None;
    }
    let index = match place.load(Ordering::Relaxed) {
        SERVED => return None,
        UNKNOWN => look(place, id)?,
        index => index,
    };
    let index = usize::from(index - 1);
    let node = OPEN.get(index)?.load(Ordering::Acquire);
    // SAFETY: null, or what is never freed.
    let node = match unsafe { node.as_ref() } {
        Some(node) => node,
        None => match open(index) {
            Opening::Open(node) => node,
            Opening::Later => return None,
            Opening::Never => {
                place.store(SERVED, Ordering::Relaxed);
                return None;
            }
        },
    };
    node.message(transfers, argument)
}

/// Asks the server which node it is, and notes that.
#[cold]
fn look(place: &AtomicU8, id: OpenId) -> Option<u8> {
    let number = server::node_of(id).ok()?.number() + 1;
    for (index, name) in (1_u8..).zip(&NAMES) {
        let taken = name.compare_exchange(0, number, Ordering::AcqRel, Ordering::Acquire);
        if taken.is_ok() || taken == Err(number) {
            place.store(index, Ordering::Relaxed);
            return Some(index);
        }
    }
    place.store(SERVED, Ordering::Relaxed);
    None
}

enum Opening {
    Open(&'static Node),
    /// Not now.
    Later,
    Never,
}

#[cold]
fn open(index: usize) -> Opening {
    let (Some(place), Some(name)) = (OPEN.get(index), NAMES.get(index)) else {
        return Opening::Never;
    };
    // A handler of a signal must not call the functions of the C library's that opening needs.
    if handlers::may_be_in_one() {
        return Opening::Later;
    }
    let Some(opening) = bus::Opening::begin() else { return Opening::Later };
    // Another thread may have opened it meanwhile.
    let there = place.load(Ordering::Acquire);
    // SAFETY: what was stored there is never freed.
    if let Some(node) = unsafe { there.as_ref() } {
        return Opening::Open(node);
    }
    let number = name.load(Ordering::Acquire) - 1;
    let opened = barewire_spidev_abi::NodeName::from_number(number)
        .and_then(|name| Node::open(name, &opening));
    match opened {
        Some(node) => {
            let node: &'static Node = Box::leak(Box::new(node));
            place.store(core::ptr::from_ref(node).cast_mut(), Ordering::Release);
            Opening::Open(node)
        }
        None => Opening::Never,
    }
}
