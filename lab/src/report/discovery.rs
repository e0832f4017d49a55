//! What `nics --discover` found, on a terminal.

use super::table::Table;
use crate::record::discovery::{DiscoveredPort, DiscoveryReport, OneWay};

/// The cables, the other ports, and what to add to the host file.
pub fn text(report: &DiscoveryReport) -> String {
    let mut text = cables(report);
    let others = others(report);
    if !others.is_empty() {
        text += &format!("\n{others}");
    }
    for note in &report.notes {
        text += &format!("note: {note}\n");
    }
    if !report.to_add.is_empty() {
        text += &format!("\nto add to {}:\n\n{}", report.host_file, report.to_add);
    } else if !report.cables.is_empty() {
        text += &format!("{} has all of these cables\n", report.host_file);
    }
    text
}

fn cables(report: &DiscoveryReport) -> String {
    if report.cables.is_empty() {
        return "no cable between ports of this host was found\n".to_owned();
    }
    let mut table = Table::new(["cable", "Mbit/s", "driver", "PCI"]);
    for cable in &report.cables {
        let [a, b] = &cable.ends;
        table.row([
            &format!("{} -- {}", named(report, a), named(report, b)),
            &both([a, b].map(|end| speed(port(report, end)))),
            &both([a, b].map(|end| port(report, end).map(|port| port.driver.clone()).unwrap_or_default())),
            &format!("{a} -- {b}"),
        ]);
    }
    table.to_string()
}

/// Ports that no cable joins to another of this host, and those that were not taken.
fn others(report: &DiscoveryReport) -> Table {
    let mut table = Table::new(["port", "Mbit/s", "driver", "PCI", "finding"]);
    let mut row = |pci: &str, finding: &str| {
        let found = port(report, pci);
        let driver = found.map_or("", |port| port.driver.as_str());
        table.row([&named(report, pci), &speed(found), driver, pci, finding]);
    };
    for group in &report.switches {
        for pci in group {
            let rest: Vec<String> = group.iter().filter(|other| *other != pci).map(|pci| named(report, pci)).collect();
            row(pci, &format!("no cable: a switch or the like joins it with {}", rest.join(", ")));
        }
    }
    for OneWay { from, to } in &report.one_way {
        row(from, &format!("no cable: {} hears it, and it does not hear {0}", named(report, to)));
        row(to, &format!("no cable: it hears {}, which does not hear it", named(report, from)));
    }
    for pci in &report.looped {
        row(pci, "hears itself: a loop");
    }
    for pci in &report.alone {
        row(pci, "hears no other port of this host");
    }
    for pci in &report.no_carrier {
        row(pci, "no carrier");
    }
    for nic in &report.not_taken {
        let fix = nic.fix.as_ref().map(|fix| format!("; to free it: {fix}")).unwrap_or_default();
        let finding = format!("not taken: {}{fix}", nic.reason);
        table.row([&nic.name, "", &nic.driver, nic.pci.as_deref().unwrap_or_default(), &finding]);
    }
    table
}

fn port<'a>(report: &'a DiscoveryReport, pci: &str) -> Option<&'a DiscoveredPort> {
    report.ports.iter().find(|port| port.pci == pci)
}

/// Label and name, or name, or else the PCI address.
fn named(report: &DiscoveryReport, pci: &str) -> String {
    match port(report, pci) {
        None => pci.to_owned(),
        Some(DiscoveredPort { label: Some(label), name, .. }) => format!("{label} ({name})"),
        Some(port) => port.name.clone(),
    }
}

fn speed(port: Option<&DiscoveredPort>) -> String {
    port.and_then(|port| port.speed).map(|speed| speed.to_string()).unwrap_or_default()
}

/// What both ends of a cable are: once where it is the same.
fn both([a, b]: [String; 2]) -> String {
    if a == b { a } else { format!("{a}, {b}") }
}

#[cfg(test)]
mod tests {
    use crate::lab::discovery::sample;

    use super::*;

    #[test]
    fn cables_come_first_and_then_why_the_others_are_none() {
        insta::assert_snapshot!(text(&sample("[nics]\neast = \"0000:01:00.0\"\n")));
    }

    #[test]
    fn a_host_file_that_has_all_cables_needs_no_more() {
        let whole = "[[cables]]\nends = [\"0000:01:00.0\", \"0000:02:00.0\"]\n";
        let text = text(&sample(whole));
        assert!(text.ends_with("host.toml has all of these cables\n"), "{text}");
        assert!(!text.contains("to add"), "{text}");
    }
}
