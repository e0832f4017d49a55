//! `AF_XDP` sockets: which can be opened, and which queues are left without one.

use super::Checker;
use crate::topology::{
    diagnostic::{Diagnostic, Span},
    model::{Builtin, Engine, Fallback, PortId, Scenario, XSK_FRAME_MOST, XskOptions},
    read::{At, List},
    schema::{QUEUES_MOST, RING_LEAST, RING_MOST, RawOptions},
};

/// Bytes of an Ethernet header.
const ETHERNET_HEADER: u32 = 14;

impl Checker<'_> {
    /// The options of the built-in `xsk`.
    pub(super) fn check_xsk_options(&mut self, raw: &RawOptions) -> XskOptions {
        let ring = self.in_range(&raw.ring, "a ring", RING_LEAST..=RING_MOST);
        if let Some(ring) = ring.filter(|ring| !ring.is_power_of_two()) {
            let at = raw.ring.given().map(|at| at.span.clone()).unwrap_or_default();
            self.report(
                Diagnostic::error(
                    at,
                    format!("a ring of {ring} descriptors can't be: the kernel wants a power of two"),
                )
                .label("not a power of two")
                .help(format!(
                    "give {}, or {}",
                    ring.next_power_of_two() / 2,
                    ring.next_power_of_two()
                )),
            );
        }
        let queues = raw.queues.given().map(|list| self.check_queues(list));
        XskOptions { ring, queues, fallback: raw.fallback.given().map_or(Fallback::Drop, |at| at.value) }
    }

    fn check_queues(&mut self, list: &At<List<i64>>) -> Vec<u32> {
        let mut queues: Vec<u32> = Vec::new();
        if list.value.items.is_empty() && !list.value.bad {
            self.report(
                Diagnostic::error(list.span.clone(), "no queue has a socket, so that no frame could be received")
                    .label("no queues")
                    .help("name a queue, such as 0, or leave `queues` out: all have a socket then"),
            );
        }
        for at in &list.value.items {
            let Some(queue) = u32::try_from(at.value).ok().filter(|queue| i64::from(*queue) < QUEUES_MOST) else {
                self.report(
                    Diagnostic::error(at.span.clone(), format!("there is no queue {}", at.value))
                        .label("no queue")
                        .help("queues are counted from 0"),
                );
                continue;
            };
            if queues.contains(&queue) {
                self.report(
                    Diagnostic::error(at.span.clone(), format!("queue {queue} is named twice"))
                        .label("again here")
                        .help("name it once: a queue has one socket"),
                );
            } else {
                queues.push(queue);
            }
        }
        queues
    }

    /// Whether the ports of a program `xsk` can have its sockets. `options`: where they stand, or the program.
    pub(super) fn check_xsk_ports(&mut self, options: &XskOptions, at: &Span, attach: &[PortId]) {
        for port in attach {
            let (name, here) = (self.draft.port_name(*port), &self.draft.ports[port.0]);
            let (have, mtu) = (here.queues, here.mtu);
            let missing = options.queues.iter().flatten().find(|queue| **queue >= have);
            if let Some(queue) = missing {
                let last = have.saturating_sub(1);
                self.report_fit(
                    Diagnostic::error(
                        at.clone(),
                        format!("there is no queue {queue} at `{name}`: it has {have}, counted from 0"),
                    )
                    .label("no such queue")
                    .help(format!("name queues up to {last}, or give `{name}` more of them")),
                );
            }
            if mtu + ETHERNET_HEADER > XSK_FRAME_MOST {
                self.report_fit(
                    Diagnostic::error(
                        at.clone(),
                        format!(
                            "`{name}` may get frames of {} bytes, and a socket takes {XSK_FRAME_MOST}",
                            mtu + ETHERNET_HEADER
                        ),
                    )
                    .label("too large an MTU for AF_XDP")
                    .help(format!("set mtu = {} or less for `{name}`", XSK_FRAME_MOST - ETHERNET_HEADER)),
                );
            }
        }
    }

    /// A queue has one socket: what sends by `AF_XDP` can't be where frames are received so.
    pub(super) fn check_xsk_sender(&mut self, scenario: &Scenario, at: &Span) {
        let from = scenario.traffic.from;
        if scenario.traffic.engine != Engine::Xsk {
            return;
        }
        let Some((id, program)) = self.draft.program_at(from) else { return };
        let body = self.draft.body_in(scenario, id);
        let queues = body.options.xsk.queues.as_ref();
        if body.builtin() != Some(Builtin::Xsk) || queues.is_some_and(|queues| !queues.contains(&0)) {
            return;
        }
        let name = self.draft.port_name(from);
        self.report_fit(
            Diagnostic::error(
                at.clone(),
                format!(
                    "the engine `xsk` needs queue 0 of `{name}`, where the program `{}` has its socket",
                    program.name
                ),
            )
            .label("sends from here")
            .related(self.draft.spans.programs[id.0].name.clone(), "receives there")
            .help("use engine = \"live\", or leave queue 0 out of the program's `queues`"),
        );
    }
}
