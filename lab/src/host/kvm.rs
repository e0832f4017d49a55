//! Whether virtual machines run on the processor here.

use std::{
    fs::{File, OpenOptions},
    io,
    os::fd::{AsRawFd as _, FromRawFd as _},
};

use super::HostError;

mod calls {
    use nix::{ioctl_write_int_bad, request_code_none};

    // From <linux/kvm.h>.
    const KVMIO: u8 = 0xae;
    ioctl_write_int_bad!(create_vm, request_code_none!(KVMIO, 0x01));
    ioctl_write_int_bad!(create_vcpu, request_code_none!(KVMIO, 0x41));
    ioctl_write_int_bad!(run, request_code_none!(KVMIO, 0x80));
}

/// Tries KVM: makes a machine and enters its processor. Where a hypervisor offers KVM that does not work, it opens and
/// makes machines, and only entering fails.
///
/// # Errors
/// What does not work. Everything that it made is gone then, and if it works as well.
pub fn probe() -> Result<(), HostError> {
    let path = "/dev/kvm";
    let kvm = OpenOptions::new().read(true).write(true).open(path);
    let kvm = kvm.map_err(|source| HostError::File { operation: "open", path: path.into(), source })?;
    let made = |operation: &str, fd: nix::Result<i32>| -> Result<File, HostError> {
        let fd = fd.map_err(|errno| HostError::system(operation, errno))?;
        // SAFETY: the kernel just gave us this descriptor, and nobody else has it.
        Ok(unsafe { File::from_raw_fd(fd) })
    };
    // SAFETY: a number is all that this call takes; nothing of ours is given to it.
    let vm = made("make a virtual machine", unsafe { calls::create_vm(kvm.as_raw_fd(), 0) })?;
    // SAFETY: as above.
    let vcpu = made("make a virtual processor", unsafe { calls::create_vcpu(vm.as_raw_fd(), 0) })?;
    if cfg!(not(target_arch = "x86_64")) {
        // Others want a processor set up first.
        return Ok(());
    }
    // The machine has no memory: its first fetch ends the call, which is well then.
    // SAFETY: as above; the processor can reach no memory of ours, since its machine was given none.
    match unsafe { calls::run(vcpu.as_raw_fd(), 0) } {
        Ok(_) | Err(nix::errno::Errno::EINTR) => Ok(()),
        Err(errno) => Err(HostError::system("run a virtual processor", io::Error::from(errno))),
    }
}
