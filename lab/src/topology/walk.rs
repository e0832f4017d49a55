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
                match body.source {
                    ProgramSource::Builtin(Builtin::Drop | Builtin::Pass | Builtin::Sink | Builtin::Xsk) => {}
                    ProgramSource::Builtin(Builtin::Tx) => going.push(arrival),
                    ProgramSource::Builtin(Builtin::RedirectMap | Builtin::Broadcast) => going.extend(body.ports()),
                    ProgramSource::Object { .. } => {
                        walk.opaque = true;
                        going.push(arrival);
                        going.extend(body.ports());
                    }
                }
            }
        }
        walk
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

    /// The built-in that it is, if it is one.
    pub fn builtin(&self) -> Option<Builtin> {
        if let ProgramSource::Builtin(builtin) = self.source { Some(builtin) } else { None }
    }
}
