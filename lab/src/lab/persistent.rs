//! A lab that outlives the command that made it: namespaces with names, programs held by pinned links.
//!
//! ```text
//! /run/xdplab/NAME/journal            every change and how to undo it, written before it is made
//! /run/xdplab/NAME/lab.json           what `inspect`, `exec` and `ls` need to know
//! /run/xdplab/NAME/bpf/               a bpffs of the lab's own
//! /run/xdplab/NAME/bpf/PROGRAM/       maps, and one link a port: link-NODE-PORT
//! ```

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use serde::{Deserialize, Serialize};

use super::{
    Cabling, Instance, LabError,
    cabling::{self, LentPort},
    install::{self, Installed, Site},
    network::{self, Network, ifindex, netns_name},
};
use crate::{
    host::{
        bpffs::BpfFs,
        journal::{self, Change, Journal, Kind, State},
        lock::HostLock,
        paths,
        thread::LabThread,
    },
    record::LinkRecord,
    run::Progress,
    topology::{Builtin, NodeId, PortId, ProgramSource, Topology},
    xdp::XdpMode,
};

/// The `schema` of a [`LabState`].
pub const LAB_SCHEMA: &str = "xdplab.lab/1";

/// What is known of a persistent lab: the contents of its `lab.json`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LabState {
    /// [`LAB_SCHEMA`].
    pub schema: String,
    /// The lab's name.
    pub lab: String,
    /// What it is about.
    pub about: String,
    /// The topology file.
    pub file: PathBuf,
    /// When it was brought up, RFC 3339 in UTC.
    pub started: String,
    /// The number in its frames' markers.
    pub instance: u16,
    /// The links and what they are made of.
    pub links: Vec<LinkRecord>,
    /// What there is to say of it as a whole.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
    /// The nodes.
    pub nodes: Vec<NodeState>,
    /// The programs.
    pub programs: Vec<ProgramState>,
}

/// A node of a persistent lab.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NodeState {
    /// The node's name in the file.
    pub name: String,
    /// Its namespace's name, as `ip netns` shows it.
    pub netns: String,
    /// Its ports.
    pub ports: Vec<PortState>,
}

/// A port of a persistent lab, as it was made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PortState {
    /// The port's name.
    pub name: String,
    /// Its interface index.
    pub ifindex: u32,
    /// Its slot in the programs' maps.
    pub slot: u32,
    /// Its MAC address.
    pub mac: String,
    /// Its MTU in bytes.
    pub mtu: u32,
    /// Its addresses, with prefix lengths.
    pub addresses: Vec<String>,
    /// The kernel's id of the program that keeps a NIC ready where the file attaches none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub keeper: Option<u32>,
}

/// A program of a persistent lab.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProgramState {
    /// The program's name in the file.
    pub name: String,
    /// Which built-in, or the object's path.
    pub source: String,
    /// The kernel's id of it.
    pub id: u32,
    /// How it is attached.
    pub mode: XdpMode,
    /// Where: `node:port`.
    pub attach: Vec<String>,
    /// Where its maps are pinned.
    pub pins: PathBuf,
    /// Whether it counts by slot in a map `ports` among those.
    pub counts: bool,
}

/// Where a lab's bpffs is mounted.
fn bpf_dir(lab: &str) -> PathBuf {
    paths::lab_dir(lab).join("bpf")
}

fn state_file(lab: &str) -> PathBuf {
    paths::lab_dir(lab).join("lab.json")
}

/// Reads what is known of a lab that is up.
///
/// # Errors
/// [`LabError::NotUp`] where no lab of that name is; [`LabError::State`] where its file can't be read.
pub fn state(lab: &str) -> Result<LabState, LabError> {
    check_name(lab)?;
    let path = state_file(lab);
    let text = match fs::read_to_string(&path) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Err(LabError::NotUp { lab: lab.to_owned() }),
        Err(source) => return Err(LabError::State { path, source }),
    };
    serde_json::from_str(&text).map_err(|error| LabError::State { path, source: error.into() })
}

/// Brings up a lab that stays.
///
/// # Errors
/// Where a lab of that name is up already, the host refuses, or a program can't be loaded or attached. What was made
/// until then is taken back.
pub fn up(topology: &Topology, cabling: &Cabling, progress: &dyn Progress) -> Result<LabState, LabError> {
    if let Some(program) = topology.programs.iter().find(|p| p.body.builtin() == Some(Builtin::Xsk)) {
        return Err(LabError::NoReceiver { program: program.name.clone() });
    }
    let _shared = HostLock::shared(&mut |holder| progress.waiting(holder))?;
    let instance = Instance::persistent(&topology.name);
    let journal = Journal::create(&instance.to_string(), &instance.to_string(), Kind::Persistent)?;
    match build(topology, &instance, &journal, cabling, progress) {
        Ok(state) => {
            journal.mark(State::Ready)?;
            Ok(state)
        }
        Err(error) => match journal.undo() {
            Ok(_) => Err(error),
            Err(left) => Err(LabError::HalfUp { source: Box::new(error), left: left.to_string() }),
        },
    }
}

fn build(
    topology: &Topology,
    instance: &Instance,
    journal: &Journal,
    cabling: &Cabling,
    progress: &dyn Progress,
) -> Result<LabState, LabError> {
    let thread = LabThread::start("lab")?;
    let bpf = bpf_dir(&instance.lab);
    journal.record(&Change::Mount { path: bpf.clone() })?;
    BpfFs::mount(&bpf)?;
    let (network, installed) = thread.run(|inside| -> Result<_, LabError> {
        progress.step("nodes and links");
        let network = network::build(inside, topology, instance, journal, cabling)?;
        network.set_bridge_gro(inside, topology)?;
        progress.step("programs");
        let site = Site { topology, network: &network, instance: instance.number, pin_dir: Some(&bpf), log_dir: None };
        let mut installed = Vec::new();
        let wanted = install::wanted(topology, None, XdpMode::Native, true);
        install::install(inside, site, &mut installed, wanted)?;
        let ports: Vec<PortId> = network.lent.iter().map(|lent| lent.port).collect();
        cabling::wait_for_carrier(inside, topology, &network, &ports)?;
        cabling::pin_keepers(topology, &network, &bpf)?;
        Ok((network, installed))
    })?;
    for have in &installed {
        pin(topology, have, &bpf)?;
    }
    let mut notes = cabling.notes.clone();
    notes.extend(network.lent.iter().flat_map(|lent| lent.loan.notes.clone()));
    let nodes = (0..topology.nodes.len()).map(|node| node_state(topology, instance, &network, NodeId(node))).collect();
    drop(network);
    let state = LabState {
        schema: LAB_SCHEMA.to_owned(),
        lab: instance.lab.clone(),
        about: topology.about.clone(),
        file: std::path::absolute(&topology.path).unwrap_or_else(|_| topology.path.clone()),
        started: jiff::Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string(),
        instance: instance.number,
        links: cabling.links(topology),
        notes,
        nodes,
        programs: installed.iter().map(|have| program_state(topology, have, &bpf)).collect(),
    };
    let path = state_file(&instance.lab);
    journal.record(&Change::File { path: path.clone() })?;
    let text =
        serde_json::to_string_pretty(&state).map_err(|e| LabError::State { path: path.clone(), source: e.into() })?;
    fs::write(&path, text).map_err(|source| LabError::State { path, source })?;
    Ok(state)
}

/// What a port's pinned link is called. Neither node nor port names may hold what bpffs refuses; a port's dot is the
/// exception.
pub(super) fn link_name(topology: &Topology, port: PortId) -> String {
    format!("link-{}", topology.port_name(port).replace([':', '.'], "-"))
}

/// Pins a program's links and maps, so that they stay.
fn pin(topology: &Topology, have: &Installed, bpf: &Path) -> Result<(), LabError> {
    let name = &topology.program(have.wanted.program).name;
    let folder = bpf.join(name);
    fs::create_dir_all(&folder).map_err(|source| LabError::State { path: folder.clone(), source })?;
    have.program.pin(&folder)?;
    for (port, link) in &have.links {
        link.pin(&folder.join(link_name(topology, *port)))?;
    }
    Ok(())
}

fn node_state(topology: &Topology, instance: &Instance, network: &Network, node: NodeId) -> NodeState {
    let name = topology.nodes[node.0].name.clone();
    let ports = topology.ports_of(node).map(|id| {
        let port = &topology.ports[id.0];
        PortState {
            name: port.name.clone(),
            ifindex: ifindex(id),
            slot: id.0 as u32,
            mac: port.mac.to_string(),
            mtu: port.mtu,
            addresses: port.addresses.iter().map(|(address, prefix)| format!("{address}/{prefix}")).collect(),
            keeper: network.lent.iter().find(|lent| lent.port == id).and_then(LentPort::keeper_id),
        }
    });
    NodeState { netns: netns_name(&instance.lab, &name), ports: ports.collect(), name }
}

fn program_state(topology: &Topology, have: &Installed, bpf: &Path) -> ProgramState {
    let spec = topology.program(have.wanted.program);
    let (source, counts) = match &have.wanted.body.source {
        ProgramSource::Builtin(builtin) => (builtin.name().to_owned(), true),
        ProgramSource::Object { path, .. } => (path.display().to_string(), false),
    };
    ProgramState {
        name: spec.name.clone(),
        source,
        id: have.program.id(),
        mode: have.wanted.mode,
        attach: have.links.iter().map(|(port, _)| topology.port_name(*port)).collect(),
        pins: bpf.join(&spec.name),
        counts,
    }
}

/// A path in place of a name would lead elsewhere, and what no lab can be called is not up.
fn check_name(lab: &str) -> Result<(), LabError> {
    let is_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '@');
    if lab.is_empty() || lab.len() > 64 || !lab.chars().all(is_name) {
        return Err(LabError::NotUp { lab: lab.chars().take(64).collect() });
    }
    Ok(())
}

/// Takes a lab away; returns what there is to say of that, such as in what a NIC is not as it was.
///
/// # Errors
/// Where no lab of that name is up, another process works on it, or not everything could be undone.
pub fn down(lab: &str) -> Result<Vec<String>, LabError> {
    check_name(lab)?;
    let journal = Journal::open(lab)?;
    // From here on `gc` may finish what this process does not. Where the disk is full that can't be written down, and
    // `down` has to be called again; it must not keep the lab up.
    let _ = journal.mark(State::Down);
    Ok(journal.undo()?.said)
}

/// The names of the persistent labs.
///
/// # Errors
/// Where the run directory can't be read.
pub fn names() -> Result<Vec<String>, LabError> {
    let persistent = |entry: &journal::Entry| entry.kind == Some(Kind::Persistent);
    Ok(journal::list()?.into_iter().filter(persistent).map(|entry| entry.name).collect())
}

/// A lab, as `xdplab ls` shows it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ListedLab {
    /// The name, `NAME` or `NAME@ID`.
    pub name: String,
    /// `persistent` or `ephemeral`.
    pub kind: String,
    /// `up`, `at work` (a process builds it, runs it or takes it away), or `dead`.
    pub state: String,
    /// Number of nodes, where known.
    pub nodes: Option<usize>,
    /// When it was brought up, where known.
    pub started: Option<String>,
    /// Its topology file, where known.
    pub file: Option<PathBuf>,
}

/// All labs of this host.
///
/// # Errors
/// Where the run directory can't be read.
pub fn list() -> Result<Vec<ListedLab>, LabError> {
    let listed = |entry: journal::Entry| {
        let state = state(&entry.name).ok();
        let word = if entry.at_work {
            "at work"
        } else if entry.ready {
            "up"
        } else {
            "dead: `xdplab gc` removes it"
        };
        ListedLab {
            kind: if entry.kind == Some(Kind::Ephemeral) { "ephemeral" } else { "persistent" }.to_owned(),
            state: word.to_owned(),
            nodes: state.as_ref().map(|s| s.nodes.len()),
            started: state.as_ref().map(|s| s.started.clone()),
            file: state.map(|s| s.file),
            name: entry.name,
        }
    };
    Ok(journal::list()?.into_iter().map(listed).collect())
}
