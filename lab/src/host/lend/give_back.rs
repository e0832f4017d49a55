//! From wherever a NIC is to where it was.

use std::{
    fs,
    net::IpAddr,
    os::fd::AsFd as _,
    time::{Duration, Instant},
};

use super::{
    Borrowed, Lease,
    borrowed::{affinity, settings_of},
};
use crate::host::{HostError, ethtool::Ethtool, netlink::Netlink, netns::Netns, nics, thread::Inside};

/// How long the kernel may take to give a NIC back whose namespace is gone: it does so in its own time.
const FALLING: Duration = Duration::from_secs(20);
/// How often it is looked for meanwhile.
const LOOK: Duration = Duration::from_millis(20);

/// A namespace that a NIC may be in, with a socket in it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Place<'a> {
    /// The namespace.
    pub(crate) netns: &'a Netns,
    /// A socket in it.
    pub(crate) netlink: &'a Netlink,
}

/// Gives a NIC back as it was; returns what there is to say: that it is gone from the host, or in what it differs.
///
/// `places`: where it may be, besides the home namespace. It is looked for at home in the end, since it falls there when
/// its namespace goes. Doing it twice does nothing the second time.
///
/// # Errors
/// Everything that could not be put back, each in words.
pub(crate) fn give_back(
    inside: &Inside,
    borrowed: &Borrowed,
    places: &[Place<'_>],
) -> Result<Vec<String>, Vec<String>> {
    let given = from_anywhere(inside, borrowed, places);
    // Unplugged just now: what was refused then can't be done any more.
    if given.is_err() && !nics::device_of(&borrowed.pci).exists() { Ok(gone(borrowed)) } else { given }
}

/// Ends the lease of a NIC that was unplugged.
fn gone(borrowed: &Borrowed) -> Vec<String> {
    Lease::end_of(&borrowed.pci, &borrowed.lab);
    vec![format!("NIC {} ({}) is gone from the host: nothing is left to give back", borrowed.name, borrowed.pci)]
}

fn from_anywhere(inside: &Inside, borrowed: &Borrowed, places: &[Place<'_>]) -> Result<Vec<String>, Vec<String>> {
    let word =
        |error: HostError| vec![crate::host::describe(&format!("NIC {} ({})", borrowed.name, borrowed.pci), &error)];
    let home = Netlink::open_at_home(inside).map_err(word)?;
    let deadline = Instant::now() + FALLING;
    loop {
        for place in places {
            let found = inside.enter(place.netns, || find(inside, place.netlink, borrowed)).map_err(word)?;
            if let Some((index, name)) = found.map_err(word)? {
                let settled = inside
                    .enter(place.netns, || settle(inside, place.netlink, index, &name, borrowed))
                    .map_err(word)?;
                send_home(inside, place.netlink, index, borrowed).map_err(word)?;
                return finish(inside, &home, borrowed, settled);
            }
        }
        if let Some((index, name)) = find(inside, &home, borrowed).map_err(word)? {
            let settled = settle(inside, &home, index, &name, borrowed);
            return finish(inside, &home, borrowed, settled);
        }
        let device = nics::device_of(&borrowed.pci);
        if !device.exists() {
            return Ok(gone(borrowed));
        }
        let about = format!("NIC {} ({})", borrowed.name, borrowed.pci);
        if !device.join("driver").exists() {
            return Err(vec![format!(
                "{about}: no driver is bound to it. `modprobe {}` or a rescan of its bus brings it back, and `xdplab gc` \
                 then puts it as it was",
                borrowed.driver
            )]);
        }
        if Instant::now() >= deadline {
            return Err(vec![format!(
                "{about}: its PCI device is there, and no network device of it in the initial namespace: it was moved by \
                 hand. Move it back, then `xdplab gc` puts it as it was"
            )]);
        }
        std::thread::sleep(LOOK);
    }
}

/// A NIC in the namespace that the thread is in, by its PCI address, and since that may be several ports' by the MAC address
/// that it was made with: index and name.
fn find(inside: &Inside, netlink: &Netlink, borrowed: &Borrowed) -> Result<Option<(u32, String)>, HostError> {
    let links = inside.block_on(netlink.links())?;
    let ethtool = Ethtool::open()?;
    let device = borrowed.pci.split('/').next();
    let is_it = |name: &str| {
        ethtool.driver(name).is_ok_and(|info| Some(info.bus.as_str()) == device)
            && (borrowed.permanent_mac.is_none() || ethtool.permanent_mac(name) == borrowed.permanent_mac)
    };
    Ok(links.into_iter().find(|link| is_it(&link.name)).map(|link| (link.index, link.name)))
}

/// Puts settings back where the NIC is now, while it is down. A NIC that is as it was is not touched.
fn settle(inside: &Inside, netlink: &Netlink, index: u32, name: &str, borrowed: &Borrowed) -> Vec<HostError> {
    let mut failed = Vec::new();
    let link = match inside.block_on(netlink.links()) {
        Ok(links) => links.into_iter().find(|link| link.index == index).unwrap_or_default(),
        Err(error) => return vec![error],
    };
    let ethtool = match Ethtool::open() {
        Ok(ethtool) => ethtool,
        Err(error) => return vec![error],
    };
    let mac = link.mac_text();
    let differs = (link.mtu, &mac, link.promiscuous) != (borrowed.mtu, &borrowed.mac, borrowed.promiscuous)
        || ethtool.tuning(name) != borrowed.tuning
        || name != borrowed.name;
    if !differs {
        return failed;
    }
    inside.block_on(async {
        failed.extend(netlink.set_down(index).await.err());
        failed.extend(netlink.set_mtu(index, borrowed.mtu).await.err());
        if let Some(own) = borrowed.mac().filter(|_| mac != borrowed.mac) {
            failed.extend(netlink.set_mac(index, own).await.err());
        }
        failed.extend(netlink.set_promiscuous(index, borrowed.promiscuous).await.err());
    });
    failed.extend(ethtool.restore(name, &borrowed.tuning));
    failed
}

/// Moves a NIC from a node to the home namespace, under its own name and index if they are free.
fn send_home(inside: &Inside, netlink: &Netlink, index: u32, borrowed: &Borrowed) -> Result<(), HostError> {
    let home = inside.home().as_fd();
    let spare = format!("xl{}", borrowed.pci.replace([':', '.', '/'], "").trim_start_matches('0'));
    // Its own index may be another's by now, and so may its name: it comes home first, and is called what it was then.
    let ways = [(borrowed.name.as_str(), Some(borrowed.index)), (borrowed.name.as_str(), None), (spare.as_str(), None)];
    let mut last = Ok(());
    for (name, own) in ways {
        last = inside.block_on(netlink.move_device(index, home, name, own));
        // One whose name is taken at home moves there all the same, under the one that it has.
        if last.is_ok() || !inside.block_on(netlink.links())?.iter().any(|link| link.index == index) {
            return Ok(());
        }
    }
    last
}

/// At home again: its name, its other names, up, addresses, interrupts. Then a look at what it is like.
fn finish(
    inside: &Inside,
    home: &Netlink,
    borrowed: &Borrowed,
    settled: Vec<HostError>,
) -> Result<Vec<String>, Vec<String>> {
    let about = format!("NIC {} ({})", borrowed.name, borrowed.pci);
    let word = |error: HostError| crate::host::describe(&about, &error);
    let mut failed: Vec<String> = settled.into_iter().map(word).collect();
    let Some((index, name)) = find(inside, home, borrowed).map_err(|error| vec![word(error)])? else {
        return Err(vec![format!("{about}: it did not arrive in the initial namespace")]);
    };
    inside.block_on(async {
        if name != borrowed.name
            && let Err(error) = home.rename(index, &borrowed.name).await
        {
            failed.push(format!(
                "{about}: it is at home as {name}, and does not get its name back: {error}. Where another device has that \
                 name, rename it, then `xdplab gc` goes on"
            ));
        }
        let links = home.links().await.unwrap_or_default();
        let have = links.iter().find(|link| link.index == index).map(|link| link.alt_names.clone()).unwrap_or_default();
        for other in borrowed.alt_names.iter().filter(|name| !have.contains(name)) {
            failed.extend(home.add_alt_name(index, other).await.err().map(word));
        }
    });
    // By the name that it has now: under its own there may be another device.
    let name = match inside.block_on(home.links()) {
        Ok(links) => links.into_iter().find(|link| link.index == index).map_or(name, |link| link.name),
        Err(error) => return Err(vec![word(error)]),
    };
    for (family, settings) in [("ipv4", &borrowed.ipv4), ("ipv6", &borrowed.ipv6)] {
        for (setting, value) in settings {
            let path = settings_of(family, &name).join(setting);
            if fs::read_to_string(&path).is_ok_and(|now| now.trim() != value) {
                // Some can't be written: what still differs in the end is said then.
                let _ = fs::write(&path, value);
            }
        }
    }
    inside.block_on(async {
        let up = if borrowed.up { home.set_up(index).await } else { home.set_down(index).await };
        failed.extend(up.err().map(word));
        let have: Vec<(u32, IpAddr, u8)> = home.addresses().await.unwrap_or_default();
        for (ip, prefix) in borrowed.addresses.iter().filter(|(ip, prefix)| !have.contains(&(index, *ip, *prefix))) {
            failed.extend(home.add_address(index, *ip, *prefix).await.err().map(word));
        }
    });
    for (irq, cpus) in &borrowed.irqs {
        // An interrupt whose number has changed with the queues is as the kernel makes it.
        let path = affinity(*irq);
        if fs::read_to_string(&path).is_ok_and(|now| now.trim() != cpus) {
            let _ = fs::write(&path, cpus);
        }
    }
    if !failed.is_empty() {
        return Err(failed);
    }
    let inventory = nics::inventory_for(Some(&borrowed.lab)).map_err(|error| vec![word(error)])?;
    let nic = inventory.nics.iter().find(|nic| nic.pci.as_ref() == Some(&borrowed.pci));
    let now = nic.and_then(|nic| Borrowed::read(inside, nic, &borrowed.lab).ok().flatten());
    // Only now: from here on another lab may change it.
    Lease::end_of(&borrowed.pci, &borrowed.lab);
    let differences = now.map_or_else(Vec::new, |now| borrowed.differences(&now));
    Ok(differences.into_iter().map(|difference| format!("{about}: {difference}")).collect())
}
