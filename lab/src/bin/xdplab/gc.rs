//! `xdplab gc`: removes what dead labs left behind.

use xdplab::{host::journal, lab::LabError};

use crate::{
    cli::{Format, TableArgs},
    failure::Failure,
    output,
};

/// Removes what dead labs left.
pub(crate) fn gc(args: &TableArgs) -> Result<u8, Failure> {
    need_root()?;
    let collected = journal::gc().map_err(LabError::from)?;
    match args.format {
        Format::Json => output::print_json(&collected)?,
        Format::Text if collected.is_empty() => output::print("nothing to remove\n")?,
        Format::Text => {
            let mut text = String::new();
            for lab in &collected {
                text += &format!("{}: {}\n", lab.name, lab.removed.join(", "));
                for error in &lab.errors {
                    text += &format!("  left: {error}\n");
                }
            }
            output::print(&text)?;
        }
    }
    Ok(if collected.iter().all(|lab| lab.errors.is_empty()) { 0 } else { 5 })
}

/// Clears away dead labs before a new one is made, so that a crash never blocks the next run. Its own trouble is not
/// the caller's: `gc` says what it is.
pub(crate) fn quietly() {
    drop(journal::gc());
}

/// Refuses early, in one sentence, what would fail late without root.
pub(crate) fn need_root() -> Result<(), Failure> {
    if xdplab::host::is_root() {
        return Ok(());
    }
    Err(Failure::Host(
        "a lab needs root: namespaces, links and XDP programs take CAP_SYS_ADMIN, CAP_NET_ADMIN and CAP_BPF in the \
         initial user namespace. Run the same command with sudo"
            .into(),
    ))
}
