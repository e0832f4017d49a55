//! `xdplab vm`: a command under another kernel.

use std::{
    env,
    ffi::{OsStr, OsString},
    io, iter,
    path::Path,
};

use clap::Parser as _;
use xdplab::{
    host::kvm,
    vm::{self, Acceleration, Console, Image, Machine, Output, Task, VmError},
};

use crate::{
    cli::{Cli, VmArgs},
    failure::{Failure, chain},
    gc, signals,
};

impl From<VmError> for Failure {
    fn from(error: VmError) -> Self {
        match error {
            VmError::Interrupted => Self::Interrupted,
            VmError::Output(source) => source.into(),
            error if error.is_of_the_input() => Self::Usage(chain(&error)),
            error => Self::Host(chain(&error)),
        }
    }
}

/// Runs a command of xdplab, or another program, in a virtual machine: its exit code is ours.
pub(crate) fn vm(args: &VmArgs) -> Result<u8, Failure> {
    gc::need_root()?;
    let image = Image::find(&args.kernel)?;
    let (acceleration, note) = if args.emulate { (Acceleration::Emulated, None) } else { acceleration() };
    let machine = Machine::new(image, &args.nic, &args.append, &args.memory, args.cpus, acceleration)?;
    let here = |error: io::Error| Failure::Host(format!("find out where this is: {error}"));
    let program = if let Some(program) = &args.program {
        program.canonicalize().map_err(|error| Failure::Usage(format!("--program {}: {error}", program.display())))?
    } else {
        understood(&args.command)?;
        env::current_exe().map_err(here)?
    };
    let task = Task {
        program,
        arguments: args.command.clone(),
        directory: env::current_dir().map_err(here)?,
        environment: environment(),
    };
    announce(note.as_deref(), &machine)?;
    let stop = signals::stop_on_signals()?;
    let console = if args.verbose { Console::Shown } else { Console::Kept };
    let mut output = Output { out: &mut io::stdout().lock(), err: &mut io::stderr() };
    Ok(vm::boot(&machine, &task, console, &stop, &mut output)?)
}

/// Refuses what the command in the machine would refuse after a boot.
fn understood(command: &[OsString]) -> Result<(), Failure> {
    let Err(error) =
        Cli::try_parse_from(iter::once(OsStr::new("xdplab")).chain(command.iter().map(OsString::as_os_str)))
    else {
        return Ok(());
    };
    if !error.use_stderr() {
        // Help, which the command in the machine prints as well.
        return Ok(());
    }
    let words: Vec<_> = command.iter().map(|word| word.to_string_lossy()).collect();
    if command.first().is_some_and(|first| Path::new(first).file_name() == Some(OsStr::new("xdplab"))) {
        let rest: Vec<_> = iter::once("xdplab").chain(words.iter().skip(1).map(AsRef::as_ref)).collect();
        let rest = rest.join(" ");
        return Err(Failure::Usage(format!("leave `{}` out: vm runs `{rest}` in the machine", words[0])));
    }
    let said = error.to_string();
    let said = said.strip_prefix("error: ").unwrap_or(&said).trim_end().to_owned();
    Err(Failure::Usage(format!("the command behind `--`: {said}")))
}

/// KVM where it works; where not, with the note that says why not.
pub(crate) fn acceleration() -> (Acceleration, Option<String>) {
    match kvm::probe() {
        Ok(()) => (Acceleration::Kvm, None),
        Err(error) => {
            let note =
                format!("KVM does not work here ({error}): the machine is emulated, and its prices mean nothing");
            (Acceleration::Emulated, Some(note))
        }
    }
}

/// Says what is to be said of a machine before it is booted, where it can be.
pub(crate) fn announce(note: Option<&str>, machine: &Machine) -> Result<(), Failure> {
    vm::vng()?;
    vm::qemu()?;
    if let Some(note) = note {
        eprintln!("note: {note}");
    }
    for (pci, driver) in machine.without_cable() {
        eprintln!(
            "note: the NIC {pci} ({driver}) has no cable, and so no carrier: the NICs of a `--nic` are cabled in pairs, as \
             with `--nic {driver}:2`"
        );
    }
    Ok(())
}

pub(crate) fn environment() -> Vec<(OsString, OsString)> {
    env::vars_os().filter(|(name, _)| vm::passes_through(name)).collect()
}
