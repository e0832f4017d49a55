//! What a scenario expects of targets as they are at this moment: in native mode the kernel skips those targets of a
//! broadcast that take no XDP frames, and a file can say that nothing is expected behind them (`skip-unable`).

use std::collections::BTreeSet;

use crate::{
    drivers::{Difference, From, Knowledge},
    lab::{Lab, LabError},
    topology::{Expect, PortId, Scenario, Topology},
    xdp::XdpMode,
};

/// A port at which nothing is expected, since no frame can get there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LeftOut {
    /// The port.
    pub port: PortId,
    /// Whether the file expects a drop there, rather than a delivery.
    pub drop: bool,
    /// The target on the way there, which takes no XDP frames.
    pub target: PortId,
}

/// What a scenario expects in one mode of the devices as they are.
#[derive(Debug, Clone, PartialEq)]
pub struct Able {
    /// What is expected; nothing of it is left to be found out.
    pub expect: Expect,
    /// What the file expects and the devices can't give.
    pub left_out: Vec<LeftOut>,
    /// Remarks: which target was left out, and why.
    pub notes: Vec<String>,
}

/// Asks the targets of a scenario's broadcast what they can do. Programs must be attached by then.
///
/// # Errors
/// Where the kernel refuses to tell.
pub(crate) fn of_scenario(lab: &Lab, scenario: &Scenario, mode: XdpMode) -> Result<Able, LabError> {
    let topology = lab.topology();
    let mut targets = BTreeSet::new();
    if scenario.expect.skip_unable && mode == XdpMode::Native {
        let walk = topology.walk(scenario);
        targets.extend(topology.broadcasts(scenario, &walk).into_iter().flat_map(|(_, targets)| targets));
    }
    let (mut unable, mut notes) = (BTreeSet::new(), Vec::new());
    for target in targets {
        let known = lab.knowledge(target)?;
        let name = topology.port_name(target);
        notes.extend(difference(&known).map(|difference| format!("{name}: {difference}")));
        if let Some(from) = known.is_skipped() {
            unable.insert(target);
            notes.push(format!("{name} was left out: {}", why(&known, from)));
        }
    }
    let (expect, left_out) = without(topology, scenario, &unable);
    Ok(Able { expect, left_out, notes })
}

/// The same scenario with what it expects of the devices as they are.
///
/// # Errors
/// As [`of_scenario`].
pub(crate) fn as_it_is(lab: &Lab, scenario: &Scenario, mode: XdpMode) -> Result<Scenario, LabError> {
    Ok(Scenario { expect: of_scenario(lab, scenario, mode)?.expect, ..scenario.clone() })
}

/// Where a target's device and the record of its driver disagree on whether it takes XDP frames.
fn difference(known: &Knowledge) -> Option<Difference> {
    known.differences().into_iter().find(|difference| difference.what == "ndo_xdp_xmit")
}

fn why(known: &Knowledge, from: From) -> String {
    let driver = known.driver.map_or_else(String::new, |driver| format!(" ({})", driver.name));
    match from {
        From::Probe => format!(
            "its device{driver} says that it takes no XDP frames now (no ndo-xmit), and a native broadcast skips it"
        ),
        From::Driver => format!(
            "its driver{driver} has no ndo_xdp_xmit, by what is known of it, and a native broadcast skips it; this \
             kernel can't be asked"
        ),
    }
}

/// What is expected where a scenario's broadcast skips some of its targets, and what no longer is.
///
/// A broadcast makes one clone fewer than it has targets that take the frame, so that `clones` shrinks by that share.
/// There is one broadcast on the way: a topology's checks see to it.
pub fn without(topology: &Topology, scenario: &Scenario, unable: &BTreeSet<PortId>) -> (Expect, Vec<LeftOut>) {
    let mut expect = Expect { skip_unable: false, ..scenario.expect.clone() };
    if unable.is_empty() {
        return (expect, Vec::new());
    }
    let all = topology.walk(scenario);
    let past = topology.walk_past(scenario, unable);
    // The target without which the port would be reached, if it is only one.
    let behind = |port: PortId| {
        let reaches = |target: &PortId| {
            let others = unable.iter().copied().filter(|other| other != target).collect();
            topology.walk_past(scenario, &others).meets(port)
        };
        unable.iter().copied().find(reaches).or(unable.first().copied())
    };
    let mut left_out = Vec::new();
    for (ports, drop) in [(&mut expect.deliver, false), (&mut expect.drop, true)] {
        ports.retain(|port| {
            let target = (all.meets(*port) && !past.meets(*port)).then(|| behind(*port)).flatten();
            left_out.extend(target.map(|target| LeftOut { port: *port, drop, target }));
            target.is_none()
        });
    }
    if let (Some(clones), [(_, targets)]) = (expect.clones, topology.broadcasts(scenario, &all).as_slice()) {
        let able = targets.iter().filter(|target| !unable.contains(target)).count();
        let each = |copies: usize| copies.saturating_sub(1) as u128;
        if each(targets.len()) > 0 {
            expect.clones = Some((u128::from(clones) * each(able) / each(targets.len())) as u64);
        }
    }
    (expect, left_out)
}
