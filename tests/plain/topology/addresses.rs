//! The addresses that the lab gives.

use std::{collections::HashSet, fmt::Write as _, net::IpAddr, path::Path};

use proptest::prelude::*;
use xdplab::topology::{Topology, parse};

/// A topology of links with so many ends each: one node for each end.
fn lab(links: &[usize], settings: &str) -> Topology {
    let mut text = String::from("name = \"lab\"\n");
    for node in 0..links.iter().copied().max().unwrap_or(0) {
        writeln!(text, "[nodes.n{node}]").unwrap();
    }
    text.push_str(settings);
    for (link, ends) in links.iter().enumerate() {
        let kind = if *ends == 2 { "veth" } else { "bridge" };
        let ends: Vec<_> = (0..*ends).map(|node| format!("\"n{node}:p{link}\"")).collect();
        writeln!(text, "[[links]]\nkind = \"{kind}\"\nends = [{}]", ends.join(", ")).unwrap();
    }
    parse(Path::new("lab.toml"), &text).unwrap_or_else(|diagnostics| panic!("{diagnostics}"))
}

/// A network's number.
fn network(address: IpAddr, prefix: u8) -> u128 {
    match address {
        IpAddr::V4(v4) => u128::from(u32::from(v4) >> (32 - prefix)),
        IpAddr::V6(v6) => u128::from(v6) >> (128 - prefix),
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn given_addresses_are_unique_in_range_and_of_one_network_a_link(links in prop::collection::vec(2usize..40, 1..40)) {
        let topology = lab(&links, "");
        let (mut addresses, mut macs, mut networks) = (HashSet::new(), HashSet::new(), HashSet::new());
        for port in &topology.ports {
            prop_assert!(macs.insert(port.mac));
            prop_assert_eq!(&port.mac.0[..3], &[0x02, 0x78, 0x64]);
            prop_assert_eq!(port.addresses.len(), 2);
            for (address, prefix) in &port.addresses {
                prop_assert!(addresses.insert(*address));
                match address {
                    IpAddr::V4(v4) => {
                        prop_assert_eq!(u32::from(*v4) >> 17, 0xc612_0000 >> 17);
                        let host = u32::from(*v4) & ((1 << (32 - prefix)) - 1);
                        prop_assert!(host != 0 && host != (1 << (32 - prefix)) - 1);
                    }
                    IpAddr::V6(v6) => prop_assert_eq!(v6.segments()[..3].to_vec(), vec![0x2001, 2, 0]),
                }
            }
        }
        for link in &topology.links {
            for family in 0..2 {
                let of_ends: HashSet<_> = link
                    .ends
                    .iter()
                    .map(|end| topology.ports[end.0].addresses[family])
                    .map(|(address, prefix)| (address.is_ipv6(), prefix, network(address, prefix)))
                    .collect();
                prop_assert_eq!(of_ends.len(), 1);
                prop_assert!(networks.insert(of_ends.into_iter().next()));
            }
            if link.ends.len() == 2 {
                prop_assert_eq!(topology.ports[link.ends[0].0].addresses[0].1, 30);
            }
        }
    }
}

#[test]
fn the_other_end_of_a_given_address_gets_one_beside_it() {
    let topology = lab(&[2], "[nodes.n0.ports.p0]\naddresses = [\"192.0.2.1/24\", \"2001:db8::5/64\"]\n");
    let other: Vec<_> = topology.ports[1].addresses.iter().map(|(a, p)| format!("{a}/{p}")).collect();
    assert_eq!(other, ["192.0.2.2/24", "2001:db8::1/64"]);
}

#[test]
fn a_given_network_of_the_benchmarking_range_is_kept_clear() {
    let topology = lab(&[2, 2], "[nodes.n0.ports.p0]\naddresses = [\"198.18.0.1/29\"]\n");
    let second: Vec<_> = topology.links[1].ends.iter().map(|end| topology.ports[end.0].addresses[0].0).collect();
    assert_eq!(second.iter().map(ToString::to_string).collect::<Vec<_>>(), ["198.18.0.9", "198.18.0.10"]);
}

#[test]
fn a_given_mac_is_not_given_again() {
    let topology = lab(&[2, 2], "[nodes.n1.ports.p1]\nmac = \"02:78:64:00:00:01\"\n");
    let macs: HashSet<_> = topology.ports.iter().map(|port| port.mac).collect();
    assert_eq!(macs.len(), 4);
}

#[test]
fn no_addresses_are_what_an_empty_list_asks_for() {
    let topology = lab(&[2], "[nodes.n0.ports.p0]\naddresses = []\n[nodes.n1.ports.p0]\naddresses = []\n");
    assert!(topology.ports.iter().all(|port| port.addresses.is_empty()));
}

#[test]
fn a_port_below_the_least_mtu_of_ipv6_gets_ipv4_only() {
    let topology = lab(&[2], "[nodes.n0.ports.p0]\nmtu = 1000\n");
    let families: Vec<_> = topology.ports.iter().map(|port| port.addresses.len()).collect();
    assert_eq!(families, [1, 2]);
}
