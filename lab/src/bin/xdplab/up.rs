//! `xdplab up`: builds a lab that outlives the command.

use xdplab::{
    lab::persistent,
    report::text::{links, title},
    topology,
};

use crate::{
    cli::{Format, Nics, UpArgs},
    failure::Failure,
    gc, output,
    progress::Bar,
    signals,
};

/// Refuses what this version can't do with NICs.
pub(crate) fn refuse_physical(nics: Nics) -> Result<(), Failure> {
    match nics {
        Nics::Auto | Nics::Virtual => Ok(()),
        Nics::Physical => Err(Failure::Host(
            "this version of xdplab lends no NICs: cables are veth pairs. Leave --nics out, or use --nics virtual"
                .into(),
        )),
    }
}

/// Builds the lab.
pub(crate) fn up(args: &UpArgs) -> Result<u8, Failure> {
    refuse_physical(args.nics)?;
    let topology = topology::load(&args.file)?;
    gc::need_root()?;
    gc::quietly();
    // A half-built lab is of no use to anyone: a signal waits until it is whole, and then takes it away again.
    let delayed = signals::delayed()?;
    let bar = Bar::new(&topology.name);
    let state = persistent::up(&topology, &bar)?;
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
