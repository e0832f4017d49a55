//! `xdplab check`: validates files, and says what this host can run of them.

use serde::Serialize;
use xdplab::{
    host::ability,
    lab::{Cabling, NicChoice, cpu_remarks},
    program::{ProgramError, examine},
    record::LinkRecord,
    topology::{
        self, Diagnostic, Diagnostics, HostFile, LoadError, Topology,
        preflight::{self, Warning},
    },
};

use crate::{
    cli::{CheckArgs, Format},
    failure::{Failure, chain, chain_and_fix, render},
    nics, output,
};

/// What was found in one file.
#[derive(Debug, Serialize)]
struct Checked {
    file: String,
    lab: Option<String>,
    nodes: usize,
    links: usize,
    programs: usize,
    scenarios: usize,
    errors: Vec<Problem>,
    warnings: Vec<Problem>,
    /// What its cables would be made of here.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    cables: Vec<LinkRecord>,
    /// What is to be said of that, and of the CPUs that would send and receive.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    remarks: Vec<String>,
    /// Why this host can't run it, where it can't.
    #[serde(skip_serializing_if = "Option::is_none")]
    refusal: Option<String>,
    /// The exit code of that.
    #[serde(skip)]
    code: u8,
}

impl Checked {
    /// Finds out which NICs its cables would be made of, and which CPUs would be at work.
    /// `told` is what the file's own drivers are warned of.
    fn cable(&mut self, topology: &Topology, (choice, host): (NicChoice, &HostFile), told: &[Warning], format: Format) {
        let cabled = Cabling::choose(topology, choice, host).and_then(|cabling| {
            let remarks = cpu_remarks(topology, &cabling)?;
            Ok((cabling, remarks))
        });
        match cabled {
            Ok((cabling, remarks)) => {
                let of_nics = cabling.warnings(topology);
                let fatal = of_nics.iter().filter(|warning| warning.kind.is_fatal());
                let fatal: Vec<String> = fatal.map(|warning| warning.diagnostic.message.clone()).collect();
                self.refuse((!fatal.is_empty()).then(|| (fatal.join("; "), 5)));
                // That was shown above, with its place.
                let is_told = |new: &Warning| told.iter().any(|old| (old.kind, old.port) == (new.kind, new.port));
                let new = of_nics.into_iter().filter(|warning| !is_told(warning));
                self.warnings.extend(problems(&show(topology, &new.collect::<Vec<_>>(), format)));
                self.cables = cabling.links(topology).into_iter().filter(|link| link.nics.is_some()).collect();
                self.remarks.clone_from(&cabling.notes);
                self.remarks.extend(remarks);
            }
            // A file may ask for what no NIC has: an offload of that name.
            Err(error) => self.refuse(Some((chain(&error), Failure::Lab(error).exit_code()))),
        }
    }

    fn refuse(&mut self, why: Option<(String, u8)>) {
        (self.refusal, self.code) = why.map_or((None, 0), |(why, code)| (Some(why), code));
    }

    /// The same in words.
    fn text(&self) -> String {
        let mut text = String::new();
        for link in &self.cables {
            let nics = link.nics.as_deref().unwrap_or_default().join(" -- ");
            text += &format!("  {}: {nics}, {}\n", link.ends.join(" -- "), link.made_of);
        }
        for remark in &self.remarks {
            text += &format!("  note: {remark}\n");
        }
        if let Some(refusal) = &self.refusal {
            text += &format!("  this host can't run it: {refusal}\n");
        }
        text
    }
}

/// One error or warning.
#[derive(Debug, Serialize)]
struct Problem {
    line: usize,
    column: usize,
    message: String,
    fix: Option<String>,
}

/// Checks the files.
pub(crate) fn check(args: &CheckArgs) -> Result<u8, Failure> {
    let host = nics::host_file(args.nics.host.as_deref())?;
    let mut results = Vec::new();
    let mut wrong = false;
    for file in &args.files {
        let mut checked = Checked {
            file: file.display().to_string(),
            lab: None,
            nodes: 0,
            links: 0,
            programs: 0,
            scenarios: 0,
            errors: Vec::new(),
            warnings: Vec::new(),
            cables: Vec::new(),
            remarks: Vec::new(),
            refusal: None,
            code: 0,
        };
        match topology::load(file) {
            Ok(topology) => {
                checked.lab = Some(topology.name.clone());
                checked.nodes = topology.nodes.len();
                checked.links = topology.links.len();
                checked.programs = topology.programs.len();
                checked.scenarios = topology.scenarios.len();
                let objects = look_into_objects(&topology);
                if !objects.items.is_empty() {
                    wrong = true;
                    if args.format == Format::Text {
                        eprintln!("{}", render(&objects).trim_end());
                    }
                    checked.errors = problems(&objects);
                }
                let mut warnings = preflight::warnings(&topology);
                let of_drivers = preflight::driver_warnings(&topology);
                warnings.extend(of_drivers.iter().cloned());
                checked.warnings = problems(&show(&topology, &warnings, args.format));
                checked.cable(&topology, (nics::choice(args.nics.nics), &host), &of_drivers, args.format);
            }
            Err(LoadError::Invalid(diagnostics)) => {
                wrong = true;
                if args.format == Format::Text {
                    eprintln!("{}", render(&diagnostics).trim_end());
                }
                checked.errors = problems(&diagnostics);
            }
            Err(error) => {
                wrong = true;
                if args.format == Format::Text {
                    eprintln!("error: {}", chain_and_fix(&error, error.fix()));
                }
                checked.errors.push(Problem { line: 0, column: 0, message: chain(&error), fix: error.fix() });
            }
        }
        results.push(checked);
    }
    let missing: Vec<_> = ability::missing_for_labs();
    match args.format {
        Format::Json => output::print_json(&results)?,
        Format::Text => {
            let mut text = String::new();
            for c in results.iter().filter(|c| c.errors.is_empty()) {
                text += &format!(
                    "{}: ok: {}, {}, {}, {}\n",
                    c.file,
                    counted(c.nodes, "node"),
                    counted(c.links, "link"),
                    counted(c.programs, "program"),
                    counted(c.scenarios, "scenario")
                );
                text += &c.text();
            }
            for ability in &missing {
                text += &format!("this host lacks {}: {}\n", ability.name, ability.detail);
                if let Some(fix) = &ability.fix {
                    text += &format!("  fix: {fix}\n");
                }
            }
            output::print(&text)?;
        }
    }
    let codes = || results.iter().map(|checked| checked.code);
    Ok(if wrong || codes().any(|code| code == 2) {
        2
    } else if missing.is_empty() && codes().all(|code| code == 0) {
        0
    } else {
        5
    })
}

/// Shows warnings with their source lines, where text is wanted.
fn show(topology: &Topology, warnings: &[Warning], format: Format) -> Diagnostics {
    let shown = preflight::render(topology, warnings);
    if format == Format::Text && !shown.items.is_empty() {
        eprintln!("{shown}");
    }
    shown
}

fn problems(diagnostics: &Diagnostics) -> Vec<Problem> {
    let problem = |item: &topology::Diagnostic| {
        let (line, column) = diagnostics.line_column(&item.span);
        Problem { line, column, message: item.message.clone(), fix: item.help.clone() }
    };
    diagnostics.items.iter().map(problem).collect()
}

fn counted(n: usize, what: &str) -> String {
    format!("{n} {what}{}", if n == 1 { "" } else { "s" })
}

/// What the objects lack of what the file asks of them, where the file names each object.
fn look_into_objects(topology: &Topology) -> Diagnostics {
    let own = topology.programs.iter().zip(&topology.spans.programs).map(|(program, spans)| (&program.body, spans));
    let scenarios = topology.scenarios.iter().zip(&topology.spans.scenarios);
    let instead = scenarios.flat_map(|(scenario, spans)| {
        scenario.programs.iter().zip(&spans.programs).map(|((_, body), spans)| (body, spans))
    });
    let items = own.chain(instead).filter_map(|(body, spans)| {
        let error = examine(body).err()?;
        let (span, label) = match &spans.object {
            Some(object) => (object.clone(), "this object"),
            None => (spans.name.clone(), "this program"),
        };
        Some(match error {
            ProgramError::Unreadable { path, source } => {
                Diagnostic::error(span, format!("read the object {}\n  because: {source}", path.display()))
                    .label(label)
                    .help("build it, or correct `object` (paths are relative to this file)")
            }
            error => Diagnostic::error(span, chain(&error)).label(label),
        })
    });
    Diagnostics::new(&topology.path, &topology.spans.text, items.collect())
}
