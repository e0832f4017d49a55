//! Undoing changes, the last first. Nothing that the lab did not make is ever removed.

use std::{fs, io};

use futures_util::future::join_all;
use xdplab_wire::records::IFINDEX_BASE;

use super::record::Change;
use crate::host::{
    HostError,
    bpffs::BpfFs,
    netlink::{LinkInfo, Netlink},
    netns::Netns,
    thread::LabThread,
};

/// What an undo did.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Undone {
    /// What was removed.
    pub removed: Vec<String>,
    /// What was left, and why.
    pub left: Vec<String>,
}

/// Undoes changes of an instance. Whatever fails does not keep the rest.
pub(super) fn undo(changes: &[Change], instance: &str) -> Undone {
    let mut undone = Undone::default();
    let names: Vec<&str> = changes
        .iter()
        .rev()
        .filter_map(|change| match change {
            Change::Netns { name } => Some(name.as_str()).filter(|name| Netns::exists_named(name)),
            _ => None,
        })
        .collect();
    // Links first: a pinned link that is dropped detaches its program while its device is still there.
    for change in changes.iter().rev() {
        let (what, result) = match change {
            Change::Netns { .. } => continue,
            Change::Mount { path } => (path, BpfFs::unmount(path).and_then(|()| absent(fs::remove_dir(path), path))),
            Change::File { path } => (path, absent(fs::remove_file(path), path)),
        };
        note(&mut undone, what.display().to_string(), result);
    }
    if !names.is_empty() {
        match ownership(&names, instance) {
            Ok(owned) => {
                for (name, owner) in names.iter().zip(owned) {
                    match owner {
                        Ok(()) => note(&mut undone, format!("namespace {name}"), Netns::delete_named(name)),
                        Err(why) => undone.left.push(format!("namespace {name}: {why}")),
                    }
                }
            }
            Err(error) => undone.left.push(format!("namespaces {}: {error}", names.join(", "))),
        }
    }
    undone
}

fn note(undone: &mut Undone, what: String, result: Result<(), HostError>) {
    match result {
        Ok(()) => undone.removed.push(what),
        Err(error) => undone.left.push(crate::host::describe(&what, &error)),
    }
}

fn absent(result: io::Result<()>, path: &std::path::Path) -> Result<(), HostError> {
    match result {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(source) => Err(HostError::File { operation: "remove", path: path.to_owned(), source }),
        Ok(()) => Ok(()),
    }
}

/// For each namespace, whether it may be removed, or why not.
fn ownership(names: &[&str], instance: &str) -> Result<Vec<Result<(), String>>, HostError> {
    let thread = LabThread::start("undo")?;
    Ok(thread.run(|inside| {
        let opened: Vec<Result<Netlink, HostError>> =
            names.iter().map(|name| Netlink::open(inside, &Netns::open_named(name)?)).collect();
        let looks = opened.into_iter().map(|opened| async {
            match opened {
                // A plain file in a namespace's place: whoever recorded it died before it was mounted.
                Err(error) if error.errno() == Some(libc::EINVAL) => Ok(()),
                Err(error) => Err(error.to_string()),
                Ok(netlink) => match netlink.links().await {
                    Ok(links) => judge(&links, instance),
                    Err(error) => Err(error.to_string()),
                },
            }
        });
        inside.block_on(join_all(looks))
    }))
}

/// A namespace is ours by the alias of its `lo`. One without an alias may be ours, made by a process that died before
/// it set one: then it is as new, and may go; otherwise somebody else's.
fn judge(links: &[LinkInfo], instance: &str) -> Result<(), String> {
    let alias = links.iter().find(|link| link.name == "lo").and_then(|lo| lo.alias.as_deref());
    let as_new = || links.iter().all(|link| !link.up && link.index < IFINDEX_BASE && link.alias.is_none());
    match alias {
        Some(alias) if alias == instance => Ok(()),
        Some(alias) => Err(format!("left alone: it belongs to \"{alias}\", not to \"{instance}\"")),
        None if as_new() => Ok(()),
        None => Err("left alone: nothing in it says that this lab made it".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn link(name: &str, index: u32, up: bool, alias: Option<&str>) -> LinkInfo {
        LinkInfo { name: name.into(), index, up, alias: alias.map(Into::into), ..LinkInfo::default() }
    }

    #[test]
    fn only_namespaces_of_the_instance_may_go() {
        assert_eq!(judge(&[link("lo", 1, true, Some("star")), link("rx0", 1000, true, None)], "star"), Ok(()));
        assert!(judge(&[link("lo", 1, true, Some("other"))], "star").is_err());
        assert_eq!(judge(&[link("lo", 1, false, None)], "star"), Ok(()));
        assert!(judge(&[link("lo", 1, true, None)], "star").is_err());
        assert!(judge(&[link("lo", 1, false, None), link("eth0", 2, true, None)], "star").is_err());
    }
}
