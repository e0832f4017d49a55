//! A topology as a picture: Mermaid, Graphviz or SVG.

mod dot;
mod layout;
mod mermaid;
mod svg;

pub use dot::dot;
pub use mermaid::mermaid;
pub(crate) use svg::escape;
pub use svg::svg;

use super::model::{Builtin, Link, LinkKind, PortId, Program, ProgramSource, Topology};

/// What a link is, in a few words: kind, driver, and an MTU that is not the usual one.
fn link_label(link: &Link) -> String {
    let kind = match &link.kind {
        LinkKind::Veth => "veth".to_owned(),
        LinkKind::Bridge => "bridge".to_owned(),
        LinkKind::Cable(nic) => match nic.driver.as_ref().or(nic.label.as_ref()).or(nic.pci.as_ref()) {
            Some(what) => format!("cable, {what}"),
            None => "cable".to_owned(),
        },
    };
    if link.mtu == 1500 { kind } else { format!("{kind}, MTU {}", link.mtu) }
}

/// A program's name, with what it loads where that is named otherwise.
fn program_label(program: &Program) -> String {
    let body = match &program.body.source {
        ProgramSource::Builtin(builtin) => builtin.name().to_owned(),
        ProgramSource::Object { path, program } => {
            let file = path.file_name().unwrap_or(path.as_os_str()).to_string_lossy();
            program.as_ref().map_or_else(|| file.to_string(), |program| format!("{file}/{program}"))
        }
    };
    if body == program.name { body } else { format!("{} ({body})", program.name) }
}

/// A port's name, and the program attached to it.
fn port_label(topology: &Topology, port: PortId) -> (String, Option<String>) {
    let program = topology.program_at(port).map(|(_, program)| program_label(program));
    (topology.ports[port.0].name.clone(), program)
}

/// Where programs redirect to: attach port, target, and how.
fn redirects(topology: &Topology) -> Vec<(PortId, PortId, &'static str)> {
    topology
        .programs
        .iter()
        .flat_map(|program| {
            let word = match program.body.builtin() {
                Some(Builtin::Broadcast) => "broadcast",
                _ => "redirect",
            };
            let targets = program.body.ports();
            program.attach.iter().flat_map(move |from| targets.clone().into_iter().map(move |to| (*from, to, word)))
        })
        .collect()
}
