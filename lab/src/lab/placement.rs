//! Which CPUs send, and which receive: on NICs both have to do with queues, interrupts and NUMA nodes.

use std::{collections::BTreeSet, fs};

use super::{Cabling, LabError};
use crate::{
    drivers,
    host::nics,
    topology::{Engine, PortId, Scenario, Topology},
    traffic::cpu::{self, Wanted},
};

/// The CPUs that so many senders at a port are pinned to, the best first.
///
/// # Errors
/// Where there are too few.
pub(super) fn sender_cpus(
    topology: &Topology,
    cabling: &Cabling,
    from: PortId,
    senders: u32,
) -> Result<Vec<usize>, LabError> {
    let wanted = wanted(topology, cabling, from);
    let senders = senders.max(1);
    let cpus = cpu::place(&cpu::usable(), senders as usize, &wanted);
    if cpus.len() < senders as usize {
        let port = topology.port_name(from);
        return Err(LabError::TooFewCpus { port, senders, cpus: cpus.len(), below: wanted.below });
    }
    Ok(cpus)
}

/// What is asked of the CPUs that send from a port: nothing where it is no NIC.
fn wanted(topology: &Topology, cabling: &Cabling, from: PortId) -> Wanted {
    let Some(nic) = cabling.nic_at(topology, from) else { return Wanted::default() };
    let has_queue_per_cpu = drivers::known(&nic.driver).is_some_and(|driver| driver.queue_per_cpu);
    Wanted {
        below: has_queue_per_cpu.then_some(topology.ports[from.0].queues),
        receive: topology.peer(from).map(|peer| receiver_cpus(topology, cabling, peer)).unwrap_or_default(),
        near: near(&nic.pci),
    }
}

/// The CPUs that a NIC's frames come by, in order; none where the port is no NIC, or has no interrupts yet.
fn receiver_cpus(topology: &Topology, cabling: &Cabling, port: PortId) -> Vec<usize> {
    let Some(nic) = cabling.nic_at(topology, port) else { return Vec::new() };
    let asked = &topology.ports[port.0].irq_cpus;
    if !asked.is_empty() {
        return asked.iter().map(|cpu| *cpu as usize).collect();
    }
    let irqs = nics::receive_irqs_of(&nic.pci).into_iter();
    let effective = irqs.filter_map(|irq| fs::read_to_string(format!("/proc/irq/{irq}/effective_affinity_list")).ok());
    effective.flat_map(|text| cpu::list(&text)).collect::<BTreeSet<_>>().into_iter().collect()
}

/// What is to be said of the CPUs that send and receive over NICs in a topology's scenarios, once each: what costs time or
/// frames, with what to do.
///
/// # Errors
/// Where there are fewer CPUs than senders.
pub fn cpu_remarks(topology: &Topology, cabling: &Cabling) -> Result<Vec<String>, LabError> {
    let mut remarks: Vec<String> = Vec::new();
    for scenario in &topology.scenarios {
        let placement = Placement::of(topology, cabling, scenario)?;
        remarks.extend(placement.iter().flat_map(Placement::remarks));
    }
    remarks.sort();
    remarks.dedup();
    Ok(remarks)
}

/// Which CPUs do what in a scenario whose frames cross a NIC.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Placement {
    /// The port that sends, as `node:port`.
    from: String,
    /// CPUs that send.
    senders: Vec<usize>,
    /// CPUs of the sending NIC's NUMA node; empty: any.
    near_sender: Vec<usize>,
    /// The port that receives.
    to: String,
    /// CPUs that its interrupts go to.
    receivers: Vec<usize>,
    /// CPUs of its NUMA node; empty: any.
    near_receiver: Vec<usize>,
    /// Targets whose drivers transmit XDP frames on CPUs below their queue count alone: port, driver, queues.
    targets: Vec<(String, String, u32)>,
}

impl Placement {
    /// That of a scenario; `None` where its frames cross no NIC.
    fn of(topology: &Topology, cabling: &Cabling, scenario: &Scenario) -> Result<Option<Self>, LabError> {
        let from = scenario.traffic.from;
        let (Some(sender), Some(to)) = (cabling.nic_at(topology, from), topology.peer(from)) else { return Ok(None) };
        let live = matches!(scenario.traffic.engine, Engine::Live { .. });
        let senders = if live {
            sender_cpus(topology, cabling, from, scenario.traffic.senders)?
        } else {
            vec![cpu::sender() as usize]
        };
        let target = |port: PortId| {
            let driver = drivers::known(&cabling.nic_at(topology, port)?.driver)?;
            let queues = topology.ports[port.0].queues;
            driver.queue_per_cpu.then(|| (topology.port_name(port), driver.name.to_owned(), queues))
        };
        let at = topology.program_at(to).map(|(id, _)| topology.body_in(scenario, id));
        Ok(Some(Self {
            from: topology.port_name(from),
            senders,
            near_sender: near(&sender.pci),
            to: topology.port_name(to),
            receivers: receiver_cpus(topology, cabling, to),
            near_receiver: cabling.nic_at(topology, to).map(|nic| near(&nic.pci)).unwrap_or_default(),
            targets: at.map(|body| body.ports().into_iter().filter_map(target).collect()).unwrap_or_default(),
        }))
    }

    /// What of it costs time or frames, each with what to do.
    fn remarks(&self) -> Vec<String> {
        let Self { from, to, senders, receivers, .. } = self;
        let outside = |cpus: &[usize], near: &[usize]| -> Vec<usize> {
            cpus.iter().copied().filter(|cpu| !near.is_empty() && !near.contains(cpu)).collect()
        };
        let mut remarks = Vec::new();
        let both: Vec<usize> = senders.iter().copied().filter(|cpu| receivers.contains(cpu)).collect();
        if !both.is_empty() {
            let fewer = if senders.len() > 1 { ", or send from fewer CPUs" } else { "" };
            remarks.push(format!(
                "CPU {} both sends at {from} and receives at {to}: give {to} irq-cpus of its own{fewer}",
                listed(&both)
            ));
        }
        for (what, port, far, fix) in [
            ("sends", from, outside(senders, &self.near_sender), "fewer senders"),
            ("receives", to, outside(receivers, &self.near_receiver), "irq-cpus of that node"),
        ] {
            if !far.is_empty() {
                remarks.push(format!(
                    "CPU {}, which {what} at {port}, is not on the NUMA node of its NIC: {fix} would be faster",
                    listed(&far)
                ));
            }
        }
        for (target, driver, queues) in &self.targets {
            let beyond: Vec<usize> = receivers.iter().copied().filter(|cpu| *cpu >= *queues as usize).collect();
            if !beyond.is_empty() {
                remarks.push(format!(
                    "CPU {} receives at {to}, and {target} has {queues} queues: {driver} transmits XDP frames on CPUs below that \
                     number alone. Give {to} irq-cpus below {queues}, or {target} more queues",
                    listed(&beyond)
                ));
            }
        }
        remarks
    }
}

/// CPUs as people write them: `2, 5-7`.
fn listed(cpus: &[usize]) -> String {
    let mut ranges: Vec<(usize, usize)> = Vec::new();
    let mut sorted = cpus.to_vec();
    sorted.sort_unstable();
    for cpu in sorted {
        match ranges.last_mut() {
            Some((_, last)) if *last + 1 >= cpu => *last = cpu,
            _ => ranges.push((cpu, cpu)),
        }
    }
    let range =
        |(first, last): &(usize, usize)| if first == last { first.to_string() } else { format!("{first}-{last}") };
    ranges.iter().map(range).collect::<Vec<_>>().join(", ")
}

/// The CPUs of a PCI device's NUMA node; none where it has no node.
fn near(pci: &str) -> Vec<usize> {
    let node = fs::read_to_string(nics::device_of(pci).join("numa_node"));
    let Some(node) = node.ok().and_then(|text| text.trim().parse::<u32>().ok()) else { return Vec::new() };
    fs::read_to_string(format!("/sys/devices/system/node/node{node}/cpulist"))
        .map(|text| cpu::list(&text))
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_costs_time_or_frames_is_said_with_what_to_do() {
        let good = Placement {
            from: "gen:tx0".to_owned(),
            senders: vec![4, 5],
            near_sender: (0..8).collect(),
            to: "dut:rx0".to_owned(),
            receivers: vec![0, 1],
            near_receiver: (0..8).collect(),
            targets: vec![("dut:out0".to_owned(), "i40e".to_owned(), 2)],
        };
        assert_eq!(good.remarks(), [""; 0]);
        let bad = Placement { senders: vec![1, 2, 12], receivers: vec![1, 2, 3, 9], ..good.clone() };
        insta::assert_snapshot!(bad.remarks().join("\n"), @"
        CPU 1-2 both sends at gen:tx0 and receives at dut:rx0: give dut:rx0 irq-cpus of its own, or send from fewer CPUs
        CPU 12, which sends at gen:tx0, is not on the NUMA node of its NIC: fewer senders would be faster
        CPU 9, which receives at dut:rx0, is not on the NUMA node of its NIC: irq-cpus of that node would be faster
        CPU 2-3, 9 receives at dut:rx0, and dut:out0 has 2 queues: i40e transmits XDP frames on CPUs below that number alone. Give dut:rx0 irq-cpus below 2, or dut:out0 more queues
        ");
        let one = Placement { senders: vec![1], receivers: vec![1], ..good.clone() };
        assert_eq!(
            one.remarks(),
            ["CPU 1 both sends at gen:tx0 and receives at dut:rx0: give dut:rx0 irq-cpus of its own"]
        );
        // Without NUMA nodes no CPU is far.
        let flat = Placement { near_sender: Vec::new(), near_receiver: Vec::new(), ..good };
        assert_eq!(flat.remarks(), [""; 0]);
    }
}
