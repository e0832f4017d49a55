//! A persistent lab as it is now: what was made, held against what the kernel has.

use std::path::PathBuf;

use serde::Serialize;

use super::{
    LabError,
    persistent::{self, LabState, PortState},
};
use crate::{
    host::{
        netlink::{LinkInfo, Netlink},
        netns::Netns,
        thread::LabThread,
    },
    program::pinned_counters,
    record::LinkRecord,
    xdp::XdpMode,
};

/// A lab as it is now.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct LabView {
    /// The lab's name.
    pub lab: String,
    /// What it is about.
    pub about: String,
    /// The topology file.
    pub file: PathBuf,
    /// When it was brought up.
    pub started: String,
    /// The links and what they are made of.
    pub links: Vec<LinkRecord>,
    /// The ports.
    pub ports: Vec<PortView>,
    /// What the lab's own programs counted.
    pub counters: Vec<CounterView>,
    /// What should be there and is not, in words.
    pub missing: Vec<String>,
}

/// A port as it is now.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PortView {
    /// `node:port`.
    pub port: String,
    /// `up`, `up, no carrier`, `down` or `gone`.
    pub state: String,
    /// Its MAC address, as it was made.
    pub mac: String,
    /// Its MTU in bytes.
    pub mtu: u32,
    /// Its addresses, as they were given.
    pub addresses: Vec<String>,
    /// What is attached.
    pub program: Option<AttachedView>,
    /// Frames received.
    pub rx_packets: u64,
    /// Frames sent.
    pub tx_packets: u64,
}

/// A program at a port.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct AttachedView {
    /// The program's name in the file, or `id N` for one that is not of this lab.
    pub name: String,
    /// How it is attached.
    pub mode: XdpMode,
    /// The kernel's id of it.
    pub id: u32,
    /// Whether it is the one that xdplab attaches to a NIC where the file has none, to keep it ready.
    pub keeps_ready: bool,
}

/// What one program of the lab counted at one port.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct CounterView {
    /// The program's name in the file.
    pub program: String,
    /// `node:port`.
    pub port: String,
    /// Frames with a sound marker of this lab.
    pub ours: u64,
    /// Frames of the lab that are damaged.
    pub corrupted: u64,
    /// Frames of other origin.
    pub foreign: u64,
}

/// Looks at a lab.
///
/// # Errors
/// Where no lab of that name is up, or it can't be read.
pub fn inspect(lab: &str) -> Result<LabView, LabError> {
    let state = persistent::state(lab)?;
    let mut missing = Vec::new();
    let thread = LabThread::start("inspect")?;
    let mut ports = Vec::new();
    for node in &state.nodes {
        let links = thread.run(|inside| -> Result<Vec<LinkInfo>, LabError> {
            let netlink = Netlink::open(inside, &Netns::open_named(&node.netns)?)?;
            Ok(inside.block_on(netlink.links())?)
        });
        if let Err(error) = &links {
            missing
                .push(crate::host::describe(&format!("node {} is gone: namespace {}", node.name, node.netns), error));
        }
        let links = links.unwrap_or_default();
        for port in &node.ports {
            let link = links.iter().find(|link| link.index == port.ifindex);
            ports.push(PortView {
                port: format!("{}:{}", node.name, port.name),
                state: match link {
                    None => "gone",
                    Some(link) if !link.up => "down",
                    Some(link) if !link.carrier => "up, no carrier",
                    Some(_) => "up",
                }
                .to_owned(),
                mac: port.mac.clone(),
                mtu: link.map_or(port.mtu, |link| link.mtu),
                addresses: port.addresses.clone(),
                program: link.and_then(|link| attached(&state, port, link)),
                rx_packets: link.map_or(0, |link| link.stats.rx_packets),
                tx_packets: link.map_or(0, |link| link.stats.tx_packets),
            });
        }
    }
    let counters = counters(&state, &mut missing);
    Ok(LabView {
        lab: state.lab,
        about: state.about,
        file: state.file,
        started: state.started,
        links: state.links,
        ports,
        counters,
        missing,
    })
}

fn attached(state: &LabState, port: &PortState, link: &LinkInfo) -> Option<AttachedView> {
    let native = link.native_program.map(|id| (id, XdpMode::Native));
    let (id, mode) = native.or(link.generic_program.map(|id| (id, XdpMode::Generic)))?;
    let ours = state.programs.iter().find(|program| program.id == id);
    Some(AttachedView {
        name: ours.map_or_else(|| format!("id {id}"), |program| program.name.clone()),
        mode,
        id,
        keeps_ready: port.keeper == Some(id),
    })
}

fn counters(state: &LabState, missing: &mut Vec<String>) -> Vec<CounterView> {
    let mut views = Vec::new();
    for program in state.programs.iter().filter(|program| program.counts) {
        match pinned_counters(&program.pins) {
            Ok(counters) => {
                for at in &program.attach {
                    let slot = state
                        .nodes
                        .iter()
                        .flat_map(|n| n.ports.iter().map(move |p| (n, p)))
                        .find(|(n, p)| *at == format!("{}:{}", n.name, p.name))
                        .map(|(_, port)| port.slot as usize);
                    if let Some(c) = slot.and_then(|slot| counters.get(slot)) {
                        views.push(CounterView {
                            program: program.name.clone(),
                            port: at.clone(),
                            ours: c.ours,
                            corrupted: c.corrupted,
                            foreign: c.foreign,
                        });
                    }
                }
            }
            Err(error) => missing.push(crate::host::describe(&format!("counters of {}", program.name), &error)),
        }
    }
    views
}
