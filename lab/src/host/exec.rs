//! Entering a node for good, as `xdplab exec` does before it becomes another command.

use nix::{
    mount::{MsFlags, mount},
    sched::{CloneFlags, unshare},
};

use super::{HostError, netns::Netns};

/// Moves the calling thread, meant to be a process's only one, into a named namespace, with a `/sys` that shows it.
///
/// # Errors
/// Where there is no such namespace, or the kernel refuses.
pub fn enter_for_good(netns: &str) -> Result<(), HostError> {
    Netns::open_named(netns)?.enter()?;
    unshare(CloneFlags::CLONE_NEWNS).map_err(|errno| HostError::system("make a mount namespace", errno))?;
    // Nothing that is mounted from here on may show outside.
    mount(None::<&str>, "/", None::<&str>, MsFlags::MS_REC | MsFlags::MS_SLAVE, None::<&str>)
        .map_err(|errno| HostError::system("detach the mounts from the host's", errno))?;
    // A sysfs shows the network devices of the namespace that mounts it.
    mount(Some("sysfs"), "/sys", Some("sysfs"), MsFlags::empty(), None::<&str>)
        .map_err(|errno| HostError::system("mount the node's /sys", errno))
}
