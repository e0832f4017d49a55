//! MAC and IP addresses: those that the file gives, and those that it leaves to the lab.
//!
//! A port without `addresses` takes, in each network that the other ports of its link name, the next free address; if
//! they name none, the link gets networks of its own from the benchmarking ranges of RFC 2544 and RFC 5180.

use std::{
    collections::{HashMap, HashSet},
    net::{IpAddr, Ipv4Addr, Ipv6Addr},
};

use super::Checker;
use crate::topology::{
    diagnostic::{Diagnostic, Span},
    mac::Mac,
    model::PortId,
    read::At,
    schema::RawPort,
};

/// 198.18.0.0/15.
const POOL_V4: u32 = u32::from_be_bytes([198, 18, 0, 0]);
/// First address behind it.
const POOL_V4_END: u32 = u32::from_be_bytes([198, 20, 0, 0]);
/// `2001:2::/48`.
const POOL_V6: u128 = 0x2001_0002 << 96;
/// Number of /64 networks in it.
const POOL_V6_NETWORKS: u128 = 1 << 16;
/// First three bytes of the lab's own MAC addresses: locally administered, then "xd" in ASCII.
const MAC_PREFIX: [u8; 3] = [0x02, b'x', b'd'];

impl<'a> Checker<'a> {
    /// Checks the MACs that the file gives and gives the other ports one.
    pub(super) fn give_macs(&mut self, settings: &HashMap<PortId, &'a RawPort>) {
        let mut given: HashMap<PortId, (Mac, Span)> = HashMap::new();
        for port in (0..self.draft.ports.len()).map(PortId) {
            let Some(at) = settings.get(&port).and_then(|raw| raw.mac.given()) else { continue };
            let mac: Mac = match at.value.parse() {
                Ok(mac) => mac,
                Err(error) => {
                    let (what, help) = split_message(&error);
                    self.report(Diagnostic::error(at.span.clone(), what).label("not a MAC address").maybe_help(help));
                    continue;
                }
            };
            if mac.0 == [0; 6] || !mac.is_unicast() {
                let kind = if mac.0 == [0; 6] { "stands for no host" } else { "is a group's, not one port's" };
                let mut own = mac.0;
                own[0] = own[0] & !1 | 2;
                own[5] |= 1;
                self.report(
                    Diagnostic::error(at.span.clone(), format!("MAC address {mac} {kind}"))
                        .label("not a port's address")
                        .help(format!("use an address whose first byte is even, such as {}", Mac(own))),
                );
                continue;
            }
            let link = self.draft.ports[port.0].link;
            let twin = self.draft.links[link.0].ends.iter().find_map(|end| given.get(end).filter(|(m, _)| *m == mac));
            if let Some((_, first)) = twin {
                let diagnostic =
                    Diagnostic::error(at.span.clone(), format!("MAC address {mac} is given to two ports of one link"))
                        .label("again here")
                        .related(first.clone(), "first here")
                        .help("give each port its own, or leave both out");
                self.report(diagnostic);
            }
            given.insert(port, (mac, at.span.clone()));
        }
        let taken: HashSet<Mac> = given.values().map(|(mac, _)| *mac).collect();
        let mut own = (1..).map(own_mac).filter(|mac| !taken.contains(mac));
        for port in (0..self.draft.ports.len()).map(PortId) {
            self.draft.ports[port.0].mac = match given.get(&port) {
                Some((mac, _)) => *mac,
                None => own.next().unwrap_or(Mac([0; 6])),
            };
        }
    }

    /// Checks the addresses that the file gives and gives the other ports some.
    pub(super) fn give_addresses(&mut self, settings: &HashMap<PortId, &'a RawPort>) {
        let mut taken: HashMap<IpAddr, Span> = HashMap::new();
        let mut networks = Vec::new();
        let mut own_choice = HashSet::new();
        for port in (0..self.draft.ports.len()).map(PortId) {
            let Some(field) = settings.get(&port).map(|raw| &raw.addresses).filter(|field| !field.is_absent()) else {
                continue;
            };
            own_choice.insert(port);
            for at in field.given().map(|list| list.value.items.as_slice()).unwrap_or_default() {
                let Some((address, prefix)) = self.check_address(port, at) else { continue };
                if let Some(first) = taken.get(&address) {
                    let diagnostic = Diagnostic::error(at.span.clone(), format!("address {address} is given twice"))
                        .label("again here")
                        .related(first.clone(), "first here")
                        .help("give each port its own, or leave `addresses` out");
                    self.report(diagnostic);
                    continue;
                }
                taken.insert(address, at.span.clone());
                networks.push((network(address, prefix), prefix));
                self.draft.ports[port.0].addresses.push((address, prefix));
            }
        }
        let mut taken: HashSet<IpAddr> = taken.into_keys().collect();
        let mut pool = Pool { v4: POOL_V4, v6: 0, networks };
        for link in 0..self.draft.links.len() {
            let ends = self.draft.links[link].ends.clone();
            let without: Vec<_> = ends.iter().copied().filter(|end| !own_choice.contains(end)).collect();
            if without.is_empty() {
                continue;
            }
            let mut of_link: Vec<(IpAddr, u8)> = ends
                .iter()
                .flat_map(|end| &self.draft.ports[end.0].addresses)
                .map(|(address, prefix)| (network(*address, *prefix), *prefix))
                .collect();
            of_link.sort_unstable();
            of_link.dedup();
            if of_link.is_empty() {
                of_link.extend(pool.next_v4(ends.len()).into_iter().chain(pool.next_v6()));
            }
            for end in without {
                for (network, prefix) in &of_link {
                    // The kernel takes IPv6 off a device whose MTU is below IPv6's least.
                    if network.is_ipv6() && self.draft.ports[end.0].mtu < MTU_LEAST_V6 {
                        continue;
                    }
                    if let Some(address) = first_free(*network, *prefix, &taken) {
                        taken.insert(address);
                        self.draft.ports[end.0].addresses.push((address, *prefix));
                    }
                }
            }
        }
    }

    fn check_address(&mut self, port: PortId, at: &At<String>) -> Option<(IpAddr, u8)> {
        let wrong = |message: String, help: &str| {
            Diagnostic::error(at.span.clone(), message).label("not a port's address").help(help)
        };
        let text = &at.value;
        let parsed = text
            .split_once('/')
            .and_then(|(address, prefix)| Some((address.parse::<IpAddr>().ok()?, prefix.parse::<u8>().ok()?)));
        let Some((address, prefix)) = parsed else {
            let help = match text.parse::<IpAddr>() {
                Ok(IpAddr::V4(_)) => format!("give its prefix length too, such as {text}/24"),
                Ok(IpAddr::V6(_)) => format!("give its prefix length too, such as {text}/64"),
                Err(_) => "write an address with its prefix length, such as 192.0.2.1/24 or 2001:db8::1/64".to_owned(),
            };
            self.report(wrong(format!("`{text}` is not an address with a prefix length"), &help));
            return None;
        };
        let bits = if address.is_ipv4() { 32 } else { 128 };
        let hosts = bits - u32::from(prefix).min(bits);
        let problem = if u32::from(prefix) > bits || prefix == 0 {
            Some((format!("a prefix length of {prefix} is out of range"), format!("give 1 to {bits}")))
        } else if address.is_multicast() {
            Some((format!("{address} is a multicast address"), "give a port a unicast address".to_owned()))
        } else if address.is_unspecified() || address.is_loopback() || address == IpAddr::V4(Ipv4Addr::BROADCAST) {
            Some((format!("{address} stands for no port"), "give it an address of its own".to_owned()))
        } else if let (IpAddr::V4(v4), 2..) = (address, hosts) {
            let last = (1u64 << hosts) - 1;
            let host = u64::from(u32::from(v4)) & last;
            (host == 0 || host == last).then(|| {
                let what = if host == 0 { "network itself" } else { "network's broadcast address" };
                let first = Ipv4Addr::from(u32::from(v4) & !(last as u32) | 1);
                (format!("{text} is the {what}"), format!("use an address inside it, such as {first}/{prefix}"))
            })
        } else {
            None
        };
        let mtu = self.draft.ports[port.0].mtu;
        let problem = problem.or_else(|| {
            (address.is_ipv6() && mtu < MTU_LEAST_V6).then(|| {
                let message = format!("IPv6 needs an MTU of {MTU_LEAST_V6}, and this port has {mtu}");
                (message, "raise the MTU, or leave the IPv6 address out".to_owned())
            })
        });
        if let Some((message, help)) = problem {
            self.report(wrong(message, &help));
            return None;
        }
        Some((address, prefix))
    }
}

/// Least MTU that IPv6 runs over, in bytes (RFC 8200).
pub(super) const MTU_LEAST_V6: u32 = 1280;

/// The lab's own MAC address of that number.
fn own_mac(number: u32) -> Mac {
    let mut bytes = [0; 6];
    bytes[..3].copy_from_slice(&MAC_PREFIX);
    bytes[3..].copy_from_slice(&number.to_be_bytes()[1..]);
    Mac(bytes)
}

/// Message and fix of an error text "what: fix".
fn split_message(error: &impl ToString) -> (String, Option<String>) {
    let text = error.to_string();
    match text.split_once(": ") {
        Some((what, fix)) => (what.to_owned(), Some(format!("write {fix}"))),
        None => (text, None),
    }
}

/// The network that an address is in.
fn network(address: IpAddr, prefix: u8) -> IpAddr {
    match address {
        IpAddr::V4(v4) => {
            let mask = u32::MAX.checked_shl(32 - u32::from(prefix.min(32))).unwrap_or(0);
            Ipv4Addr::from(u32::from(v4) & mask).into()
        }
        IpAddr::V6(v6) => {
            let mask = u128::MAX.checked_shl(128 - u32::from(prefix.min(128))).unwrap_or(0);
            Ipv6Addr::from(u128::from(v6) & mask).into()
        }
    }
}

/// The first address of a network that may be a port's and is not taken.
fn first_free(network: IpAddr, prefix: u8, taken: &HashSet<IpAddr>) -> Option<IpAddr> {
    let free = |address: &IpAddr| !taken.contains(address);
    match network {
        IpAddr::V4(v4) => {
            let base = u64::from(u32::from(v4));
            let size = 1u64 << (32 - u32::from(prefix));
            // The first and last are the network and its broadcast address, but for the two smallest sizes.
            let hosts = if size > 2 { 1..size - 1 } else { 0..size };
            hosts.map(|host| Ipv4Addr::from((base + host) as u32).into()).find(free)
        }
        IpAddr::V6(v6) => {
            let base = u128::from(v6);
            let size = 1u128.checked_shl(128 - u32::from(prefix)).unwrap_or(u128::MAX);
            let hosts = if size > 2 { 1..size } else { 0..size };
            hosts.map(|host| Ipv6Addr::from(base + host).into()).find(free)
        }
    }
}

/// What is left of the benchmarking ranges.
struct Pool {
    /// First IPv4 address not handed out.
    v4: u32,
    /// First IPv6 network not handed out.
    v6: u128,
    /// Networks that the file names: kept clear of.
    networks: Vec<(IpAddr, u8)>,
}

impl Pool {
    /// A network for that many ports: a /30 for two.
    fn next_v4(&mut self, ports: usize) -> Option<(IpAddr, u8)> {
        let size = u32::try_from(ports + 2).ok()?.checked_next_power_of_two()?.max(4);
        let prefix = 32 - size.trailing_zeros() as u8;
        loop {
            let base = self.v4.checked_next_multiple_of(size).filter(|base| *base <= POOL_V4_END - size)?;
            self.v4 = base + size;
            let network = IpAddr::V4(base.into());
            if !self.is_used(network, prefix) {
                return Some((network, prefix));
            }
        }
    }

    /// A /64.
    fn next_v6(&mut self) -> Option<(IpAddr, u8)> {
        loop {
            if self.v6 == POOL_V6_NETWORKS {
                return None;
            }
            let network = IpAddr::V6((POOL_V6 + (self.v6 << 64)).into());
            self.v6 += 1;
            if !self.is_used(network, 64) {
                return Some((network, 64));
            }
        }
    }

    /// Whether a network overlaps one that the file names: of two that do, the larger holds the smaller.
    fn is_used(&self, base: IpAddr, prefix: u8) -> bool {
        self.networks.iter().any(|(other, other_prefix)| {
            let least = prefix.min(*other_prefix);
            base.is_ipv4() == other.is_ipv4() && network(base, least) == network(*other, least)
        })
    }
}
