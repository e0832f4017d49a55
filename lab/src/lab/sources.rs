//! What sends: the loaded sources of a lab, one a sender, and the sequence numbers that they have used.

use std::ops::Range;

use xdplab_wire::records::SourceState;

use super::{Lab, LabError, Spare, placement};
use crate::{
    host::{netns::Netns, thread::LabThread},
    program::Source,
    topology::{PortId, Traffic},
    traffic::frames::{FrameError, FrameSpec},
};

/// What a loaded source was made for: another scenario with the same can use it again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SourceKey {
    /// The port that it sends from.
    pub from: PortId,
    /// The frame of flow 0, number 0.
    pub template: Vec<u8>,
    /// Number of flows.
    pub flows: u32,
    /// Whether it writes markers.
    pub marker: bool,
    /// How many send, each from a CPU of its own; they share the flows.
    pub senders: u32,
}

impl SourceKey {
    /// That of a scenario's traffic, whose frames are made by `spec`.
    ///
    /// # Errors
    /// Where no frame can be made.
    pub fn of(traffic: &Traffic, spec: &FrameSpec) -> Result<Self, FrameError> {
        Ok(Self {
            from: traffic.from,
            template: spec.frame(0, 0, 0)?,
            flows: traffic.flows,
            marker: true,
            senders: traffic.senders,
        })
    }

    /// The flows of one of the senders: as many as of any other, or one more or less.
    pub fn flows_of(&self, sender: u32) -> Range<u32> {
        let first = |sender: u32| (u64::from(self.flows) * u64::from(sender) / u64::from(self.senders.max(1))) as u32;
        first(sender)..first(sender + 1)
    }
}

/// Sources that are loaded.
#[derive(Debug)]
pub(crate) struct Sources {
    key: SourceKey,
    /// One a sender.
    pub(crate) each: Vec<Source>,
    /// The CPUs that they send from, in step.
    pub(crate) cpus: Vec<usize>,
}

impl Lab {
    /// A range of `count` sequence numbers that no frame of this lab carried yet; its first is returned.
    pub(crate) fn take_sequences(&mut self, count: u32) -> u32 {
        let first = self.next_sequence;
        self.next_sequence = first.wrapping_add(count);
        first
    }

    /// The sources for a key, one a sender, loaded if others, or none, were in place.
    ///
    /// # Errors
    /// Where there are fewer CPUs than senders, or the kernel refuses.
    pub(crate) fn sources(&mut self, key: &SourceKey) -> Result<&Sources, LabError> {
        if self.sources.as_ref().is_none_or(|have| have.key != *key) {
            self.sources = None;
            let cpus = placement::sender_cpus(&self.topology, &self.cabling, key.from, key.senders)?;
            let (network, topology, instance) = (&self.network, &self.topology, self.instance.number);
            let spare = &mut self.spare;
            let senders = key.senders.max(1);
            let each = self.thread.run(|inside| -> Result<Vec<Source>, LabError> {
                if spare.as_ref().is_none_or(|spare| spare.pairs() < senders) {
                    *spare = Some(Spare::new(inside, senders)?);
                }
                let spare = spare.as_ref().expect("made above");
                (0..senders).map(|n| spare.source(inside, topology, network, instance, (key, n))).collect()
            })?;
            self.sources = Some(Sources { key: key.clone(), each, cpus });
        }
        Ok(self.sources.as_ref().expect("put there above"))
    }

    /// Starts a run of frames: sequence numbers that no sink has seen, the clocks at zero.
    pub(crate) fn start_sources(&mut self, key: &SourceKey) -> Result<(), LabError> {
        let sequence = self.next_sequence;
        for (n, source) in (0..).zip(&self.sources(key)?.each) {
            let state = source.state()?;
            let flows = key.flows_of(n);
            // Flows go on where they stopped: with many, a short run would never reach the last.
            let flow = state.flow % (flows.end - flows.start).max(1);
            source.set_state(&SourceState { offered: state.offered, flow, sequence, ..SourceState::default() })?;
        }
        Ok(())
    }

    /// Ends a run of frames: the sequence numbers that its sources used are not used again.
    pub(crate) fn end_sources(&mut self, key: &SourceKey) -> Result<(), LabError> {
        let first = self.next_sequence;
        let states = self.sources(key)?.each.iter().map(Source::state).collect::<Result<Vec<_>, _>>()?;
        let used = states.iter().map(|state| state.sequence.wrapping_sub(first)).max().unwrap_or(0);
        self.take_sequences(used + 1);
        Ok(())
    }

    /// One more source, for a second sender at work at the same time, with ports of its own to hold its entry.
    pub(crate) fn another_source(&self, key: &SourceKey) -> Result<(Source, Spare), LabError> {
        let (network, topology, instance) = (&self.network, &self.topology, self.instance.number);
        self.thread.run(|inside| {
            let spare = Spare::new(inside, 1)?;
            let source = spare.source(inside, topology, network, instance, (key, 0))?;
            Ok((source, spare))
        })
    }

    /// The lab's thread, the sources for a key, and the namespace that they send in.
    pub(crate) fn sending(&mut self, key: &SourceKey) -> Result<(&LabThread, &Sources, &Netns), LabError> {
        self.sources(key)?;
        let sources = self.sources.as_ref().expect("loaded above");
        Ok((&self.thread, sources, self.netns_of(key.from)))
    }
}
