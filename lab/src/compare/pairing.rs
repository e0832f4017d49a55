//! Two topologies that stand beside each other: of one structure, in one lab, or of two, in two labs.

use crate::{
    topology::{Scenario, Topology},
    xdp::XdpMode,
};

/// A baseline and a candidate.
#[derive(Debug, Clone)]
pub struct Pairing {
    /// The baseline.
    pub a: Topology,
    /// The candidate.
    pub b: Topology,
    /// What the baseline is called.
    pub a_name: String,
    /// What the candidate is called.
    pub b_name: String,
    /// Remarks: scenarios that only one of them has.
    pub notes: Vec<String>,
    /// What of their structure differs; empty where both can take turns on the same ports.
    pub differs_in: Vec<&'static str>,
}

/// One scenario in one mode, of both.
#[derive(Debug, Clone)]
pub struct PairedRow {
    /// The baseline's.
    pub a: Scenario,
    /// The candidate's.
    pub b: Scenario,
    /// The mode.
    pub mode: XdpMode,
}

/// Why two topologies don't stand beside each other.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PairingError {
    /// No scenario has its like.
    #[error("no scenario of {a} has its like, by name and mode, in {b}: it has {present}")]
    NoRow {
        /// The baseline.
        a: String,
        /// The candidate.
        b: String,
        /// The candidate's scenarios.
        present: String,
    },
    /// A scenario that was asked for is not there.
    #[error("no scenario \"{scenario}\" that both have: there is {present}")]
    NoScenario {
        /// The name.
        scenario: String,
        /// The scenarios that there are.
        present: String,
    },
    /// The same scenario sends other traffic.
    #[error(
        "scenario \"{scenario}\" sends other traffic in {b} than in {a}: what is sent must be the same, and from the same port where the nodes are the same"
    )]
    Traffic {
        /// The name.
        scenario: String,
        /// The baseline.
        a: String,
        /// The candidate.
        b: String,
    },
}

impl Pairing {
    /// Puts two topologies beside each other. Those that differ in nodes, links, ports, or programs' names and places are
    /// of two structures: they take turns as two labs.
    pub fn new(a: Topology, b: Topology, a_name: String, b_name: String) -> Self {
        let places = |topology: &Topology| -> Vec<_> {
            topology.programs.iter().map(|p| (p.name.clone(), p.attach.clone(), p.mode)).collect()
        };
        let differing = [
            ("nodes", a.nodes != b.nodes),
            ("links and ports", a.ports != b.ports || a.links != b.links),
            ("names and places of programs", places(&a) != places(&b)),
        ];
        let differs_in: Vec<&str> =
            differing.into_iter().filter_map(|(what, differs)| differs.then_some(what)).collect();
        let only_one = |x: &Topology, y: &Topology, name: &str| -> Vec<String> {
            let has = |s: &&Scenario| !y.scenarios.iter().any(|other| other.name == s.name);
            x.scenarios.iter().filter(has).map(|s| format!("only {name} has \"{}\"", s.name)).collect()
        };
        let mut notes = [only_one(&a, &b, &a_name), only_one(&b, &a, &b_name)].concat();
        if !differs_in.is_empty() {
            notes.push(format!(
                "{a_name} and {b_name} differ in {}: two labs took turns, each on ports of its own, so that where the \
                 ports lie in memory is a part of the difference",
                differs_in.join(", ")
            ));
        }
        Self { a, b, a_name, b_name, notes, differs_in }
    }

    /// The rows: scenarios of the same name in the modes that both have. Those with `perf` where any has, else all.
    ///
    /// # Errors
    /// Where there is none, or the same scenario sends other traffic.
    pub fn rows(&self, only: &[String]) -> Result<Vec<PairedRow>, PairingError> {
        let present = || self.b.scenarios.iter().map(|s| s.name.clone()).collect::<Vec<_>>().join(", ");
        let pairs: Vec<(&Scenario, &Scenario)> = self
            .a
            .scenarios
            .iter()
            .filter_map(|a| Some((a, self.b.scenarios.iter().find(|b| b.name == a.name)?)))
            .collect();
        if let Some(unknown) = only.iter().find(|name| !pairs.iter().any(|(a, _)| a.name == **name)) {
            return Err(PairingError::NoScenario { scenario: unknown.clone(), present: present() });
        }
        let priced = pairs.iter().any(|(a, _)| a.perf.is_some());
        let mut rows = Vec::new();
        for (a, b) in pairs {
            let wanted = if only.is_empty() { !priced || a.perf.is_some() } else { only.contains(&a.name) };
            if !wanted {
                continue;
            }
            let (x, y) = (&a.traffic, &b.traffic);
            let from_elsewhere = self.a.nodes == self.b.nodes && self.a.port_name(x.from) != self.b.port_name(y.from);
            if from_elsewhere
                || (x.engine, x.ip, x.flows, x.senders, x.frame_bytes)
                    != (y.engine, y.ip, y.flows, y.senders, y.frame_bytes)
            {
                let (a_name, b_name) = (self.a_name.clone(), self.b_name.clone());
                return Err(PairingError::Traffic { scenario: a.name.clone(), a: a_name, b: b_name });
            }
            let modes = a.modes.iter().filter(|mode| b.modes.contains(mode));
            rows.extend(modes.map(|mode| PairedRow { a: a.clone(), b: b.clone(), mode: *mode }));
        }
        if rows.is_empty() {
            return Err(PairingError::NoRow { a: self.a_name.clone(), b: self.b_name.clone(), present: present() });
        }
        Ok(rows)
    }
}
