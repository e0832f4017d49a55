//! Nodes, links, and the ports between them.

use std::collections::{BTreeMap, HashMap};

use super::{Checker, PortEntry};
use crate::topology::{
    diagnostic::{Diagnostic, Span},
    mac::Mac,
    model::{Link, LinkId, LinkKind, NicRequirement, Node, NodeId, Port, PortId, Rings},
    read::{At, Field},
    schema::{LinkWord, MTU_LEAST, MTU_MOST, QUEUES_MOST, RawLink, RawPort},
};

/// MTU where the file gives none, in bytes.
const MTU: u32 = 1500;

/// Most ports of a bridge: the kernel's own bound.
const BRIDGE_MOST: usize = 1023;

/// Largest ring, in descriptors: more than any NIC has.
const RING_MOST: i64 = 65_536;
/// Highest number of a CPU.
const CPU_MOST: i64 = 8_191;

/// Longest interface name, in bytes.
const NAME_MOST: usize = 15;

impl<'a> Checker<'a> {
    /// Checks nodes, links and ports, and gives ports their addresses.
    pub(super) fn check_net(&mut self) {
        let raw = self.raw;
        for (name, _) in raw.nodes.given().map(|nodes| nodes.value.entries.as_slice()).unwrap_or_default() {
            self.check_name("node", name);
            self.nodes.insert(&name.value, NodeId(self.draft.nodes.len()));
            self.draft.nodes.push(Node { name: name.value.clone() });
        }
        let links = raw.links.given().map(|links| &links.value);
        // Known before any is checked: an unreadable end may be what another part of the file refers to.
        self.ends_are_read &= !raw.nodes.is_bad() && !raw.links.is_bad();
        self.ends_are_read &= links.is_none_or(|links| {
            let all_read = |link: &At<RawLink>| link.value.ends.given().is_some_and(|ends| !ends.value.bad);
            !links.bad && links.items.iter().all(all_read)
        });
        self.paths_are_whole &= self.ends_are_read;
        for link in links.map(|links| links.items.as_slice()).unwrap_or_default() {
            self.check_link(&link.value);
        }
        let mut settings: HashMap<PortId, &'a RawPort> = HashMap::new();
        for (node, value) in raw.nodes.given().map(|nodes| nodes.value.entries.as_slice()).unwrap_or_default() {
            let Some(ports) = value.given().and_then(|node| node.value.ports.given()) else { continue };
            let Some(id) = self.nodes.get(node.value.as_str()).copied() else { continue };
            for (name, value) in &ports.value.entries {
                let port = self.settings_of(id, &node.value, name);
                if let (Some(port), Some(value)) = (port, value.given()) {
                    self.check_port(port, &value.value);
                    settings.insert(port, &value.value);
                }
            }
        }
        self.give_macs(&settings);
        self.give_addresses(&settings);
    }

    fn check_link(&mut self, raw: &'a RawLink) {
        let id = LinkId(self.draft.links.len());
        let word = raw.kind.given().map(|kind| kind.value);
        let mtu = self.in_range(&raw.mtu, "an MTU", MTU_LEAST..=MTU_MOST).unwrap_or(MTU);
        let nic = self.check_nic(raw, word);
        let kind = match word {
            Some(LinkWord::Cable) => LinkKind::Cable(nic),
            Some(LinkWord::Bridge) => LinkKind::Bridge,
            Some(LinkWord::Veth) | None => LinkKind::Veth,
        };
        self.draft.links.push(Link { kind, ends: Vec::new(), mtu });
        let driver = raw.nic.given().and_then(|nic| nic.value.driver.given());
        self.draft.spans.drivers.push(driver.map(|driver| driver.span.clone()));

        let Some(ends) = raw.ends.given() else { return };
        let named = ends.value.items.len();
        for end in &ends.value.items {
            let mtu_span = raw.mtu.given().map(|mtu| mtu.span.clone());
            if let Some(port) = self.check_end(end, id, mtu, mtu_span) {
                self.draft.links[id.0].ends.push(port);
            } else {
                self.paths_are_whole = false;
                self.lost_ends.extend(end.value.split_once(':').map(|(_, port)| port));
            }
        }
        if ends.value.bad {
            return;
        }
        let (wrong, help) = match word {
            Some(LinkWord::Veth | LinkWord::Cable) if named > 2 => {
                ("two ends", "make it a bridge (kind = \"bridge\"), or one link for each pair of ends")
            }
            Some(LinkWord::Veth | LinkWord::Cable) if named < 2 => ("two ends", "name the port at the other end"),
            Some(LinkWord::Bridge) if named < 2 => ("two ends or more", "name the other ports"),
            Some(LinkWord::Bridge) if named > BRIDGE_MOST => ("at most 1023 ends", "split it into several bridges"),
            _ => return,
        };
        self.paths_are_whole = false;
        self.report(
            Diagnostic::error(ends.span.clone(), format!("this link needs {wrong}, and names {named}"))
                .label(format!("{named} of them"))
                .help(help),
        );
    }

    fn check_nic(&mut self, raw: &RawLink, word: Option<LinkWord>) -> NicRequirement {
        let Some(nic) = raw.nic.given() else { return NicRequirement::default() };
        if let Some(LinkWord::Veth | LinkWord::Bridge) = word {
            self.report(
                Diagnostic::error(nic.span.clone(), "only a cable has NICs")
                    .label("this link is none")
                    .help("make it a cable (kind = \"cable\"), or leave `nic` out"),
            );
        }
        for (field, what) in [(&nic.value.driver, "driver"), (&nic.value.label, "label")] {
            if let Some(text) = field.given().filter(|text| text.value.trim().is_empty()) {
                self.report(
                    Diagnostic::error(text.span.clone(), format!("an empty {what} asks for nothing")).label("empty"),
                );
            }
        }
        if let Some(pci) = nic.value.pci.given().filter(|pci| !is_pci_address(&pci.value)) {
            self.report(
                Diagnostic::error(pci.span.clone(), format!("`{}` is not a PCI address", pci.value))
                    .label("not `domain:bus:device.function`")
                    .help("write it as lspci -D does, such as 0000:03:00.0"),
            );
        }
        NicRequirement {
            driver: nic.value.driver.given().map(|text| text.value.clone()),
            pci: nic.value.pci.given().map(|text| text.value.clone()),
            label: nic.value.label.given().map(|text| text.value.clone()),
            speed: self.in_range(&nic.value.speed, "a link speed", 1..=10_000_000),
        }
    }

    /// One end of a link: makes its port.
    fn check_end(&mut self, at: &'a At<String>, link: LinkId, mtu: u32, mtu_span: Option<Span>) -> Option<PortId> {
        let (node_name, port_name) = self.split_port(at)?;
        let node = self.node(node_name, at)?;
        if let Some(first) = self.ports.get(&(node, port_name)) {
            let diagnostic =
                Diagnostic::error(at.span.clone(), format!("port `{}` is an end of a link twice", at.value))
                    .label("again here")
                    .related(first.span.clone(), "first here")
                    .help("give this end a name of its own: a port has one link");
            self.report(diagnostic);
            return None;
        }
        self.check_port_name(port_name, at);
        let id = PortId(self.draft.ports.len());
        self.ports.insert((node, port_name), PortEntry { id: Some(id), span: at.span.clone() });
        self.draft.ports.push(Port {
            node,
            name: port_name.to_owned(),
            link,
            mac: Mac([0; 6]),
            mtu,
            addresses: Vec::new(),
            gro: None,
            queues: 1,
            rings: None,
            offloads: BTreeMap::new(),
            irq_cpus: Vec::new(),
        });
        self.draft.spans.ports.push(at.span.clone());
        self.draft.spans.gro.push(None);
        self.draft.spans.mtu.push(mtu_span);
        Some(id)
    }

    /// The kernel's rules for an interface's name, and the few names that mean something else.
    fn check_port_name(&mut self, name: &str, at: &At<String>) {
        let (wrong, help) = if name.len() > NAME_MOST {
            let short = &name[..name.floor_char_boundary(NAME_MOST)];
            (
                format!("it has {} bytes, and the kernel takes {NAME_MOST}", name.len()),
                format!("shorten it, such as to `{short}`"),
            )
        } else if let Some(c) =
            name.chars().find(|c| c.is_whitespace() || c.is_control() || matches!(c, '/' | ':' | '%'))
        {
            (format!("it has a `{}`", c.escape_debug()), "use letters, digits, `-`, `_` and `.`".to_owned())
        } else if matches!(name, "." | ".." | "lo" | "all" | "default") {
            (format!("`{name}` has a meaning of its own in every namespace"), "choose another name".to_owned())
        } else {
            return;
        };
        self.report(
            Diagnostic::error(at.span.clone(), format!("`{name}` can't be a port's name: {wrong}"))
                .label("not an interface name")
                .help(help),
        );
    }

    /// The port that a `[nodes.X.ports.Y]` is about.
    fn settings_of(&mut self, node: NodeId, node_name: &str, name: &'a At<String>) -> Option<PortId> {
        if let Some(entry) = self.ports.get(&(node, name.value.as_str())) {
            return entry.id;
        }
        if self.may_report_port(&name.value) {
            let mut known: Vec<_> = self.ports.keys().filter(|(id, _)| *id == node).map(|(_, port)| *port).collect();
            known.sort_unstable();
            let help = crate::topology::suggest::nearest(&name.value, known).map_or_else(
                || format!("name `{node_name}:{0}` as an end of a link, or leave its settings out", name.value),
                |nearest| format!("did you mean `{nearest}`?"),
            );
            self.report_fit(
                Diagnostic::error(name.span.clone(), format!("port `{node_name}:{}` is no end of a link", name.value))
                    .label("no link ends here")
                    .help(help),
            );
        }
        // Known from here on, so that what is attached to it is no error as well.
        self.ports.insert((node, &name.value), PortEntry { id: None, span: name.span.clone() });
        None
    }

    /// A port's own settings, apart from its addresses.
    fn check_port(&mut self, id: PortId, raw: &RawPort) {
        let link = self.draft.links[self.draft.ports[id.0].link.0].kind.clone();
        if let Some(mtu) = self.in_range(&raw.mtu, "an MTU", MTU_LEAST..=MTU_MOST) {
            self.draft.ports[id.0].mtu = mtu;
            self.draft.spans.mtu[id.0] = raw.mtu.given().map(|mtu| mtu.span.clone());
        }
        if let Some(queues) = self.in_range(&raw.queues, "a number of queues", 1..=QUEUES_MOST) {
            self.draft.ports[id.0].queues = queues;
        }
        if let Some(gro) = raw.gro.given() {
            self.draft.ports[id.0].gro = Some(gro.value);
            self.draft.spans.gro[id.0] = Some(gro.span.clone());
        }
        for (name, value) in raw.offloads.given().map(|names| names.value.entries.as_slice()).unwrap_or_default() {
            self.check_offload(id, raw, name, value);
        }
        if let Some(rings) = raw.rings.given() {
            let rx = self.in_range(&rings.value.rx, "a ring size", 1..=RING_MOST);
            let tx = self.in_range(&rings.value.tx, "a ring size", 1..=RING_MOST);
            self.draft.ports[id.0].rings = Some(Rings { rx, tx });
        }
        for cpu in raw.irq_cpus.given().map(|list| list.value.items.as_slice()).unwrap_or_default() {
            if let Some(cpu) = self.in_range_at(cpu, "a CPU", 0..=CPU_MOST) {
                self.draft.ports[id.0].irq_cpus.push(cpu);
            }
        }
        let nic_only = [
            ("rings", raw.rings.given().map(|at| at.span.clone())),
            ("irq-cpus", raw.irq_cpus.given().map(|at| at.span.clone())),
        ];
        for (key, span) in nic_only {
            let Some(span) = span.filter(|_| !matches!(link, LinkKind::Cable(_))) else { continue };
            let port = self.draft.port_name(id);
            self.report(
                Diagnostic::error(span, format!("`{key}` is for NICs, and `{port}` is an end of a veth pair"))
                    .label("a veth has none")
                    .help("leave it out"),
            );
        }
    }

    fn check_offload(&mut self, id: PortId, raw: &RawPort, name: &At<String>, value: &Field<bool>) {
        let is_name = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
        if name.value.is_empty() || !name.value.chars().all(is_name) {
            self.report(
                Diagnostic::error(name.span.clone(), format!("`{}` is not an offload's name", name.value))
                    .label("not a name that ethtool has")
                    .help("write it as ethtool -k does, such as tx-checksum-ip-generic, or tso, gso, gro"),
            );
            return;
        }
        let is_gro = matches!(name.value.as_str(), "gro" | "rx-gro");
        if let Some(gro) = raw.gro.given().filter(|_| is_gro) {
            self.report(
                Diagnostic::error(name.span.clone(), "GRO is set twice")
                    .label("here as an offload")
                    .related(gro.span.clone(), "and here")
                    .help("keep `gro`"),
            );
            return;
        }
        if let Some(value) = value.given() {
            if is_gro {
                self.draft.ports[id.0].gro = Some(value.value);
                self.draft.spans.gro[id.0] = Some(value.span.clone());
            } else {
                self.draft.ports[id.0].offloads.insert(name.value.clone(), value.value);
            }
        }
    }
}

/// Whether a text is a PCI address, `0000:03:00.0`, or one of a second port of the same function, `0000:03:00.0/1`.
pub(crate) fn is_pci_address(text: &str) -> bool {
    let (text, port) = text.split_once('/').map_or((text, None), |(text, port)| (text, Some(port)));
    if port.is_some_and(|port| port.is_empty() || port.starts_with('0') || !port.bytes().all(|b| b.is_ascii_digit())) {
        return false;
    }
    let hex = |part: &str, digits: usize| part.len() == digits && part.bytes().all(|b| b.is_ascii_hexdigit());
    let parts: Vec<_> = text.split([':', '.']).collect();
    let shape = text.char_indices().filter(|(_, c)| matches!(c, ':' | '.')).map(|(_, c)| c).collect::<String>();
    matches!(parts[..], [domain, bus, device, function]
        if shape == "::." && hex(domain, 4) && hex(bus, 2) && hex(device, 2) && hex(function, 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_port_of_a_function_has_its_number_behind_the_address() {
        for good in ["0000:03:00.0", "0000:03:00.0/1", "10de:af:1f.7/12"] {
            assert!(is_pci_address(good), "{good}");
        }
        for bad in ["0000:03:00.0/", "0000:03:00.0/0", "0000:03:00.0/a", "/1", "0000:03:00", "0000:03:00.0/1/2", ""] {
            assert!(!is_pci_address(bad), "{bad}");
        }
    }
}
