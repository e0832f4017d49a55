//! Reading the inventory: netlink, ethtool and sysfs.

use std::{
    collections::BTreeMap,
    fs,
    net::IpAddr,
    path::{Path, PathBuf},
};

use aya::programs::{SchedClassifier, TcAttachType};

use super::{Address, Context, Lent, Nic, Setting, elsewhere, leases, may_take};
use crate::{
    drivers::{self, Kernel},
    host::{
        HostError,
        ethtool::Ethtool,
        netlink::{self, DeviceFeatures, LinkInfo, Netlink},
        thread::LabThread,
    },
    topology::is_pci_address,
};

/// Most ancestors that are asked for the connection that they were started over.
const ANCESTORS: usize = 32;

/// The host's devices, and what else decides who may take them.
#[derive(Debug, Clone, Default)]
pub struct Inventory {
    /// All devices but the loopback, in the order of their PCI addresses; those without one come last.
    pub nics: Vec<Nic>,
    /// Those that labs have, but for a lab's that died and whose NICs came back by themselves.
    pub lent: Vec<Lent>,
    /// The kernel that runs.
    pub kernel: Option<Kernel>,
}

/// Reads the inventory of the namespace that the caller is in.
///
/// # Errors
/// Where netlink can't be used.
pub fn inventory() -> Result<Inventory, HostError> {
    inventory_for(None)
}

/// The interrupts of the NIC at a PCI address.
pub(crate) fn irqs_of(pci: &str) -> Vec<u32> {
    irqs(&device_of(pci))
}

/// The interrupts of the NIC at a PCI address that frames come by, in the order of their queues. Where the driver's names
/// for them tell nothing, all that it has asked for; none before it has, as while the NIC is down.
pub(crate) fn receive_irqs_of(pci: &str) -> Vec<u32> {
    let used: Vec<(u32, String)> = irqs_of(pci)
        .into_iter()
        .filter_map(|irq| Some((irq, read(&PathBuf::from(format!("/sys/kernel/irq/{irq}/actions")))?)))
        .filter(|(_, name)| !name.is_empty())
        .collect();
    let any = used.iter().any(|(_, name)| receives(name));
    used.into_iter().filter(|(_, name)| !any || receives(name)).map(|(irq, _)| irq).collect()
}

/// Whether an interrupt is one that frames come by, by its driver's name for it: `eth0-TxRx-3`, `eth0-rx-0`,
/// `virtio1-input.0`, `mlx5_comp3@pci:…`, and not `eth0-tx-0`, `virtio1-config` or `mlx5_async0@…`.
fn receives(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    ["rx", "input", "comp"].iter().any(|word| name.contains(word))
}

/// The inventory as a lab sees it: what it has leased itself is not refused to it.
///
/// # Errors
/// Where netlink can't be used.
pub fn inventory_for(lab: Option<&str>) -> Result<Inventory, HostError> {
    let thread = LabThread::start("nics")?;
    let (links, addresses, routed, qdiscs, elsewhere) = thread.run(|inside| {
        let netlink = Netlink::open_at_home(inside)?;
        let (links, addresses, routed, qdiscs) = inside.block_on(async {
            let (links, addresses) = (netlink.links().await?, netlink.addresses().await?);
            Ok::<_, HostError>((links, addresses, netlink.routed().await?, netlink.qdiscs().await?))
        })?;
        Ok::<_, HostError>((links, addresses, routed, qdiscs, elsewhere::uppers(inside)))
    })?;
    let listeners = bound(&fs::read_to_string("/proc/thread-self/net/packet").unwrap_or_default());
    let features = netlink::xdp_features()?;
    let ethtool = Ethtool::open()?;
    let context = Context { logged_in_at: logged_in_at(), lab: lab.map(str::to_owned) };
    let mut nics: Vec<Nic> = links
        .iter()
        .filter(|link| link.name != "lo")
        .map(|link| {
            let mut nic = nic(link, &links, &ethtool, features.as_ref());
            let own = addresses.iter().filter(|(index, ..)| *index == link.index);
            nic.addresses = own.map(|(_, ip, prefix)| Address { ip: *ip, prefix: *prefix }).collect();
            [nic.default_v4, nic.default_v6] =
                routed.by_default.each_ref().map(|devices| devices.contains(&link.index));
            nic.routed = routed.by_a_user.contains(&link.index);
            let own = qdiscs.iter().filter(|(index, _)| *index == link.index);
            nic.qdiscs = own.map(|(_, kind)| kind.clone()).collect();
            nic.tcx_programs = tcx_programs(&link.name);
            let above = elsewhere.iter().filter(|(index, _)| *index == link.index);
            nic.uppers_elsewhere = above.map(|(_, upper)| upper.clone()).collect();
            nic.listeners = listeners.iter().filter(|index| **index == link.index).count() as u32;
            nic
        })
        .collect();
    inherit_default_routes(&mut nics, &links);
    for nic in &mut nics {
        nic.refusal = may_take(nic, &context).err();
    }
    nics.sort_by(|a, b| (a.pci.is_none(), &a.pci, a.index).cmp(&(b.pci.is_none(), &b.pci, b.index)));
    let is_away = |lent: &Lent| nics.iter().all(|nic| nic.pci.as_ref() != Some(&lent.pci));
    let lent = leases::lent().into_iter().filter(is_away).collect();
    Ok(Inventory { nics, lent, kernel: Kernel::running() })
}

/// What a bridge, bond or VLAN with the default route stands on carries it too.
fn inherit_default_routes(nics: &mut [Nic], links: &[LinkInfo]) {
    // As many rounds as devices can stand on each other at most.
    for _ in 0..links.len() {
        let carrying: Vec<(u32, [bool; 2])> = nics
            .iter()
            .filter(|nic| nic.default_v4 || nic.default_v6)
            .map(|nic| (nic.index, [nic.default_v4, nic.default_v6]))
            .collect();
        let mut changed = false;
        for nic in nics.iter_mut() {
            let link = links.iter().find(|link| link.index == nic.index);
            for (index, [v4, v6]) in &carrying {
                let upper = links.iter().find(|link| link.index == *index);
                let is_port = link.is_some_and(|link| link.master == Some(*index));
                let is_lower = upper.is_some_and(|upper| stands_on(upper, nic.index));
                if is_port || is_lower {
                    changed |= *v4 && !nic.default_v4 || *v6 && !nic.default_v6;
                    (nic.default_v4, nic.default_v6) = (nic.default_v4 || *v4, nic.default_v6 || *v6);
                }
            }
        }
        if !changed {
            return;
        }
    }
}

/// Ids of the programs for traffic control that are attached to a device of the caller's namespace by links (TCX).
fn tcx_programs(name: &str) -> Vec<u32> {
    [TcAttachType::Ingress, TcAttachType::Egress]
        .into_iter()
        // Before Linux 6.6 there are none, and nobody but root is told.
        .filter_map(|direction| SchedClassifier::query_tcx(name, direction).ok())
        .flat_map(|(_, programs)| programs.iter().map(aya::programs::ProgramInfo::id).collect::<Vec<_>>())
        .collect()
}

/// Whether a device stands on the one of that index, as a VLAN does.
fn stands_on(upper: &LinkInfo, index: u32) -> bool {
    upper.lower == Some(index) && upper.index != index
}

fn nic(
    link: &LinkInfo,
    links: &[LinkInfo],
    ethtool: &Ethtool,
    features: Option<&BTreeMap<u32, DeviceFeatures>>,
) -> Nic {
    let sysfs = sysfs_of(link);
    let read = |name: &str| read(&sysfs.join(name));
    let told = |text: String| Some(text).filter(|text| !text.is_empty() && text != "N/A");
    // A device without ethtool tells its driver in sysfs, if anywhere.
    let info = ethtool.driver(&link.name).unwrap_or_default();
    let driver = told(info.driver).or_else(|| file_name(&sysfs.join("device/driver"))).unwrap_or_default();
    let pci = pci_device(&sysfs.join("device"));
    // All ports but the first of a function that has several are told apart by their numbers.
    let shares = drivers::known(&driver).is_some_and(|driver| driver.shares_function);
    let port = read("dev_port").and_then(|port| port.parse::<u32>().ok()).filter(|port| shares && *port > 0);
    let address = pci.as_deref().and_then(address_of);
    let address = address.map(|pci| port.map_or_else(|| pci.clone(), |port| format!("{pci}/{port}")));
    let settings = ethtool.settings(&link.name);
    let pair = |now: Option<[u32; 2]>, most: Option<[u32; 2]>, n: usize| {
        Some(Setting { now: now?[n], most: most?[n] }).filter(|setting| setting.most > 0)
    };
    let features = features.and_then(|features| features.get(&link.index)).copied();
    let name_of = |index: u32| {
        links
            .iter()
            .find(|link| link.index == index)
            .map_or_else(|| format!("device {index}"), |link| link.name.clone())
    };
    Nic {
        name: link.name.clone(),
        alt_names: link.alt_names.clone(),
        index: link.index,
        driver,
        firmware: told(info.firmware),
        id: pci.as_deref().and_then(pci_id),
        numa: pci.as_deref().and_then(|path| self::read(&path.join("numa_node"))?.parse().ok()),
        irqs: pci.as_deref().map(irqs).unwrap_or_default(),
        leased_by: address.as_deref().and_then(leases::holder),
        pci: address,
        mac: link.mac_text(),
        mtu: link.mtu,
        // ARPHRD_ETHER, which wireless devices have too.
        not_ethernet: read("type").is_some_and(|kind| kind != "1") || sysfs.join("phy80211").exists(),
        // Without a link, a driver says -1, or fails.
        speed: read("speed").and_then(|speed| speed.parse().ok()).filter(|speed| *speed != u32::MAX),
        duplex: read("duplex").filter(|duplex| duplex != "unknown"),
        up: link.up,
        carrier: link.carrier,
        queues: queues(settings.queues, settings.most_queues),
        rx_ring: pair(settings.rings, settings.most_rings, 0),
        tx_ring: pair(settings.rings, settings.most_rings, 1),
        xdp_features: features.map(|device| device.features),
        zero_copy_segments: features.and_then(|device| device.zero_copy_segments),
        native_program: link.native_program,
        other_program: link.generic_program.or(link.offloaded_program),
        master: link.master.map(name_of),
        uppers: links.iter().filter(|upper| stands_on(upper, link.index)).map(|upper| upper.name.clone()).collect(),
        ..Nic::default()
    }
}

/// Indices of the devices that packet sockets are bound to, in the kernel's list of those; one that is bound to none hears
/// all, and minds no device that goes.
fn bound(list: &str) -> Vec<u32> {
    let index = |line: &str| line.split_ascii_whitespace().nth(4)?.parse().ok().filter(|index| *index != 0);
    list.lines().skip(1).filter_map(index).collect()
}

/// A device's folder in sysfs, or a path that is not there where the folder of that name is another device's: sysfs shows
/// the namespace that it was mounted in.
fn sysfs_of(link: &LinkInfo) -> PathBuf {
    let folder = Path::new("/sys/class/net").join(&link.name);
    let is_it = read(&folder.join("ifindex")) == Some(link.index.to_string())
        && read(&folder.join("address")).is_some_and(|address| address == link.mac_text());
    if is_it { folder } else { PathBuf::from("/sys/class/net/ of another namespace") }
}

/// Queue pairs where the driver has those, else receive queues.
fn queues(now: Option<[u32; 3]>, most: Option<[u32; 3]>) -> Option<Setting> {
    let ([rx, _, both], [most_rx, _, most_both]) = (now?, most?);
    if most_both > 0 {
        // Channels for receiving alone come on top of the pairs.
        return Some(Setting { now: both + rx, most: most_both.max(both + rx) });
    }
    (most_rx > 0).then_some(Setting { now: rx, most: most_rx })
}

/// The PCI device that a network device is, or whose virtio device it is; `None` for one behind USB and the like.
fn pci_device(device: &Path) -> Option<PathBuf> {
    let path = fs::canonicalize(device).ok()?;
    let on = |path: &Path| file_name(&path.join("subsystem"));
    match on(&path)?.as_str() {
        "pci" => Some(path),
        // A virtio or auxiliary device (a sub-function) is a part of its parent.
        "virtio" | "auxiliary" => {
            let parent = path.parent()?;
            (on(parent)? == "pci").then(|| parent.to_owned())
        }
        _ => None,
    }
}

/// The PCI device that a NIC is a port of, by its address: that of a second port has a number behind it.
pub(crate) fn device_of(pci: &str) -> PathBuf {
    Path::new("/sys/bus/pci/devices").join(pci.split('/').next().unwrap_or(pci))
}

fn address_of(pci: &Path) -> Option<String> {
    let name = pci.file_name()?.to_str()?;
    is_pci_address(name).then(|| name.to_owned())
}

fn pci_id(pci: &Path) -> Option<String> {
    let read = |name: &str| read(&pci.join(name)).map(|id| id.trim_start_matches("0x").to_owned());
    Some(format!("{}:{}", read("vendor")?, read("device")?))
}

fn irqs(pci: &Path) -> Vec<u32> {
    let entries = fs::read_dir(pci.join("msi_irqs")).into_iter().flatten().flatten();
    let mut irqs: Vec<u32> = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect();
    irqs.sort_unstable();
    irqs
}

/// The host's address in the connection that the user is logged in over: `SSH_CONNECTION` of this process, or, since sudo
/// takes it away, of the nearest ancestor that has it.
fn logged_in_at() -> Option<IpAddr> {
    let own = std::env::var("SSH_CONNECTION").ok().and_then(|value| local_address(&value));
    own.or_else(|| {
        let mut process = std::os::unix::process::parent_id();
        for _ in 0..ANCESTORS {
            let variables = fs::read(format!("/proc/{process}/environ")).unwrap_or_default();
            let found = variables
                .split(|byte| *byte == 0)
                .find_map(|variable| local_address(str::from_utf8(variable.strip_prefix(b"SSH_CONNECTION=")?).ok()?));
            if found.is_some() {
                return found;
            }
            process = parent(process)?;
        }
        None
    })
}

/// The host's address in a value of `SSH_CONNECTION`: client, its port, host, its port.
fn local_address(value: &str) -> Option<IpAddr> {
    let address = value.split(' ').nth(2)?;
    // A link-local address has its device behind a percent sign.
    address.split('%').next()?.parse().ok()
}

fn parent(process: u32) -> Option<u32> {
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    // The name in parentheses may hold anything; state and parent come behind it.
    stat.rsplit_once(')')?.1.split_ascii_whitespace().nth(1)?.parse().ok().filter(|parent| *parent > 1)
}

fn file_name(link: &Path) -> Option<String> {
    Some(fs::canonicalize(link).ok()?.file_name()?.to_str()?.to_owned())
}

fn read(path: &Path) -> Option<String> {
    fs::read_to_string(path).ok().map(|text| text.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn link(index: u32, master: Option<u32>, lower: Option<u32>) -> LinkInfo {
        LinkInfo { index, master, lower, ..LinkInfo::default() }
    }

    fn defaults(links: &[LinkInfo], routed: u32) -> Vec<u32> {
        let of = |link: &LinkInfo| Nic { index: link.index, default_v4: link.index == routed, ..Nic::default() };
        let mut nics: Vec<Nic> = links.iter().map(of).collect();
        inherit_default_routes(&mut nics, links);
        nics.iter().filter(|nic| nic.default_v4).map(|nic| nic.index).collect()
    }

    #[test]
    fn what_carries_the_device_with_the_default_route_carries_the_route() {
        // NICs 2 and 3 in bond 4, VLAN 5 on the bond, which is in bridge 6; NIC 7 is idle.
        let links = [
            link(2, Some(4), None),
            link(3, Some(4), None),
            link(4, None, None),
            link(5, Some(6), Some(4)),
            link(6, None, None),
            link(7, None, None),
        ];
        assert_eq!(defaults(&links, 6), [2, 3, 4, 5, 6]);
        assert_eq!(defaults(&links, 4), [2, 3, 4]);
        assert_eq!(defaults(&links, 7), [7]);
    }

    #[test]
    fn a_packet_socket_is_bound_to_its_fifth_word() {
        let list = "sk               RefCnt Type Proto  Iface R Rmem   User   Inode\n\
                    0000000000000000 3      3    0003   4     1 0      0      5312\n\
                    0000000000000000 3      3    0003   0     1 0      0      5313\n";
        assert_eq!(bound(list), [4]);
        assert_eq!(bound(""), [0; 0]);
    }

    #[test]
    fn interrupts_that_frames_come_by_are_told_by_their_names() {
        for name in ["i40e-eth0-TxRx-3", "eth4-rxtx-0", "eth5-rx-0", "virtio10-input.0", "mlx5_comp3@pci:0000:03:00.0"]
        {
            assert!(receives(name), "{name}");
        }
        for name in
            ["eth5-tx-0", "virtio10-config", "virtio10-output.0", "mlx5_async0@pci:0000:03:00.0", "eth4-event-2"]
        {
            assert!(!receives(name), "{name}");
        }
    }

    #[test]
    fn queue_pairs_come_before_receive_queues() {
        assert_eq!(queues(Some([0, 0, 4]), Some([0, 0, 8])), Some(Setting { now: 4, most: 8 }));
        assert_eq!(queues(Some([2, 2, 0]), Some([4, 4, 0])), Some(Setting { now: 2, most: 4 }));
        assert_eq!(queues(None, None), None);
    }

    #[test]
    fn the_hosts_end_of_a_login_is_its_third_word() {
        assert_eq!(local_address("198.51.100.7 50514 192.0.2.1 22"), "192.0.2.1".parse().ok());
        assert_eq!(local_address("fe80::2%p1 50514 fe80::1%p1 22"), "fe80::1".parse().ok());
        assert_eq!(local_address("nonsense"), None);
    }
}
