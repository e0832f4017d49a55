//! Windows over a NIC: frames keep coming from other CPUs, faster than they are received, and what the receiver deals with
//! is counted now and then. A burst that ends, as on veth, would price the ring that it fits into.

use std::{
    cell::{Cell, RefCell},
    sync::{Mutex, PoisonError},
    time::{Duration, Instant},
};

use super::checks;
use crate::{
    lab::{
        Lab, LabError, SourceKey,
        load::{Arrived, Probe, Pulse},
    },
    measure::saturation::Evidence,
    program::PortCounter,
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
/// Calls of a window, at least, where even the shortest take longer.
const CALLS_LEAST: u32 = 4;
/// Frames of a call, at least: each call has to set up its pages.
const CALL_LEAST: u32 = 256;
const CALL_MOST: u32 = 16_384;

/// What is counted of a scenario while its frames keep coming.
#[derive(Debug, Clone)]
pub(crate) struct Stream {
    receiver: PortId,
    /// The sinks that end the path: one where each gets every frame.
    sinks: Vec<PortId>,
    /// Frames of one call, and how long a window then is, once they are known.
    call: Cell<Option<(u32, Duration)>>,
    /// What was seen of the receiver in all windows.
    seen: RefCell<Evidence>,
}

/// What was read between two calls.
#[derive(Default)]
struct Readings {
    /// Of the sinks, or where there are none, of the receiver.
    counts: Vec<(Instant, Arrived)>,
    /// Of the receiver, at the end of the ramp and last.
    pulses: Option<(Pulse, Pulse)>,
    failed: Option<LabError>,
}

impl Readings {
    fn read(&mut self, probe: &Probe, sinks: &[PortCounter]) -> Result<(), LabError> {
        // The moment first: what is counted until the count is read belongs to the next stretch of time.
        let at = Instant::now();
        let started = self.counts.first().map_or(at, |(at, _)| *at);
        let pulse = if at.duration_since(started) >= RAMP { Some(probe.read()?) } else { None };
        let count = match &pulse {
            _ if !sinks.is_empty() => {
                let ours = sinks.iter().map(PortCounter::ours).sum::<Result<u64, _>>()?;
                Arrived { polled: ours, device: ours }
            }
            Some(pulse) => pulse.arrived(),
            None => probe.frames()?,
        };
        self.counts.push((at, count));
        if let Some(now) = pulse {
            let first = self.pulses.take().map_or_else(|| now.clone(), |(first, _)| first);
            self.pulses = Some((first, now));
        }
        Ok(())
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
        Self { receiver: topology.peer(from).unwrap_or(from), sinks, call: Cell::new(None), seen: RefCell::default() }
    }

    /// What was seen of the receiver in all windows until now.
    pub(crate) fn seen(&self) -> Evidence {
        self.seen.borrow().clone()
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
        let Some(probe) = lab.probe(self.receiver)? else { return Ok(None) };
        let sinks = self.sinks.iter().map(|port| lab.port_counter(*port)).collect::<Result<Option<Vec<_>>, _>>()?;
        let Some(sinks) = sinks else { return Ok(None) };
        let (call, length) = if let Some(of_a_call) = self.call.get() {
            of_a_call
        } else {
            let of_a_call = Self::frames_of_a_call(lab, key, batch, stop)?;
            self.call.set(Some(of_a_call));
            of_a_call
        };
        lab.start_sources(key)?;
        let readings: Mutex<Readings> = Mutex::default();
        let look = |_| {
            let mut readings = readings.lock().unwrap_or_else(PoisonError::into_inner);
            if let Err(error) = readings.read(&probe, &sinks) {
                readings.failed = Some(error);
            }
        };
        let run = Live { chunk: call, progress: &look, ..Live::new(key, Amount::Duration(length), batch, stop) };
        live::send(lab, &run)?;
        let Readings { counts, pulses, failed } = readings.into_inner().unwrap_or_else(PoisonError::into_inner);
        if let Some(error) = failed {
            return Err(error);
        }
        if let Some((first, last)) = pulses {
            let seen = self.seen.borrow().plus(&last.since(&first));
            self.seen.replace(seen);
        }
        Ok(per_frame(&counts))
    }

    /// As many frames as take a millisecond to send, and as long a window as has some calls behind its ramp.
    fn frames_of_a_call(lab: &mut Lab, key: &SourceKey, batch: u32, stop: &Stop) -> Result<(u32, Duration), LabError> {
        lab.start_sources(key)?;
        let started = Instant::now();
        let frames = u64::from(CALL_LEAST) * u64::from(key.senders);
        let run = Live { chunk: CALL_LEAST, ..Live::new(key, Amount::Frames(frames), batch, stop) };
        live::send(lab, &run)?;
        let least = started.elapsed();
        let calls = CALL.as_secs_f64() / least.as_secs_f64().max(1e-9);
        let frames = ((f64::from(CALL_LEAST) * calls) as u32).clamp(CALL_LEAST, CALL_MOST);
        Ok((frames, WINDOW.max(RAMP + least * CALLS_LEAST)))
    }
}

/// Nanoseconds a frame between the first reading behind the ramp and the last one.
fn per_frame(readings: &[(Instant, Arrived)]) -> Option<f64> {
    let (start, _) = readings.first()?;
    let (from, first) = readings.iter().find(|(at, _)| at.duration_since(*start) >= RAMP)?;
    let (to, last) = readings.last()?;
    let frames = Some(last.since(*first)).filter(|frames| *frames > 0)?;
    Some(to.duration_since(*from).as_nanos() as f64 / frames as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ramp_is_left_out() {
        let start = Instant::now();
        let at = |ms: u64, frames: u64| (start + Duration::from_millis(ms), Arrived { polled: frames, device: 0 });
        // Slow at first, then a frame in 100 ns.
        assert_eq!(per_frame(&[at(0, 0), at(4, 10), at(6, 100), at(16, 100_100), at(20, 140_100)]), Some(100.0));
        assert_eq!(per_frame(&[at(0, 0), at(6, 100), at(20, 100)]), None);
        assert_eq!(per_frame(&[at(0, 0), at(4, 10)]), None);
        assert_eq!(per_frame(&[]), None);
    }
}
