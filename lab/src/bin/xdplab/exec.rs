//! `xdplab exec`: runs a command in a node.

use std::{os::unix::process::CommandExt as _, process::Command};

use xdplab::lab::{LabError, persistent};

use crate::{cli::ExecArgs, failure::Failure, gc};

/// Becomes the command, inside the node: its exit code is ours.
pub(crate) fn exec(args: &ExecArgs) -> Result<u8, Failure> {
    gc::need_root()?;
    let state = persistent::state(&args.lab)?;
    let node = state.nodes.iter().find(|node| node.name == args.node).ok_or_else(|| {
        let nodes = state.nodes.iter().map(|node| node.name.as_str()).collect::<Vec<_>>().join(", ");
        LabError::NoNode { lab: args.lab.clone(), node: args.node.clone(), nodes }
    })?;
    // This process has one thread, and becomes the command: nothing of ours runs on in there.
    xdplab::host::exec::enter_for_good(&node.netns).map_err(LabError::from)?;
    let Some((program, arguments)) = args.command.split_first() else {
        return Err(Failure::Usage("no command given".into()));
    };
    let error = Command::new(program).args(arguments).exec();
    if error.kind() == std::io::ErrorKind::NotFound {
        // As a shell has it.
        eprintln!("error: {}: not installed on this host, or not on PATH", program.display());
        return Ok(127);
    }
    Err(Failure::Usage(format!("run {} in {}: {error}", program.display(), args.node)))
}
