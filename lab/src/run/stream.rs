//! Windows over a NIC: frames keep coming from other CPUs, faster than they are received, and what the receiver deals with
//! is counted now and then. A burst that ends, as on veth, would price the ring that it fits into.

use std::{
    cell::Cell,
    sync::{Mutex, PoisonError},
    time::{Duration, Instant},
};

use xdplab_wire::records::event;

use super::checks;
use crate::{
    lab::{Lab, LabError, SourceKey},
    program::{PortCounter, ProgramError, WatchCounter},
    topology::{Amount, Builtin, PortId, ProgramBody, Scenario, Topology},
    traffic::{
        Stop,
        live::{self, Live},
    },
};

/// Length of a window, and the part at its start that is left out: rings fill, and the receiver starts to poll.
const WINDOW: Duration = Duration::from_millis(20);
const RAMP: Duration = Duration::from_millis(5);
/// Length of one call of a sender that is aimed at: counters are read between two of them.
const CALL: Duration = Duration::from_millis(1);
/// Frames of a call, at least: each call has to set up its pages.
const CALL_LEAST: u32 = 256;
const CALL_MOST: u32 = 16_384;

/// What is counted of a scenario while its frames keep coming.
#[derive(Debug, Clone)]
pub(crate) struct Stream {
    receiver: PortId,
    /// The sinks that end the path: one where each gets every frame.
    sinks: Vec<PortId>,
    /// Frames of one call, once they are known.
    call: Cell<Option<u32>>,
}

/// Where the count is read.
enum Tally {
    Sinks(Vec<PortCounter>),
    Polls(WatchCounter),
}

impl Tally {
    fn read(&self) -> Result<u64, ProgramError> {
        match self {
            Self::Sinks(sinks) => sinks.iter().map(PortCounter::ours).sum(),
            Self::Polls(polls) => polls.read(),
        }
    }
}

impl Stream {
    /// What a scenario's frames come to: its sinks, or where not all ends have one, the polls of the port that receives.
    pub(crate) fn of(topology: &Topology, scenario: &Scenario) -> Self {
        let body = |port: PortId| topology.program_at(port).map(|(id, _)| topology.body_in(scenario, id));
        let is_sink = |port: &PortId| body(*port).and_then(ProgramBody::builtin) == Some(Builtin::Sink);
        let bodies = (0..topology.ports.len()).filter_map(|port| body(PortId(port)));
        let each = checks::each_gets_all(&scenario.expect, bodies);
        let ends = &scenario.expect.deliver;
        let sinks = if ends.iter().all(is_sink) && scenario.expect.drop.is_empty() {
            ends.iter().copied().take(if each { 1 } else { ends.len() }).collect()
        } else {
            Vec::new()
        };
        let from = scenario.traffic.from;
        Self { receiver: topology.peer(from).unwrap_or(from), sinks, call: Cell::new(None) }
    }

    fn tally(&self, lab: &Lab) -> Result<Option<Tally>, LabError> {
        if self.sinks.is_empty() {
            return Ok(lab.poll_counter(self.receiver, event::POLL_FRAMES)?.map(Tally::Polls));
        }
        let sinks = self.sinks.iter().map(|port| lab.port_counter(*port)).collect::<Result<Option<Vec<_>>, _>>()?;
        Ok(sinks.map(Tally::Sinks))
    }

    /// One window: nanoseconds between two frames that were dealt with; `None` where none were.
    ///
    /// # Errors
    /// Where frames can't be sent, or the counts not be read.
    pub(crate) fn measure(
        &self,
        lab: &mut Lab,
        key: &SourceKey,
        batch: u32,
        stop: &Stop,
    ) -> Result<Option<f64>, LabError> {
        let Some(tally) = self.tally(lab)? else { return Ok(None) };
        let call = match self.call.get() {
            Some(call) => call,
            None => {
                let call = Self::frames_of_a_call(lab, key, batch, stop)?;
                self.call.set(Some(call));
                call
            }
        };
        lab.start_sources(key)?;
        let readings: Mutex<Vec<(Instant, Result<u64, ProgramError>)>> = Mutex::default();
        let look = |_| {
            // The moment first: what is counted until the count is read belongs to the next stretch of time.
            let reading = (Instant::now(), tally.read());
            readings.lock().unwrap_or_else(PoisonError::into_inner).push(reading);
        };
        let run = Live { chunk: call, progress: &look, ..Live::new(key, Amount::Duration(WINDOW), batch, stop) };
        live::send(lab, &run)?;
        let readings = readings.into_inner().unwrap_or_else(PoisonError::into_inner);
        let readings =
            readings.into_iter().map(|(at, count)| Ok((at, count?))).collect::<Result<Vec<_>, LabError>>()?;
        Ok(per_frame(&readings))
    }

    /// As many frames as take a millisecond to send.
    fn frames_of_a_call(lab: &mut Lab, key: &SourceKey, batch: u32, stop: &Stop) -> Result<u32, LabError> {
        lab.start_sources(key)?;
        let started = Instant::now();
        let frames = u64::from(CALL_LEAST) * u64::from(key.senders);
        let run = Live { chunk: CALL_LEAST, ..Live::new(key, Amount::Frames(frames), batch, stop) };
        live::send(lab, &run)?;
        let calls = CALL.as_secs_f64() / started.elapsed().as_secs_f64().max(1e-9);
        Ok(((f64::from(CALL_LEAST) * calls) as u32).clamp(CALL_LEAST, CALL_MOST))
    }
}

/// Nanoseconds a frame between the first reading behind the ramp and the last one.
fn per_frame(readings: &[(Instant, u64)]) -> Option<f64> {
    let (start, _) = readings.first()?;
    let (from, first) = readings.iter().find(|(at, _)| at.duration_since(*start) >= RAMP)?;
    let (to, last) = readings.last()?;
    let frames = last.checked_sub(*first).filter(|frames| *frames > 0)?;
    Some(to.duration_since(*from).as_nanos() as f64 / frames as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ramp_is_left_out() {
        let start = Instant::now();
        let at = |ms: u64, frames: u64| (start + Duration::from_millis(ms), frames);
        // Slow at first, then a frame in 100 ns.
        assert_eq!(per_frame(&[at(0, 0), at(4, 10), at(6, 100), at(16, 100_100), at(20, 140_100)]), Some(100.0));
        assert_eq!(per_frame(&[at(0, 0), at(6, 100), at(20, 100)]), None);
        assert_eq!(per_frame(&[at(0, 0), at(4, 10)]), None);
        assert_eq!(per_frame(&[]), None);
    }
}
