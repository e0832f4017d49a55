//! Ways through a topology: names, peers, and where a scenario's frames can get to.

use std::collections::BTreeSet;

use super::model::{
    Builtin, Datum, LinkKind, MapContents, PortId, Program, ProgramBody, ProgramId, ProgramSource, Scenario, Topology,
};

/// Where a scenario's frames can get to, as far as the file tells.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Walk {
    /// Ports that frames come in by.
    pub arrivals: BTreeSet<PortId>,
    /// Ports that frames go out by: the sender, and what programs redirect to.
    pub departures: BTreeSet<PortId>,
    /// Programs that frames meet on arrival.
    pub programs: BTreeSet<ProgramId>,
    /// Whether a program on the way is not one of the built-ins, so that frames may go elsewhere too.
    pub opaque: bool,
}

impl Topology {
    /// A port's name, `node:port`.
    pub fn port_name(&self, port: PortId) -> String {
        let port = &self.ports[port.0];
        format!("{}:{}", self.nodes[port.node.0].name, port.name)
    }

    /// The port of that name, `node:port`.
    pub fn find_port(&self, name: &str) -> Option<PortId> {
        (0..self.ports.len()).map(PortId).find(|port| self.port_name(*port) == name)
    }

    /// The other ends of a port's link.
    pub fn peers(&self, port: PortId) -> impl Iterator<Item = PortId> {
        let link = &self.links[self.ports[port.0].link.0];
        link.ends.iter().copied().filter(move |end| *end != port)
    }

    /// The port at the other end of a veth pair or a cable; `None` at a bridge.
    pub fn peer(&self, port: PortId) -> Option<PortId> {
        let link = &self.links[self.ports[port.0].link.0];
        if link.kind == LinkKind::Bridge { None } else { self.peers(port).next() }
    }

    /// The program attached to a port.
    pub fn program_at(&self, port: PortId) -> Option<(ProgramId, &Program)> {
        self.programs
            .iter()
            .enumerate()
            .find(|(_, program)| program.attach.contains(&port))
            .map(|(index, program)| (ProgramId(index), program))
    }

    /// What runs for a program in a scenario: the body that stands in for it, or its own.
    pub fn body_in<'a>(&'a self, scenario: &'a Scenario, program: ProgramId) -> &'a ProgramBody {
        let stand_in = scenario.programs.iter().find(|(id, _)| *id == program);
        stand_in.map_or(&self.programs[program.0].body, |(_, body)| body)
    }

    /// Follows a scenario's frames from their sender.
    pub fn walk(&self, scenario: &Scenario) -> Walk {
        self.walk_past(scenario, &BTreeSet::new())
    }

    /// The same where broadcasts skip some of their targets.
    pub fn walk_past(&self, scenario: &Scenario, skipped: &BTreeSet<PortId>) -> Walk {
        let mut walk = Walk::default();
        let mut going = vec![scenario.traffic.from];
        while let Some(out) = going.pop() {
            if !walk.departures.insert(out) {
                continue;
            }
            for arrival in self.peers(out) {
                if !walk.arrivals.insert(arrival) {
                    continue;
                }
                let Some((id, _)) = self.program_at(arrival) else { continue };
                walk.programs.insert(id);
                let body = self.body_in(scenario, id);
                match body.acts_as() {
                    Some(Builtin::Tx) => going.push(arrival),
                    Some(Builtin::RedirectMap) => going.extend(body.ports()),
                    Some(Builtin::Broadcast) => {
                        going.extend(body.ports().into_iter().filter(|port| !skipped.contains(port)));
                    }
                    Some(_) => {}
                    None => {
                        walk.opaque = true;
                        going.push(arrival);
                        going.extend(body.ports());
                    }
                }
            }
        }
        walk
    }

    /// The ports at which frames on their way meet a broadcast, each with the targets that get a copy.
    pub fn broadcasts(&self, scenario: &Scenario, walk: &Walk) -> Vec<(PortId, Vec<PortId>)> {
        let at = |port: &PortId| {
            let body = self.body_in(scenario, self.program_at(*port)?.0);
            let gets = |target: &PortId| !body.options.exclude_ingress || target != port;
            (body.builtin() == Some(Builtin::Broadcast))
                .then(|| (*port, body.ports().into_iter().filter(gets).collect()))
        };
        walk.arrivals.iter().filter_map(at).collect()
    }
}

impl Walk {
    /// Whether frames come in or go out by a port.
    pub fn meets(&self, port: PortId) -> bool {
        self.arrivals.contains(&port) || self.departures.contains(&port)
    }
}

impl ProgramBody {
    /// The ports in its maps: what it redirects to. In order, repeated ones kept.
    pub fn ports(&self) -> Vec<PortId> {
        fn collect(datum: &Datum, ports: &mut Vec<PortId>) {
            match datum {
                Datum::Port(port) => ports.push(*port),
                Datum::List(list) => list.iter().for_each(|datum| collect(datum, ports)),
                Datum::Integer(_) | Datum::Bool(_) | Datum::Float(_) | Datum::Bytes(_) => {}
            }
        }
        let mut ports = Vec::new();
        for contents in self.maps.values() {
            match contents {
                MapContents::List(list) => list.iter().for_each(|datum| collect(datum, &mut ports)),
                MapContents::Table(table) => table.iter().for_each(|(_, datum)| collect(datum, &mut ports)),
            }
        }
        ports
    }

    /// What it does with frames, as one of `drop`, `pass`, `tx`, `redirect_map`, `broadcast` and `sink`; `None` for an
    /// object, of which nobody knows.
    pub fn acts_as(&self) -> Option<Builtin> {
        let has_targets = self.maps.contains_key("tx_ports");
        Some(match self.builtin()? {
            Builtin::Cpumap if self.egress.as_deref() == Some("drop") => Builtin::Drop,
            Builtin::Flow if has_targets && !self.options.lookup.miss => Builtin::RedirectMap,
            Builtin::Traits if has_targets => Builtin::RedirectMap,
            Builtin::Dispatcher | Builtin::Flow => Builtin::Drop,
            Builtin::Cpumap | Builtin::Traits => Builtin::Pass,
            other => other,
        })
    }

    /// The built-in that it is, if it is one.
    pub fn builtin(&self) -> Option<Builtin> {
        if let ProgramSource::Builtin(builtin) = self.source { Some(builtin) } else { None }
    }
}
