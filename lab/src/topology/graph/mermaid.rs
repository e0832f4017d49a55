//! Mermaid flowcharts, which forges render inside Markdown.

use std::fmt::Write as _;

use super::{link_label, port_label, redirects};
use crate::topology::model::{LinkKind, NodeId, PortId, Topology};

/// The topology as a Mermaid flowchart: nodes as subgraphs, ports in them, links as lines, redirects as dotted arrows.
pub fn mermaid(topology: &Topology) -> String {
    let mut out = format!("---\ntitle: {}\n---\nflowchart LR\n", topology.name);
    for (index, node) in topology.nodes.iter().enumerate() {
        // Writing into a String can't fail, here and below.
        let _ = writeln!(out, "  subgraph n{index}[\"{}\"]", escape(&node.name));
        for (port, _) in topology.ports.iter().enumerate().filter(|(_, port)| port.node == NodeId(index)) {
            let (name, program) = port_label(topology, PortId(port));
            let program = program.map(|program| format!("<br/><i>{}</i>", escape(&program))).unwrap_or_default();
            let _ = writeln!(out, "    p{port}[\"{}{program}\"]", escape(&name));
        }
        out.push_str("  end\n");
    }
    for (index, link) in topology.links.iter().enumerate() {
        let label = escape(&link_label(link));
        match (&link.kind, link.ends.as_slice()) {
            (LinkKind::Bridge, ends) => {
                let _ = writeln!(out, "  b{index}{{{{\"{label}\"}}}}");
                for end in ends {
                    let _ = writeln!(out, "  p{} --- b{index}", end.0);
                }
            }
            (_, [a, b]) => {
                let _ = writeln!(out, "  p{} ---|\"{label}\"| p{}", a.0, b.0);
            }
            _ => {}
        }
    }
    for (from, to, word) in redirects(topology) {
        let _ = writeln!(out, "  p{} -. {word} .-> p{}", from.0, to.0);
    }
    out
}

/// Mermaid writes characters of its own syntax as entities.
fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            c if c.is_control() => out.push(' '),
            '"' | '#' | '<' | '>' | '&' | '\\' | '`' => {
                let _ = write!(out, "#{};", c as u32);
            }
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::escape;

    #[test]
    fn syntax_is_written_as_entities() {
        assert_eq!(escape("a\"<b>#\n"), "a#34;#60;b#62;#35; ");
    }
}
