//! Graphviz.

use std::fmt::Write as _;

use super::{link_label, port_label, redirects};
use crate::topology::model::{LinkKind, NodeId, PortId, Topology};

/// The topology for Graphviz: nodes as clusters, ports in them, links as lines, redirects as dotted arrows.
pub fn dot(topology: &Topology) -> String {
    let mut out = format!(
        "digraph {} {{\n  rankdir=LR;\n  node [shape=box, fontname=\"sans-serif\"];\n  edge [fontname=\"sans-serif\", \
         fontsize=10];\n",
        quote(&topology.name)
    );
    for (index, node) in topology.nodes.iter().enumerate() {
        // Writing into a String can't fail, here and below.
        let _ = writeln!(out, "  subgraph cluster_{index} {{\n    label={};", quote(&node.name));
        for (port, _) in topology.ports.iter().enumerate().filter(|(_, port)| port.node == NodeId(index)) {
            let (name, program) = port_label(topology, PortId(port));
            let label = program.map_or_else(|| name.clone(), |program| format!("{name}\n{program}"));
            let _ = writeln!(out, "    p{port} [label={}];", quote(&label));
        }
        out.push_str("  }\n");
    }
    for (index, link) in topology.links.iter().enumerate() {
        let label = quote(&link_label(link));
        match (&link.kind, link.ends.as_slice()) {
            (LinkKind::Bridge, ends) => {
                let _ = writeln!(out, "  b{index} [label={label}, shape=hexagon];");
                for end in ends {
                    let _ = writeln!(out, "  p{} -> b{index} [dir=none];", end.0);
                }
            }
            (_, [a, b]) => {
                let _ = writeln!(out, "  p{} -> p{} [dir=none, label={label}];", a.0, b.0);
            }
            _ => {}
        }
    }
    for (from, to, word) in redirects(topology) {
        let _ = writeln!(out, "  p{} -> p{} [style=dotted, constraint=false, label=\"{word}\"];", from.0, to.0);
    }
    out.push_str("}\n");
    out
}

/// A quoted string of Graphviz.
fn quote(text: &str) -> String {
    let mut out = String::from('"');
    for c in text.chars() {
        match c {
            '"' | '\\' => out.extend(['\\', c]),
            '\n' => out.push_str("\\n"),
            c if c.is_control() => out.push(' '),
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

#[cfg(test)]
mod tests {
    use super::quote;

    #[test]
    fn quotes_and_backslashes_are_escaped() {
        assert_eq!(quote("a\"\\\n"), "\"a\\\"\\\\\\n\"");
    }
}
