//! `xdplab completions` and `xdplab man`.

use clap::CommandFactory as _;

use crate::{
    cli::{Cli, CompletionsArgs},
    failure::Failure,
    output,
};

/// Prints a completion script.
pub(crate) fn completions(args: &CompletionsArgs) -> Result<u8, Failure> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "xdplab", &mut script);
    output::print(&String::from_utf8_lossy(&script))?;
    Ok(0)
}

/// Prints the manual: the command's page, then one for each verb.
pub(crate) fn man() -> Result<u8, Failure> {
    let mut page = Vec::new();
    clap_mangen::Man::new(Cli::command()).render(&mut page)?;
    for verb in Cli::command().get_subcommands().filter(|verb| verb.get_name() != "help") {
        let name = format!("xdplab-{}", verb.get_name());
        clap_mangen::Man::new(verb.clone().name(name)).render(&mut page)?;
    }
    output::print(&String::from_utf8_lossy(&page))?;
    Ok(0)
}
