//! What was found, as a report, beside what the host file says.

use std::collections::BTreeSet;

use super::wiring::{Joint, Way, joints};
use crate::{
    host::nics::Nic,
    record::discovery::{DISCOVERY_SCHEMA, DiscoveredCable, DiscoveredPort, DiscoveryReport, NotTaken, OneWay},
    topology::{HOST_FILE, HostFile},
};

/// What was seen at the ports that were taken.
#[derive(Debug, Clone, Default)]
pub(super) struct Seen {
    /// The ports, without what they heard.
    pub(super) ports: Vec<DiscoveredPort>,
    /// Those that had a carrier, by number.
    pub(super) carrier: BTreeSet<usize>,
    /// The ways that frames took.
    pub(super) heard: BTreeSet<Way>,
    /// What else there is to say.
    pub(super) notes: Vec<String>,
}

/// A port before anything was seen of it.
pub(super) fn port(nic: &Nic, host: &HostFile) -> DiscoveredPort {
    let pci = nic.pci.clone().unwrap_or_default();
    DiscoveredPort {
        label: host.label_of(&pci).map(str::to_owned),
        pci,
        name: nic.name.clone(),
        driver: nic.driver.clone(),
        speed: None,
        hears: Vec::new(),
    }
}

/// Sums up.
pub(super) fn summary(seen: Seen, not_taken: Vec<NotTaken>, host: &HostFile) -> DiscoveryReport {
    let Seen { mut ports, carrier, heard, mut notes } = seen;
    let pci: Vec<String> = ports.iter().map(|port| port.pci.clone()).collect();
    for (from, to) in &heard {
        ports[*to].hears.push(pci[*from].clone());
    }
    let path = if host.path.as_os_str().is_empty() { HOST_FILE.to_owned() } else { host.path.display().to_string() };
    let mut report = DiscoveryReport {
        schema: DISCOVERY_SCHEMA.to_owned(),
        no_carrier: (0..ports.len()).filter(|port| !carrier.contains(port)).map(|port| pci[port].clone()).collect(),
        ports,
        cables: Vec::new(),
        switches: Vec::new(),
        one_way: Vec::new(),
        looped: Vec::new(),
        alone: Vec::new(),
        not_taken,
        host_file: path,
        to_add: String::new(),
        notes: Vec::new(),
    };
    for joint in joints(&carrier, &heard) {
        match joint {
            Joint::Cable(ends) => {
                let ends = ends.map(|end| pci[end].clone());
                let in_host_file = host.other_end(&ends[0]) == Some(ends[1].as_str());
                report.cables.push(DiscoveredCable { ends, in_host_file });
            }
            Joint::Switch(group) => report.switches.push(group.into_iter().map(|port| pci[port].clone()).collect()),
            Joint::OneWay { from, to } => {
                report.one_way.push(OneWay { from: pci[from].clone(), to: pci[to].clone() });
            }
            Joint::Loop(port) => report.looped.push(pci[port].clone()),
            Joint::Alone(port) => report.alone.push(pci[port].clone()),
        }
    }
    notes.extend(disagreements(&report, host));
    report.notes = notes;
    report.to_add = to_add(&report);
    report
}

/// Cables of the host file that are not there.
fn disagreements(report: &DiscoveryReport, host: &HostFile) -> Vec<String> {
    let taken = |pci: &String| report.ports.iter().any(|port| port.pci == *pci);
    host.cables
        .iter()
        // Of a port that was not taken nothing was seen.
        .filter(|ends| ends.iter().any(taken))
        .filter_map(|[a, b]| {
            let found = |pci: &String| report.cables.iter().find(|cable| cable.ends.contains(pci));
            let wrong = match [a, b].into_iter().find_map(found) {
                Some(cable) if cable.in_host_file => return None,
                Some(cable) => format!("{} and {} are cabled together", cable.ends[0], cable.ends[1]),
                None if taken(a) && taken(b) => "no cable between them was found".to_owned(),
                None => return None,
            };
            Some(format!("{} has a cable between {} and {}: {wrong}", report.host_file, host.name(a), host.name(b)))
        })
        .collect()
}

/// The cables that the host file lacks, in its own form, by label where a port has one.
fn to_add(report: &DiscoveryReport) -> String {
    let port = |pci: &String| report.ports.iter().find(|port| port.pci == *pci);
    report
        .cables
        .iter()
        .filter(|cable| !cable.in_host_file)
        .map(|cable| {
            let [a, b] = cable.ends.each_ref().map(|pci| {
                let label = port(pci).and_then(|port| port.label.clone());
                (label.unwrap_or_else(|| pci.clone()), port(pci).map_or("", |port| port.name.as_str()))
            });
            format!("[[cables]]\nends = [\"{}\", \"{}\"]    # {} -- {}\n", a.0, b.0, a.1, b.1)
        })
        .collect()
}

#[cfg(test)]
pub(crate) mod tests {
    use std::path::Path;

    use super::*;

    pub(crate) fn host(text: &str) -> HostFile {
        HostFile::parse(Path::new("host.toml"), text).unwrap()
    }

    fn nic(n: usize, driver: &str) -> Nic {
        let pci = Some(format!("0000:0{n}:00.0"));
        Nic { name: format!("eth{n}"), driver: driver.to_owned(), pci, ..Nic::default() }
    }

    /// A host with some of everything: 1 and 2 are cabled, 3 to 5 at a switch, 6 reaches 7, 8 is alone, 9 unplugged.
    pub(crate) fn some_of_everything(host: &HostFile) -> DiscoveryReport {
        let mut ports: Vec<DiscoveredPort> =
            (1..=9).map(|n| port(&nic(n, if n < 3 { "i40e" } else { "e1000e" }), host)).collect();
        for port in &mut ports[..2] {
            port.speed = Some(10_000);
        }
        let heard = [(0, 1), (1, 0), (2, 3), (3, 2), (3, 4), (4, 2), (5, 6)];
        let seen = Seen { ports, carrier: (0..8).collect(), heard: heard.into(), notes: Vec::new() };
        let not_taken = vec![NotTaken {
            pci: Some("0000:00:03.0".to_owned()),
            name: "eth0".to_owned(),
            driver: "virtio_net".to_owned(),
            reason: "carries the default route (IPv4)".to_owned(),
            fix: None,
        }];
        summary(seen, not_taken, host)
    }

    #[test]
    fn each_port_is_told_by_what_it_heard() {
        let report = some_of_everything(&HostFile::default());
        insta::assert_snapshot!(serde_json::to_string_pretty(&report).unwrap());
    }

    #[test]
    fn what_is_to_be_added_is_read_back_as_the_cables_that_were_found() {
        let labels = "[nics]\neast = \"0000:01:00.0\"\n";
        let report = some_of_everything(&host(labels));
        assert_eq!(report.to_add, "[[cables]]\nends = [\"east\", \"0000:02:00.0\"]    # eth1 -- eth2\n");
        let file = host(&format!("{labels}{}", report.to_add));
        assert_eq!(file.other_end("0000:01:00.0"), Some("0000:02:00.0"));
        let again = some_of_everything(&file);
        assert_eq!((again.to_add.as_str(), again.notes.len()), ("", 0));
        assert!(again.cables[0].in_host_file);
    }

    #[test]
    fn a_host_file_that_is_wrong_is_told_so() {
        let cable = |a: u32, b: u32| format!("[[cables]]\nends = [\"0000:0{a}:00.0\", \"0000:0{b}:00.0\"]\n");
        let notes = |text: &str| some_of_everything(&host(text)).notes;
        assert_eq!(
            notes(&cable(2, 8)),
            [
                "host.toml has a cable between 0000:02:00.0 and 0000:08:00.0: 0000:01:00.0 and 0000:02:00.0 are cabled together"
            ]
        );
        assert_eq!(
            notes(&cable(6, 7)),
            ["host.toml has a cable between 0000:06:00.0 and 0000:07:00.0: no cable between them was found"]
        );
        // Its other end is on a host, or at a port, that was not asked.
        assert!(notes("[[cables]]\nends = [\"0000:08:00.0\", \"0000:0f:00.0\"]\n").is_empty());
    }
}
