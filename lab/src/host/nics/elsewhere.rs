//! What stands on the host's devices from other namespaces, as a container's macvlan does. The kernel tells of such a
//! device only in its own namespace, so each of them is asked.

use std::{
    collections::BTreeMap,
    fmt, fs,
    path::{Path, PathBuf},
};

use serde::Serialize;

use crate::host::{
    HostError,
    netlink::Netlink,
    netns::{self, Netns},
    thread::Inside,
};

/// A device of another namespace that stands on one of this.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct UpperElsewhere {
    /// Its name there.
    pub name: String,
    /// A file that its namespace can be entered by.
    pub netns: PathBuf,
}

impl fmt::Display for UpperElsewhere {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of {}", self.name, self.netns.display())
    }
}

/// Such devices, each behind the index of the one that it stands on. Namespaces that the caller may not enter, and those that
/// end meanwhile, are left out; so are those that no process is in and no name leads to.
pub(super) fn uppers(inside: &Inside) -> Vec<(u32, UpperElsewhere)> {
    let mut found = Vec::new();
    for (path, netns) in others(inside.home()) {
        // What can't be asked there may not be entered either: the caller is not root.
        found.extend(uppers_in(inside, &path, &netns).unwrap_or_default());
    }
    found
}

fn uppers_in(inside: &Inside, path: &Path, netns: &Netns) -> Result<Vec<(u32, UpperElsewhere)>, HostError> {
    let netlink = Netlink::open(inside, netns)?;
    let (links, home) = inside.block_on(async {
        let links = netlink.links().await?;
        // Most namespaces have nothing of the kind, and need not be asked what they call this one.
        let any = links.iter().any(|link| link.lower_elsewhere.is_some());
        Ok::<_, HostError>((links, if any { netlink.id_of(inside.home()).await? } else { None }))
    })?;
    let upper = |(index, name): (u32, String)| (index, UpperElsewhere { name, netns: path.to_owned() });
    Ok(links
        .into_iter()
        .filter_map(|link| {
            let (index, id) = link.lower_elsewhere?;
            (Some(id) == home).then_some((index, link.name))
        })
        .map(upper)
        .collect())
}

/// The namespaces that have a name or a process, but for the caller's own, each by one path.
fn others(home: &Netns) -> Vec<(PathBuf, Netns)> {
    let of_processes = fs::read_dir("/proc").into_iter().flatten().flatten().filter_map(|entry| {
        entry.file_name().to_str()?.parse::<u32>().ok()?;
        Some(entry.path().join("ns/net"))
    });
    let mut others = BTreeMap::new();
    // A name comes first: it stays, and says more than a process's number.
    for path in netns::names().into_iter().chain(of_processes) {
        let Ok(netns) = Netns::open(&path) else { continue };
        if netns.inode() != home.inode() {
            others.entry(netns.inode()).or_insert((path, netns));
        }
    }
    others.into_values().collect()
}
