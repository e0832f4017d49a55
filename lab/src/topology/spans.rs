//! Where the parts of a model stand in its file, for messages about them later on.

use super::{diagnostic::Span, model::PortId};

/// Places of a topology's parts. The vectors run in step with those of the [`Topology`](super::Topology); all are empty
/// in a model that no file was read for.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Spans {
    /// The file's text.
    pub text: String,
    /// By port: where a link names it.
    pub ports: Vec<Span>,
    /// By port: where its GRO is set.
    pub gro: Vec<Option<Span>>,
    /// By port: where its MTU is set, by itself or by its link.
    pub mtu: Vec<Option<Span>>,
    /// By link: where it asks for a driver.
    pub drivers: Vec<Option<Span>>,
    /// By program.
    pub programs: Vec<ProgramSpans>,
    /// By scenario.
    pub scenarios: Vec<ScenarioSpans>,
}

/// Places of a program's parts.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ProgramSpans {
    /// Its name.
    pub name: Span,
    /// Its object's file.
    pub object: Option<Span>,
    /// Its attach points, in order.
    pub attach: Vec<Span>,
    /// The ports in its maps.
    pub targets: Vec<(PortId, Span)>,
}

/// Places of a scenario's parts.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ScenarioSpans {
    /// Its name.
    pub name: Span,
    /// The sending port.
    pub from: Span,
    /// The batch size.
    pub batch: Option<Span>,
    /// The frame size, or the whole of `traffic`.
    pub frame_bytes: Span,
    /// Ports that frames are delivered at, in order.
    pub deliver: Vec<Span>,
    /// Ports that frames are dropped at, in order.
    pub drop: Vec<Span>,
    /// The number of clones.
    pub clones: Option<Span>,
    /// `skip-unable`.
    pub skip_unable: Option<Span>,
    /// The modes, in order.
    pub modes: Vec<Span>,
    /// The bodies that stand in for programs, in order.
    pub programs: Vec<ProgramSpans>,
    /// The drivers that `min-mpps` names.
    pub drivers: Vec<(String, Span)>,
}
