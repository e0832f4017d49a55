//! The hypervisor's signature.

/// What the hypervisor calls itself, such as `KVMKVMKVM`; `None` where nothing answers, or the processor is no x86.
///
/// CPUID leaf `0x4000_0000`, which hypervisors keep for this (`arch/x86/include/asm/cpuid/api.h`,
/// `cpuid_base_hypervisor`). Ask only where the processor says that there is one: the leaf is not defined otherwise.
#[cfg(target_arch = "x86_64")]
pub fn signature() -> Option<String> {
    let leaf = std::arch::x86_64::__cpuid(0x4000_0000);
    let bytes: Vec<u8> = [leaf.ebx, leaf.ecx, leaf.edx].iter().flat_map(|word| word.to_le_bytes()).collect();
    let text: String = bytes.iter().take_while(|b| **b != 0).map(|b| *b as char).collect();
    Some(text.trim().to_owned())
        .filter(|text| !text.is_empty() && text.chars().all(|c| c.is_ascii_graphic() || c == ' '))
}

/// Whether the processor is made up by qemu (TCG): what its instructions take says nothing of any real one.
pub fn is_emulated() -> bool {
    signature().as_deref() == Some("TCGTCGTCGTCG")
}

/// None is known elsewhere.
#[cfg(not(target_arch = "x86_64"))]
pub fn signature() -> Option<String> {
    None
}
