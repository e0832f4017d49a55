//! `xdplab graph`: draws a topology.

use xdplab::topology::{self, graph};

use crate::{
    cli::{GraphArgs, GraphFormat},
    failure::Failure,
    output,
};

/// Draws the file.
pub(crate) fn graph(args: &GraphArgs) -> Result<u8, Failure> {
    let topology = topology::load(&args.file)?;
    output::print(&match args.format {
        GraphFormat::Mermaid => graph::mermaid(&topology),
        GraphFormat::Dot => graph::dot(&topology),
        GraphFormat::Svg => graph::svg(&topology),
    })?;
    Ok(0)
}
