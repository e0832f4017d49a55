//! Which CPUs send, and which receive: on NICs both have to do with queues, interrupts and NUMA nodes.

use std::{collections::BTreeSet, fs, path::Path};

use super::{LentPort, Network};
use crate::{
    drivers,
    host::nics,
    topology::{PortId, Topology},
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

/// The CPUs of a PCI device's NUMA node; none where it has no node.
pub(crate) fn near(pci: &str) -> Vec<usize> {
    let node = fs::read_to_string(Path::new("/sys/bus/pci/devices").join(pci).join("numa_node"));
    let Some(node) = node.ok().and_then(|text| text.trim().parse::<u32>().ok()) else { return Vec::new() };
    fs::read_to_string(format!("/sys/devices/system/node/node{node}/cpulist"))
        .map(|text| cpu::list(&text))
        .unwrap_or_default()
}
