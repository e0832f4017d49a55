//! Undoing changes, the last first. Nothing that the lab did not make is ever removed.

use std::{fs, io};

use super::record::{Change, Parsed};
use crate::host::{
    HostError,
    bpffs::BpfFs,
    lend::{Borrowed, Lease, Place, give_back},
    netlink::{LinkInfo, Netlink},
    netns::Netns,
    nics::Refusal,
    paths,
    thread::LabThread,
};
use futures_util::future::join_all;

/// What an undo did.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Undone {
    /// What was removed.
    pub removed: Vec<String>,
    /// What there is to say besides: in what a NIC is not as it was, and the like.
    pub said: Vec<String>,
    /// What was left, and why.
    pub left: Vec<String>,
}

/// Undoes what a journal of an instance says. Whatever fails does not keep the rest.
pub(super) fn undo(journal: &Parsed, instance: &str) -> Undone {
    let mut undone = Undone::default();
    let changes = &journal.changes;
    if journal.unreadable > 0 {
        undone.said.push(format!("{} lines of its journal can't be read: they were not undone", journal.unreadable));
    }
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
        // Whatever a journal says: files and mounts of a lab stand below the run directory.
        let outside = match change {
            Change::Mount { path } | Change::File { path } if !path.starts_with(paths::run_dir()) => Some(path),
            _ => None,
        };
        if let Some(path) = outside {
            undone.left.push(format!("{}: let be, it is outside of {}", path.display(), paths::run_dir().display()));
            continue;
        }
        let (what, result) = match change {
            Change::Netns { .. } | Change::Nic(_) => continue,
            Change::Mount { path } => (path, BpfFs::unmount(path).and_then(|()| absent(fs::remove_dir(path), path))),
            Change::File { path } => (path, absent(fs::remove_file(path), path)),
        };
        note(&mut undone, what.display().to_string(), result);
    }
    let nics: Vec<&Borrowed> = changes
        .iter()
        .rev()
        .filter_map(|change| match change {
            Change::Nic(borrowed) => Some(&**borrowed),
            _ => None,
        })
        .collect();
    // Before the namespaces that they are in: a NIC that falls out of one has lost its name.
    if !nics.is_empty() {
        return_nics(&nics, &names, instance, &mut undone);
    }
    // A plain file in a namespace's place: whoever wrote it down died before it was mounted.
    let (names, files): (Vec<&str>, Vec<&str>) = names.into_iter().partition(|name| Netns::is_mounted_at(name));
    for name in files {
        note(&mut undone, format!("namespace {name}"), Netns::delete_named(name));
    }
    if !names.is_empty() {
        match ownership(&names, instance) {
            Ok(owned) => {
                for (name, owner) in names.iter().zip(owned) {
                    match owner {
                        Owner::Us => note(&mut undone, format!("namespace {name}"), Netns::delete_named(name)),
                        Owner::SomebodyElse => {
                            undone.said.push(format!("namespace {name} let be: it is not this lab's"));
                        }
                        Owner::Unknown(why) => undone.left.push(format!("namespace {name}: {why}")),
                    }
                }
            }
            Err(error) => undone.left.push(format!("namespaces {}: {error}", names.join(", "))),
        }
    }
    undone
}

/// Gives NICs back, from the lab's namespaces or from wherever they fell.
fn return_nics(nics: &[&Borrowed], names: &[&str], instance: &str, undone: &mut Undone) {
    let thread = match LabThread::start("undo") {
        Ok(thread) => thread,
        Err(error) => {
            undone.left.push(format!("the lab's NICs: {error}"));
            return;
        }
    };
    thread.run(|inside| {
        // One that can't be opened holds no NIC that could be reached.
        let opened: Vec<(Netns, Netlink)> = names
            .iter()
            .filter(|name| Netns::is_mounted_at(name))
            .filter_map(|name| {
                let netns = Netns::open_named(name).ok()?;
                let netlink = Netlink::open(inside, &netns).ok()?;
                let links = inside.block_on(netlink.links()).ok()?;
                (judge(&links, instance) == Owner::Us).then_some((netns, netlink))
            })
            .collect();
        let places: Vec<Place<'_>> = opened.iter().map(|(netns, netlink)| Place { netns, netlink }).collect();
        for borrowed in nics {
            // Nobody may take it while it is given back, and where somebody has it, it was given back before.
            let _lease = match Lease::take(&borrowed.pci, &borrowed.lab) {
                Ok(Ok(lease)) => Some(lease),
                Ok(Err(Refusal::Leased { lab })) if lab != borrowed.lab => {
                    let nic = format!("NIC {} ({})", borrowed.name, borrowed.pci);
                    undone.said.push(format!("{nic} is another lab's by now: \"{lab}\" has it"));
                    continue;
                }
                Ok(Err(_)) | Err(_) => None,
            };
            match give_back(inside, borrowed, &places) {
                Ok(words) if words.is_empty() => {
                    undone.removed.push(format!("NIC {} ({}) given back", borrowed.name, borrowed.pci));
                }
                Ok(words) => undone.said.extend(words),
                Err(words) => undone.left.extend(words),
            }
        }
    });
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

/// For each namespace, whose it is.
fn ownership(names: &[&str], instance: &str) -> Result<Vec<Owner>, HostError> {
    let thread = LabThread::start("undo")?;
    Ok(thread.run(|inside| {
        let opened: Vec<Result<Netlink, HostError>> =
            names.iter().map(|name| Netlink::open(inside, &Netns::open_named(name)?)).collect();
        let looks = opened.into_iter().map(|opened| async {
            match opened {
                Err(error) => Owner::Unknown(error.to_string()),
                Ok(netlink) => match netlink.links().await {
                    Ok(links) => judge(&links, instance),
                    Err(error) => Owner::Unknown(error.to_string()),
                },
            }
        });
        inside.block_on(join_all(looks))
    }))
}

/// A namespace is ours by the alias of its `lo`, which it has before it has its name.
fn judge(links: &[LinkInfo], instance: &str) -> Owner {
    let alias = links.iter().find(|link| link.name == "lo").and_then(|lo| lo.alias.as_deref());
    if alias == Some(instance) { Owner::Us } else { Owner::SomebodyElse }
}

/// Whose a namespace is.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Owner {
    /// This instance's.
    Us,
    /// Not this instance's: its name was free when it was written down, and taken by somebody else since.
    SomebodyElse,
    /// It could not be found out.
    Unknown(String),
}

#[cfg(test)]
mod tests {
    use super::*;

    fn link(name: &str, alias: Option<&str>) -> LinkInfo {
        LinkInfo { name: name.into(), alias: alias.map(Into::into), ..LinkInfo::default() }
    }

    #[test]
    fn only_namespaces_of_the_instance_may_go() {
        assert_eq!(judge(&[link("lo", Some("star")), link("rx0", None)], "star"), Owner::Us);
        assert_eq!(judge(&[link("lo", Some("other"))], "star"), Owner::SomebodyElse);
        assert_eq!(judge(&[link("lo", None)], "star"), Owner::SomebodyElse);
        assert_eq!(judge(&[], "star"), Owner::SomebodyElse);
    }
}
