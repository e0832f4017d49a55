//! What ends a verb early, how it is shown, and the exit code that it maps to.

use std::{error::Error, fmt, io};

use miette::{GraphicalReportHandler, GraphicalTheme, LabeledSpan, MietteDiagnostic, NamedSource, Report, Severity};
use xdplab::{
    lab::LabError,
    topology::{self, Diagnostics, LoadError},
};

/// What ends a verb early.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The reader of our output went away.
    BrokenPipe,
    /// A topology file is wrong.
    File(LoadError),
    /// A lab could not be made or run.
    Lab(LabError),
    /// The arguments ask for what is not there.
    Usage(String),
    /// The host lacks something.
    Host(String),
    /// A signal asked for the end.
    Interrupted,
    /// Not expected: a bug of ours.
    Bug(String),
}

impl From<LabError> for Failure {
    fn from(error: LabError) -> Self {
        Self::Lab(error)
    }
}

impl From<LoadError> for Failure {
    fn from(error: LoadError) -> Self {
        Self::File(error)
    }
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        if error.kind() == io::ErrorKind::BrokenPipe { Self::BrokenPipe } else { Self::Host(format!("write: {error}")) }
    }
}

impl Failure {
    /// The documented exit code.
    pub(crate) fn exit_code(&self) -> u8 {
        match self {
            Self::BrokenPipe => 0,
            Self::File(_) | Self::Usage(_) => 2,
            Self::Lab(error) => {
                if error.is_of_the_input() {
                    2
                } else {
                    5
                }
            }
            Self::Host(_) => 5,
            Self::Interrupted => 130,
            Self::Bug(_) => 70,
        }
    }

    /// Shows it on standard error.
    pub(crate) fn print(&self) {
        match self {
            Self::BrokenPipe => {}
            Self::File(LoadError::Invalid(diagnostics)) => eprintln!("{}", render(diagnostics).trim_end()),
            Self::File(error) => eprintln!("error: {}", chain_and_fix(error, error.fix())),
            Self::Lab(error) => eprintln!("error: {}", chain(error)),
            Self::Usage(text) | Self::Host(text) => eprintln!("error: {text}"),
            Self::Interrupted => eprintln!("interrupted"),
            Self::Bug(text) => eprintln!("xdplab has a bug: {text}\nPlease report it with the command and the file."),
        }
    }
}

/// An error and its sources, one a line.
pub(crate) fn chain(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(error) = source {
        text.push_str("\n  because: ");
        text.push_str(&error.to_string().replace('\n', "\n  "));
        source = error.source();
    }
    text
}

/// An error and its sources, and what to do, one a line.
pub(crate) fn chain_and_fix(error: &dyn Error, fix: Option<impl fmt::Display>) -> String {
    let fix = fix.map(|fix| format!("\n  fix: {fix}")).unwrap_or_default();
    chain(error) + &fix
}

/// All errors of a file, with carets on a terminal and off.
pub(crate) fn render(diagnostics: &Diagnostics) -> String {
    let terminal = io::IsTerminal::is_terminal(&io::stderr());
    if !terminal {
        return diagnostics.to_string();
    }
    let handler = GraphicalReportHandler::new_themed(GraphicalTheme::unicode()).with_width(100);
    let mut text = String::new();
    let diagnostics = &diagnostics.harmless();
    for item in &diagnostics.items {
        let own = LabeledSpan::new_primary_with_span(Some(item.label.clone()), item.span.clone());
        let others = item.related.iter().map(|other| LabeledSpan::at(other.span.clone(), other.label.clone()));
        let diagnostic = MietteDiagnostic {
            message: item.message.clone(),
            code: None,
            severity: Some(match item.severity {
                topology::Severity::Error => Severity::Error,
                topology::Severity::Warning => Severity::Warning,
            }),
            help: item.help.clone(),
            url: None,
            labels: Some(std::iter::once(own).chain(others).collect()),
        };
        let source = NamedSource::new(diagnostics.path.display().to_string(), diagnostics.text.clone());
        let report = Report::new(diagnostic).with_source_code(source);
        if handler.render_report(&mut text, report.as_ref()).is_err() {
            return diagnostics.to_string();
        }
    }
    text + &diagnostics.count()
}

/// A panic is a bug of ours: it says so, and exits with 70 once what the lab holds was dropped.
pub(crate) fn install_panic_hook() {
    let default = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |info| {
        eprintln!("xdplab has a bug; please report it with the command and the file:");
        default(info);
    }));
}
