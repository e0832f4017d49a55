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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::topology::{parse, preflight};

    /// dut:out0 leads on through `far` to a:in0, dut:out1 to b:in0, and dut:out2 to c:in0, which drops.
    fn topology(skip_unable: &str) -> Topology {
        let text = format!(
            r#"
name = "t"
[nodes.gen]
[nodes.dut]
[nodes.far]
[nodes.a]
[nodes.b]
[nodes.c]
[[links]]
kind = "veth"
ends = ["gen:tx0", "dut:rx0"]
[[links]]
kind = "veth"
ends = ["dut:out0", "far:in0"]
[[links]]
kind = "veth"
ends = ["far:out0", "a:in0"]
[[links]]
kind = "veth"
ends = ["dut:out1", "b:in0"]
[[links]]
kind = "veth"
ends = ["dut:out2", "c:in0"]
[programs.broadcast]
builtin = "broadcast"
attach = ["dut:rx0"]
maps.tx_ports = ["dut:out0", "dut:out1", "dut:out2"]
[programs.on]
builtin = "redirect_map"
attach = ["far:in0"]
maps.tx_ports = ["far:out0"]
[programs.sink]
builtin = "sink"
attach = ["a:in0"]
[programs.drop]
builtin = "drop"
attach = ["c:in0"]
[[scenarios]]
name = "s"
traffic = {{ from = "gen:tx0", frames = 100 }}
expect = {{ deliver = ["a:in0", "b:in0"], drop = ["c:in0"], clones = 200, skip-unable = {skip_unable} }}
"#
        );
        parse("t.toml".as_ref(), &text).unwrap_or_else(|wrong| panic!("{wrong}"))
    }

    type Skipping = (Vec<String>, Vec<String>, Option<u64>, Vec<(String, bool, String)>);

    /// What is expected where these targets are skipped: `deliver`, `drop`, `clones`, and what was left out.
    fn skipping(targets: &[&str]) -> Skipping {
        let topology = topology("true");
        let unable = targets.iter().map(|name| topology.find_port(name).unwrap()).collect();
        let (expect, left_out) = without(&topology, &topology.scenarios[0], &unable);
        let name = |port: &PortId| topology.port_name(*port);
        (
            expect.deliver.iter().map(name).collect(),
            expect.drop.iter().map(name).collect(),
            expect.clones,
            left_out.iter().map(|out| (name(&out.port), out.drop, name(&out.target))).collect(),
        )
    }

    fn owned<const N: usize>(names: [&str; N]) -> Vec<String> {
        names.map(str::to_owned).to_vec()
    }

    #[test]
    fn nothing_is_left_out_where_all_targets_take_frames() {
        assert_eq!(skipping(&[]), (owned(["a:in0", "b:in0"]), owned(["c:in0"]), Some(200), Vec::new()));
    }

    #[test]
    fn what_lies_behind_a_skipped_target_is_left_out_however_far() {
        let (deliver, drop, clones, left_out) = skipping(&["dut:out0"]);
        assert_eq!((deliver, drop, clones), (owned(["b:in0"]), owned(["c:in0"]), Some(100)));
        assert_eq!(left_out, [("a:in0".to_owned(), false, "dut:out0".to_owned())]);
    }

    #[test]
    fn each_port_that_is_left_out_names_its_own_target() {
        let (deliver, drop, clones, left_out) = skipping(&["dut:out0", "dut:out2"]);
        // One target is left: it gets the frame itself, and nothing is cloned.
        assert_eq!((deliver, drop, clones), (owned(["b:in0"]), Vec::new(), Some(0)));
        let of = |port: &str, drop, target: &str| (port.to_owned(), drop, target.to_owned());
        assert_eq!(left_out, [of("a:in0", false, "dut:out0"), of("c:in0", true, "dut:out2")]);
    }

    #[test]
    fn all_targets_skipped_leave_nothing_to_expect() {
        let (deliver, drop, clones, left_out) = skipping(&["dut:out0", "dut:out1", "dut:out2"]);
        assert_eq!((deliver, drop, clones, left_out.len()), (Vec::new(), Vec::new(), Some(0), 3));
    }

    #[test]
    fn check_warns_of_a_target_without_a_program_behind_it_unless_the_file_says_that_it_may_be_skipped() {
        let warned = |skip_unable| {
            let warnings = preflight::warnings(&topology(skip_unable));
            warnings.iter().any(|warning| warning.kind == preflight::WarningKind::PeerTakesNoFrames)
        };
        assert_eq!((warned("false"), warned("true")), (true, false));
    }
}
