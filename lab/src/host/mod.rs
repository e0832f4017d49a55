//! Everything that changes the host: namespaces, netlink, ethtool, mounts, the journal. All of it can be undone.
//!
//! | file | owns |
//! |---|---|
//! | `thread` | the one thread that enters namespaces |
//! | `netns` | namespaces, anonymous and named |
//! | `netlink` | links, addresses, neighbours |
//! | `sysctl` | the namespaces' settings |
//! | `ethtool` | offloads and drivers' counters |
//! | `matching` | which NICs fit what a topology asks for |
//! | `nics` | the host's NICs, and whether a lab may take them: read only |
//! | `lend` | NICs, lent to a lab and given back |
//! | `canary` | frames that prove which ports are cabled together |
//! | `bpffs` | the lab's own BPF file system |
//! | `detached` | file systems that are mounted nowhere |
//! | `journal` | what was changed and how to undo it |
//! | `lock` | locks that hold for the whole host |
//! | `perf` | samples of a CPU |
//! | `exec` | entering a node for good |
//! | `family` | a process that nothing it starts outlives |
//! | `kvm` | whether virtual machines run on the processor |
//! | `hypervisor` | what the hypervisor calls itself |
//! | `ability` | what this host can do |
//! | `xsk` | `AF_XDP` sockets |

#![expect(unsafe_code, reason = "system calls that no safe wrapper covers stand here, each behind a safe type")]

pub mod ability;
pub mod bpffs;
pub mod canary;
pub mod detached;
pub mod device_count;
mod error;
pub mod ethtool;
pub mod exec;
pub mod family;
pub mod hypervisor;
pub mod journal;
pub mod kvm;
pub mod lend;
pub mod lock;
pub mod matching;
pub mod netlink;
pub mod netns;
pub mod nics;
pub mod paths;
pub mod perf;
pub mod sysctl;
pub mod thread;
pub mod xsk;

pub use error::HostError;
pub(crate) use error::describe;

/// Whether this process is root, as far as its effective user says.
pub fn is_root() -> bool {
    nix::unistd::geteuid().is_root()
}
