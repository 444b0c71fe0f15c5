//! Messages for asyncio: queued by a coroutine, run in order by a thread of the bus.
//!
//! # How it works
//! A future of the running event loop stands for each message. The thread runs the messages in the order in which
//! they were queued and tells the loop. Cancelling the future removes a message that has not begun; one on the
//! wire ends, and its result is dropped.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

use barewire::spi::MessageError;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;

use super::inner::Inner;
use super::message::Message;
use crate::buffer;
use crate::error::{self, Class};

const QUEUED: u8 = 0;
const BEGUN: u8 = 1;
const CANCELLED: u8 = 2;

/// A queued message.
struct Job {
    inner: Arc<Inner>,
    message: Message,
    stage: Arc<AtomicU8>,
    event_loop: Py<PyAny>,
    future: Py<PyAny>,
}

impl Job {
    fn run(mut self) {
        let begun = self.stage.compare_exchange(QUEUED, BEGUN, Ordering::AcqRel, Ordering::Acquire);
        let inner = Arc::clone(&self.inner);
        let ran = begun.is_ok().then(|| {
            self.message.lend(|message| inner.shared.sync(&inner.device, message)).map(drop)
        });
        inner.shared.end_busy();
        // `None` while the interpreter shuts down, when no task awaits any more.
        Python::try_attach(|py| self.tell(py, ran));
    }

    /// Tells the loop how it ended.
    fn tell(&self, py: Python<'_>, ran: Option<Result<(), MessageError>>) {
        let Some(ran) = ran else { return };
        let settled = match ran {
            Ok(()) => self.message.received(py).map(|received| (true, received.unbind())),
            Err(error) => {
                let error = error::of_message(py, &self.inner.shared.any, error);
                Ok((false, error.into_value(py).into_any()))
            }
        };
        let told = settled.and_then(|(success, value)| {
            let settle = settle(py)?;
            let call = (settle, &self.future, success, value);
            self.event_loop.bind(py).call_method1("call_soon_threadsafe", call)
        });
        // The event loop was closed, so no task awaits the result.
        drop(told);
    }
}

/// Sets a future's result or exception, in its loop's thread.
#[pyfunction]
#[pyo3(name = "_settle")]
pub(crate) fn settle_future(
    future: &Bound<'_, PyAny>,
    success: bool,
    value: Bound<'_, PyAny>,
) -> PyResult<()> {
    if !future.call_method0("done")?.is_truthy()? {
        let method = if success { "set_result" } else { "set_exception" };
        future.call_method1(method, (value,))?;
    }
    Ok(())
}

fn settle(py: Python<'_>) -> PyResult<Bound<'_, PyAny>> {
    static SETTLE: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    let import = || Ok::<_, PyErr>(py.import("barewire._barewire")?.getattr("_settle")?.unbind());
    Ok(SETTLE.get_or_try_init(py, import)?.bind(py).clone())
}

/// Takes a message out of the queue when its future is cancelled.
#[pyclass(frozen)]
struct Cancel(Arc<AtomicU8>);

#[pymethods]
impl Cancel {
    fn __call__(&self, future: &Bound<'_, PyAny>) -> PyResult<()> {
        if future.call_method0("cancelled")?.is_truthy()? {
            let _ = self.0.compare_exchange(QUEUED, CANCELLED, Ordering::AcqRel, Ordering::Acquire);
        }
        Ok(())
    }
}

/// A device for asyncio, from `Device.aio`: its methods return futures.
#[pyclass(frozen, module = "barewire")]
pub(crate) struct AioDevice {
    inner: Arc<Inner>,
}

impl AioDevice {
    pub(super) fn new(inner: Arc<Inner>) -> Self {
        Self { inner }
    }

    fn queue<'py>(&self, py: Python<'py>, message: Message) -> PyResult<Bound<'py, PyAny>> {
        let shared = &self.inner.shared;
        shared.check_process(py)?;
        if shared.turnstile.is_mine() {
            let text = "this thread has the bus's lock: a queued message would wait for it";
            return Err(error::exception(py, Class::Deadlock, libc::EDEADLK, text.into()));
        }
        let event_loop = py.import("asyncio")?.call_method0("get_running_loop")?;
        let future = event_loop.call_method0("create_future")?;
        let stage = Arc::new(AtomicU8::new(QUEUED));
        let cancel = Py::new(py, Cancel(Arc::clone(&stage)))?;
        future.call_method1("add_done_callback", (cancel,))?;
        let job = Job {
            inner: Arc::clone(&self.inner),
            message,
            stage,
            event_loop: event_loop.unbind(),
            future: future.clone().unbind(),
        };
        shared.begin_busy(py);
        shared.queue.push(Box::new(|| job.run())).inspect_err(|_| shared.end_busy())?;
        Ok(future)
    }
}

#[pymethods]
impl AioDevice {
    fn __repr__(&self) -> String {
        let chip_select = self.inner.settings().chip_select;
        format!("<barewire.AioDevice {} chip_select={chip_select}>", self.inner.shared.any.name())
    }

    /// Queues a message, as `Device.transfer` takes it; the future's result is what was received.
    #[pyo3(signature = (message, /))]
    pub(super) fn transfer<'py>(
        &self,
        py: Python<'py>,
        message: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let message = Message::new(message, self.inner.settings().bits_per_word)?;
        self.queue(py, message)
    }

    /// Queues a message that sends bytes; the future's result is `None`.
    #[pyo3(signature = (tx, /))]
    fn write<'py>(&self, py: Python<'py>, tx: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        let tx = buffer::to_send(tx, self.inner.settings().bits_per_word)?;
        self.queue(py, Message::write(tx))
    }

    /// Queues a message that receives `length` bytes; the future's result is these.
    #[pyo3(signature = (length, /))]
    fn read<'py>(&self, py: Python<'py>, length: usize) -> PyResult<Bound<'py, PyAny>> {
        self.queue(py, Message::read(length)?)
    }
}
