//! `xdplab nics`: the host's NICs, and whether a lab may take them.

use std::path::Path;

use serde::Serialize;
use xdplab::{
    drivers::{self, Checked, Driver, Xmit},
    host::{
        matching,
        nics::{self, Inventory, Nic, Setting},
    },
    lab::NicChoice,
    report::table::Table,
    topology::{self, HostFile, HostFileError, LoadError, Topology},
    xdp::XdpFeatures,
};

use crate::{
    cli::{Format, Nics, NicsArgs},
    discover,
    failure::{Failure, chain, chain_and_fix},
    output,
};

/// A NIC, and what the host file and the records of drivers say of it.
#[derive(Debug, Serialize)]
struct Shown<'a> {
    #[serde(flatten)]
    nic: &'a Nic,
    label: Option<&'a str>,
    cabled_to: Option<&'a str>,
    known: Option<&'static Driver>,
    differences: Vec<drivers::Difference>,
}

/// The host file that was named, or the host's own if it has one.
pub(crate) fn host_file(named: Option<&Path>) -> Result<HostFile, Failure> {
    HostFile::load(named).map_err(|error| match error {
        HostFileError::Invalid(diagnostics) => Failure::File(LoadError::Invalid(diagnostics)),
        error => Failure::Usage(chain_and_fix(&error, error.fix())),
    })
}

/// What cables may be made of.
pub(crate) fn choice(nics: Nics) -> NicChoice {
    match nics {
        Nics::Auto => NicChoice::Auto,
        Nics::Virtual => NicChoice::Virtual,
        Nics::Physical => NicChoice::Physical,
    }
}

/// Shows the host's NICs.
pub(crate) fn nics(args: &NicsArgs) -> Result<u8, Failure> {
    let host = host_file(args.host.as_deref())?;
    if args.discover {
        return discover::discover(&host, args.format);
    }
    let inventory = nics::inventory().map_err(|error| Failure::Host(chain(&error)))?;
    if let Some(file) = &args.topology {
        return fit(&topology::load(file)?, &inventory, &host, args.format);
    }
    let shown: Vec<Shown> = inventory
        .nics
        .iter()
        .filter(|nic| args.all || nic.pci.is_some())
        .map(|nic| {
            let pci = nic.pci.as_deref();
            let knowledge = nic.knowledge(inventory.kernel);
            Shown {
                nic,
                label: pci.and_then(|pci| host.label_of(pci)),
                cabled_to: pci.and_then(|pci| host.other_end(pci)),
                known: knowledge.driver,
                differences: knowledge.differences(),
            }
        })
        .collect();
    match args.format {
        Format::Json => output::print_json(&shown)?,
        Format::Text => output::print(&text(&shown, &inventory, &host, args))?,
    }
    Ok(0)
}

/// The NICs that stand for a cable of a topology.
#[derive(Debug, Serialize)]
struct Fit {
    cable: String,
    nics: [String; 2],
}

/// Says which NICs fit a topology's cables.
fn fit(topology: &Topology, inventory: &Inventory, host: &HostFile, format: Format) -> Result<u8, Failure> {
    let requirements = matching::requirements(topology);
    let assignment = matching::assign(&requirements, &inventory.nics, host).map_err(|mut no_fit| {
        no_fit.add_lent(&inventory.lent);
        Failure::Host(no_fit.to_string())
    })?;
    let fits: Vec<Fit> = requirements
        .into_iter()
        .zip(assignment)
        .map(|(wanted, pair)| Fit { cable: wanted.cable, nics: pair.map(|nic| inventory.nics[nic].name.clone()) })
        .collect();
    match format {
        Format::Json => output::print_json(&fits)?,
        Format::Text if fits.is_empty() => output::print("no cable: this topology needs no NIC")?,
        Format::Text => {
            let line = |Fit { cable, nics: [a, b] }: &Fit| format!("{cable}: {a} -- {b}\n");
            output::print(&fits.iter().map(line).collect::<String>())?;
        }
    }
    Ok(0)
}

fn text(shown: &[Shown], inventory: &Inventory, host: &HostFile, args: &NicsArgs) -> String {
    let mut table = Table::new([
        "name",
        "driver",
        "PCI",
        "label",
        "Mbit/s",
        "link",
        "MTU",
        "queues",
        "native XDP",
        "target",
        "zero-copy",
        "for a lab",
    ]);
    for Shown { nic, label, .. } in shown {
        let knowledge = nic.knowledge(inventory.kernel);
        let link = match (nic.up, nic.carrier) {
            (false, _) => "down",
            (true, false) => "no carrier",
            (true, true) => "up",
        };
        let free = nic.refusal.as_ref().map_or_else(|| "free".to_owned(), |refusal| format!("no: {refusal}"));
        table.row([
            &nic.name,
            &nic.driver,
            nic.pci.as_deref().unwrap_or_default(),
            label.unwrap_or_default(),
            &nic.speed.map(|speed| speed.to_string()).unwrap_or_default(),
            link,
            &nic.mtu.to_string(),
            &nic.queues.map(|queues| format!("{} of {}", queues.now, queues.most)).unwrap_or_default(),
            knowledge.native().word(),
            knowledge.xmit().word(),
            knowledge.zero_copy().word(),
            &free,
        ]);
    }
    let mut text = if shown.is_empty() { "this host has no NIC on PCI\n".to_owned() } else { table.to_string() };
    let hidden = inventory.nics.len() - shown.len();
    if hidden > 0 {
        text += &format!("and {hidden} without a PCI device, which `--all` shows\n");
    }
    for lent in &inventory.lent {
        text += &format!("{lent} and not shown: {}\n", lent.fix());
    }
    for shown in shown {
        for difference in &shown.differences {
            text += &format!("note: {}: {difference}\n", shown.nic.name);
        }
    }
    if args.verbose {
        for shown in shown {
            text += &format!("\n{}", details(shown));
        }
    }
    // What a lab holds is in its namespace: it is away, not missing.
    let is_missing = |pci: &str| find(pci, inventory).is_none() && inventory.lent.iter().all(|lent| lent.pci != pci);
    for [a, b] in &host.cables {
        text += &format!("cable: {} -- {}\n", end(a, inventory, host), end(b, inventory, host));
        for pci in [a, b].into_iter().filter(|pci| is_missing(pci)) {
            text += &format!("note: {} gives {pci} a cable, and no NIC is there\n", host.path.display());
        }
    }
    for (label, pci) in host.labels.iter().filter(|(_, pci)| is_missing(pci)) {
        text += &format!("note: {} gives {pci} the label {label}, and no NIC is there\n", host.path.display());
    }
    text
}

fn find<'a>(pci: &str, inventory: &'a Inventory) -> Option<&'a Nic> {
    inventory.nics.iter().find(|nic| nic.pci.as_deref() == Some(pci))
}

/// An end of a cable: label, and name or else PCI address.
fn end(pci: &str, inventory: &Inventory, host: &HostFile) -> String {
    let name = find(pci, inventory).map_or(pci, |nic| nic.name.as_str());
    host.label_of(pci).map_or_else(|| name.to_owned(), |label| format!("{label} ({name})"))
}

/// All that is known of one NIC.
fn details(shown: &Shown) -> String {
    let nic = shown.nic;
    let mut lines = vec![format!("{}:", nic.name)];
    let mut line = |what: &str, value: String| {
        if !value.is_empty() {
            lines.push(format!("  {what}: {value}"));
        }
    };
    line("other names", nic.alt_names.join(", "));
    line("MAC", nic.mac.clone());
    line("PCI id", nic.id.clone().unwrap_or_default());
    line("firmware", nic.firmware.clone().unwrap_or_default());
    line("duplex", nic.duplex.clone().unwrap_or_default());
    line("NUMA node", nic.numa.map(|node| node.to_string()).unwrap_or_default());
    line("interrupts", nic.irqs.iter().map(u32::to_string).collect::<Vec<_>>().join(", "));
    let ring =
        |ring: Option<Setting>| ring.map_or_else(|| "unknown".to_owned(), |r| format!("{} of {}", r.now, r.most));
    if nic.rx_ring.is_some() || nic.tx_ring.is_some() {
        line("rings", format!("receive {}, transmit {}", ring(nic.rx_ring), ring(nic.tx_ring)));
    }
    line(
        "addresses",
        nic.addresses.iter().map(|address| format!("{}/{}", address.ip, address.prefix)).collect::<Vec<_>>().join(", "),
    );
    line("port of", nic.master.clone().unwrap_or_default());
    let elsewhere = nic.uppers_elsewhere.iter().map(ToString::to_string);
    line("carries", nic.uppers.iter().cloned().chain(elsewhere).collect::<Vec<_>>().join(", "));
    line("says that it can", features(nic));
    if let Some(fix) = nic.refusal.as_ref().and_then(|refusal| refusal.fix(&nic.name)) {
        line("to free it", fix);
    }
    match shown.known {
        Some(driver) => known(driver, &mut line),
        None if nic.driver.is_empty() => {}
        None => line("of its driver", "nothing is known".to_owned()),
    }
    lines.join("\n") + "\n"
}

fn features(nic: &Nic) -> String {
    match nic.xdp_features {
        None => "unknown: the kernel is older than 6.3".to_owned(),
        Some(XdpFeatures(0)) => "nothing with XDP as it is now".to_owned(),
        Some(features) => {
            let segments =
                nic.zero_copy_segments.map(|n| format!("; {n} buffers a frame in zero-copy")).unwrap_or_default();
            features.names().join(", ") + &segments
        }
    }
}

/// The record of a driver.
fn known(driver: &Driver, line: &mut impl FnMut(&str, String)) {
    line("of its driver", driver.devices.to_owned());
    let since = |since: Option<drivers::Kernel>| {
        since.map_or_else(|| "no".to_owned(), |kernel| format!("since Linux {kernel}"))
    };
    line("  native XDP", since(driver.native));
    if driver.native.is_some() {
        let target = match driver.xmit {
            Xmit::Never => "never: what is redirected to it is lost",
            Xmit::WithProgram => "only with a native program of its own",
            Xmit::WithPeer => "only with a native program, or GRO, at its peer",
            Xmit::Always => "always",
        };
        line("  target of redirects", target.to_owned());
        line("  fragments", since(driver.frags));
        line("  zero-copy AF_XDP", since(driver.zero_copy));
        line("  largest MTU without fragments", driver.native_mtu.map(|mtu| mtu.to_string()).unwrap_or_default());
        line("  queues", driver.channels.to_owned());
        let mut notes = Vec::new();
        if driver.queue_per_cpu {
            notes.push("redirects to it fail on CPUs whose number is not below its queue count");
        }
        if driver.link_flaps {
            notes.push("the link goes down for a while when a program comes or goes");
        }
        if driver.lro_off {
            notes.push("LRO must be off, or is switched off");
        }
        line("  mind", notes.join("; "));
    }
    line("  counters of drops", driver.counters.drops.join(", "));
    line("  counters of missed frames", driver.counters.missed.join(", "));
    line("  counters of pause frames", driver.counters.pause.join(", "));
    let checked = match driver.checked {
        Checked::Tried => "tried on a device",
        Checked::Source => "read in the source, not tried",
        Checked::No => "not checked",
    };
    line("  source", format!("{} ({checked})", driver.sources.join(", ")));
}
