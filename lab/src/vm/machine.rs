//! The machine, and the command line of virtme-ng that boots it.

use std::path::Path;

use super::{
    VmError,
    image::{Image, strange},
    monitor,
    nics::{Nic, NicRequest, host_file, place},
};

/// Where the guest finds the folder that it shares with us.
pub(super) const SHARED: &str = "/run/xdplab-vm";
/// Where the guest finds the working directory, before it is put in its place.
pub(super) const WORK: &str = "/run/xdplab-work";

/// How the guest's instructions run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Acceleration {
    /// On the processor.
    Kvm,
    /// Translated by qemu, several times slower.
    Emulated,
}

/// A virtual machine as it is to be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Machine {
    image: Image,
    nics: Vec<Nic>,
    append: Vec<String>,
    memory: String,
    cpus: u32,
    /// How its instructions run.
    pub acceleration: Acceleration,
}

impl Machine {
    /// A machine with so much memory (qemu's way of writing it, such as `2G`), so many CPUs, these NICs, and these
    /// arguments to its kernel.
    ///
    /// # Errors
    /// If there is no room for the NICs, or virtme-ng could not be given the arguments.
    pub fn new(
        image: Image,
        nics: &[NicRequest],
        append: &[String],
        memory: &str,
        cpus: u32,
        acceleration: Acceleration,
    ) -> Result<Self, VmError> {
        for (what, text) in append.iter().map(|text| ("--append", text.as_str())).chain([("--memory", memory)]) {
            // virtme-ng hands both to a shell.
            if let Some(strange) = strange(text) {
                return Err(VmError::Arguments(format!("{what} {text}: '{strange}' can't be given to virtme-ng")));
            }
        }
        let digits = memory.strip_suffix(['M', 'G']).filter(|digits| digits.parse::<u32>().is_ok_and(|n| n > 0));
        if digits.is_none() {
            return Err(VmError::Arguments(format!("--memory {memory}: write it as 512M or 2G")));
        }
        let nics = place(nics)?;
        Ok(Self { image, nics, append: append.to_vec(), memory: memory.to_owned(), cpus, acceleration })
    }

    /// The drivers of its NICs, each once.
    pub(super) fn drivers(&self) -> Vec<&'static str> {
        let mut drivers: Vec<&str> = self.nics.iter().map(|nic| nic.driver).collect();
        drivers.sort_unstable();
        drivers.dedup();
        drivers
    }

    /// The NICs without a cable: PCI address in the guest and driver.
    pub fn without_cable(&self) -> Vec<(String, &'static str)> {
        self.nics.iter().filter(|nic| nic.uncabled().is_some()).map(|nic| (nic.pci(), nic.driver)).collect()
    }

    /// What qemu calls the NICs without a cable.
    pub(super) fn uncabled(&self) -> Vec<String> {
        self.nics.iter().filter_map(Nic::uncabled).collect()
    }

    /// The host file that says how its NICs are cabled; `None` without NICs.
    pub(super) fn host_file(&self) -> Option<String> {
        (!self.nics.is_empty()).then(|| host_file(&self.nics))
    }

    /// The arguments to `vng`: `shared` and `work` are the folders on the host.
    pub(super) fn arguments(&self, shared: &Path, work: Option<&Path>) -> Vec<String> {
        let mut arguments = vec!["--run".to_owned(), self.image.path.display().to_string()];
        let mut add = |words: &[&str]| arguments.extend(words.iter().map(|word| (*word).to_owned()));
        if self.acceleration == Acceleration::Emulated {
            // Without the latter a 6.1 takes the HPET for a clock, whose every reading is a way through qemu: two fifths of
            // the time of live frames, and so slow that veth rings overflow.
            add(&["--disable-kvm", "--append", "tsc=reliable"]);
        }
        // A microvm has no PCI, and so none of the NICs. 9p needs no daemon.
        add(&["--disable-microvm", "--force-9p", "--user", "root", "--verbose"]);
        add(&["--memory", &self.memory, "--cpus", &self.cpus.to_string()]);
        add(&["--rwdir", &format!("{SHARED}={}", shared.display())]);
        if let Some(work) = work {
            add(&["--rwdir", &format!("{WORK}={}", work.display())]);
        }
        for argument in &self.append {
            add(&["--append", argument]);
        }
        let mut qemu = Vec::new();
        if self.acceleration == Acceleration::Emulated {
            // In one thread, all processors by turns. With a thread each they may run kernel text that is being rewritten,
            // which crashed a 6.12 within minutes while XDP programs came and went (bpf_dispatcher_xdp_func).
            qemu.extend(["-accel".to_owned(), "tcg,thread=single".to_owned()]);
        }
        qemu.extend(self.nics.iter().flat_map(Nic::arguments));
        if !self.uncabled().is_empty() {
            let socket = shared.join(monitor::SOCKET);
            qemu.extend(["-qmp".to_owned(), format!("unix:{},server=on,wait=off", socket.display())]);
        }
        if !qemu.is_empty() {
            add(&[&format!("--qemu-opts={}", qemu.join(" "))]);
        }
        add(&["--exec", &format!("/bin/sh {SHARED}/run")]);
        arguments
    }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;

    fn machine(nics: &[&str], append: &[&str], acceleration: Acceleration) -> Machine {
        let image = Image { path: PathBuf::from("/kernels/boot/vmlinuz-6.12") };
        let nics: Vec<NicRequest> = nics.iter().map(|text| text.parse().unwrap()).collect();
        let append: Vec<String> = append.iter().map(|text| (*text).to_owned()).collect();
        Machine::new(image, &nics, &append, "2G", 2, acceleration).unwrap()
    }

    #[test]
    fn the_command_line_of_virtme_ng() {
        let lines = |machine: &Machine, work: Option<&Path>| {
            machine.arguments(Path::new("/proc/7/fd/3"), work).join("\n").replace(" -", "\n    -")
        };
        let bare = machine(&[], &[], Acceleration::Kvm);
        insta::assert_snapshot!("bare", lines(&bare, None));
        let full = machine(&["virtio_net:2", "e1000e:3"], &["mitigations=off", "quiet"], Acceleration::Emulated);
        insta::assert_snapshot!("full", lines(&full, Some(Path::new("/proc/7/fd/4"))));
        insta::assert_snapshot!("host_file", full.host_file().unwrap());
        assert_eq!(full.drivers(), ["e1000e", "virtio_net"]);
        // The odd one of three.
        assert_eq!(full.without_cable(), [("0000:00:14.0".to_owned(), "e1000e")]);
        assert_eq!(machine(&["virtio_net"], &[], Acceleration::Kvm).without_cable().len(), 1);
        assert_eq!(bare.host_file(), None);
    }

    #[test]
    fn what_a_shell_would_take_for_more_is_refused() {
        let image = Image { path: PathBuf::from("/vmlinuz") };
        for (append, memory) in [("a b", "2G"), ("$(reboot)", "2G"), ("quiet", "2G;x"), ("quiet", "2"), ("quiet", "0G")]
        {
            let made = Machine::new(image.clone(), &[], &[append.to_owned()], memory, 1, Acceleration::Kvm);
            assert!(matches!(made, Err(VmError::Arguments(_))), "{append} {memory}");
        }
    }
}
