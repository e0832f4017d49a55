//! What can't hold for any run of a scenario: its frames' path against what it expects.

use super::{Checker, traffic::ETHERNET};
use crate::{
    topology::{
        diagnostic::{Diagnostic, Span},
        model::{Amount, Builtin, PortId, ProgramSource, Scenario},
        spans::ScenarioSpans,
        walk::Walk,
    },
    xdp::XdpMode,
};

/// Where to point.
pub(super) struct PathSpans<'s> {
    pub(super) scenario: &'s ScenarioSpans,
    /// Whether the scenario says that frames are lost.
    pub(super) may_lose: bool,
}

impl Checker<'_> {
    /// Checks a scenario that is sound by itself.
    pub(super) fn check_path(&mut self, scenario: &Scenario, spans: &PathSpans<'_>) {
        if self.draft.ports[scenario.traffic.from.0].node.0 >= self.draft.nodes.len() {
            return;
        }
        let mut walk = self.draft.walk(scenario);
        // Where a link or a program was reported, frames may well get further than the draft knows.
        walk.opaque |= !self.is_whole(scenario, &walk);
        self.check_path_mtu(scenario, spans, &walk);
        self.check_path_modes(scenario, spans, &walk);
        for (port, span) in scenario.expect.deliver.iter().zip(&spans.scenario.deliver) {
            self.check_end_of_path(scenario, &walk, *port, span, true);
        }
        for (port, span) in scenario.expect.drop.iter().zip(&spans.scenario.drop) {
            // Both at once was reported.
            if scenario.expect.deliver.contains(port) {
                continue;
            }
            self.check_end_of_path(scenario, &walk, *port, span, false);
        }
        self.check_clones(scenario, spans, &walk);
        self.check_skip_unable(scenario, spans, &walk);
    }

    /// Whether all links, and all programs on the way, are what the file says.
    fn is_whole(&self, scenario: &Scenario, walk: &Walk) -> bool {
        self.paths_are_whole
            && walk.programs.iter().all(|id| {
                let replaced = scenario.programs.iter().any(|(program, _)| program == id);
                replaced || self.sound[id.0]
            })
    }

    /// Whether every port on the way takes the frame.
    fn check_path_mtu(&mut self, scenario: &Scenario, spans: &PathSpans<'_>, walk: &Walk) {
        let packet = scenario.traffic.frame_bytes - ETHERNET;
        if spans.may_lose {
            return;
        }
        // The sender's own was checked with the frame.
        let narrow: Vec<_> = walk
            .arrivals
            .union(&walk.departures)
            .copied()
            .filter(|port| *port != scenario.traffic.from && packet > self.draft.ports[port.0].mtu)
            .collect();
        let Some(first) = narrow.first() else { return };
        let least = narrow.iter().map(|port| self.draft.ports[port.0].mtu).min().unwrap_or_default();
        let names: Vec<_> = narrow
            .iter()
            .map(|port| format!("`{}` ({})", self.draft.port_name(*port), self.draft.ports[port.0].mtu))
            .collect();
        let mut diagnostic = Diagnostic::error(
            spans.scenario.frame_bytes.clone(),
            format!(
                "a {}-byte frame holds {packet} bytes of IP, over the MTU of {} on its way",
                scenario.traffic.frame_bytes,
                names.join(" and of ")
            ),
        )
        .label("over an MTU on the way")
        .help(format!(
            "set frame-bytes = {} or less, raise the MTU, or say in `expect` how many are lost",
            least + ETHERNET
        ));
        if let Some(at) = self.draft.spans.mtu[first.0].clone() {
            diagnostic = diagnostic.related(at, "the MTU");
        }
        self.report_fit(diagnostic);
    }

    /// Whether the programs under test can run in the scenario's modes.
    fn check_path_modes(&mut self, scenario: &Scenario, spans: &PathSpans<'_>, walk: &Walk) {
        for id in &walk.programs {
            let program = &self.draft.programs[id.0];
            // A sink takes the mode in which it can see the frames.
            if self.draft.body_in(scenario, *id).builtin() == Some(Builtin::Sink) {
                continue;
            }
            let Some(fixed) = program.mode else { continue };
            let Some(other) = scenario.modes.iter().position(|mode| *mode != fixed) else { continue };
            let at = spans.scenario.modes.get(other).unwrap_or(&spans.scenario.name).clone();
            self.report_fit(
                Diagnostic::error(
                    at,
                    format!(
                        "program `{}` always runs in {fixed} mode, and this scenario asks for {}",
                        program.name, scenario.modes[other]
                    ),
                )
                .label("not in this mode")
                .related(
                    self.draft.spans.programs[id.0].name.clone(),
                    format!("`{}` has mode = \"{fixed}\"", program.name),
                )
                .help(format!("set modes = [\"{fixed}\"], or leave the program's `mode` out")),
            );
        }
    }

    /// Whether frames can end at a port in the way that the scenario expects.
    fn check_end_of_path(&mut self, scenario: &Scenario, walk: &Walk, port: PortId, span: &Span, deliver: bool) {
        let name = self.draft.port_name(port);
        let verb = if deliver { "delivered" } else { "dropped" };
        // A redirect's egress program drops at the port that it redirects to.
        let egress = !deliver && walk.departures.contains(&port) && self.egress_reaches(scenario, walk, port);
        if egress {
            return;
        }
        if !walk.arrivals.contains(&port) {
            if !walk.opaque {
                let arrivals: Vec<_> =
                    walk.arrivals.iter().map(|port| format!("`{}`", self.draft.port_name(*port))).collect();
                self.report_fit(
                    Diagnostic::error(
                        span.clone(),
                        format!(
                            "no frame can be {verb} at `{name}`: none of those from `{}` gets there",
                            self.draft.port_name(scenario.traffic.from)
                        ),
                    )
                    .label("off their path")
                    .help(if arrivals.len() <= 8 {
                        format!(
                            "frames come in at {}; redirect them to the port's peer, or expect them there",
                            arrivals.join(", ")
                        )
                    } else {
                        "redirect them to the port's peer, or expect them elsewhere".to_owned()
                    }),
                );
            }
            return;
        }
        let Some((id, program)) = self.draft.program_at(port) else {
            if !deliver && self.paths_are_whole {
                self.report_fit(
                    Diagnostic::error(span.clone(), format!("no program at `{name}` could drop a frame"))
                        .label("no program here")
                        .help(format!("attach one: builtin = \"drop\", attach = [\"{name}\"]")),
                );
            }
            return;
        };
        let replaced = scenario.programs.iter().any(|(program, _)| *program == id);
        if !replaced && !self.sound[id.0] {
            return;
        }
        let body = self.draft.body_in(scenario, id);
        let (Some(builtin), Some(acts_as)) = (body.builtin(), body.acts_as()) else { return };
        let help = match (deliver, acts_as) {
            // Which of the six it acts as decides; the last four are not among the answers.
            (true, Builtin::Sink | Builtin::Pass | Builtin::Xsk)
            | (false, Builtin::Drop)
            | (_, Builtin::Dispatcher | Builtin::Cpumap | Builtin::Flow | Builtin::Traits) => return,
            (true, Builtin::Drop) => format!("expect drop = [\"{name}\"], or use the built-in `sink`"),
            (false, Builtin::Sink) => format!("a sink is where frames arrive: expect deliver = [\"{name}\"]"),
            (false, Builtin::Xsk) => format!("its sockets are where frames arrive: expect deliver = [\"{name}\"]"),
            (false, Builtin::Pass) => format!("expect deliver = [\"{name}\"], or use the built-in `drop`"),
            (_, Builtin::Tx) => "expect them at the port that they are sent back to".to_owned(),
            (_, Builtin::RedirectMap | Builtin::Broadcast) => "expect them at the port behind its targets".to_owned(),
        };
        let what = match acts_as {
            Builtin::Drop | Builtin::Dispatcher | Builtin::Flow => "drops all that arrives",
            Builtin::Pass | Builtin::Cpumap | Builtin::Traits => "passes all that arrives to the stack",
            Builtin::Tx => "sends back all that arrives",
            Builtin::RedirectMap | Builtin::Broadcast => "redirects all that arrives",
            Builtin::Sink | Builtin::Xsk => "takes in all that arrives",
        };
        self.report_fit(
            Diagnostic::error(
                span.clone(),
                format!("no frame is {verb} at `{name}`: its program `{}` (`{}`) {what}", program.name, builtin.name()),
            )
            .label(format!("never {verb} here"))
            .help(help),
        );
    }

    /// Whether a program on the way has an egress program that may drop, with that port among its targets.
    fn egress_reaches(&self, scenario: &Scenario, walk: &Walk, port: PortId) -> bool {
        walk.programs.iter().map(|id| self.draft.body_in(scenario, *id)).any(|body| {
            let may_drop = match body.source {
                ProgramSource::Builtin(_) => body.egress.as_deref() == Some("drop"),
                ProgramSource::Object { .. } => body.egress.is_some(),
            };
            may_drop && body.ports().contains(&port)
        })
    }

    /// Whether that many clones can be made.
    fn check_clones(&mut self, scenario: &Scenario, spans: &PathSpans<'_>, walk: &Walk) {
        let (Some(clones @ 1..), Some(at)) = (scenario.expect.clones, &spans.scenario.clones) else { return };
        let Amount::Frames(frames) = scenario.traffic.amount else {
            self.report_fit(
                Diagnostic::error(
                    at.clone(),
                    "clones are counted to the frame, and a duration sends nobody knows how many",
                )
                .label("a number of clones")
                .help("give `frames` in place of `duration`, or leave `clones` out"),
            );
            return;
        };
        if walk.opaque {
            return;
        }
        // A frame meets a broadcast once a port at most, so that this is a bound.
        let per_frame = self
            .draft
            .broadcasts(scenario, walk)
            .iter()
            .map(|(_, targets)| targets.len().saturating_sub(1) as u64)
            .fold(0, u64::saturating_add);
        let most = per_frame.saturating_mul(frames);
        if clones <= most {
            return;
        }
        let (message, help) = if per_frame == 0 {
            (
                "nothing on the way of these frames clones them".to_owned(),
                "expect clones = 0, or broadcast to two or more ports".to_owned(),
            )
        } else {
            (
                format!(
                    "{frames} frames can't make {clones} clones: a broadcast makes one fewer than it has targets, {per_frame} a frame here"
                ),
                format!("expect clones = {most}"),
            )
        };
        self.report_fit(Diagnostic::error(at.clone(), message).label("more than can be").help(help));
    }

    /// Whether there is a target that the kernel could skip, and clones can be told without it.
    fn check_skip_unable(&mut self, scenario: &Scenario, spans: &PathSpans<'_>, walk: &Walk) {
        let (true, Some(at)) = (scenario.expect.skip_unable, &spans.scenario.skip_unable) else { return };
        if !self.is_whole(scenario, walk) {
            return;
        }
        let broadcasts = self.draft.broadcasts(scenario, walk);
        let (message, label, help) = match broadcasts.as_slice() {
            [] => (
                "no frame of this scenario meets a broadcast, and the kernel skips no target but a broadcast's"
                    .to_owned(),
                "nothing to skip",
                "leave `skip-unable` out, or redirect with builtin = \"broadcast\"",
            ),
            [_] if !scenario.modes.contains(&XdpMode::Native) => (
                "the kernel skips no target of a broadcast in generic mode, the only one that this scenario runs in"
                    .to_owned(),
                "nothing to skip",
                "leave `skip-unable` out, or add \"native\" to `modes`",
            ),
            [_] => return,
            some => {
                let ports: Vec<_> = some.iter().map(|(port, _)| format!("`{}`", self.draft.port_name(*port))).collect();
                (
                    format!(
                        "frames of this scenario meet broadcasts at {}, and where a target is skipped nobody knows whose \
                         clones are fewer",
                        ports.join(" and ")
                    ),
                    "for a path with one broadcast",
                    "leave `skip-unable` out, or give each broadcast a scenario of its own",
                )
            }
        };
        self.report_fit(Diagnostic::error(at.clone(), message).label(label).help(help));
    }
}
