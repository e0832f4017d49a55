//! The checks: from what the file says to a model, with every error at once.
//!
//! What is wrong is reported where it stands and then left out of the draft, so that nothing is reported that only
//! follows from it: a name that was reported still counts as known.

mod address;
mod native;
mod net;
mod path;
mod perf;
mod programs;
mod scenarios;
mod targets;
mod traffic;
mod values;
mod xsk;

use std::{
    collections::{HashMap, HashSet},
    ops::RangeInclusive,
    path::Path,
};

use super::{
    diagnostic::{Diagnostic, Span},
    model::{NodeId, PortId, ProgramId, Topology},
    read::{At, Field},
    schema::RawTopology,
    spans::Spans,
    suggest,
};

pub(crate) use net::is_pci_address;

/// Largest MTU, in bytes, at which the kernel attaches a native program to the other end of a veth pair: a page less
/// 256 bytes of headroom, the Ethernet header and the socket buffer's shared info. Programs that declare fragments
/// (`xdp.frags`) are free of it. See `veth_xdp_set` in
/// <https://github.com/torvalds/linux/blob/v6.12/drivers/net/veth.c>.
pub const NATIVE_MTU_MOST: u32 = 4096 - 256 - 14 - 320;

/// Largest frame in memory, in bytes, that `BPF_PROG_RUN` takes for live frames.
const LIVE_MOST: u32 = 3408;

/// Checks a file. The model is whole only if nothing was found. `broken`: the syntax is broken somewhere, so that what
/// seems to be missing or dangling may only be unreadable.
pub(super) fn check(raw: &RawTopology, path: &Path, text: &str, broken: bool) -> (Topology, Vec<Diagnostic>) {
    let mut checker = Checker {
        raw,
        broken,
        found: Vec::new(),
        draft: Topology {
            name: String::new(),
            about: raw.about.given().map(|about| about.value.clone()).unwrap_or_default(),
            path: path.to_owned(),
            nodes: Vec::new(),
            ports: Vec::new(),
            links: Vec::new(),
            programs: Vec::new(),
            scenarios: Vec::new(),
            spans: Spans { text: text.to_owned(), ..Spans::default() },
        },
        nodes: HashMap::new(),
        ports: HashMap::new(),
        programs: HashMap::new(),
        sound: Vec::new(),
        paths_are_whole: !broken,
        ends_are_read: !broken,
        lost_ends: HashSet::new(),
        unknown: HashSet::new(),
    };
    if let Some(name) = raw.name.given() {
        checker.check_name("lab", name);
        checker.draft.name.clone_from(&name.value);
    }
    checker.check_net();
    checker.check_programs();
    checker.check_scenarios();
    (checker.draft, checker.found)
}

/// What a port's name stands for.
#[derive(Debug, Clone)]
struct PortEntry {
    /// Its index; `None` where it was reported.
    id: Option<PortId>,
    /// Where it was named first.
    span: Span,
}

/// The checks' state.
struct Checker<'a> {
    raw: &'a RawTopology,
    broken: bool,
    found: Vec<Diagnostic>,
    draft: Topology,
    nodes: HashMap<&'a str, NodeId>,
    ports: HashMap<(NodeId, &'a str), PortEntry>,
    programs: HashMap<&'a str, ProgramId>,
    /// By program: whether its body is what the file says.
    sound: Vec<bool>,
    /// Whether every link has the ends, and every program the ports, that the file gives it: else frames may get
    /// further than the draft knows.
    paths_are_whole: bool,
    /// Whether every end of a link could at least be read: else any unknown port may be the one that couldn't.
    ends_are_read: bool,
    /// Names of ports whose end was reported: the same name at another node is what was meant.
    lost_ends: HashSet<&'a str>,
    /// Unknown nodes and ports that were reported: one error each, however often they are named.
    unknown: HashSet<String>,
}

impl<'a> Checker<'a> {
    /// Reports an error that stands on its own.
    fn report(&mut self, diagnostic: Diagnostic) {
        self.found.push(diagnostic);
    }

    /// Reports an error about how parts of the file fit, unless a part may just be unreadable.
    fn report_fit(&mut self, diagnostic: Diagnostic) {
        if !self.broken {
            self.found.push(diagnostic);
        }
    }

    /// Checks the name of a lab, node or program.
    fn check_name(&mut self, what: &str, name: &At<String>) {
        let text = &name.value;
        let wrong = match text.chars().next() {
            None => Some("it is empty".to_owned()),
            Some(c) if !c.is_ascii_lowercase() && !c.is_ascii_digit() => Some(format!("it starts with `{c}`")),
            Some(_) if text.chars().count() > 32 => Some(format!("it has {} characters", text.chars().count())),
            Some(_) => text
                .chars()
                .find(|c| !(c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '_' | '-')))
                .map(|c| format!("it has a `{c}`")),
        };
        if let Some(wrong) = wrong {
            self.report(
                Diagnostic::error(name.span.clone(), format!("`{text}` can't be a {what}'s name: {wrong}"))
                    .label("not a name")
                    .help(
                        "use 1 to 32 of a-z, 0-9, `-` and `_`, starting with a letter or digit; \
                         the name becomes a namespace's and a folder's in a bpffs",
                    ),
            );
        }
    }

    /// A number within its bounds, or `None`, reported.
    fn in_range(&mut self, field: &Field<i64>, what: &str, range: RangeInclusive<i64>) -> Option<u32> {
        self.in_range_at(field.given()?, what, range)
    }

    /// The same for a value that is there, such as a list's.
    fn in_range_at(&mut self, at: &At<i64>, what: &str, range: RangeInclusive<i64>) -> Option<u32> {
        if !range.contains(&at.value) {
            let (least, most) = range.into_inner();
            self.report(
                Diagnostic::error(at.span.clone(), format!("{what} of {} is out of range", at.value))
                    .label("out of range")
                    .help(format!("give {least} to {most}")),
            );
            return None;
        }
        u32::try_from(at.value).ok()
    }

    /// A finite number above zero, or `None`, reported.
    fn positive(&mut self, field: &Field<f64>, what: &str) -> Option<f64> {
        let at = field.given()?;
        if at.value.is_finite() && at.value > 0.0 {
            return Some(at.value);
        }
        self.report(
            Diagnostic::error(at.span.clone(), format!("{what} of {} means nothing", at.value))
                .label("not a number above zero")
                .help("give a number above zero"),
        );
        None
    }

    /// The port that a text `node:port` names, or `None`, reported.
    fn port(&mut self, at: &At<String>) -> Option<PortId> {
        let (node, port) = self.split_port(at)?;
        let id = self.node(node, at)?;
        if let Some(entry) = self.ports.get(&(id, port)) {
            return entry.id;
        }
        if self.may_report_port(port) && self.unknown.insert(at.value.clone()) {
            let mut of_node: Vec<_> =
                self.ports.keys().filter(|(node, _)| *node == id).map(|(_, port)| *port).collect();
            of_node.sort_unstable();
            let help = if of_node.is_empty() {
                Some(format!("name it as an end of a link: ends = [\"{node}:{port}\", …]"))
            } else {
                let names: Vec<_> = of_node.iter().map(|port| format!("{node}:{port}")).collect();
                suggest::did_you_mean(&at.value, "its ports are", names.iter().map(String::as_str))
            };
            self.report_fit(
                Diagnostic::error(at.span.clone(), format!("node `{node}` has no port `{port}`"))
                    .label("no link ends here")
                    .maybe_help(help),
            );
        }
        None
    }

    /// Whether a port of that name that no link ends at is an error of its own, not of an end that was reported.
    fn may_report_port(&self, port: &str) -> bool {
        self.ends_are_read && !self.lost_ends.contains(port)
    }

    /// Node and port of a text `node:port`, or `None`, reported.
    fn split_port<'t>(&mut self, at: &'t At<String>) -> Option<(&'t str, &'t str)> {
        let parts = at.value.split_once(':').filter(|(node, port)| !node.is_empty() && !port.is_empty());
        if parts.is_none() {
            let help = if self.nodes.contains_key(at.value.as_str()) {
                format!("`{0}` is a node: name one of its ports, such as `{0}:eth0`", at.value)
            } else {
                "write `node:port`".to_owned()
            };
            self.report(
                Diagnostic::error(at.span.clone(), format!("`{}` is not a port", at.value))
                    .label("not `node:port`")
                    .help(help),
            );
        }
        parts
    }

    /// The node of that name, or `None`, reported.
    fn node(&mut self, name: &str, at: &At<String>) -> Option<NodeId> {
        let id = self.nodes.get(name).copied();
        // Without any node that can be read, each name would be an error of its own.
        if id.is_none() && !self.raw.nodes.is_bad() && self.unknown.insert(name.to_owned()) {
            let mut names: Vec<_> = self.nodes.keys().copied().collect();
            names.sort_unstable();
            let help = suggest::did_you_mean(name, "the nodes are", names);
            self.report_fit(
                Diagnostic::error(at.span.clone(), format!("there is no node `{name}`"))
                    .label("unknown node")
                    .help(format!("add the node: [nodes.{name}]"))
                    .maybe_help(help),
            );
        }
        id
    }

    /// Resolves a list of ports, reporting unknown and repeated ones; each with its place.
    fn ports(&mut self, field: &'a Field<super::read::List<String>>) -> Vec<(PortId, Span)> {
        let mut ports: Vec<(PortId, Span)> = Vec::new();
        for at in field.given().map(|list| list.value.items.as_slice()).unwrap_or_default() {
            let Some(port) = self.port(at) else { continue };
            if let Some((_, first)) = ports.iter().find(|(known, _)| *known == port) {
                let diagnostic = Diagnostic::error(at.span.clone(), format!("port `{}` is named twice", at.value))
                    .label("again here")
                    .related(first.clone(), "first here")
                    .help("name it once");
                self.report(diagnostic);
            } else {
                ports.push((port, at.span.clone()));
            }
        }
        ports
    }
}
