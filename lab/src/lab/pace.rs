//! Sending no faster than frames are received: a socket's ring is short, and its receiver has to be woken; so is the
//! queue of another CPU, which may have other work, and before Linux 6.5 so is a veth's ring on the sender's own CPU: softirqs
//! that ksoftirqd was woken for are its alone there until it has run (`ksoftirqd_running` in `kernel/softirq.c`).

use std::{
    sync::atomic::{AtomicBool, Ordering},
    time::{Duration, Instant},
};

use xdplab_wire::records::{WatchKey, event};

use super::{
    Installed, Lab, LabError, cabling, reading,
    receiver::{Receiver, Tap},
};
use crate::{
    host::ethtool::Ethtool,
    program::{PortCounter, WatchCounter},
    topology::{Builtin, PortId, Scenario, preflight::VETH_RING},
    traffic::live::unhurried_batches,
    xdp::XdpMode,
};

/// Which rings a sender keeps from overflowing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WaitFor {
    /// All: no frame may be lost.
    All,
    /// Those of veths that an old kernel leaves to ksoftirqd: what is lost by other ones is what the scenario is about.
    Deferred,
}

/// What counts frames that have crossed a ring.
#[derive(Debug)]
pub(super) enum Crossed {
    /// The program behind it.
    Program(PortCounter),
    /// A veth itself, behind which a user's program counts nothing: a socket in its namespace, and its name there.
    Veth(Ethtool, String),
}

impl Crossed {
    fn read(&self) -> Result<u64, LabError> {
        Ok(match self {
            Self::Program(counter) => counter.ours()?,
            Self::Veth(ethtool, name) => reading::of_queues(&ethtool.stats(name)?, "_xdp_packets"),
        })
    }
}

/// How a sender waits for those that receive, so that no ring overflows.
#[derive(Debug)]
pub struct Pace {
    taps: Vec<Tap>,
    /// What the stack received from queues of other CPUs, and how often it receives each frame.
    stacks: Vec<(WatchCounter, u64)>,
    /// What came out of rings that another CPU or thread empties, as those of NICs: each with its count before.
    rings: Vec<(Crossed, u64)>,
    /// How long all must have been idle, where not every frame is for them.
    idle: Duration,
    /// Frames that may be sent between two waits.
    chunk: u32,
    /// Frames that had ended before the first was sent.
    before: u64,
    /// Whether all frames of an earlier chunk were dealt with: then those of the next ones are for these receivers as well,
    /// and one that seems to be idle has only not been given its CPU.
    whole: AtomicBool,
}

impl Pace {
    /// How long receivers must have been idle, their rings empty, where not every frame is for them.
    const IDLE: Duration = Duration::from_millis(1);
    /// The same where a queue of another CPU is between, of which nobody can tell whether it is empty.
    const QUEUE_IDLE: Duration = Duration::from_millis(20);
    /// Looks that must have found them idle, with a yield before each: the time alone may pass while a hypervisor has the CPU.
    const LOOKS: u32 = 32;
    /// How long they are waited for: a receiver that takes longer is stuck, which the account will show.
    const MOST: Duration = Duration::from_secs(1);

    /// The pace that some receivers behind rings of so many frames, and queues of other CPUs with the counters of what came out of them, can hold;
    /// `None` without one. A generic program's frames are received twice: before it runs, and from the queue. `later`:
    /// whether some of the rings are emptied later than the sender's own softirqs are done, as those of NICs.
    pub(super) fn of(
        receivers: Vec<(u32, Tap)>,
        queues: Vec<(u32, WatchCounter, u64)>,
        rings: Vec<(u32, Crossed)>,
        later: bool,
    ) -> Result<Option<Self>, LabError> {
        let (sockets, taps): (Vec<u32>, Vec<Tap>) = receivers.into_iter().unzip();
        let lengths = sockets.into_iter().chain(queues.iter().map(|(length, ..)| *length));
        // Half of that is taken below: of such a ring a quarter, since it is emptied when another CPU gets to it.
        let halves = rings.iter().map(|(ring, _)| ring / 2);
        let Some(least) = lengths.chain(halves).min() else { return Ok(None) };
        let idle = if queues.is_empty() && !later { Self::IDLE } else { Self::QUEUE_IDLE };
        let stacks = queues.into_iter().map(|(_, counter, times)| (counter, times)).collect();
        let rings = rings
            .into_iter()
            .map(|(_, counter)| counter.read().map(|before| (counter, before)))
            .collect::<Result<Vec<_>, _>>()?;
        let mut pace =
            Self { taps, stacks, rings, idle, chunk: (least / 2).max(1), before: 0, whole: AtomicBool::new(false) };
        pace.before = pace.ended()?;
        Ok(Some(pace))
    }

    /// Frames that may be sent between two waits: half of the smallest ring, a quarter of a NIC's.
    pub fn chunk(&self) -> u32 {
        self.chunk
    }

    fn ended(&self) -> Result<u64, LabError> {
        let taps: u64 = self.taps.iter().map(Tap::ended).sum::<Result<u64, _>>()?;
        let received = |(counter, times): &(WatchCounter, u64)| counter.read().map(|count| count / times);
        let stacks: u64 = self.stacks.iter().map(received).sum::<Result<u64, _>>()?;
        Ok(taps + stacks)
    }

    fn is_drained(&self) -> Result<bool, LabError> {
        Ok(self.taps.iter().map(Tap::is_drained).collect::<Result<Vec<_>, _>>()?.into_iter().all(|drained| drained))
    }

    /// Waits until the receivers have dealt with the frames sent so far, or with all of them that were for them.
    ///
    /// # Errors
    /// Where the kernel refuses to tell of a socket.
    pub fn wait(&self, sent: u64) -> Result<(), LabError> {
        let deadline = Instant::now() + Self::MOST;
        let (mut last, mut changed, mut looks) = ((self.before, Vec::new()), Instant::now(), 0);
        loop {
            let ended = self.ended()?;
            // Each ring by itself: a frame that crosses two of them is counted twice.
            let crossed = self
                .rings
                .iter()
                .map(|(counter, before)| Ok(counter.read()?.saturating_sub(*before)))
                .collect::<Result<Vec<_>, LabError>>()?;
            let others = self.taps.is_empty() && self.stacks.is_empty() || ended - self.before.min(ended) >= sent;
            if others && crossed.iter().all(|count| *count >= sent) {
                self.whole.store(sent > 0, Ordering::Relaxed);
                return Ok(());
            }
            if Instant::now() >= deadline {
                self.whole.store(false, Ordering::Relaxed);
                return Ok(());
            }
            let now = (ended, crossed);
            if now != last || !self.is_drained()? {
                (last, changed, looks) = (now, Instant::now(), 0);
            } else if !self.whole.load(Ordering::Relaxed) && looks >= Self::LOOKS && changed.elapsed() >= self.idle {
                return Ok(());
            }
            looks += 1;
            std::thread::yield_now();
        }
    }
}

impl Lab {
    /// How a sender of a scenario's frames must wait for those that receive them by `AF_XDP`, or on another CPU, be it behind a
    /// NIC or the one of another sender, or in ksoftirqd, as before Linux 6.5; `None` where none does.
    pub(crate) fn pace(&self, scenario: &Scenario, wait_for: WaitFor) -> Result<Option<Pace>, LabError> {
        let walk = self.topology.walk(scenario);
        let receivers: Vec<&Receiver> = self.installed.iter().flat_map(|have| &have.receivers).collect();
        let receives = |port: PortId| receivers.iter().any(|receiver| receiver.port == port);
        // There a veth's ring may be left to another thread of the sender's own CPU, which yielding alone need not let run.
        let defers = unhurried_batches().is_some();
        // A ring that gets a share of the frames is emptied by the time that the one before it is, and to wait for it would
        // take until all is idle, each time.
        let spreads = |have: &&Installed| have.wanted.body.builtin() != Some(Builtin::Broadcast);
        let spread = self.installed.iter().filter(spreads).map(|have| have.wanted.body.ports());
        let shares: Vec<PortId> =
            spread.filter(|to| to.len() > 1).flatten().filter_map(|to| self.topology.peer(to)).collect();
        let is_deferred = |port: PortId| defers && !self.is_nic(port) && !shares.contains(&port);
        let later = defers || !self.network.lent.is_empty();
        let arrivals = walk.arrivals.iter().copied();
        if wait_for == WaitFor::Deferred {
            let rings = self.rings(arrivals.filter(|port| is_deferred(*port) && !receives(*port)))?;
            // What the socket drops has ended as well: its own ring may overflow, and the veth's before it not.
            let behind = receivers.iter().filter(|of| walk.arrivals.contains(&of.port) && is_deferred(of.port));
            return Pace::of(behind.map(|of| (VETH_RING / 2, of.tap())).collect(), Vec::new(), rings, later);
        }
        let mut queues = Vec::new();
        for have in self.installed.iter().filter(|have| have.wanted.body.builtin() == Some(Builtin::Cpumap)) {
            let Some(watch) = &self.watch else { continue };
            for (port, _) in have.links.iter().filter(|(port, _)| walk.arrivals.contains(port)) {
                let key = WatchKey { event: event::STACK_RECEIVE, slot: port.0 as u32, code: 0, other: 0 };
                let times = if have.wanted.mode == XdpMode::Generic { 2 } else { 1 };
                queues.push((have.wanted.body.options.queue, watch.counter(key)?, times));
            }
        }
        let is_later = |port: &PortId| self.is_nic(*port) || scenario.traffic.senders > 1 || is_deferred(*port);
        let rings = self.rings(arrivals.filter(is_later))?;
        let reached = receivers.iter().filter(|receiver| walk.arrivals.contains(&receiver.port)).map(|of| of.tap());
        Pace::of(reached.map(|tap| (tap.ring(), tap)).collect(), queues, rings, later)
    }

    /// The rings that frames cross to come in by some ports with programs: where those don't count, the veths do.
    fn rings(&self, ports: impl Iterator<Item = PortId>) -> Result<Vec<(u32, Crossed)>, LabError> {
        let mut rings = Vec::new();
        for port in ports {
            let counter = match self.port_counter(port)? {
                Some(counter) => Crossed::Program(counter),
                None if self.is_nic(port) || self.installed_at(port).is_none() => continue,
                None => {
                    let netns = &self.network.at(&self.topology, port).netns;
                    let ethtool = self.thread.run(|inside| inside.enter(netns, Ethtool::open))??;
                    Crossed::Veth(ethtool, self.topology.ports[port.0].name.clone())
                }
            };
            let ring = if self.is_nic(port) {
                let (topology, network) = (&self.topology, &self.network);
                self.thread.run(|inside| cabling::ring(inside, topology, network, port))?.unwrap_or(cabling::RING)
            } else {
                VETH_RING
            };
            rings.push((ring, counter));
        }
        Ok(rings)
    }
}
