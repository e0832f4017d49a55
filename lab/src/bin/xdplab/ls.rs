//! `xdplab ls`: the labs that are up.

use xdplab::{lab::persistent, report::table::Table};

use crate::{
    cli::{Format, TableArgs},
    failure::Failure,
    output,
};

/// Lists the labs.
pub(crate) fn ls(args: &TableArgs) -> Result<u8, Failure> {
    let labs = persistent::list()?;
    match args.format {
        Format::Json => output::print_json(&labs)?,
        Format::Text if labs.is_empty() => output::print("no lab is up\n")?,
        Format::Text => {
            let mut table = Table::new(["lab", "kind", "state", "nodes", "up since", "file"]);
            for lab in &labs {
                let nodes = lab.nodes.map_or_else(String::new, |n| n.to_string());
                let file = lab.file.as_ref().map_or_else(String::new, |f| f.display().to_string());
                table.row([&lab.name, &lab.kind, &lab.state, &nodes, lab.started.as_deref().unwrap_or(""), &file]);
            }
            output::print(&table.to_string())?;
        }
    }
    Ok(0)
}
