//! Finding one's way in a model: from names to indices.

use super::{NodeId, PortId, Program, ProgramId, ScenarioId, Topology};

impl Topology {
    /// The node of that name.
    pub fn node(&self, name: &str) -> Option<NodeId> {
        self.nodes.iter().position(|n| n.name == name).map(NodeId)
    }

    /// The scenario of that name.
    pub fn scenario(&self, name: &str) -> Option<ScenarioId> {
        self.scenarios.iter().position(|s| s.name == name).map(ScenarioId)
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
            Self::Dispatcher => "dispatcher",
            Self::Cpumap => "cpumap",
            Self::Flow => "flow",
            Self::Traits => "traits",
            Self::Xsk => "xsk",
        }
    }
}
