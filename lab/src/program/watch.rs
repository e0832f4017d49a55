//! The observer's programs: tracepoints that tell of frames redirected, dropped and freed.

use std::{
    collections::BTreeMap,
    io,
    os::fd::{AsFd as _, OwnedFd},
};

use aya::{
    Btf, Ebpf,
    maps::{HashMap, Map, PerCpuHashMap},
    programs::Program,
};
use xdplab_wire::records::{DeviceKey, WatchKey};

use super::{
    ProgramError,
    builtin::{objects, with_globals},
    kernel::KernelReasons,
    load::{load_own, rejected},
    sys,
};

/// Which events are watched.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EventSet {
    /// All: for correctness where a user's program is attached, whose redirects nothing else counts.
    All,
    /// All but the redirects that went well: for correctness of the lab's own programs, which count by themselves.
    Own,
    /// Errors only: for pricing. They cost nothing while nothing is lost, but for one look at each burst.
    Errors,
    /// These, and the polls of NAPI: for pricing over NICs, where the receiver must be shown to be saturated. A poll of many
    /// frames is told of once.
    Polls,
}

impl EventSet {
    fn tracepoints(self) -> &'static [&'static str] {
        match self {
            Self::All => &[
                "xdp_redirect_err",
                "xdp_exception",
                "xdp_devmap_xmit",
                "xdp_bulk_tx",
                "xdp_cpumap_enqueue",
                "xdp_redirect",
                "netif_receive_skb",
                "kfree_skb",
            ],
            Self::Own => &[
                "xdp_redirect_err",
                "xdp_exception",
                "xdp_devmap_xmit",
                "xdp_bulk_tx",
                "xdp_cpumap_enqueue",
                "netif_receive_skb",
                "kfree_skb",
            ],
            Self::Errors => &["xdp_redirect_err", "xdp_exception", "xdp_bulk_tx", "xdp_cpumap_enqueue"],
            Self::Polls => &["xdp_redirect_err", "xdp_exception", "xdp_bulk_tx", "xdp_cpumap_enqueue", "napi_poll"],
        }
    }
}

/// What an observer is made for.
#[derive(Debug, Clone, Copy)]
pub struct WatchSpec {
    /// The number in the lab's markers.
    pub instance: u16,
    /// Which events are watched.
    pub events: EventSet,
    /// How many devices will be named.
    pub devices: u32,
}

/// An observer at work. Dropping it ends it.
#[derive(Debug)]
pub struct Watch {
    ebpf: Ebpf,
}

impl Watch {
    /// Loads and starts an observer; it counts nothing until it is told of devices.
    ///
    /// # Errors
    /// Where the kernel refuses, or lacks a tracepoint.
    pub fn load(spec: &WatchSpec) -> Result<Self, ProgramError> {
        let offsets = KernelReasons::get()?.offsets();
        let at = |offset: u32| offset.to_ne_bytes();
        let data = with_globals(
            objects::WATCH,
            &[
                ("INSTANCE", &spec.instance.to_ne_bytes()),
                ("DEV_IFINDEX", &at(offsets.dev_ifindex)),
                ("DEV_NET", &at(offsets.dev_net)),
                ("NET_INUM", &at(offsets.net_inum)),
                ("SKB_DEV", &at(offsets.skb_dev)),
                ("SKB_IIF", &at(offsets.skb_iif)),
                ("SKB_DATA_LEN", &at(offsets.skb_data_len)),
                ("SKB_HEAD", &at(offsets.skb_head)),
                ("SKB_DATA", &at(offsets.skb_data)),
                ("SKB_TAIL", &at(offsets.skb_tail)),
                ("NAPI_DEV", &at(offsets.napi_dev)),
            ],
        )?;
        let btf = kernel_btf()?;
        let mut ebpf = load_own(&data, &[("devices", spec.devices.max(1))])?;
        for tracepoint in spec.events.tracepoints() {
            let failed = |error: aya::programs::ProgramError| match error {
                aya::programs::ProgramError::LoadError { io_error, verifier_log } => {
                    rejected("watch", tracepoint, io_error, &verifier_log.to_string(), None)
                }
                other => ProgramError::system(format!("watch the tracepoint {tracepoint}"), io::Error::other(other)),
            };
            if let Some(Program::BtfTracePoint(program)) = ebpf.program_mut(tracepoint) {
                program.load(tracepoint, btf).map_err(failed)?;
                program.attach().map_err(failed)?;
            }
        }
        Ok(Self { ebpf })
    }

    /// Tells of a device, by which slot its events are counted.
    ///
    /// # Errors
    /// Where the map is full.
    pub fn watch_port(&mut self, device: DeviceKey, slot: u32) -> Result<(), ProgramError> {
        let failed =
            |error: aya::maps::MapError| ProgramError::system("tell the observer of a device", io::Error::other(error));
        let Some(map) = self.ebpf.map_mut("devices") else { return Ok(()) };
        let mut devices: HashMap<_, [u32; 2], u32> = map.try_into().map_err(failed)?;
        devices.insert([device.netns, device.ifindex], slot, 0).map_err(failed)
    }

    /// Tells of the cpumaps in use, each by its id, with the slot of the port whose program uses it. Those that it was
    /// told of before are forgotten.
    ///
    /// # Errors
    /// Where there are more than 16.
    pub fn watch_cpumaps(&mut self, cpumaps: &[(u32, u32)]) -> Result<(), ProgramError> {
        let failed =
            |error: aya::maps::MapError| ProgramError::system("tell the observer of a map", io::Error::other(error));
        let Some(map) = self.ebpf.map_mut("cpumaps") else { return Ok(()) };
        let mut maps: HashMap<_, u32, u32> = map.try_into().map_err(failed)?;
        let before: Vec<u32> = maps.keys().filter_map(Result::ok).collect();
        for id in before {
            maps.remove(&id).map_err(failed)?;
        }
        cpumaps.iter().try_for_each(|(id, slot)| maps.insert(id, slot, 0).map_err(failed))
    }

    /// What was counted until now.
    ///
    /// # Errors
    /// Where the map can't be read.
    pub fn read(&self) -> Result<BTreeMap<WatchKey, u64>, ProgramError> {
        let failed =
            |error: aya::maps::MapError| ProgramError::system("read the observer's counts", io::Error::other(error));
        let Some(map) = self.ebpf.map("events") else { return Ok(BTreeMap::new()) };
        let events: PerCpuHashMap<_, [u32; 4], u64> = map.try_into().map_err(failed)?;
        let mut counts = BTreeMap::new();
        for entry in &events {
            let ([event, slot, code, other], cpus) = entry.map_err(failed)?;
            counts.insert(WatchKey { event, slot, code: code as i32, other }, cpus.iter().sum());
        }
        Ok(counts)
    }
}

/// One count of an observer, to be read while it is at work elsewhere.
#[derive(Debug)]
pub struct WatchCounter {
    events: OwnedFd,
    key: WatchKey,
}

impl WatchCounter {
    /// The count until now.
    ///
    /// # Errors
    /// Where the map can't be read.
    pub fn read(&self) -> Result<u64, ProgramError> {
        Ok(self.by_cpu()?.into_iter().sum())
    }

    /// The same for each CPU by its number.
    ///
    /// # Errors
    /// Where the map can't be read.
    pub fn by_cpu(&self) -> Result<Vec<u64>, ProgramError> {
        let failed = |source: io::Error| ProgramError::system("read the observer's counts", source);
        let cpus = aya::util::nr_cpus().map_err(|(_, source)| failed(source))?;
        let mut values = vec![0; cpus];
        let WatchKey { event, slot, code, other } = self.key;
        sys::map_lookup_words(&self.events, &[event, slot, code as u32, other], &mut values).map_err(failed)?;
        Ok(values)
    }
}

impl Watch {
    /// One of the counts by itself.
    ///
    /// # Errors
    /// Where no descriptor is left.
    pub fn counter(&self, key: WatchKey) -> Result<WatchCounter, ProgramError> {
        let failed = |source: io::Error| ProgramError::system("share the observer's counts", source);
        let Some(Map::PerCpuHashMap(data)) = self.ebpf.map("events") else {
            return Err(failed(io::ErrorKind::NotFound.into()));
        };
        let events = data.fd().as_fd().try_clone_to_owned().map_err(failed)?;
        Ok(WatchCounter { events, key })
    }
}

/// The kernel's types as aya wants them. Parsed once in a process: it takes longer than loading a program.
pub(super) fn kernel_btf() -> Result<&'static Btf, ProgramError> {
    static BTF: std::sync::OnceLock<Btf> = std::sync::OnceLock::new();
    if let Some(btf) = BTF.get() {
        return Ok(btf);
    }
    let btf = Btf::from_sys_fs().map_err(|error| ProgramError::Btf(format!("can't be read ({error})")))?;
    Ok(BTF.get_or_init(|| btf))
}
