//! The ioctls on a chip, and on requested lines.

use rustix::io::Errno;

use super::super::config::{LineConfig, of_config, of_event, of_handle};
use super::super::edges::Now;
use super::super::layout::{self, Fields, FilledStruct};
use super::super::request::GpioRequest;
use super::super::{LINES_MAX, Pins};
use super::{GpioChip, GpioError, Kind};
use crate::protocol::OpenId;

/// How many events are kept for each line, unless the request says how many.
const EVENTS_A_LINE: usize = 16;

impl<P: Pins> GpioChip<P> {
    /// An ioctl of an open file of the chip.
    pub(super) fn chip_ioctl(
        &mut self,
        file: OpenId,
        request: GpioRequest,
        fields: Fields<'_>,
        now: &Now,
    ) -> Result<Vec<u8>, GpioError> {
        let made = OpenId(fields.u32(request.argument().bytes));
        match request {
            GpioRequest::ChipInfo => {
                let lines = u32::try_from(self.lines.len()).unwrap_or(LINES_MAX);
                let info =
                    FilledStruct::new(layout::CHIP_INFO).name(0, self.name.name().as_bytes());
                Ok(info.name(layout::NAME, self.label.as_bytes()).u32(64, lines).0)
            }
            GpioRequest::LineInfo | GpioRequest::Watch => {
                if fields.bytes(240, 16).iter().any(|byte| *byte != 0) {
                    return Err(Errno::INVAL.into());
                }
                let line = self.existing(fields.u32(64))?;
                if request == GpioRequest::Watch {
                    self.watch(file, line, 2)?;
                }
                Ok(self.info(line))
            }
            GpioRequest::LineInfo1 | GpioRequest::Watch1 => {
                let line = self.existing(fields.u32(0))?;
                if request == GpioRequest::Watch1 {
                    self.watch(file, line, 1)?;
                }
                Ok(self.info_1(line))
            }
            GpioRequest::Unwatch => {
                let line = self.existing(fields.u32(0))?;
                let watcher = self.watchers.get_mut(&file);
                let watcher = watcher.filter(|watcher| watcher.lines >> line & 1 != 0);
                watcher.ok_or(Errno::BUSY)?.lines &= !(1 << line);
                Ok(Vec::new())
            }
            GpioRequest::Lines => {
                let count = self.count(fields.u32(560))?;
                if fields.bytes(568, 20).iter().any(|byte| *byte != 0) {
                    return Err(Errno::INVAL.into());
                }
                let configs = of_config(Fields(fields.bytes(288, layout::LINE_CONFIG)), count)?;
                let lines: Vec<_> = (0..count).map(|index| fields.u32(4 * index)).collect();
                let events = match fields.u32(564) as usize {
                    0 => count * EVENTS_A_LINE,
                    asked => asked.min(layout::REQUEST_LINES * EVENTS_A_LINE),
                };
                self.request(made, (Kind::Lines, events), (&lines, &configs), fields.name(256), now)
            }
            GpioRequest::Handle1 => {
                let count = self.count(fields.u32(356))?;
                let flags = of_handle(fields.u32(256))?;
                let lines: Vec<_> = (0..count).map(|index| fields.u32(4 * index)).collect();
                let configs = handle_configs(flags, fields.bytes(260, count));
                self.request(made, (Kind::Handle, 0), (&lines, &configs), fields.name(324), now)
            }
            GpioRequest::Event1 => {
                let line = self.existing(fields.u32(0))?;
                let flags = of_event(fields.u32(4), fields.u32(8))?;
                let config = LineConfig { flags, ..LineConfig::default() };
                let kind = (Kind::Event, EVENTS_A_LINE);
                self.request(made, kind, (&[line], &[config]), fields.name(12), now)
            }
            _ => Err(Errno::INVAL.into()),
        }
    }

    /// Runs an ioctl on a file that has requested lines.
    pub(super) fn lines_ioctl(
        &mut self,
        file: OpenId,
        (kind, request): (Kind, GpioRequest),
        fields: Fields<'_>,
        now: &Now,
    ) -> Result<Vec<u8>, GpioError> {
        let lines: Vec<u32> = match self.requests.get(&file) {
            Some(request) => request.lines.iter().map(|one| one.line).collect(),
            None => return Err(Errno::BADF.into()),
        };
        match (kind, request) {
            (Kind::Lines, GpioRequest::GetValues) => {
                let mask = fields.u64(8) & all(lines.len());
                if mask == 0 {
                    return Err(Errno::INVAL.into());
                }
                let asked = (0..).zip(&lines).filter(|(index, _)| mask >> index & 1 != 0);
                let mut bits = 0;
                for (index, line) in asked {
                    bits |= u64::from(self.value(file, index, *line)) << index;
                }
                Ok(FilledStruct::new(layout::LINE_VALUES).u64(0, bits).u64(8, fields.u64(8)).0)
            }
            (Kind::Lines, GpioRequest::SetValues) => {
                let mask = fields.u64(8) & all(lines.len());
                let asked = (0..).zip(&lines).filter(|(index, _)| mask >> index & 1 != 0);
                let asked: Vec<_> =
                    asked.map(|(index, line)| (*line, fields.u64(0) >> index & 1 != 0)).collect();
                for (line, _) in &asked {
                    self.writable(*line)?;
                }
                if asked.is_empty() {
                    return Err(Errno::INVAL.into());
                }
                self.drive(&asked);
                Ok(Vec::new())
            }
            (Kind::Lines, GpioRequest::SetConfig) => {
                let configs = of_config(fields, lines.len())?;
                self.configure(file, &lines, &configs, now);
                Ok(Vec::new())
            }
            (Kind::Handle | Kind::Event, GpioRequest::GetValues1) => {
                let values = lines.iter().map(|line| u8::from(self.value(file, 0, *line)));
                let values: Vec<_> = values.collect();
                Ok(FilledStruct::new(layout::HANDLE_DATA).bytes(0, &values).0)
            }
            (Kind::Handle, GpioRequest::SetValues1) => {
                // All lines were requested alike, so the kernel looks at the first.
                self.writable(lines[0])?;
                let values = lines.iter().zip(fields.bytes(0, lines.len()));
                let values: Vec<_> = values.map(|(line, value)| (*line, *value != 0)).collect();
                self.drive(&values);
                Ok(Vec::new())
            }
            (Kind::Handle, GpioRequest::SetConfig1) => {
                let flags = of_handle(fields.u32(0))?;
                let configs = handle_configs(flags, fields.bytes(4, lines.len()));
                self.configure(file, &lines, &configs, now);
                Ok(Vec::new())
            }
            _ => Err(Errno::INVAL.into()),
        }
    }
}

/// A bit for each of `lines` lines.
fn all(lines: usize) -> u64 {
    match lines {
        0..64 => (1 << lines) - 1,
        _ => u64::MAX,
    }
}

/// Version 1's lines of a handle: alike but for their values.
fn handle_configs(flags: u64, values: &[u8]) -> Vec<LineConfig> {
    let config = |value: &u8| LineConfig { flags, value: *value != 0, debounce_us: 0 };
    values.iter().map(config).collect()
}
