//! `xdplab inspect`: a lab's nodes, ports, programs and counters, as they are now.

use xdplab::{
    lab::inspect,
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

fn text(view: &inspect::LabView) -> String {
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
            &port.program.as_ref().map_or_else(String::new, |p| format!("{} ({})", p.name, p.mode)),
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
