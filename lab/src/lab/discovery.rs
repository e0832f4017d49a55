//! Which ports of the host are cabled together, found by sending marked frames from those that may be taken.
//!
//! ```text
//! inventory ─▶ each free NIC lent into a namespace of its own ─▶ up ─▶ carrier ─▶ each sends to all ─▶ who heard whom
//!                                                                                        │
//!                                 the end, an error, a signal, gc after a crash ─────────┴▶ all given back
//! ```
//!
//! NICs are leased, written down and given back as those of a lab are: the search is a lab without a topology. Nothing is
//! sent from a port that may not be taken.

mod summary;
mod wiring;

use std::{
    error::Error as _,
    time::{Duration, Instant},
};

use xdplab_wire::records::IFINDEX_BASE;

pub use wiring::{Joint, Way, joints};

/// A host with some of everything, for tests of what is printed.
#[cfg(test)]
pub(crate) fn sample(host_file: &str) -> DiscoveryReport {
    summary::tests::some_of_everything(&summary::tests::host(host_file))
}

use super::{Instance, LabError, Place, network::LOOPBACK};
use crate::{
    host::{
        HostError,
        canary::Canary,
        ethtool::Ethtool,
        journal::{Journal, Kind},
        lend::{self, LendError, Loan, PortSettings},
        lock::HostLock,
        nics::{self, Nic, Refusal},
        thread::{Inside, LabThread},
    },
    record::discovery::{DiscoveryReport, NotTaken},
    topology::{HostFile, Mac},
};
use summary::Seen;

/// How often a link that has no carrier yet is looked at.
const LOOK: Duration = Duration::from_millis(20);
/// How often all ports send in turn: a switch between them may learn slowly, and a frame may be lost.
const ROUNDS: u64 = 4;
/// How long frames of a round may be under way.
const UNDER_WAY: Duration = Duration::from_millis(200);
/// How long a port's frames are read in a round, where strangers send without a pause.
const READING: Duration = Duration::from_millis(50);

/// Finds which ports of the host are cabled together. `None` where `stop` asked for the end; all NICs are given back then,
/// too.
///
/// It takes some seconds, and [`lend::CARRIER`] longer where a port has no carrier. `waiting` hears whom it waits for
/// before it starts.
///
/// # Errors
/// [`LabError::NoFreeNic`] where no NIC may be taken; [`LabError::NotReturned`] where one can't be given back, which `gc`
/// tries again; and where the inventory or the run directory can't be used.
pub fn discover(
    host: &HostFile,
    stop: &(dyn Fn() -> bool + Sync),
    waiting: &mut dyn FnMut(&str),
) -> Result<Option<DiscoveryReport>, LabError> {
    let inventory = nics::inventory()?;
    let mut search = Search { stop, host, taken: Vec::new(), not_taken: Vec::new(), half: false };
    let mut free = Vec::new();
    for nic in &inventory.nics {
        match &nic.refusal {
            None => free.push(nic),
            // Bridges, veth pairs and the like are nothing that a cable could be plugged into.
            Some(Refusal::NotANic) => {}
            Some(refusal) => search.refuse(nic, refusal.to_string(), refusal.fix(&nic.name)),
        }
    }
    if free.is_empty() {
        return Err(search.no_free_nic());
    }
    // Frames on the wire and NICs that move would disturb whoever is pricing.
    let _shared = HostLock::shared(waiting)?;
    let instance = Instance::ephemeral("discover");
    let name = instance.to_string();
    let thread = LabThread::start("discover")?;
    let journal = Journal::create(&name, &name, Kind::Ephemeral)?;
    let (seen, returned) = thread.run(|inside| {
        let seen = search.take(inside, &free, &name, &journal).and_then(|()| search.look(inside, &instance));
        (seen, search.give_back(inside))
    });
    drop(thread);
    let mut said = match returned {
        Ok(said) if search.half => {
            // Its namespace is gone, and what was changed of it stands in the journal.
            let undone = journal.undo();
            undone.map(|_| said).map_err(|left| LabError::NotReturned { left: vec![left.to_string()] })?
        }
        Ok(said) => {
            journal.finish()?;
            said
        }
        // The journal stays: `gc` tries again.
        Err(left) => return Err(LabError::NotReturned { left }),
    };
    let Some(mut seen) = seen? else { return Ok(None) };
    if seen.ports.is_empty() {
        return Err(search.no_free_nic());
    }
    seen.notes.append(&mut said);
    Ok(Some(summary::summary(seen, search.not_taken, host)))
}

/// A NIC that was taken.
struct Taken {
    nic: Nic,
    mac: Mac,
    ifindex: u32,
    place: Place,
    loan: Loan,
}

/// A search under way.
struct Search<'a> {
    stop: &'a (dyn Fn() -> bool + Sync),
    host: &'a HostFile,
    taken: Vec<Taken>,
    not_taken: Vec<NotTaken>,
    /// Whether the lending of one failed half-way, so that the journal has to undo it.
    half: bool,
}

impl Search<'_> {
    fn refuse(&mut self, nic: &Nic, reason: String, fix: Option<String>) {
        let (name, driver) = (nic.name.clone(), nic.driver.clone());
        self.not_taken.push(NotTaken { pci: nic.pci.clone(), name, driver, reason, fix });
    }

    fn no_free_nic(&self) -> LabError {
        let word = |nic: &NotTaken| {
            let pci = nic.pci.as_ref().map(|pci| format!(" ({pci})")).unwrap_or_default();
            let fix = nic.fix.as_ref().map(|fix| format!(". To free it: {fix}")).unwrap_or_default();
            format!("{}{pci}: {}{fix}", nic.name, nic.reason)
        };
        LabError::NoFreeNic { not_taken: self.not_taken.iter().map(word).collect() }
    }

    /// Lends each NIC into a namespace of its own, and brings it up. One that can't be lent does not keep the others.
    fn take(&mut self, inside: &Inside, free: &[&Nic], lab: &str, journal: &Journal) -> Result<(), LabError> {
        for (ifindex, nic) in (IFINDEX_BASE..).zip(free.iter().copied()) {
            if (self.stop)() {
                break;
            }
            let mac = match nic.mac.parse::<Mac>() {
                Ok(mac) => mac,
                Err(error) => {
                    self.refuse(nic, error.to_string(), None);
                    continue;
                }
            };
            let place = place(inside, lab)?;
            // As it is: its own address, MTU, queues and interrupts.
            let wanted = PortSettings {
                port: nic.name.clone(),
                nic: &nic.name,
                driver: nic.driver.clone(),
                name: &nic.name,
                ifindex,
                mac,
                mtu: nic.mtu,
                queues: nic.queues.map_or(1, |queues| queues.now),
                rings: None,
                irq_cpus: &[],
            };
            let pci = nic.pci.as_deref().unwrap_or_default();
            match lend::take(inside, pci, &wanted, (&place.netns, &place.netlink), lab, journal) {
                Ok(loan) => {
                    let netlink = &place.netlink;
                    let up = inside.block_on(netlink.set_up(ifindex));
                    self.taken.push(Taken { nic: nic.clone(), mac, ifindex, place, loan });
                    up?;
                }
                // Somebody else was quicker.
                Err(LendError::Refused { refusal, .. }) => {
                    self.refuse(nic, refusal.to_string(), refusal.fix(&nic.name));
                }
                Err(error) => {
                    self.half = true;
                    let because = error.source().map(|source| format!(": {source}")).unwrap_or_default();
                    self.refuse(nic, format!("{error}{because}"), None);
                }
            }
        }
        Ok(())
    }

    /// Waits for carriers, has all send, and collects who heard whom. `None` where the end was asked for.
    fn look(&self, inside: &Inside, instance: &Instance) -> Result<Option<Seen>, LabError> {
        let mut seen = Seen { ports: self.ports(), ..Seen::default() };
        let deadline = Instant::now() + lend::CARRIER;
        loop {
            if (self.stop)() {
                return Ok(None);
            }
            for (n, taken) in self.taken.iter().enumerate() {
                let links = inside.block_on(taken.place.netlink.links())?;
                let is_up =
                    |link: &crate::host::netlink::LinkInfo| link.index == taken.ifindex && link.carrier && link.running;
                if links.iter().any(is_up) {
                    seen.carrier.insert(n);
                }
            }
            if seen.carrier.len() == self.taken.len() || Instant::now() >= deadline {
                break;
            }
            std::thread::sleep(LOOK);
        }
        let mut sockets = Vec::new();
        for (n, taken) in self.taken.iter().enumerate().filter(|(n, _)| seen.carrier.contains(n)) {
            let Taken { nic, mac, ifindex, place, .. } = taken;
            let (speed, socket) = inside.enter(&place.netns, || {
                let speed = Ethtool::open().ok().and_then(|ethtool| ethtool.speed(&nic.name));
                (speed, Canary::open(&nic.name, &nic.name, *ifindex, *mac))
            })?;
            seen.ports[n].speed = speed;
            sockets.push((n, socket?));
        }
        for _ in 0..ROUNDS {
            if (self.stop)() {
                return Ok(None);
            }
            round(&mut sockets, mark(instance), &mut seen);
        }
        Ok(Some(seen))
    }

    fn ports(&self) -> Vec<crate::record::discovery::DiscoveredPort> {
        self.taken.iter().map(|taken| summary::port(&taken.nic, self.host)).collect()
    }

    /// Gives all back that were taken; the errors are what could not be put back, in words.
    fn give_back(&mut self, inside: &Inside) -> Result<Vec<String>, Vec<String>> {
        let (mut words, mut failed) = (Vec::new(), Vec::new());
        for Taken { place, loan, .. } in std::mem::take(&mut self.taken).into_iter().rev() {
            match loan.give_back(inside, &[lend::Place { netns: &place.netns, netlink: &place.netlink }]) {
                Ok(said) => words.extend(said),
                Err(said) => failed.extend(said),
            }
        }
        if failed.is_empty() { Ok(words) } else { Err(failed) }
    }
}

/// A namespace for one port.
fn place(inside: &Inside, lab: &str) -> Result<Place, HostError> {
    let place = Place::quiet(inside)?;
    inside.block_on(place.netlink.set_alias_and_up(LOOPBACK, lab))?;
    Ok(place)
}

/// What frames of this search carry in their upper half: another search on the same wire has another.
fn mark(instance: &Instance) -> u64 {
    let tag = instance.tag.as_deref().and_then(|tag| u64::from_str_radix(tag, 16).ok());
    tag.unwrap_or(u64::from(instance.number)) << 32
}

/// All ports send one after the other, and then all read what came.
fn round(sockets: &mut [(usize, Canary)], mark: u64, seen: &mut Seen) {
    let note = |seen: &mut Seen, error: &HostError| {
        let word = crate::host::describe("discover", error);
        if !seen.notes.contains(&word) {
            seen.notes.push(word);
        }
    };
    for (n, socket) in &mut *sockets {
        // What was not sent is not heard: a port that fails does not keep the others.
        if let Err(error) = socket.send(None, mark | *n as u64) {
            note(seen, &error);
        }
    }
    std::thread::sleep(UNDER_WAY);
    let senders: Vec<usize> = sockets.iter().map(|(n, _)| *n).collect();
    for (to, socket) in &mut *sockets {
        match socket.waiting(Instant::now() + READING) {
            Ok(words) => seen
                .heard
                .extend(senders.iter().filter(|from| words.contains(&(mark | **from as u64))).map(|from| (*from, *to))),
            Err(error) => note(seen, &error),
        }
    }
}
