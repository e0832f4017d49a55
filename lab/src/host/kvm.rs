//! Whether virtual machines run on the processor here.

use std::{
    fs::{File, OpenOptions},
    os::fd::{AsRawFd as _, FromRawFd as _},
};

use nix::errno::Errno;

/// Why KVM does not work. The error's name stands for itself: KVM has meanings of its own for them, and `No space left on
/// device` would be looked for on a disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{call}: {errno:?}")]
pub struct KvmError {
    /// The call that was refused.
    pub call: &'static str,
    /// What KVM said.
    pub errno: Errno,
}

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
pub fn probe() -> Result<(), KvmError> {
    let kvm = OpenOptions::new().read(true).write(true).open("/dev/kvm");
    let kvm = kvm.map_err(|error| KvmError {
        call: "open /dev/kvm",
        errno: Errno::from_raw(error.raw_os_error().unwrap_or_default()),
    })?;
    let made = |call: &'static str, fd: nix::Result<i32>| -> Result<File, KvmError> {
        let fd = fd.map_err(|errno| KvmError { call, errno })?;
        // SAFETY: the kernel just gave us this descriptor, and nobody else has it.
        Ok(unsafe { File::from_raw_fd(fd) })
    };
    // SAFETY: a number is all that this call takes; nothing of ours is given to it.
    let vm = made("KVM_CREATE_VM", unsafe { calls::create_vm(kvm.as_raw_fd(), 0) })?;
    // SAFETY: as above.
    let vcpu = made("KVM_CREATE_VCPU", unsafe { calls::create_vcpu(vm.as_raw_fd(), 0) })?;
    if cfg!(not(target_arch = "x86_64")) {
        // Others want a processor set up first.
        return Ok(());
    }
    // The machine has no memory: its first fetch ends the call, which is well then.
    // SAFETY: as above; the processor can reach no memory of ours, since its machine was given none.
    match unsafe { calls::run(vcpu.as_raw_fd(), 0) } {
        Ok(_) | Err(Errno::EINTR) => Ok(()),
        Err(errno) => Err(KvmError { call: "KVM_RUN", errno }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_is_said_by_its_call_and_name() {
        let error = KvmError { call: "KVM_RUN", errno: Errno::ENOSPC };
        assert_eq!(error.to_string(), "KVM_RUN: ENOSPC");
    }
}
