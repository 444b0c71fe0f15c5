//! The nodes: the bus behind each path, and the settings that all openers of a node share.
//!
//! # How it works
//! A mapped node is kept from its first opening on, with its bus: a simulated chip keeps what was written to it.
//! Nodes mapped to the same bus name share one bus. A path that is not mapped is a node of the kernel's;
//! it is kept for as long as it is open.

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use barewire_linux::Root;
use barewire_linux::shared::ChipLock;
use barewire_spidev_abi::{AbiError, BUFSIZ, Chip, Errno, IocTransfer, NodeName, Setting, Setup};
use pyo3::prelude::*;

use super::kernel::KernelNode;
use crate::bus::Bus;
use crate::error;
use crate::shared::SharedBus;

/// A message under py-spidev has at most this many bytes in its largest block.
const BLOCK_MAX: usize = 65_535;
/// How long CS stays inactive inside a message at `cs_change`, which this class never asks for.
const CS_CHANGE_DELAY_NS: u32 = 10_000;

/// The bus that a path is mapped to.
#[derive(Clone)]
struct Map {
    bus: Where,
    full_name: String,
    chip_select: u8,
    speed_hz: u32,
    bufsiz: u32,
    /// The node, once it was opened.
    node: Option<Arc<Node>>,
}

/// The bus of a map.
#[derive(Clone)]
enum Where {
    /// To be opened, or opened for another node.
    Named,
    /// A bus that the program has open.
    Given(Arc<SharedBus>),
}

impl Map {
    /// Whether the two are nodes of one bus.
    fn shares_bus(&self, other: &Self) -> bool {
        match (&self.bus, &other.bus) {
            (Where::Named, Where::Named) => self.full_name == other.full_name,
            (Where::Given(one), Where::Given(other)) => Arc::ptr_eq(one, other),
            _ => false,
        }
    }
}

#[derive(Default)]
struct Registry {
    maps: BTreeMap<String, Map>,
    kernel: BTreeMap<String, Weak<Node>>,
}

static REGISTRY: Mutex<Registry> =
    Mutex::new(Registry { maps: BTreeMap::new(), kernel: BTreeMap::new() });

fn registry() -> MutexGuard<'static, Registry> {
    REGISTRY.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A node that may be open several times.
pub(super) struct Node {
    pub(super) shared: Arc<SharedBus>,
    chip: Mutex<Chip>,
    lock: Mutex<Option<ChipLock>>,
    /// Changes with each setting that is written.
    pub(super) generation: AtomicU32,
    /// Whether a message needs no lock of other processes.
    pub(super) alone: bool,
    pub(super) bufsiz: usize,
    /// Whether the kernel has it, so that a child of this process may open it again.
    pub(super) of_kernel: bool,
}

/// Why a call failed: an error number and, where more is known, a sentence.
pub(super) struct CallRefusal {
    pub(super) errno: i32,
    pub(super) why: Option<String>,
}

impl CallRefusal {
    pub(super) fn errno(errno: i32) -> Self {
        Self { errno, why: None }
    }
}

impl From<io::Error> for CallRefusal {
    fn from(error: io::Error) -> Self {
        Self::errno(error.raw_os_error().unwrap_or(libc::EIO))
    }
}

impl Node {
    fn new(
        py: Python<'_>,
        shared: Arc<SharedBus>,
        setup: Setup,
        of_kernel: bool,
    ) -> PyResult<Self> {
        let lock = shared.any.chip_lock(setup.chip_select);
        let lock = lock.map_err(|error| error::of_open(py, &error))?;
        let made = shared.detached(py, || Chip::new(&**shared.any.bus(), setup))?;
        let chip = made.map_err(|error| error::of_bus(py, &shared.any, error))?;
        Ok(Self {
            chip: Mutex::new(chip),
            alone: lock.is_none(),
            lock: Mutex::new(lock),
            generation: AtomicU32::new(0),
            bufsiz: (setup.bufsiz as usize).min(BLOCK_MAX),
            of_kernel,
            shared,
        })
    }

    pub(super) fn chip(&self) -> MutexGuard<'_, Chip> {
        self.chip.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// An error, with its cause if the bus knows it.
    pub(super) fn failed(&self, failed: AbiError) -> CallRefusal {
        let cause = self.shared.any.cause();
        let why = cause.or_else(|| failed.why.map(|why| why.to_string()));
        CallRefusal { errno: failed.errno.raw_os_error(), why }
    }

    /// The value of a setting.
    pub(super) fn read(&self, setting: Setting) -> u32 {
        self.chip().read(setting)
    }

    /// Writes a setting.
    pub(super) fn write(
        &self,
        py: Python<'_>,
        setting: Setting,
        value: u32,
    ) -> PyResult<Result<(), CallRefusal>> {
        let written = self
            .shared
            .detached(py, || self.chip().write(&**self.shared.any.bus(), setting, value))?;
        self.generation.fetch_add(1, Ordering::Relaxed);
        Ok(written.map_err(|failed| self.failed(failed)))
    }

    /// Runs a message of one transfer; excludes other processes if the bus can have any.
    pub(super) fn run(
        &self,
        py: Python<'_>,
        transfer: IocTransfer,
        tx: &[u8],
        rx: &mut [u8],
    ) -> PyResult<Result<(), CallRefusal>> {
        let ran = self.shared.detached(py, || {
            let mut lock = self.lock.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some(lock) = &mut *lock {
                lock.acquire()?;
            }
            let ran = self.chip().run(&**self.shared.any.bus(), &[transfer], tx, rx);
            if let Some(lock) = &mut *lock {
                lock.release();
            }
            ran.map(drop)
        })?;
        Ok(ran.map_err(|failed| self.failed(failed)))
    }

    pub(super) fn opened(&self) {
        self.chip().open();
    }

    pub(super) fn closed(&self) {
        self.chip().close(&**self.shared.any.bus());
    }
}

impl From<Errno> for CallRefusal {
    fn from(errno: Errno) -> Self {
        Self::errno(errno.raw_os_error())
    }
}

/// A node and a descriptor of its own.
pub(super) type OpenNode = (Arc<Node>, File);

/// Opens the node at `path`: a mapped one, else the kernel's.
pub(super) fn open(py: Python<'_>, path: &Path) -> PyResult<Result<OpenNode, CallRefusal>> {
    match mapped(py, path)? {
        Some(node) => {
            // A number that no other file has; reading and writing it fails.
            let file = OpenOptions::new().read(true).custom_flags(libc::O_PATH).open("/dev/null");
            Ok(file.map(|file| (node, file)).map_err(CallRefusal::from))
        }
        None => of_kernel(py, path),
    }
}

fn mapped(py: Python<'_>, path: &Path) -> PyResult<Option<Arc<Node>>> {
    let found = {
        let registry = registry();
        let key = |path: &Path| {
            path.to_str().filter(|key| registry.maps.contains_key(*key)).map(str::to_owned)
        };
        let key = key(path).or_else(|| key(&path.canonicalize().ok()?));
        key.map(|key| (registry.maps[&key].clone(), key))
    };
    let Some((map, key)) = found else { return Ok(None) };
    if let Some(node) = &map.node {
        return Ok(Some(Arc::clone(node)));
    }
    let shared = match &map.bus {
        Where::Given(shared) => Arc::clone(shared),
        Where::Named => match open_already(&map) {
            Some(shared) => shared,
            None => SharedBus::open(py, &map.full_name)?,
        },
    };
    let setup = Setup {
        chip_select: map.chip_select,
        mode: shared.any.mode(map.chip_select),
        speed_hz: map.speed_hz,
        cs_change_delay_ns: CS_CHANGE_DELAY_NS,
        bufsiz: map.bufsiz,
    };
    let node = Arc::new(Node::new(py, shared, setup, false)?);
    let mut registry = registry();
    // Another thread may have opened it meanwhile.
    Ok(registry.maps.get_mut(&key).map(|map| Arc::clone(map.node.get_or_insert(node))))
}

/// The bus of another node of the same bus name.
fn open_already(wanted: &Map) -> Option<Arc<SharedBus>> {
    let registry = registry();
    let nodes = registry.maps.values().filter(|map| map.shares_bus(wanted));
    let found = nodes.filter_map(|map| map.node.as_ref()).find(|node| !node.shared.any.is_closed());
    found.map(|node| Arc::clone(&node.shared))
}

fn of_kernel(py: Python<'_>, path: &Path) -> PyResult<Result<OpenNode, CallRefusal>> {
    let opened = py.detach(|| {
        let file = OpenOptions::new().read(true).write(true).open(path)?;
        let found = KernelNode::of(&file)?;
        Ok::<_, io::Error>((file, found, path.canonicalize()?))
    });
    let (file, found, path) = match opened {
        Ok(opened) => opened,
        Err(error) => return Ok(Err(error.into())),
    };
    let key = path.to_string_lossy().into_owned();
    let known = registry().kernel.get(&key).and_then(Weak::upgrade);
    if let Some(node) = known.filter(|node| !node.shared.is_forked()) {
        return Ok(Ok((node, file)));
    }
    let shared = SharedBus::open(py, &format!("spidev:{key}"))?;
    let bufsiz = barewire_linux::spidev::bufsiz(&Root::system());
    let setup = Setup {
        chip_select: 0,
        mode: shared.any.mode(0),
        speed_hz: found.max_speed_hz,
        cs_change_delay_ns: CS_CHANGE_DELAY_NS,
        bufsiz: u32::try_from(bufsiz).unwrap_or(BUFSIZ),
    };
    let node = Arc::new(Node::new(py, shared, setup, true)?);
    // Starts with the kernel's settings for this node. Flags that this class does not know stay as
    // they are.
    for (setting, value) in
        [(Setting::Mode, found.mode.into()), (Setting::BitsPerWord, u32::from(found.bits_per_word))]
    {
        if let Err(refused) = node.write(py, setting, value)? {
            return Ok(Err(refused));
        }
    }
    registry().kernel.insert(key, Arc::downgrade(&node));
    Ok(Ok((node, file)))
}

/// Makes `node`, such as `/dev/spidev0.0`, a chip select of a bus, for `SpiDev` in this process. `cs` is the older name of
/// `chip_select`.
#[pyfunction]
#[pyo3(name = "map", signature = (node, bus, *, chip_select=None, speed_hz=1_000_000, bufsiz=4096, cs=None))]
pub(crate) fn map_node(
    node: &str,
    bus: &Bound<'_, PyAny>,
    chip_select: Option<u8>,
    speed_hz: u32,
    bufsiz: u32,
    cs: Option<u8>,
) -> PyResult<()> {
    let py = bus.py();
    let name = NodeName::parse(node).ok_or_else(|| {
        error::argument(format!("{node:?} is no spidev node: those are /dev/spidevB.C"))
    })?;
    if speed_hz == 0 || bufsiz == 0 {
        return Err(error::argument("speed_hz and bufsiz are above 0"));
    }
    let (bus, full_name) = match bus.cast::<Bus>() {
        Ok(bus) => {
            let shared = Arc::clone(&bus.get().shared);
            let full_name = shared.full_name.clone();
            (Where::Given(shared), full_name)
        }
        Err(_) => {
            let full_name: String = bus.extract()?;
            let refused = |text| error::exception(py, error::Class::Name, libc::EINVAL, text);
            barewire_open::name::parse(&full_name).map_err(refused)?;
            (Where::Named, full_name)
        }
    };
    if chip_select.is_some() && cs.is_some() {
        return Err(error::argument("cs= is the older name of chip_select=: give one of them"));
    }
    let chip_select = chip_select.or(cs).unwrap_or(name.chip_select);
    let path = name.path();
    let map = Map { bus, full_name, chip_select, speed_hz, bufsiz, node: None };
    let mut registry = registry();
    let same = |(other, of): &(&String, &Map)| {
        **other != path && of.shares_bus(&map) && of.chip_select == chip_select
    };
    if let Some((other, _)) = registry.maps.iter().find(same) {
        return Err(error::argument(format!(
            "chip select {chip_select} of {} is {other} already",
            map.full_name
        )));
    }
    registry.maps.insert(path, map);
    drop(registry);
    // From here on the program must not open the node itself.
    py.import("barewire._guard")?.call_method0("install")?;
    Ok(())
}

/// Takes a map back; its bus is closed with the last user. Without `node`, all maps.
#[pyfunction]
#[pyo3(name = "unmap", signature = (node=None))]
pub(crate) fn unmap_node(py: Python<'_>, node: Option<&str>) {
    let taken: Vec<Map> = {
        let mut registry = registry();
        match node {
            Some(node) => registry.maps.remove(node).into_iter().collect(),
            None => std::mem::take(&mut registry.maps).into_values().collect(),
        }
    };
    // A parent's board is not this process's to close.
    let forked = |map: &Map| map.node.as_ref().is_some_and(|node| node.shared.is_forked());
    for map in taken {
        if forked(&map) {
            std::mem::forget(map);
        } else {
            py.detach(|| drop(map));
        }
    }
}

/// The maps: each node's bus and chip select.
#[pyfunction]
pub(crate) fn maps() -> BTreeMap<String, (String, u8)> {
    let registry = registry();
    let pairs = registry.maps.iter();
    pairs.map(|(path, map)| (path.clone(), (map.full_name.clone(), map.chip_select))).collect()
}
