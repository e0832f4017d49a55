//! `xdplab vm`: a command under another kernel.

use std::{env, ffi::OsString, io};

use xdplab::{
    host::kvm,
    vm::{self, Acceleration, Console, Image, Machine, Output, Task, VmError},
};

use crate::{
    cli::VmArgs,
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
    let acceleration = if args.emulate { Acceleration::Emulated } else { acceleration() };
    let machine = Machine::new(image, &args.nic, &args.append, &args.memory, args.cpus, acceleration)?;
    let here = |error: io::Error| Failure::Host(format!("find out where this is: {error}"));
    let program = match &args.program {
        Some(program) => program
            .canonicalize()
            .map_err(|error| Failure::Usage(format!("--program {}: {error}", program.display())))?,
        None => env::current_exe().map_err(here)?,
    };
    let task = Task {
        program,
        arguments: args.command.clone(),
        directory: env::current_dir().map_err(here)?,
        environment: environment(),
    };
    let stop = signals::stop_on_signals()?;
    let console = if args.verbose { Console::Shown } else { Console::Kept };
    let mut output = Output { out: &mut io::stdout().lock(), err: &mut io::stderr() };
    Ok(vm::boot(&machine, &task, console, &stop, &mut output)?)
}

/// KVM where it works; where not, why not is said.
pub(crate) fn acceleration() -> Acceleration {
    match kvm::probe() {
        Ok(()) => Acceleration::Kvm,
        Err(error) => {
            let why = chain(&error).replace("\n  because: ", ": ");
            eprintln!("note: KVM does not work here ({why}); the machine is emulated, and its prices mean nothing");
            Acceleration::Emulated
        }
    }
}

pub(crate) fn environment() -> Vec<(OsString, OsString)> {
    env::vars_os().filter(|(name, _)| vm::passes_through(name)).collect()
}
