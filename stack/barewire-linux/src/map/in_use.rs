//! A controller on mapped registers after its start: the driver, and the errors of its chip
//! selects.

use std::task::Poll;

use barewire::controller::{Controller, Limits, Plan, Program, Unfinished};
use barewire::spi::{Effective, Error, MessageError, Settings, Transfer};

use crate::gpio::CsFault;

/// A started controller on mapped registers.
#[derive(Debug)]
pub struct MappedBlock<C> {
    controller: C,
    /// The errors of chip selects through the kernel, if they can fail.
    fault: Option<CsFault>,
}

impl<C> MappedBlock<C> {
    pub(super) fn new(controller: C, fault: CsFault, fallible: bool) -> Self {
        let fault = (fallible || fault.is_set()).then_some(fault);
        Self { controller, fault }
    }

    /// Fails a message during which a chip select could not be driven: its chip may not have
    /// received the message, or may still be selected.
    #[inline(always)]
    fn judged(&self, ran: Result<usize, Unfinished>) -> Result<usize, Unfinished> {
        let Some(fault) = &self.fault else { return ran };
        match fault.take() {
            None => ran,
            Some(errno) => ran.and(Err(Unfinished::os(0, errno.raw_os_error()))),
        }
    }
}

impl<C: Controller> Controller for MappedBlock<C> {
    fn limits(&self) -> Limits {
        self.controller.limits()
    }

    fn configure(&self, settings: &Settings) -> Result<(Program, Effective), Error> {
        self.controller.configure(settings)
    }

    fn plan(&self, program: &Program, message: &mut [Transfer<'_>]) -> Result<(), MessageError> {
        self.controller.plan(program, message)
    }

    #[inline(always)]
    fn run(
        &mut self,
        program: &Program,
        message: &mut [Transfer<'_>],
    ) -> Result<usize, Unfinished> {
        let ran = self.controller.run(program, message);
        self.judged(ran)
    }

    #[inline(always)]
    fn run_exchange(
        &mut self,
        program: &Program,
        plan: &Plan,
        tx: &[u8],
        rx: &mut [u8],
    ) -> Result<usize, Unfinished> {
        let ran = self.controller.run_exchange(program, plan, tx, rx);
        self.judged(ran)
    }

    fn start(
        &mut self,
        program: &Program,
        message: &mut [Transfer<'_>],
    ) -> Poll<Result<usize, Unfinished>> {
        let ran = self.controller.start(program, message);
        ran.map(|ran| self.judged(ran))
    }

    fn resume(
        &mut self,
        program: &Program,
        message: &mut [Transfer<'_>],
    ) -> Poll<Result<usize, Unfinished>> {
        let ran = self.controller.resume(program, message);
        ran.map(|ran| self.judged(ran))
    }

    fn arm(&mut self) {
        self.controller.arm();
    }

    fn reclaim(&mut self) {
        self.controller.reclaim();
    }
}
