//! Decides, under the lock between processes, whether a message may be clocked here.

use barewire::controller::{Controller, Preset, Unfinished};
use barewire::middleware::Layer;
use barewire::spi::Transfer;
use barewire_linux::SharedWords;
use barewire_linux::shared::{Claim, Lifeline};
use barewire_spidev_abi::direct::Page;
use core::ptr;
use core::sync::atomic::{AtomicPtr, AtomicU32, Ordering};

/// The error of a message that the gate refuses. No controller returns this one.
const SHUT: i32 = libc::ESTALE;

/// A node's page and its chip.
#[derive(Debug)]
pub(super) struct Gate {
    page: Page<'static>,
    /// The word of the server's lifeline.
    life: &'static AtomicU32,
    claim: Claim,
}

impl Gate {
    /// The gate of a page in `words`; `None` if `words` hold no page, or its server has gone.
    pub(super) fn new(words: SharedWords, claim: Claim) -> Option<Self> {
        // A gate is never freed, nor are its words.
        let words: &'static SharedWords = Box::leak(Box::new(words));
        let page = Page::new(words.words()).filter(|page| page.is_made())?;
        let gate = Self { life: words.words().get(page.life())?, page, claim };
        gate.is_open().then_some(gate)
    }

    /// The page.
    #[inline]
    pub(super) fn page(&self) -> Page<'static> {
        self.page
    }

    /// Whether a message may run now.
    #[inline]
    pub(super) fn is_open(&self) -> bool {
        self.page.is_open() && Lifeline::is_alive(self.life) && !self.claim.is_set()
    }
}

/// A controller behind the gate of the node whose message it is.
pub(super) struct GatedController<C> {
    gate: &'static AtomicPtr<Gate>,
    inner: C,
}

impl<C> GatedController<C> {
    pub(super) fn new(gate: &'static AtomicPtr<Gate>, inner: C) -> Self {
        Self { gate, inner }
    }

    #[inline(always)]
    fn pass(&mut self) -> Result<&mut C, Unfinished> {
        // SAFETY: null, or a gate that is never freed.
        match unsafe { self.gate.load(Ordering::Relaxed).as_ref() } {
            Some(gate) if gate.is_open() => Ok(&mut self.inner),
            _ => Err(Unfinished::os(0, SHUT)),
        }
    }
}

/// A place for a gate, shut.
pub(super) const fn shut() -> AtomicPtr<Gate> {
    AtomicPtr::new(ptr::null_mut())
}

/// Messages are run whole: none waits for the controller's interrupt.
impl<C: Controller> Layer for GatedController<C> {
    barewire::wrapped_controller!(inner: C);

    #[inline(always)]
    fn run_layer(
        &mut self,
        preset: &Preset,
        message: &mut [Transfer<'_>],
    ) -> Result<usize, Unfinished> {
        self.pass()?.run(preset, message)
    }

    #[inline(always)]
    fn run_exchange_layer(
        &mut self,
        preset: &Preset,
        tx: &[u8],
        rx: &mut [u8],
    ) -> Result<usize, Unfinished> {
        self.pass()?.run_exchange(preset, tx, rx)
    }
}
