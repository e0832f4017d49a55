//! `xdplab nics --discover`: which ports of the host are cabled together.

use xdplab::{lab::discovery, report, topology::HostFile};

use crate::{
    cli::Format,
    failure::Failure,
    gc::{need_root, quietly},
    output, signals,
};

/// Finds cables.
pub(crate) fn discover(host: &HostFile, format: Format) -> Result<u8, Failure> {
    need_root()?;
    quietly();
    let stop = signals::stop_on_signals()?;
    let waiting = &mut |holder: &str| eprintln!("waiting: {holder}");
    let report = discovery::discover(host, &|| stop.is_asked(), waiting)?.ok_or(Failure::Interrupted)?;
    match format {
        Format::Json => output::print_json(&report)?,
        Format::Text => output::print(&report::discovery::text(&report))?,
    }
    Ok(0)
}
