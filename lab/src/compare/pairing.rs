//! Two topologies that stand beside each other: the same nodes, links and ports, with other programs.

use crate::{
    topology::{Scenario, Topology},
    xdp::XdpMode,
};

/// A baseline and a candidate of one structure.
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
    /// Their structure differs.
    #[error(
        "{a} and {b} differ in {what}: they can't take turns on the same ports. Give both the same {what}, or run each by itself and compare the reports"
    )]
    Structure {
        /// The baseline.
        a: String,
        /// The candidate.
        b: String,
        /// What differs.
        what: &'static str,
    },
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
    #[error("scenario \"{scenario}\" sends other traffic in {b} than in {a}: only programs may differ")]
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
    /// Puts two topologies beside each other.
    ///
    /// # Errors
    /// Where nodes, links, ports, or programs' names and places differ.
    pub fn new(a: Topology, b: Topology, a_name: String, b_name: String) -> Result<Self, PairingError> {
        let differ = |what| PairingError::Structure { a: a_name.clone(), b: b_name.clone(), what };
        if a.nodes != b.nodes {
            return Err(differ("nodes"));
        }
        if a.ports != b.ports || a.links != b.links {
            return Err(differ("links and ports"));
        }
        let places = |topology: &Topology| -> Vec<_> {
            topology.programs.iter().map(|p| (p.name.clone(), p.attach.clone(), p.mode)).collect()
        };
        if places(&a) != places(&b) {
            return Err(differ("names and places of programs"));
        }
        let only_one = |x: &Topology, y: &Topology, name: &str| -> Vec<String> {
            let has = |s: &&Scenario| !y.scenarios.iter().any(|other| other.name == s.name);
            x.scenarios.iter().filter(has).map(|s| format!("only {name} has \"{}\"", s.name)).collect()
        };
        let notes = [only_one(&a, &b, &a_name), only_one(&b, &a, &b_name)].concat();
        Ok(Self { a, b, a_name, b_name, notes })
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
            if (x.from, x.engine, x.ip, x.flows, x.frame_bytes) != (y.from, y.engine, y.ip, y.flows, y.frame_bytes) {
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
