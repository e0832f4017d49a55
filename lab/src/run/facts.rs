//! A run's fingerprint: the host's, the ports', and of each scenario what sends and which devmaps there are.

use super::{RunOptions, amount_and_engine};
use crate::{
    host::{HostError, ethtool::Ethtool},
    lab::{Lab, LabError},
    measure::fingerprint::{self, RunFacts},
    program::slots_of,
    record::Fingerprint,
    topology::{Builtin, DevMapKind, Engine, Port, PortId, ProgramBody, ProgramId, ProgramSource, Scenario, Topology},
};

/// The fingerprint of a run of a topology.
pub(crate) fn fingerprint(topology: &Topology, options: &RunOptions) -> Fingerprint {
    let mut all = fingerprint::of_host();
    all.0.extend(of_scenarios(topology, options).0);
    all
}

/// The scenarios' part.
pub(crate) fn of_scenarios(topology: &Topology, options: &RunOptions) -> Fingerprint {
    let mut fingerprint = Fingerprint::default();
    let wanted = |scenario: &&Scenario| options.only.is_empty() || options.only.contains(&scenario.name);
    for scenario in topology.scenarios.iter().filter(wanted) {
        fingerprint.0.extend(of_scenario(topology, scenario, options).0);
    }
    fingerprint
}

/// The ports' part. To be read of a lab that has no programs yet: attaching one sets its ports' GRO by its mode.
///
/// # Errors
/// Where a namespace can't be entered, or a port is gone.
pub(crate) fn of_ports(lab: &Lab) -> Result<Fingerprint, LabError> {
    let topology = lab.topology();
    let read = |(n, port): (usize, &Port)| -> Result<_, LabError> {
        let name = topology.port_name(PortId(n));
        let of = lab.in_node(PortId(n), || -> Result<_, HostError> {
            fingerprint::of_port(&name, &Ethtool::open()?, &port.name, None)
        })??;
        Ok((name, of))
    };
    let ports = topology.ports.iter().enumerate().map(read).collect::<Result<Vec<_>, _>>()?;
    Ok(fingerprint::of_ports(&ports))
}

fn of_scenario(topology: &Topology, scenario: &Scenario, options: &RunOptions) -> Fingerprint {
    let (_, engine) = amount_and_engine(options, scenario.traffic.amount, scenario.traffic.engine);
    let (engine, batch) = match engine {
        Engine::Live { batch } => ("live", Some(batch)),
        Engine::Packet => ("packet", None),
        Engine::Xsk => ("xsk", None),
    };
    let body = |n: usize| {
        let instead = scenario.programs.iter().find(|(id, _)| *id == ProgramId(n)).map(|(_, body)| body);
        instead.unwrap_or(&topology.programs[n].body)
    };
    let programs = topology.programs.iter().enumerate();
    let maps: Vec<(String, &str, u32)> = programs
        .filter_map(|(n, program)| {
            let (kind, size) = devmap(body(n))?;
            Some((program.name.clone(), kind, size))
        })
        .collect();
    let maps: Vec<(&str, &str, u32)> = maps.iter().map(|(name, kind, size)| (name.as_str(), *kind, *size)).collect();
    let senders = scenario.traffic.senders;
    fingerprint::of_run(&RunFacts { scenario: Some(&scenario.name), engine, batch, senders, maps: &maps })
}

/// The devmap of a built-in: kind and size. A broadcast walks it all, so that its size is a part of the price.
fn devmap(body: &ProgramBody) -> Option<(&'static str, u32)> {
    if !matches!(body.source, ProgramSource::Builtin(Builtin::RedirectMap | Builtin::Broadcast)) {
        return None;
    }
    let kind = match body.options.map {
        DevMapKind::Devmap => "devmap",
        DevMapKind::DevmapHash => "devmap_hash",
    };
    Some((kind, body.options.max_entries.unwrap_or_else(|| slots_of(body)).max(1)))
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::topology;

    #[test]
    fn each_scenario_says_what_sends_and_its_maps() {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("topologies/i40e-veth.toml");
        let topology = topology::load(&path).unwrap();
        let options = RunOptions { batch: Some(16), ..RunOptions::default() };
        let Fingerprint(all) = fingerprint(&topology, &options);
        let of = |name: &str, scenario: &str| all.get(&format!("{name} of {scenario}")).map(String::as_str);
        let redirect = "redirect_map i40e->veth";
        assert_eq!((of("engine", redirect), of("batch", redirect)), (Some("live"), Some("16")), "{all:#?}");
        assert_eq!(of("map redirect", redirect), Some("devmap, max_entries 1"), "{all:#?}");
        // Its program is another there.
        assert_eq!((of("engine", "drop at dut"), of("map redirect", "drop at dut")), (Some("live"), None), "{all:#?}");
        let one = RunOptions { only: vec!["drop at dut".to_owned()], ..RunOptions::default() };
        assert!(!fingerprint(&topology, &one).0.keys().any(|name| name.ends_with(redirect)));
    }
}
