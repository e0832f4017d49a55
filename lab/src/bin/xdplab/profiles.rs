//! The files of `run --profile`: folded stacks and a flame graph of each profiled scenario.

use std::{collections::HashSet, fs, path::Path};

use xdplab::{
    record::{Report, bench::BenchReport, profile::Profile},
    report::profile,
};

use crate::failure::Failure;

/// Makes the directory, before anything is run for it.
pub(crate) fn prepare(directory: &Path) -> Result<(), Failure> {
    fs::create_dir_all(directory)
        .map_err(|error| Failure::Host(format!("make the directory {} for profiles: {error}", directory.display())))
}

/// Writes the files of a benchmark: `BENCH.PATH.folded` and `.svg`.
pub(crate) fn write_bench(directory: &Path, report: &BenchReport) -> Result<(), Failure> {
    let mut used = HashSet::new();
    for path in &report.profiles {
        let stem = stem(&["bench", &path.name], &mut used);
        write_one(directory, &stem, &path.profile, &path.name)?;
    }
    eprintln!("{} files of profiles in {}", 2 * used.len(), directory.display());
    Ok(())
}

fn write_one(directory: &Path, stem: &str, profiled: &Profile, title: &str) -> Result<(), Failure> {
    let files = [("folded", profile::folded(profiled)), ("svg", profile::flame_graph(profiled, title))];
    for (extension, text) in files {
        let path = directory.join(format!("{stem}.{extension}"));
        fs::write(&path, text).map_err(|error| Failure::Host(format!("write {}: {error}", path.display())))?;
    }
    Ok(())
}

/// Writes the files of a report: `LAB.SCENARIO.MODE.folded` and `.svg`.
pub(crate) fn write(directory: &Path, report: &Report) -> Result<(), Failure> {
    let mut used = HashSet::new();
    for s in &report.scenarios {
        let Some(profiled) = &s.profile else { continue };
        let title = format!("{}: {} ({})", report.lab, s.name, s.mode);
        let stem = stem(&[&report.lab, &s.name, &s.mode.to_string()], &mut used);
        write_one(directory, &stem, profiled, &title)?;
    }
    match used.len() {
        0 => eprintln!("{}: nothing was profiled: only scenarios with `perf`, which are priced, are", report.lab),
        n => eprintln!("{}: {} files of profiles in {}", report.lab, 2 * n, directory.display()),
    }
    Ok(())
}

/// A file's name made of some names: what a shell or a file system would mind becomes `_`, and no two are alike.
fn stem(names: &[&str], used: &mut HashSet<String>) -> String {
    let safe = |name: &&str| {
        let words = name.split(|c: char| !(c.is_alphanumeric() || c == '-' || c == '_'));
        words.map(|word| word.trim_matches('-')).filter(|word| !word.is_empty()).collect::<Vec<_>>().join("_")
    };
    let stem = names.iter().map(safe).collect::<Vec<_>>().join(".");
    let mut candidate = stem.clone();
    let mut n = 1;
    while !used.insert(candidate.clone()) {
        n += 1;
        candidate = format!("{stem}.{n}");
    }
    candidate
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_become_file_names_that_no_shell_minds_and_no_two_of_which_are_alike() {
        let mut used = HashSet::new();
        assert_eq!(stem(&["lab", "redirect_map veth->veth", "native"], &mut used), "lab.redirect_map_veth_veth.native");
        assert_eq!(stem(&["lab", "../a|b", "native"], &mut used), "lab.a_b.native");
        assert_eq!(stem(&["lab", "a b", "native"], &mut used), "lab.a_b.native.2");
    }
}
