//! `xdplab doctor`: what this host can do for a lab.

use xdplab::{
    host::ability::{self, State},
    report::table::Table,
};

use crate::{
    cli::{Format, TableArgs},
    failure::Failure,
    output,
};

/// Shows the host's abilities.
pub(crate) fn doctor(args: &TableArgs) -> Result<u8, Failure> {
    let abilities = ability::all();
    match args.format {
        Format::Json => output::print_json(&abilities)?,
        Format::Text => {
            let mut long = String::new();
            let mut table = Table::new(["ability", "state", "detail", "needed for"]);
            for a in &abilities {
                let state = match a.state {
                    State::Ok => "ok",
                    State::Missing if a.required => "missing",
                    State::Missing => "no (optional)",
                    State::Unknown => "unknown",
                };
                if a.detail.len() > 60 {
                    table.row([a.name, state, "see below", a.needed_for]);
                    long += &format!("\n{}: {}", a.name, a.detail);
                } else {
                    table.row([a.name, state, &a.detail, a.needed_for]);
                }
            }
            let mut text = table.to_string() + &long;
            for a in abilities.iter().filter(|a| a.state == State::Missing) {
                if let Some(fix) = &a.fix {
                    text += &format!("\n{}: {fix}", a.name);
                }
            }
            output::print(&text)?;
        }
    }
    Ok(if ability::missing_for_labs().is_empty() { 0 } else { 5 })
}
