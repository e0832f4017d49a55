//! `xdplab up`: builds a lab that outlives the command.

use xdplab::{
    lab::{Cabling, persistent},
    report::text::{links, title},
    topology,
};

use crate::{
    cli::{Format, UpArgs},
    failure::Failure,
    gc, nics, output,
    progress::Bar,
    signals,
};

/// Builds the lab.
pub(crate) fn up(args: &UpArgs) -> Result<u8, Failure> {
    let topology = topology::load(&args.file)?;
    let host = nics::host_file(args.nics.host.as_deref())?;
    gc::need_root()?;
    gc::quietly();
    let cabling = Cabling::choose(&topology, nics::choice(args.nics.nics), &host)?;
    // A half-built lab is of no use to anyone: a signal waits until it is whole, and then takes it away again.
    let delayed = signals::delayed()?;
    let bar = Bar::new(&topology.name);
    let state = persistent::up(&topology, &cabling, &bar)?;
    drop(bar);
    if delayed.came() {
        persistent::down(&state.lab)?;
        return Err(Failure::Interrupted);
    }
    match args.format {
        Format::Json => output::print_json(&state)?,
        Format::Text => {
            let mut text = format!(
                "{}\nis up, its programs attached in native mode unless the file says otherwise\n",
                title(&state.lab, &state.about)
            );
            text += &links(&state.links);
            text.extend(state.notes.iter().map(|note| format!("  note: {note}\n")));
            for node in &state.nodes {
                let ports: Vec<&str> = node.ports.iter().map(|port| port.name.as_str()).collect();
                text += &format!("  {}  (ip netns exec {})  {}\n", node.name, node.netns, ports.join(" "));
            }
            text += &format!("next: xdplab inspect {0}, xdplab exec {0} NODE -- CMD, xdplab down {0}\n", state.lab);
            output::print(&text)?;
        }
    }
    Ok(0)
}
