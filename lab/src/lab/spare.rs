//! Spare veth pairs, for programs that are to be attached somewhere though no frame comes by.
//!
//! A program that is attached nowhere has no entry in the kernel's XDP dispatcher, and each of its runs starts with
//! putting it there: 24 to 28 ms outside the loop, against 0.05 ms for one that is attached somewhere.

use futures_util::future::try_join_all;
use xdplab_wire::records::IFINDEX_BASE;

use super::{
    LabError, SourceKey,
    network::{Network, Place, ifindex},
};
use crate::{
    host::{
        netlink::{Netlink, VethEnd, VethSpec},
        netns::Netns,
        thread::Inside,
    },
    program::{Source, SourceSpec},
    topology::{Mac, Topology},
};

/// Spare pairs, in a namespace of their own. A program can be attached to one end of each.
#[derive(Debug)]
pub struct Spare {
    place: Place,
    pairs: u32,
}

impl Spare {
    /// Makes so many pairs.
    ///
    /// # Errors
    /// Where the kernel refuses.
    pub fn new(inside: &Inside, pairs: u32) -> Result<Self, LabError> {
        let netns = Netns::create(inside)?;
        let netlink = Netlink::open(inside, &netns)?;
        let names: Vec<_> = (0..pairs).map(|n| (format!("spare{n}a"), format!("spare{n}b"))).collect();
        inside.block_on(async {
            try_join_all((0..).zip(&names).map(|(n, (a, b))| {
                let end = |name, n: u32| {
                    let [_, _, high, low] = n.to_be_bytes();
                    let mac = Mac([0x02, 0x78, 0x73, 0, high, low]);
                    VethEnd { name, ifindex: IFINDEX_BASE + n, mac, mtu: 1500, queues: 1, netns: &netns }
                };
                let spec = VethSpec { a: end(a, 2 * n), b: end(b, 2 * n + 1) };
                let netlink = &netlink;
                async move { netlink.add_veth(&spec).await }
            }))
            .await
        })?;
        Ok(Self { place: Place { netns, netlink }, pairs })
    }

    /// How many pairs there are.
    pub fn pairs(&self) -> u32 {
        self.pairs
    }

    /// The namespace of the pairs.
    pub fn netns(&self) -> &Netns {
        &self.place.netns
    }

    /// The interface index of a pair's first end.
    pub fn ifindex(pair: u32) -> u32 {
        IFINDEX_BASE + 2 * pair
    }

    /// Loads the source of one of a key's senders, points it at its port and attaches it to a pair of its own here.
    pub(super) fn source(
        &self,
        inside: &Inside,
        topology: &Topology,
        network: &Network,
        instance: u16,
        (key, sender): (&SourceKey, u32),
    ) -> Result<Source, LabError> {
        let flows = key.flows_of(sender);
        let mut source = Source::load(&SourceSpec {
            instance,
            flows: flows.end - flows.start,
            first_flow: flows.start,
            template: &key.template,
            marker: key.marker,
            // A batch is made before any of it leaves, so that one stamp in 16 loses nothing.
            stamp_every: if key.marker { 16 } else { 0 },
        })?;
        inside.enter(&network.at(topology, key.from).netns, || source.set_target(ifindex(key.from)))??;
        inside.enter(&self.place.netns, || source.attach(Self::ifindex(sender)))??;
        Ok(source)
    }
}
