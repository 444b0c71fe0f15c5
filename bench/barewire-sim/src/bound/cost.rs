//! The cost of each task's messages on an idle bus, measured on the simulated board after a message of
//! another device.

use barewire::bus::{Bus, Device};
use barewire::controller::Controller;
use barewire::spi::{Error, MessageError, Settings, Transfer};

use super::{Interruption, Path, Task, Traffic};
use crate::Board;
use crate::bring_up::{AnyController, Charged, any};
use crate::chip::{PS_PER_NS, Ps};

/// A message, or what is done under one lock, on a bus that is idle.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cost {
    /// From call to return, a look at the block's status later than measured.
    pub call_ps: Ps,
    /// The time that SCK ran.
    pub wire_ps: Ps,
    /// Accesses to registers of controller and pins.
    pub register_accesses: u64,
    /// Whether the task waits for the bus itself, where others wait for their message to be run: under a lock, and
    /// where only the controller can plan the message.
    pub is_turn: bool,
}

/// What a task cannot do on this board.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TaskError {
    /// Its device cannot be opened.
    Device(String, Error),
    /// Its message cannot be planned.
    Message(String, MessageError),
}

/// A call of a task: a message, or a lock with its messages.
pub(super) type Call<'c> = &'c mut dyn FnMut() -> Result<(), MessageError>;

/// Prepares a task's job, and gives `with` its calls, in order.
///
/// # Errors
/// A message that cannot be planned.
pub(super) fn with_calls<C: Controller, R>(
    device: &Device<'_, C>,
    task: &Task,
    with: impl FnOnce(&mut [Call<'_>]) -> R,
) -> Result<R, TaskError> {
    let lengths = task.messages.iter();
    let mut bytes: Vec<Vec<Vec<u8>>> =
        lengths.map(|lengths| lengths.iter().map(|&length| vec![0x5a; length]).collect()).collect();
    let messages = bytes.iter_mut();
    let mut messages: Vec<Vec<Transfer<'_>>> = messages
        .map(|message| message.iter_mut().map(|bytes| Transfer::in_place(bytes)).collect())
        .collect();
    if task.path == Path::Lock {
        let mut call = || {
            let mut lock = device.bus().lock();
            messages.iter_mut().try_for_each(|message| lock.sync(device, message).map(drop))
        };
        return Ok(with(&mut [&mut call]));
    }
    let (mut prepared, mut planned) = (Vec::new(), Vec::new());
    if task.path == Path::Prepared {
        for message in &mut messages {
            let message = device.prepare_message(message);
            prepared.push(message.map_err(|error| TaskError::Message(task.name.clone(), error))?);
        }
        planned.extend(prepared.iter_mut().map(|message| || message.run().map(drop)));
        return Ok(with(&mut planned.iter_mut().map(|call| call as Call<'_>).collect::<Vec<_>>()));
    }
    let mut plain: Vec<_> =
        messages.iter_mut().map(|message| || device.sync(message).map(drop)).collect();
    Ok(with(&mut plain.iter_mut().map(|call| call as Call<'_>).collect::<Vec<_>>()))
}

/// A bus of the traffic's platform on `board`.
pub(super) fn bus(traffic: &Traffic, board: &Board) -> Bus<Charged<AnyController>> {
    Bus::with_platform(Charged::new(any(board), board.clone()), traffic.platform())
}

/// The task's device.
pub(super) fn device<'b, C: Controller>(
    bus: &'b Bus<C>,
    task: &Task,
) -> Result<Device<'b, C>, TaskError> {
    let settings = Settings::new(task.chip_select, task.speed_hz);
    let opened =
        bus.device(&settings).map_err(|error| TaskError::Device(task.name.clone(), error))?;
    Ok(opened.with_priority(task.priority))
}

/// What a traffic's calls and interruptions cost.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Costs {
    /// Each call of each task: the dearest, after its own task's messages and after each other's.
    pub calls: Vec<Vec<Cost>>,
    /// Each interruption: how much later a call of its task ends at most, whichever access of the call it comes before.
    /// More than the interruption lasts, because a burst may have run out of words meanwhile.
    pub extensions: Vec<Ps>,
}

/// The number of accesses of a call, evenly spread, before which an interruption is tried.
const PLACES_MAX: u64 = 512;

/// The costs of `traffic`.
///
/// # Errors
/// What the board refuses.
pub fn of(traffic: &Traffic, board: &Board) -> Result<Costs, TaskError> {
    let bus = bus(traffic, board);
    let tasks = &traffic.tasks;
    let devices: Result<Vec<_>, _> = tasks.iter().map(|task| device(&bus, task)).collect();
    let devices = devices?;
    let planner = any(board);
    let profile = board.profile();
    let around_ps = profile.instructions_ps(profile.instructions_per_access.value);
    let look_ps = profile.register_read_ps.value + around_ps;
    let is_asking = |task: &Task| {
        let preset = planner.configure(&Settings::new(task.chip_select, task.speed_hz));
        let longest = task.messages.iter().flatten().max();
        preset.is_ok_and(|(preset, _)| preset.asks || longest > Some(&preset.poll_bytes_max))
    };
    let timed = |task: &Task, call: &mut Call<'_>| {
        board.reset_marks();
        let begun = board.engine().now_ps();
        call().map_err(|error| TaskError::Message(task.name.clone(), error))?;
        let accesses = board.access_counts();
        Ok(Cost {
            // Elsewhere the call may meet the wire at another phase, and see its end one look later.
            call_ps: board.engine().now_ps() - begun + look_ps,
            wire_ps: board.wire_use().clock_ps,
            register_accesses: accesses.iter().map(|block| block.reads + block.writes).sum(),
            is_turn: task.path == Path::Lock || (task.path == Path::Sync && is_asking(task)),
        })
    };
    // Each task's messages, before a call: it may have to set the block up for its own device again.
    let after = |other: usize, task: &Task, call: &mut Call<'_>, stall: Option<(u64, Ps)>| {
        with_calls(&devices[other], &tasks[other], |calls| {
            calls.iter_mut().try_for_each(|before| timed(&tasks[other], before).map(drop))
        })??;
        if let Some((accesses, ps)) = stall {
            board.stall_after(accesses, ps);
        }
        timed(task, call)
    };
    let calls = |(task, own): (&Task, &Device<'_, _>)| {
        with_calls(own, task, |calls| {
            let mut costs = vec![Cost::default(); calls.len()];
            for (call, dearest) in calls.iter_mut().zip(&mut costs) {
                for other in 0..tasks.len() {
                    let cost = after(other, task, call, None)?;
                    if cost.call_ps > dearest.call_ps {
                        *dearest = cost;
                    }
                }
            }
            Ok(costs)
        })?
    };
    let extension = |it: &Interruption| {
        let (task, device) = (&tasks[it.task], &devices[it.task]);
        let costs = board.engine().costs();
        // A switch to it, its call to sleep again, and a switch back.
        let around = 2 * costs.context_switch_ps + costs.futex_call_ps;
        let takes = it.keeps_us * 1_000 * PS_PER_NS + around;
        with_calls(device, task, |calls| {
            let mut longest = takes;
            for call in calls {
                for other in 0..tasks.len() {
                    let alone = after(other, task, call, None)?;
                    let step = alone.register_accesses.div_ceil(PLACES_MAX).max(1) as usize;
                    for before in (0..alone.register_accesses).step_by(step) {
                        let cost = after(other, task, call, Some((before, takes)))?;
                        longest = longest.max(cost.call_ps.saturating_sub(alone.call_ps));
                    }
                }
            }
            Ok(longest)
        })?
    };
    Ok(Costs {
        calls: tasks.iter().zip(&devices).map(calls).collect::<Result<_, _>>()?,
        extensions: traffic.interruptions.iter().map(extension).collect::<Result<_, _>>()?,
    })
}
