//! `xdplab inspect`: a lab's nodes, ports, programs and counters, as they are now.

use xdplab::{
    lab::inspect::{self, LabView},
    report::{
        table::Table,
        text::{links, title},
    },
};

use crate::{
    cli::{Format, InspectArgs},
    failure::Failure,
    gc, output,
};

/// Shows the lab.
pub(crate) fn inspect(args: &InspectArgs) -> Result<u8, Failure> {
    gc::need_root()?;
    let view = inspect::inspect(&args.lab)?;
    match args.format {
        Format::Json => output::print_json(&view)?,
        Format::Text => output::print(&text(&view))?,
    }
    Ok(0)
}

fn text(view: &LabView) -> String {
    let mut text =
        format!("{}\nup since {} from {}\n\n", title(&view.lab, &view.about), view.started, view.file.display());
    text += &links(&view.links);
    let mut ports = Table::new(["port", "state", "MAC", "MTU", "addresses", "program", "rx frames", "tx frames"]);
    for port in &view.ports {
        ports.row([
            &port.port,
            &port.state,
            &port.mac,
            &port.mtu.to_string(),
            &port.addresses.join(" "),
            &port.program.as_ref().map_or_else(String::new, |p| {
                let whose = if p.keeps_ready { ", xdplab's own: keeps the port ready" } else { "" };
                format!("{}{whose} ({})", p.name, p.mode)
            }),
            &port.rx_packets.to_string(),
            &port.tx_packets.to_string(),
        ]);
    }
    text += &ports.to_string();
    if !view.counters.is_empty() {
        let mut counters = Table::new(["program", "port", "lab's frames", "corrupted", "foreign"]);
        for c in &view.counters {
            let numbers = [c.ours, c.corrupted, c.foreign].map(|n| n.to_string());
            counters.row([&c.program, &c.port, &numbers[0], &numbers[1], &numbers[2]]);
        }
        text += &format!("\n{counters}");
    }
    for missing in &view.missing {
        text += &format!("\n{missing}\n");
    }
    text
}

#[cfg(test)]
mod tests {
    use xdplab::{
        lab::inspect::{AttachedView, PortView},
        record::LinkRecord,
        xdp::XdpMode,
    };

    use super::*;

    fn port(name: &str, program: &str, keeps_ready: bool) -> PortView {
        PortView {
            port: name.to_owned(),
            state: "up".to_owned(),
            mac: "02:00:00:00:00:01".to_owned(),
            mtu: 1500,
            addresses: Vec::new(),
            program: Some(AttachedView { name: program.to_owned(), mode: XdpMode::Native, id: 144, keeps_ready }),
            rx_packets: 0,
            tx_packets: 0,
        }
    }

    fn link(ends: [&str; 2], nics: Option<[&str; 2]>) -> LinkRecord {
        LinkRecord {
            ends: ends.map(str::to_owned).into(),
            kind: if nics.is_some() { "cable" } else { "veth" }.to_owned(),
            made_of: if nics.is_some() { "i40e" } else { "veth" }.to_owned(),
            nics: nics.map(|nics| nics.map(str::to_owned).into()),
            stands_in_for: None,
        }
    }

    #[test]
    fn the_program_that_keeps_a_nic_ready_is_told_from_those_of_others() {
        let view = LabView {
            lab: "lab".to_owned(),
            about: String::new(),
            file: "lab.toml".into(),
            started: "2026-01-01T00:00:00Z".to_owned(),
            links: vec![
                link(["gen:tx0", "dut:rx0"], Some(["eth1 (0000:03:00.0)", "eth2 (0000:03:00.1)"])),
                link(["dut:out0", "sink:in0"], None),
            ],
            ports: vec![
                port("gen:tx0", "id 144", true),
                port("dut:rx0", "drop", false),
                port("sink:in0", "id 144", false),
            ],
            counters: Vec::new(),
            missing: Vec::new(),
        };
        let shown = text(&view);
        let of = |port: &str| shown.lines().find(|line| line.starts_with(port)).unwrap().to_owned();
        assert!(of("gen:tx0 ").contains("id 144, xdplab's own: keeps the port ready (native)"), "{shown}");
        assert!(of("dut:rx0 ").contains("drop (native)"), "{shown}");
        assert!(of("sink:in0 ").contains("id 144 (native)"), "{shown}");
    }
}
