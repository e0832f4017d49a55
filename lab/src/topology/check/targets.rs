//! Where programs redirect to.

use super::{Checker, programs::BodyKeys, values::Targets};
use crate::topology::{
    diagnostic::{Diagnostic, Span},
    model::{Builtin, PortId},
    read::{At, Field, RawValue},
};

/// The map from which the built-ins that redirect take their targets.
pub(super) const TARGETS: &str = "tx_ports";

/// Whether a built-in takes targets.
pub(super) fn redirects(builtin: Builtin) -> bool {
    matches!(builtin, Builtin::RedirectMap | Builtin::Broadcast | Builtin::Flow | Builtin::Traits)
}

/// Whether a built-in does nothing without targets.
fn needs_targets(builtin: Builtin) -> bool {
    matches!(builtin, Builtin::RedirectMap | Builtin::Broadcast)
}

impl Checker<'_> {
    /// An ifindex means something in its own node only.
    pub(super) fn check_same_node(&mut self, target: PortId, span: &Span, name: &str, attach: &[PortId]) {
        let node_of = |port: PortId| self.draft.ports[port.0].node;
        let Some(here) = attach.iter().copied().find(|port| node_of(*port) != node_of(target)) else { return };
        let node_name = |port: PortId| &self.draft.nodes[node_of(port).0].name;
        // What was meant is mostly the port of its own node that leads there.
        let leads = self.draft.peers(target).find(|peer| node_of(*peer) == node_of(here));
        let help = leads.map_or_else(
            || {
                let ports = (0..self.draft.ports.len()).map(PortId).filter(|port| node_of(*port) == node_of(here));
                let names: Vec<_> = ports.map(|port| format!("`{}`", self.draft.port_name(port))).collect();
                format!("redirect to a port of `{}`: {}", node_name(here), names.join(", "))
            },
            |port| format!("redirect to the port that leads there: `{}`", self.draft.port_name(port)),
        );
        let diagnostic = Diagnostic::error(
            span.clone(),
            format!(
                "`{name}` runs in node `{}` (at `{}`) and can't reach `{}`, which is in node `{}`",
                node_name(here),
                self.draft.port_name(here),
                self.draft.port_name(target),
                node_name(target),
            ),
        )
        .label("in another node")
        .help(help);
        self.report_fit(diagnostic);
    }

    /// Targets of a built-in that redirects.
    pub(super) fn check_targets(
        &mut self,
        keys: &BodyKeys<'_>,
        builtin: Builtin,
        span: &Span,
        targets: &Targets,
        max_entries: Option<u32>,
    ) {
        let map = keys.maps.given().and_then(|names| {
            names.value.entries.iter().find(|(name, _)| name.value == TARGETS).map(|(_, value)| value)
        });
        if map.is_some_and(Field::is_bad) || keys.maps.is_bad() {
            return;
        }
        let builtin_word = builtin.name();
        let values = map.and_then(Field::given);
        let listed = match values.map(|at| &at.value) {
            None => 0,
            Some(RawValue::List(list)) => list.len(),
            Some(RawValue::Table(table)) => table.len(),
            // Reported as no list.
            Some(_) => return,
        };
        if values.is_none() && !needs_targets(builtin) {
            return;
        }
        if listed == 0 {
            let at = values.map_or_else(|| span.clone(), |at| at.span.clone());
            self.report_fit(
                Diagnostic::error(at, format!("`{builtin_word}` has no targets"))
                    .label("no `maps.tx_ports`")
                    .help("name the ports to redirect to: maps.tx_ports = [\"dut:out0\"]"),
            );
            return;
        }
        let Some(values) = values else { return };
        self.check_target_kinds(values, builtin_word, max_entries.unwrap_or(listed as u32));
        if targets.len() != listed {
            return;
        }
        if builtin == Builtin::Traits && listed > 1 {
            self.report(
                Diagnostic::error(values.span.clone(), "`traits` redirects to one port")
                    .label(format!("{listed} targets"))
                    .help("name one, and put a `broadcast` behind it"),
            );
        }
        let may_be_single = keys
            .options
            .given()
            .and_then(|options| options.value.single_target.given())
            .is_some_and(|single| single.value);
        if builtin == Builtin::Broadcast && listed < 2 && !may_be_single {
            self.report(
                Diagnostic::error(values.span.clone(), "a broadcast to one target never clones")
                    .label("one target")
                    .help(
                        "name two or more, use the built-in `redirect_map`, or say that it is meant: options.single-target = true",
                    ),
            );
        }
        if let Some(size) = max_entries.filter(|size| listed > *size as usize) {
            let at = keys.options.given().and_then(|options| options.value.max_entries.given());
            let mut diagnostic =
                Diagnostic::error(values.span.clone(), format!("{listed} targets don't fit a map of {size} entries"))
                    .label(format!("{listed} targets"))
                    .help(format!("set max-entries = {listed}, or leave it out"));
            if let Some(at) = at {
                diagnostic = diagnostic.related(at.span.clone(), "the map's size");
            }
            self.report(diagnostic);
        }
    }

    /// A built-in's devmap takes ports, by slot.
    fn check_target_kinds(&mut self, values: &At<RawValue>, builtin: &str, size: u32) {
        let mut wrong = Vec::new();
        let not_port = |value: &RawValue| !matches!(value, RawValue::Text(_));
        match &values.value {
            RawValue::List(list) => {
                wrong.extend(list.iter().filter(|at| not_port(&at.value)).map(|at| (at.span.clone(), "not a port")));
            }
            RawValue::Table(table) => {
                for (key, value) in table {
                    if !key.value.parse::<u32>().is_ok_and(|slot| slot < size) {
                        wrong.push((key.span.clone(), "not a slot of this map"));
                    }
                    if not_port(&value.value) {
                        wrong.push((value.span.clone(), "not a port"));
                    }
                }
            }
            _ => {}
        }
        for (span, label) in wrong {
            self.report(
                Diagnostic::error(span, format!("the devmap of `{builtin}` takes ports by slot number"))
                    .label(label)
                    .help(format!(
                        "write maps.{TARGETS} = [\"dut:out0\"], or {{ 0 = \"dut:out0\" }} with slots below {size}"
                    )),
            );
        }
    }
}
