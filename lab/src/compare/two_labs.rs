//! Two topologies of different structure: two labs side by side, whose windows take turns.
//!
//! Each lab has namespaces of its own, so that the same interface indices don't meet. Programs stay in their places for a
//! whole reload: it is the labs that take turns, not programs at one port.

use std::time::Instant;

use super::{
    CompareError, CompareOptions,
    pairing::{PairedRow, Pairing},
    reload::{self, Reloaded},
};
use crate::{
    lab::{Held, Lab, LabError, Spare, Wanted, wanted},
    measure::stats::blocks::Side,
    program::{Padding, watch::EventSet},
    run::{
        RunOptions,
        pricing::{Clock, Window, clock},
    },
    topology::{Builtin, Engine, ProgramId, Scenario, Topology},
    traffic::Stop,
    xdp::XdpMode,
};

/// Both labs, up.
pub(super) struct TwoLabs {
    a: Lab,
    b: Lab,
}

/// One row, ready to be measured.
pub(super) struct TwoLabsRow {
    a: Half,
    b: Half,
    mode: XdpMode,
    /// Frames of a window, the same for both sides.
    frames: Option<u64>,
    /// Whether nobody else installs other programs between two of its reloads.
    only: bool,
}

/// One side of a row.
struct Half {
    scenario: Scenario,
    /// What is loaded anew: what frames meet on their way, without sinks and sockets.
    wanted: Vec<Wanted>,
    // Before the ports that they are attached to.
    held: Vec<Held>,
    spare: Spare,
    clock: Clock,
}

impl TwoLabs {
    pub(super) fn new(a: &Topology, b: &Topology) -> Result<Self, CompareError> {
        let up = |topology| -> Result<Lab, LabError> {
            let mut lab = Lab::new(topology)?;
            lab.watch(EventSet::Errors)?;
            Ok(lab)
        };
        Ok(Self { a: up(a)?, b: up(b)? })
    }

    pub(super) fn row(&self, pairing: &Pairing, row: PairedRow, only: bool) -> Result<TwoLabsRow, CompareError> {
        let mut a = Half::new(&self.a, &pairing.a, row.a, row.mode)?;
        let mut b = Half::new(&self.b, &pairing.b, row.b, row.mode)?;
        // Two clocks of two kinds would be compared as much as two paths.
        if std::mem::discriminant(&a.clock) != std::mem::discriminant(&b.clock) {
            let live = |half: &Half| matches!(half.scenario.traffic.engine, Engine::Live { .. });
            let both = if live(&a) && live(&b) { Clock::Source } else { Clock::Sender };
            (a.clock, b.clock) = (both, both);
        }
        Ok(TwoLabsRow { a, b, mode: row.mode, frames: None, only })
    }

    /// The baseline's lab and the candidate's.
    pub(super) fn both(&self) -> [&Lab; 2] {
        [&self.a, &self.b]
    }

    /// One reload: `None` where a stop was asked for.
    pub(super) fn measure(
        &mut self,
        row: &mut TwoLabsRow,
        options: &CompareOptions,
        dice: &mut fastrand::Rng,
        stop: &Stop,
    ) -> Result<Option<Reloaded>, CompareError> {
        if row.a.held.is_empty() || !row.only {
            row.a.install(&mut self.a, row.mode)?;
            row.b.install(&mut self.b, row.mode)?;
        }
        if options.reload || row.a.held.is_empty() {
            if dice.bool() {
                row.b.load(&self.b, dice)?;
                row.a.load(&self.a, dice)?;
            } else {
                row.a.load(&self.a, dice)?;
                row.b.load(&self.b, dice)?;
            }
        }
        row.a.put(&self.a)?;
        row.b.put(&self.b)?;
        let began = Instant::now();
        let (a, b) = (row.a.window(&self.a)?, row.b.window(&self.b)?);
        let frames = if let Some(frames) = row.frames {
            frames
        } else {
            let name = &row.a.scenario.name;
            let of_a = reload::frames_of_a_window(&mut self.a, name, row.a.clock, &a, stop)?;
            let of_b = reload::frames_of_a_window(&mut self.b, name, row.b.clock, &b, stop)?;
            *row.frames.insert(of_a.min(of_b))
        };
        let (a, b) = (a.with(frames, row.a.clock), b.with(frames, row.b.clock));
        let mut one = |side: Side| -> Result<Option<f64>, LabError> {
            let (window, lab) = if side == Side::Baseline { (&a, &mut self.a) } else { (&b, &mut self.b) };
            Ok(window.measure(lab, stop)?.0)
        };
        let outcome = reload::take_turns(began, (&row.a.scenario.name, frames), options, dice, stop, &mut one);
        if !row.only && options.reload {
            // Held programs of many rows would fill the dispatcher.
            row.a.held.clear();
            row.b.held.clear();
        }
        outcome
    }

    pub(super) fn down(self) -> Result<Vec<String>, LabError> {
        Ok([self.a.down()?, self.b.down()?].concat())
    }
}

impl Half {
    fn new(lab: &Lab, topology: &Topology, scenario: Scenario, mode: XdpMode) -> Result<Self, LabError> {
        let walk = topology.walk(&scenario);
        let is_fixed = |id: ProgramId| {
            matches!(
                topology.body_in(&scenario, id).builtin(),
                Some(Builtin::Sink | Builtin::Xsk | Builtin::Dispatcher)
            )
        };
        let mut all = wanted(topology, Some(&scenario), mode, false);
        all.retain(|want| walk.programs.contains(&want.program) && !is_fixed(want.program));
        let spare = lab.spare_ports(all.len().max(1) as u32)?;
        let clock = clock(topology, &scenario);
        Ok(Self { scenario, wanted: all, held: Vec::new(), spare, clock })
    }

    fn install(&self, lab: &mut Lab, mode: XdpMode) -> Result<(), LabError> {
        // The programs of another row may still be in their places.
        lab.restore()?;
        lab.install(Some(&self.scenario), mode, false)
    }

    /// Loads its programs anew, with padding of random size before each.
    fn load(&mut self, lab: &Lab, dice: &mut fastrand::Rng) -> Result<(), LabError> {
        let mut padding = Vec::new();
        for (n, want) in self.wanted.iter().enumerate() {
            padding.push(Padding::load(dice.usize(1..reload::PADDING_MOST))?);
            match self.held.get_mut(n) {
                Some(held) => lab.hold_instead(want, held)?,
                None => self.held.push(lab.hold(want, &self.spare, n as u32)?),
            }
        }
        Ok(())
    }

    fn put(&self, lab: &Lab) -> Result<(), LabError> {
        self.wanted.iter().zip(&self.held).try_for_each(|(want, held)| lab.put(want.program, held))
    }

    fn window(&self, lab: &Lab) -> Result<Window, LabError> {
        Window::new(lab, lab.topology(), &self.scenario, &RunOptions::default())
    }
}
