//! Which CPUs send, and which receive: on NICs both have to do with queues, interrupts and NUMA nodes.

use std::{collections::BTreeSet, fs, path::Path};

use super::{Lab, LabError, LentPort, Network};
use crate::{
    drivers,
    host::nics,
    topology::{Engine, PortId, Scenario, Topology},
    traffic::cpu::{self, Wanted},
};

impl Network {
    fn lent_at(&self, port: PortId) -> Option<&LentPort> {
        self.lent.iter().find(|lent| lent.port == port)
    }

    /// What is asked of the CPUs that send from a port: nothing where it is no NIC.
    pub(super) fn sender_cpus(&self, topology: &Topology, from: PortId) -> Wanted {
        let Some(lent) = self.lent_at(from) else { return Wanted::default() };
        let borrowed = &lent.loan.borrowed;
        let has_queue_per_cpu = drivers::known(&borrowed.driver).is_some_and(|driver| driver.queue_per_cpu);
        Wanted {
            below: has_queue_per_cpu.then_some(topology.ports[from.0].queues),
            receive: topology.peer(from).map(|peer| self.receiver_cpus(topology, peer)).unwrap_or_default(),
            near: near(&borrowed.pci),
        }
    }

    /// The CPUs that a NIC's interrupts go to, in order; none where the port is no NIC.
    pub(super) fn receiver_cpus(&self, topology: &Topology, port: PortId) -> Vec<usize> {
        let Some(lent) = self.lent_at(port) else { return Vec::new() };
        let asked = &topology.ports[port.0].irq_cpus;
        if !asked.is_empty() {
            return asked.iter().map(|cpu| *cpu as usize).collect();
        }
        let irqs = nics::irqs_of(&lent.loan.borrowed.pci).into_iter();
        let effective =
            irqs.filter_map(|irq| fs::read_to_string(format!("/proc/irq/{irq}/effective_affinity_list")).ok());
        effective.flat_map(|text| cpu::list(&text)).collect::<BTreeSet<_>>().into_iter().collect()
    }
}

impl Lab {
    /// Which CPUs do what in a scenario; `None` where its frames cross no NIC.
    ///
    /// # Errors
    /// Where there are fewer CPUs than senders.
    pub(crate) fn placement(&self, scenario: &Scenario) -> Result<Option<Placement>, LabError> {
        let (topology, network, from) = (&self.topology, &self.network, scenario.traffic.from);
        let (Some(sender), Some(to)) = (network.lent_at(from), topology.peer(from)) else { return Ok(None) };
        let live = matches!(scenario.traffic.engine, Engine::Live { .. });
        let senders =
            if live { self.sender_cpus(from, scenario.traffic.senders)? } else { vec![cpu::sender() as usize] };
        let target = |port: PortId| {
            let driver = drivers::known(&network.lent_at(port)?.loan.borrowed.driver)?;
            let queues = topology.ports[port.0].queues;
            driver.queue_per_cpu.then(|| (topology.port_name(port), driver.name.to_owned(), queues))
        };
        let at = topology.program_at(to).map(|(id, _)| topology.body_in(scenario, id));
        Ok(Some(Placement {
            from: topology.port_name(from),
            senders,
            near_sender: near(&sender.loan.borrowed.pci),
            to: topology.port_name(to),
            receivers: network.receiver_cpus(topology, to),
            near_receiver: network.lent_at(to).map(|lent| near(&lent.loan.borrowed.pci)).unwrap_or_default(),
            targets: at.map(|body| body.ports().into_iter().filter_map(target).collect()).unwrap_or_default(),
        }))
    }
}

/// Which CPUs do what in a scenario whose frames cross a NIC.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Placement {
    /// The port that sends, as `node:port`.
    pub(crate) from: String,
    /// CPUs that send.
    pub(crate) senders: Vec<usize>,
    /// CPUs of the sending NIC's NUMA node; empty: any.
    pub(crate) near_sender: Vec<usize>,
    /// The port that receives.
    pub(crate) to: String,
    /// CPUs that its interrupts go to.
    pub(crate) receivers: Vec<usize>,
    /// CPUs of its NUMA node; empty: any.
    pub(crate) near_receiver: Vec<usize>,
    /// Targets whose drivers transmit XDP frames on CPUs below their queue count alone: port, driver, queues.
    pub(crate) targets: Vec<(String, String, u32)>,
}

impl Placement {
    /// What of it costs time or frames, each with what to do.
    pub(crate) fn remarks(&self) -> Vec<String> {
        let Self { from, to, senders, receivers, .. } = self;
        let outside = |cpus: &[usize], near: &[usize]| -> Vec<usize> {
            cpus.iter().copied().filter(|cpu| !near.is_empty() && !near.contains(cpu)).collect()
        };
        let mut remarks = Vec::new();
        let both: Vec<usize> = senders.iter().copied().filter(|cpu| receivers.contains(cpu)).collect();
        if !both.is_empty() {
            remarks.push(format!(
                "CPU {} both sends at {from} and receives at {to}: give {to} irq-cpus of its own, or send from fewer CPUs",
                listed(&both)
            ));
        }
        for (what, port, far) in [
            ("sends", from, outside(senders, &self.near_sender)),
            ("receives", to, outside(receivers, &self.near_receiver)),
        ] {
            if !far.is_empty() {
                let fix = if what == "sends" { "fewer senders" } else { "irq-cpus of that node" };
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
pub(crate) fn near(pci: &str) -> Vec<usize> {
    let node = fs::read_to_string(Path::new("/sys/bus/pci/devices").join(pci).join("numa_node"));
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
        // Without NUMA nodes no CPU is far.
        let flat = Placement { near_sender: Vec::new(), near_receiver: Vec::new(), ..good };
        assert_eq!(flat.remarks(), [""; 0]);
    }
}
