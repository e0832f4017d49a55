//! What the kernel asks of a port before it attaches a native program.

use super::{Checker, NATIVE_MTU_MOST};
use crate::{
    drivers,
    topology::{
        diagnostic::{Diagnostic, Span},
        model::{LinkKind, PortId},
    },
};

impl Checker<'_> {
    /// What the kernel asks of a veth end to which a native program is attached.
    pub(super) fn check_native(&mut self, port: PortId, span: &Span, program: &str, is_object: bool) {
        let here = self.draft.ports[port.0].clone();
        let link = &self.draft.links[here.link.0];
        let name = self.draft.port_name(port);
        // An end of a bridge has its peer in the bridge's own namespace, with the link's MTU and one queue.
        let (peer_name, peer_mtu, peer_queues, mtu_span) = match self.draft.peer(port) {
            Some(peer) => {
                let there = &self.draft.ports[peer.0];
                (
                    format!("`{}`", self.draft.port_name(peer)),
                    there.mtu,
                    there.queues,
                    self.draft.spans.mtu[peer.0].clone(),
                )
            }
            None if link.kind == LinkKind::Bridge => {
                ("the bridge".to_owned(), link.mtu, 1, self.draft.spans.mtu[port.0].clone())
            }
            None => return,
        };
        // Of veth, and of the driver that the cable asks for, the smaller one.
        let of_driver = match &link.kind {
            LinkKind::Cable(nic) => nic.driver.as_deref().and_then(drivers::known).and_then(|known| known.native_mtu),
            _ => None,
        };
        let most = of_driver.map_or(NATIVE_MTU_MOST, |most| most.min(NATIVE_MTU_MOST));
        // An object may declare fragments, which lift the limit: only a warning there.
        if peer_mtu > NATIVE_MTU_MOST && !is_object {
            let at = mtu_span.unwrap_or_else(|| span.clone());
            self.report_fit(
                Diagnostic::error(
                    at,
                    format!(
                        "an MTU of {peer_mtu} at {peer_name} is too large for the native program `{program}` at the \
                         other end, `{name}`"
                    ),
                )
                .label(format!("more than {NATIVE_MTU_MOST}"))
                .related(span.clone(), format!("`{program}` is attached here"))
                .help(format!(
                    "set the MTU to {most} or less, or give `{program}` mode = \"generic\": without one `up` attaches it \
                     natively, whatever the scenarios' modes"
                )),
            );
        }
        if peer_queues > here.queues {
            self.report_fit(
                Diagnostic::error(
                    span.clone(),
                    format!(
                        "native program `{program}` can't be attached to `{name}`: {peer_name} sends on {peer_queues} \
                         queues, and `{name}` receives on {}",
                        here.queues
                    ),
                )
                .label("too few queues here")
                .help(format!("set queues = {peer_queues} for `{name}`, or fewer for {peer_name}")),
            );
        }
    }
}
