//! Whether a lab may take a NIC. A pure function: what it decides from was read before.

use std::{fmt, net::IpAddr};

use serde::Serialize;

use super::{Nic, UpperElsewhere, leases};

/// What matters besides the NIC itself.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Context {
    /// The host's address in the connection that the user is logged in over.
    pub logged_in_at: Option<IpAddr>,
    /// The lab that asks.
    pub lab: Option<String>,
}

/// Why no lab may take a device. Nothing overrides the default route.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case", tag = "why")]
#[non_exhaustive]
pub enum Refusal {
    /// It has no PCI address of its own.
    NotANic,
    /// It is wireless, `InfiniBand` or the like.
    NotEthernet,
    /// A default route goes out by it.
    DefaultRoute {
        /// Of IPv4, IPv6 or both.
        of: &'static str,
    },
    /// The user is logged in over it.
    LoggedInOver {
        /// The host's address in that connection.
        address: IpAddr,
    },
    /// It is a port of another device.
    Enslaved {
        /// That device.
        master: String,
    },
    /// Other devices stand on it.
    Carries {
        /// Those devices.
        uppers: Vec<String>,
    },
    /// Devices of other namespaces stand on it.
    CarriesElsewhere {
        /// Those devices.
        uppers: Vec<UpperElsewhere>,
    },
    /// It has an address.
    Address {
        /// The first one.
        address: IpAddr,
    },
    /// Somebody set a route that goes out by it.
    Routed,
    /// Somebody set a queueing discipline on it, or filters, which stand on one: they don't survive a move.
    TrafficControl {
        /// Its kind.
        qdisc: String,
    },
    /// It has a program for traffic control without a qdisc: that would see the lab's frames.
    Tcx {
        /// The program's id.
        id: u32,
    },
    /// Packet sockets are bound to it, which break when it moves.
    Listened {
        /// How many.
        sockets: u32,
    },
    /// It has an XDP program already.
    Program {
        /// The program's id.
        id: u32,
    },
    /// Another lab has it.
    Leased {
        /// That lab.
        lab: String,
    },
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotANic => f.write_str("no NIC: it has no PCI device of its own"),
            Self::NotEthernet => f.write_str("no Ethernet NIC"),
            Self::DefaultRoute { of } => write!(f, "carries the default route ({of})"),
            Self::LoggedInOver { address } => write!(f, "you are logged in over it ({address})"),
            Self::Enslaved { master } => write!(f, "is a port of {master}"),
            Self::Carries { uppers } => write!(f, "carries {}", uppers.join(", ")),
            Self::CarriesElsewhere { uppers } => {
                let each: Vec<String> = uppers.iter().map(ToString::to_string).collect();
                write!(f, "carries {}", each.join(", "))
            }
            Self::Address { address } => write!(f, "has the address {address}"),
            Self::Routed => f.write_str("has a route of its own"),
            Self::TrafficControl { qdisc } => write!(f, "has traffic control set (qdisc {qdisc})"),
            Self::Tcx { id } => write!(f, "has a TCX program (id {id})"),
            Self::Listened { sockets: 1 } => f.write_str("a packet socket listens on it"),
            Self::Listened { sockets } => write!(f, "{sockets} packet sockets listen on it"),
            Self::Program { id } => write!(f, "has an XDP program (id {id})"),
            Self::Leased { lab } => write!(f, "lab \"{lab}\" has it"),
        }
    }
}

impl Refusal {
    /// What makes the NIC free, where anything does that is not an act against the host.
    pub fn fix(&self, nic: &str) -> Option<String> {
        match self {
            Self::NotANic | Self::NotEthernet | Self::DefaultRoute { .. } | Self::LoggedInOver { .. } => None,
            Self::Enslaved { .. } => Some(format!("ip link set {nic} nomaster")),
            Self::Carries { uppers } => {
                Some(uppers.iter().map(|upper| format!("ip link del {upper}")).collect::<Vec<_>>().join("; "))
            }
            Self::CarriesElsewhere { uppers } => {
                let each = uppers
                    .iter()
                    .map(|upper| format!("nsenter --net={} ip link del {}", upper.netns.display(), upper.name));
                Some(each.collect::<Vec<_>>().join("; "))
            }
            Self::Address { .. } => Some(format!("ip address flush dev {nic}")),
            Self::Routed => Some(format!("ip route flush dev {nic}; ip -6 route flush dev {nic} proto boot")),
            Self::TrafficControl { qdisc } => {
                let parent = if matches!(qdisc.as_str(), "clsact" | "ingress") { qdisc } else { "root" };
                Some(format!("tc qdisc del dev {nic} {parent}"))
            }
            Self::Tcx { .. } => {
                Some(format!("end the process that attached it; `bpftool net show dev {nic}` shows its link"))
            }
            Self::Listened { .. } => Some("end the process that `ss --packet --processes` shows".to_owned()),
            Self::Program { .. } => Some(format!("ip link set {nic} xdp off; or end the process that attached it")),
            Self::Leased { lab } => Some(leases::free(lab)),
        }
    }
}

/// Whether a lab may take a NIC. The weightiest reason against it is given first.
///
/// # Errors
/// The reason, where it may not.
pub fn may_take(nic: &Nic, context: &Context) -> Result<(), Refusal> {
    let of = match (nic.default_v4, nic.default_v6) {
        (true, true) => Some("IPv4 and IPv6"),
        (true, false) => Some("IPv4"),
        (false, true) => Some("IPv6"),
        (false, false) => None,
    };
    if let Some(of) = of {
        return Err(Refusal::DefaultRoute { of });
    }
    if let Some(address) = context.logged_in_at.filter(|at| nic.addresses.iter().any(|address| address.ip == *at)) {
        return Err(Refusal::LoggedInOver { address });
    }
    if nic.pci.is_none() {
        return Err(Refusal::NotANic);
    }
    if nic.not_ethernet {
        return Err(Refusal::NotEthernet);
    }
    if let Some(lab) = nic.leased_by.as_ref().filter(|lab| context.lab.as_ref() != Some(lab)) {
        return Err(Refusal::Leased { lab: lab.clone() });
    }
    if let Some(master) = &nic.master {
        return Err(Refusal::Enslaved { master: master.clone() });
    }
    if !nic.uppers.is_empty() {
        return Err(Refusal::Carries { uppers: nic.uppers.clone() });
    }
    if !nic.uppers_elsewhere.is_empty() {
        return Err(Refusal::CarriesElsewhere { uppers: nic.uppers_elsewhere.clone() });
    }
    // Every IPv6 device that is up has a link-local address, which nobody gave it.
    if let Some(address) = nic.addresses.iter().find(|address| !is_link_local(address.ip)) {
        return Err(Refusal::Address { address: address.ip });
    }
    if nic.routed {
        return Err(Refusal::Routed);
    }
    if let Some(qdisc) = nic.qdiscs.first() {
        return Err(Refusal::TrafficControl { qdisc: qdisc.clone() });
    }
    if let Some(id) = nic.tcx_programs.first() {
        return Err(Refusal::Tcx { id: *id });
    }
    if nic.listeners > 0 {
        return Err(Refusal::Listened { sockets: nic.listeners });
    }
    match nic.native_program.or(nic.other_program) {
        Some(id) => Err(Refusal::Program { id }),
        None => Ok(()),
    }
}

fn is_link_local(ip: IpAddr) -> bool {
    matches!(ip, IpAddr::V6(ip) if ip.is_unicast_link_local())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::nics::Address;

    fn free() -> Nic {
        let link_local = Address { ip: "fe80::1".parse().unwrap(), prefix: 64 };
        Nic {
            name: "p1".to_owned(),
            pci: Some("0000:03:00.0".to_owned()),
            addresses: vec![link_local],
            ..Nic::default()
        }
    }

    fn address(text: &str) -> Address {
        Address { ip: text.parse().unwrap(), prefix: 24 }
    }

    fn refusal(change: impl FnOnce(&mut Nic)) -> String {
        let mut nic = free();
        change(&mut nic);
        may_take(&nic, &Context::default()).unwrap_err().to_string()
    }

    #[test]
    fn an_idle_nic_may_be_taken() {
        assert_eq!(may_take(&free(), &Context::default()), Ok(()));
    }

    #[test]
    fn each_use_of_a_nic_is_a_reason_of_its_own() {
        assert_eq!(refusal(|nic| nic.pci = None), "no NIC: it has no PCI device of its own");
        assert_eq!(refusal(|nic| nic.not_ethernet = true), "no Ethernet NIC");
        assert_eq!(refusal(|nic| nic.default_v4 = true), "carries the default route (IPv4)");
        assert_eq!(refusal(|nic| nic.default_v6 = true), "carries the default route (IPv6)");
        assert_eq!(refusal(|nic| nic.master = Some("br0".to_owned())), "is a port of br0");
        assert_eq!(refusal(|nic| nic.uppers = vec!["p1.7".to_owned()]), "carries p1.7");
        assert_eq!(refusal(|nic| nic.addresses.push(address("192.0.2.1"))), "has the address 192.0.2.1");
        assert_eq!(refusal(|nic| nic.routed = true), "has a route of its own");
        assert_eq!(refusal(|nic| nic.qdiscs.push("clsact".to_owned())), "has traffic control set (qdisc clsact)");
        assert_eq!(refusal(|nic| nic.tcx_programs = vec![9]), "has a TCX program (id 9)");
        let upper = UpperElsewhere { name: "p1-over".to_owned(), netns: "/run/netns/box".into() };
        assert_eq!(refusal(|nic| nic.uppers_elsewhere = vec![upper.clone()]), "carries p1-over of /run/netns/box");
        let fix = Refusal::CarriesElsewhere { uppers: vec![upper] }.fix("p1");
        assert_eq!(fix.as_deref(), Some("nsenter --net=/run/netns/box ip link del p1-over"));
        assert_eq!(refusal(|nic| nic.listeners = 1), "a packet socket listens on it");
        assert_eq!(refusal(|nic| nic.native_program = Some(9)), "has an XDP program (id 9)");
        assert_eq!(refusal(|nic| nic.other_program = Some(9)), "has an XDP program (id 9)");
        assert_eq!(refusal(|nic| nic.leased_by = Some("mine".to_owned())), "lab \"mine\" has it");
    }

    #[test]
    fn the_default_route_comes_before_every_other_reason() {
        let reason = refusal(|nic| {
            (nic.pci, nic.default_v4, nic.default_v6) = (None, true, true);
            nic.leased_by = Some("mine".to_owned());
        });
        assert_eq!(reason, "carries the default route (IPv4 and IPv6)");
        assert_eq!(Refusal::DefaultRoute { of: "IPv4" }.fix("eth0"), None);
    }

    #[test]
    fn the_connection_that_one_is_logged_in_over_is_kept() {
        let mut nic = free();
        nic.addresses.push(address("192.0.2.1"));
        let logged_in_at = Some("192.0.2.1".parse().unwrap());
        let refusal = may_take(&nic, &Context { logged_in_at, lab: None }).unwrap_err();
        assert_eq!(refusal.to_string(), "you are logged in over it (192.0.2.1)");
    }

    #[test]
    fn a_lab_may_take_what_it_has_leased_itself() {
        let nic = Nic { leased_by: Some("mine".to_owned()), ..free() };
        assert_eq!(may_take(&nic, &Context { lab: Some("mine".to_owned()), ..Context::default() }), Ok(()));
        assert!(may_take(&nic, &Context { lab: Some("other".to_owned()), ..Context::default() }).is_err());
    }
}
