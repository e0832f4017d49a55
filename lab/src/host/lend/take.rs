//! From the host into a node.

use std::fs;

use super::{Borrowed, Lease, LendError, Place, borrowed::affinity, give_back};
use crate::{
    host::{
        HostError,
        ethtool::Ethtool,
        journal::{Change, Journal},
        netlink::Netlink,
        netns::Netns,
        nics,
        thread::Inside,
    },
    topology::{Mac, Rings},
};

/// What a port of the topology asks of its NIC.
#[derive(Debug, Clone)]
pub struct PortSettings<'a> {
    /// The port, as `node:port`.
    pub port: String,
    /// The NIC's name on the host when it was chosen.
    pub nic: &'a str,
    /// Its driver.
    pub driver: String,
    /// Its name in the node.
    pub name: &'a str,
    /// Its interface index in the node.
    pub ifindex: u32,
    /// Its MAC address.
    pub mac: Mac,
    /// Its MTU in bytes.
    pub mtu: u32,
    /// Receive queues.
    pub queues: u32,
    /// Ring sizes, where the file gives them.
    pub rings: Option<Rings>,
    /// CPUs of its interrupts; empty: as they are.
    pub irq_cpus: &'a [u32],
}

/// A NIC that is lent. It has to be given back.
#[derive(Debug)]
pub struct Loan {
    /// What it was like.
    pub borrowed: Borrowed,
    /// Remarks: what its driver did otherwise than asked.
    pub notes: Vec<String>,
    /// The lease.
    pub lease: Lease,
}

impl Loan {
    /// Gives the NIC back as it was, and ends the lease; returns what there is to say of that. `places`: where it may be.
    ///
    /// # Errors
    /// Everything that could not be put back, each in words; the lease stays then.
    pub(crate) fn give_back(self, inside: &Inside, places: &[Place<'_>]) -> Result<Vec<String>, Vec<String>> {
        let said = give_back(inside, &self.borrowed, places)?;
        self.lease.end();
        Ok(said)
    }
}

/// Lends a NIC: from the home namespace into a node's, with a port's name, index and settings, and still down.
///
/// # Errors
/// Where it may not be taken, can't be as asked for, or the host refuses. What was changed until then stands in the
/// journal.
pub fn take(
    inside: &Inside,
    pci: &str,
    wanted: &PortSettings<'_>,
    (netns, netlink): (&Netns, &Netlink),
    lab: &str,
    journal: &Journal,
) -> Result<Loan, LendError> {
    let unnamed =
        |source| LendError::Host { nic: wanted.nic.to_owned(), pci: pci.to_owned(), source: Box::new(source) };
    let refused = |nic: &str, refusal| LendError::Refused {
        nic: nic.to_owned(),
        pci: pci.to_owned(),
        refusal: Box::new(refusal),
    };
    let lease = match Lease::take(pci, lab).map_err(unnamed)? {
        Ok(lease) => lease,
        Err(refusal) => return Err(refused(wanted.nic, refusal)),
    };
    let borrowed = match examine(inside, pci, wanted.nic, lab) {
        Ok(borrowed) => borrowed,
        Err(error) => {
            lease.end();
            return Err(error);
        }
    };
    let failed = |source| LendError::Host { nic: borrowed.name.clone(), pci: pci.to_owned(), source: Box::new(source) };
    if let Err(error) = journal.record(&Change::Nic(Box::new(borrowed.clone()))) {
        lease.end();
        return Err(error.into());
    }
    // A program's XDP state ends with the program; what a NIC is asked for is set while it is down, which every driver takes.
    let home = Netlink::open_at_home(inside).map_err(failed)?;
    inside
        .block_on(async {
            home.set_down(borrowed.index).await?;
            // What it is called in the lab may be one of its other names, and no name can be had twice.
            if borrowed.alt_names.iter().any(|name| name == wanted.name) {
                home.remove_alt_name(borrowed.index, wanted.name).await?;
            }
            home.move_device(borrowed.index, std::os::fd::AsFd::as_fd(netns), wanted.name, Some(wanted.ifindex)).await
        })
        .map_err(failed)?;
    let notes =
        inside.enter(netns, || settle(inside, wanted, netlink)).and_then(|settled| settled).map_err(|source| {
            LendError::Setting {
                nic: borrowed.name.clone(),
                pci: pci.to_owned(),
                port: wanted.port.clone(),
                source: Box::new(source),
            }
        })?;
    Ok(Loan { borrowed, notes, lease })
}

/// What the NIC is like now, if it may be taken now: it may have got an address since the cables were matched.
fn examine(inside: &Inside, pci: &str, name: &str, lab: &str) -> Result<Borrowed, LendError> {
    let failed = |source| LendError::Host { nic: name.to_owned(), pci: pci.to_owned(), source: Box::new(source) };
    let gone = || LendError::Gone { pci: pci.to_owned() };
    let inventory = nics::inventory_for(Some(lab)).map_err(failed)?;
    let nic = inventory.nics.iter().find(|nic| nic.pci.as_deref() == Some(pci)).ok_or_else(gone)?;
    if let Some(refusal) = &nic.refusal {
        return Err(LendError::Refused {
            nic: nic.name.clone(),
            pci: pci.to_owned(),
            refusal: Box::new(refusal.clone()),
        });
    }
    Borrowed::read(inside, nic, lab).map_err(failed)?.ok_or_else(gone)
}

/// Settings, in the node's namespace, while the NIC is down.
fn settle(inside: &Inside, wanted: &PortSettings<'_>, netlink: &Netlink) -> Result<Vec<String>, HostError> {
    let mut notes = Vec::new();
    let ethtool = Ethtool::open()?;
    inside.block_on(async {
        netlink.set_mtu(wanted.ifindex, wanted.mtu).await?;
        if netlink.set_mac(wanted.ifindex, wanted.mac).await.is_err() {
            // Frames to an address that is not its own reach it all the same.
            netlink.set_promiscuous(wanted.ifindex, true).await?;
            notes.push(format!("{}: its driver keeps its own MAC address, so it is promiscuous", wanted.port));
        }
        if crate::drivers::known(&wanted.driver).is_some_and(|driver| driver.forgets_mac) {
            netlink.set_promiscuous(wanted.ifindex, true).await?;
        }
        Ok::<(), HostError>(())
    })?;
    notes.extend(queues(&ethtool, wanted)?);
    if let Some(Rings { rx, tx }) = wanted.rings {
        let now = ethtool.settings(wanted.name).rings.unwrap_or_default();
        ethtool.set_rings(wanted.name, [rx.unwrap_or(now[0]), tx.unwrap_or(now[1])])?;
    }
    // A rate that is measured must not depend on a neighbour's pause, or on a rate that adapts to it.
    for (what, done) in [
        ("pause frames", ethtool.set_pause_off(wanted.name)),
        ("adaptive coalescing", ethtool.set_adaptive_off(wanted.name)),
    ] {
        if let Err(error) = done {
            notes.push(format!("{}: {what} stay as they are: {error}", wanted.port));
        }
    }
    // With LRO no driver runs a native program.
    if ethtool.features(wanted.name)?.iter().any(|(name, on)| name == "rx-lro" && *on) {
        ethtool.set_feature(wanted.name, "rx-lro", false)?;
    }
    Ok(notes)
}

/// As many receive queues as the port asks for: by the number of channels, or where a driver has no choice of that, by the
/// table that spreads received frames.
fn queues(ethtool: &Ethtool, wanted: &PortSettings<'_>) -> Result<Option<String>, HostError> {
    let settings = ethtool.settings(wanted.name);
    let Some(now) = settings.queues else {
        // A driver that does not tell has one.
        return Ok((wanted.queues > 1).then(|| format!("{}: its driver has no choice of queues", wanted.port)));
    };
    let [rx, tx, both] = now;
    let asked = if both > 0 { [0, 0, wanted.queues] } else { [wanted.queues, tx, 0] };
    if asked == now || rx + both == wanted.queues {
        return Ok(None);
    }
    let Err(refused) = ethtool.set_queues(wanted.name, asked) else { return Ok(None) };
    let table = ethtool.indirection(wanted.name).unwrap_or_default();
    if table.is_empty() && wanted.queues == 1 {
        // Without a table all frames come by the first queue.
        return Ok(Some(keeps(wanted, rx + both)));
    }
    if wanted.queues > rx + both || table.is_empty() {
        return Err(refused);
    }
    let spread: Vec<u32> = (0..table.len() as u32).map(|n| n % wanted.queues).collect();
    ethtool.set_indirection(wanted.name, &spread)?;
    Ok(Some(keeps(wanted, rx + both)))
}

/// That a driver does not change its number of queues, and how many of them get frames.
fn keeps(wanted: &PortSettings<'_>, has: u32) -> String {
    let gets = if wanted.queues == 1 { "1 gets" } else { &format!("{} get", wanted.queues) };
    format!(
        "{}: its driver ({}) does not change how many queues it has: of its {has}, {gets} frames",
        wanted.port, wanted.driver
    )
}

/// Puts a NIC's interrupts on CPUs, in turn. To be called once it is up: many drivers have none before.
///
/// # Errors
/// Where the kernel refuses.
pub(crate) fn set_affinity(pci: &str, cpus: &[u32]) -> Result<(), HostError> {
    if cpus.is_empty() {
        return Ok(());
    }
    // Those that frames come by take turns of their own: a first vector for events, as many drivers have, would shift them.
    let receiving = nics::receive_irqs_of(pci);
    let (first, rest): (Vec<u32>, Vec<u32>) = nics::irqs_of(pci).into_iter().partition(|irq| receiving.contains(irq));
    for (irq, cpu) in [first, rest].iter().flat_map(|irqs| irqs.iter().zip(cpus.iter().cycle())) {
        let path = affinity(*irq);
        fs::write(&path, cpu.to_string()).map_err(|source| HostError::File { operation: "write", path, source })?;
    }
    Ok(())
}
