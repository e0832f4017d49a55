//! Finding one's way in a model: names, other ends, who is attached where.

use super::{LinkKind, NodeId, PortId, Program, ProgramId, ScenarioId, Topology};

impl Topology {
    /// The port's name as the file writes it, `node:port`.
    pub fn port_name(&self, port: PortId) -> String {
        let port = &self.ports[port.0];
        format!("{}:{}", self.nodes[port.node.0].name, port.name)
    }

    /// The port of that name, `node:port`.
    pub fn port(&self, name: &str) -> Option<PortId> {
        let (node, port) = name.split_once(':')?;
        let node = self.node(node)?;
        self.ports.iter().position(|p| p.node == node && p.name == port).map(PortId)
    }

    /// The node of that name.
    pub fn node(&self, name: &str) -> Option<NodeId> {
        self.nodes.iter().position(|n| n.name == name).map(NodeId)
    }

    /// The scenario of that name.
    pub fn scenario(&self, name: &str) -> Option<ScenarioId> {
        self.scenarios.iter().position(|s| s.name == name).map(ScenarioId)
    }

    /// The other end of the port's link; `None` on a bridge, which has many.
    pub fn peer(&self, port: PortId) -> Option<PortId> {
        let link = &self.links[self.ports[port.0].link.0];
        match (&link.kind, link.ends.as_slice()) {
            (LinkKind::Veth | LinkKind::Cable(_), &[a, b]) => Some(if a == port { b } else { a }),
            _ => None,
        }
    }

    /// The program attached to a port.
    pub fn program_at(&self, port: PortId) -> Option<ProgramId> {
        self.programs.iter().position(|p| p.attach.contains(&port)).map(ProgramId)
    }

    /// A node's ports.
    pub fn ports_of(&self, node: NodeId) -> impl Iterator<Item = PortId> {
        self.ports.iter().enumerate().filter(move |(_, port)| port.node == node).map(|(i, _)| PortId(i))
    }

    /// The program of that index.
    pub fn program(&self, program: ProgramId) -> &Program {
        &self.programs[program.0]
    }
}

impl super::Builtin {
    /// The name that a topology file gives it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Drop => "drop",
            Self::Pass => "pass",
            Self::Tx => "tx",
            Self::RedirectMap => "redirect_map",
            Self::Broadcast => "broadcast",
            Self::Sink => "sink",
        }
    }
}
