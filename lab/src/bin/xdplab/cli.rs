//! The command line: verbs, arguments, and the help with its examples.

use std::{ffi::OsString, path::PathBuf};

use clap::{Args, Parser, Subcommand, ValueEnum};
use clap_complete::Shell;
use xdplab::vm::NicRequest;

const EXIT_CODES: &str = "\
Exit codes:
  0    everything held
  1    a check failed
  2    the file, the arguments or an object are wrong
  3    slower than the baseline by more than the budget
  4    inconclusive
  5    the host lacks something, or everything was skipped
  70   a bug of xdplab
  130  interrupted
Of several the worst counts: 2, 5, 1, 3, 4. `exec` passes its command's code through.";

/// Integration-test lab for XDP: one TOML file, one command, real frames.
#[derive(Debug, Parser)]
#[command(name = "xdplab", version, max_term_width = 100, after_help = EXIT_CODES, propagate_version = true)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) verb: Verb,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Verb {
    /// Validates topology files and says what this host can run of them.
    #[command(after_help = "Examples:\n  xdplab check topologies/*.toml\n  xdplab check lab.toml --format json")]
    Check(CheckArgs),
    /// Builds a lab that outlives the command.
    #[command(
        after_help = "Examples:\n  xdplab up topologies/i40e-veth.toml\n  xdplab inspect i40e-veth\n  xdplab exec i40e-veth dut -- ip -br link\n  xdplab down i40e-veth"
    )]
    Up(UpArgs),
    /// Takes a lab away, and everything that it made.
    #[command(after_help = "Examples:\n  xdplab down i40e-veth\n  xdplab down --all")]
    Down(DownArgs),
    /// Lists the labs that are up.
    #[command(after_help = "Examples:\n  xdplab ls\n  xdplab ls --format json")]
    Ls(TableArgs),
    /// Shows a lab's nodes, ports, programs and counters.
    #[command(after_help = "Examples:\n  xdplab inspect i40e-veth\n  xdplab inspect i40e-veth --format json")]
    Inspect(InspectArgs),
    /// Runs a command in a node of a lab, with /sys of that node.
    #[command(
        after_help = "Examples:\n  xdplab exec i40e-veth dut -- ip -br address\n  xdplab exec i40e-veth gen -- sh"
    )]
    Exec(ExecArgs),
    /// Builds the topology, runs every scenario, reports, and takes it down.
    #[command(
        after_help = "Examples:\n  xdplab run topologies/i40e-veth.toml\n  xdplab run topologies/*.toml --format json > report.json\n  xdplab run lab.toml --scenario 'drop at dut' --frames 100000000"
    )]
    Run(RunArgs),
    /// Compares two topologies, objects, values of a global, kernels, or reports: a verdict in nanoseconds.
    #[command(
        after_help = "Examples:\n  xdplab compare old.toml new.toml --budget 1\n  xdplab compare lab.toml lab.toml --b programs.mine.globals.LIMIT=200\n  xdplab compare old.bpf.o new.bpf.o --program xdp_main --budget 0.5 --format cover-letter\n  xdplab compare old.bpf.o new.bpf.o --topology lab.toml --replace mine\n  xdplab compare before.json after.json\n  xdplab compare --kernel kernels/6.1 --kernel kernels/6.12 lab.toml\n  xdplab compare --kernel kernels/6.12 --kernel kernels/6.12 --append-b mitigations=off lab.toml\n  git bisect run sh -c 'make && xdplab compare good.bpf.o new.bpf.o --budget 2 --bisect'"
    )]
    Compare(Box<CompareArgs>),
    /// Stores a report, its topology and its objects as the baseline that `budget-ns` binds against.
    #[command(
        after_help = "Examples:\n  xdplab run lab.toml --format json > report.json && xdplab accept report.json\n  xdplab accept report.json --baselines ci/baselines"
    )]
    Accept(AcceptArgs),
    /// Finds this machine's noise floor, and shows which slowdowns it finds in which time.
    #[command(after_help = "Examples:\n  xdplab calibrate\n  xdplab calibrate --seconds 60 --extra 4 --format json")]
    Calibrate(CalibrateArgs),
    /// Runs a micro-benchmark and prints it beside the published figures.
    #[command(
        after_help = "Examples:\n  xdplab bench dispatcher\n  xdplab bench dispatcher --entries 60 --format json > dispatcher.json\n  xdplab bench broadcast --targets 3 --inner drop\n  xdplab bench traits --format md >> $GITHUB_STEP_SUMMARY\n  xdplab bench flow --key-bytes 16 --key-bytes 40 --flows 10000"
    )]
    Bench(BenchArgs),
    /// Renders a report that `run`, `compare`, `calibrate` or `bench` wrote with `--format json`.
    #[command(
        after_help = "Examples:\n  xdplab report report.json\n  xdplab report report.json --format md >> $GITHUB_STEP_SUMMARY\n  xdplab report compare.json --format cover-letter"
    )]
    Report(ReportArgs),
    /// Shows how costs changed over stored reports of runs: for reading, never a gate.
    #[command(
        after_help = "Examples:\n  xdplab history results/\n  xdplab history i40e-veth --scenario 'drop at dut'\n  xdplab history results/ --format svg > history.svg"
    )]
    History(HistoryArgs),
    /// Draws a topology.
    #[command(
        after_help = "Examples:\n  xdplab graph topologies/i40e-veth.toml\n  xdplab graph lab.toml --format svg > lab.svg"
    )]
    Graph(GraphArgs),
    /// Shows the host's NICs, and whether a lab may take them. Changes nothing, unless it is to discover cables.
    #[command(
        after_help = "Examples:\n  xdplab nics\n  xdplab nics -v\n  xdplab nics --for topologies/i40e-veth.toml\n  xdplab nics --host my-host.toml --format json\n  xdplab nics --discover"
    )]
    Nics(NicsArgs),
    /// Runs a command of xdplab under another kernel: in a virtual machine, with NICs and cables of its own.
    #[command(
        after_help = "What the command writes into the working directory stays; all else that it writes goes with the machine.\n\nExamples:\n  xdplab vm --kernel /boot/vmlinuz-6.12.0-amd64 -- run lab.toml\n  xdplab vm --kernel kernels/6.12 --nic virtio_net:2 -- nics\n  xdplab vm --kernel kernels/6.1 --append mitigations=off -- bench dispatcher --format json > off.json\n  xdplab vm --kernel kernels/6.1 --program target/debug/deps/my_tests-0123abcd -- --test-threads 2"
    )]
    Vm(VmArgs),
    /// Shows what this host can do for a lab, for `xdplab vm` and with its NICs, and which command fixes what it can't.
    #[command(after_help = "Examples:\n  xdplab doctor\n  xdplab doctor --format json")]
    Doctor(TableArgs),
    /// Removes what dead labs left behind.
    #[command(after_help = "Examples:\n  xdplab gc")]
    Gc(TableArgs),
    /// Prints the JSON Schema of topology files.
    #[command(after_help = "Examples:\n  xdplab schema > topology.schema.json")]
    Schema,
    /// Prints a completion script for a shell.
    #[command(after_help = "Examples:\n  xdplab completions bash > /etc/bash_completion.d/xdplab")]
    Completions(CompletionsArgs),
    /// Prints the manual page.
    #[command(after_help = "Examples:\n  xdplab man > /usr/local/share/man/man1/xdplab.1")]
    Man,
}

/// How a table is printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub(crate) enum Format {
    /// For people.
    #[default]
    Text,
    /// For machines.
    Json,
}

/// What cables are made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub(crate) enum Nics {
    /// NICs that the host file offers, where they fit; veth pairs that stand in for them where not, and the report says so.
    #[default]
    Auto,
    /// Veth pairs.
    Virtual,
    /// NICs that the host file offers, or an error.
    Physical,
}

/// Which NICs a lab may be made of.
#[derive(Debug, Args)]
pub(crate) struct NicArgs {
    /// What cables are made of.
    #[arg(long, value_enum, default_value_t)]
    pub(crate) nics: Nics,
    /// The host file, which names the NICs that labs may take and how they are cabled; /etc/xdplab/host.toml unless given.
    #[arg(long, value_name = "FILE")]
    pub(crate) host: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct TableArgs {
    /// How the result is printed.
    #[arg(long, value_enum, default_value_t)]
    pub(crate) format: Format,
}

#[derive(Debug, Args)]
pub(crate) struct NicsArgs {
    /// The host's inventory: labels of NICs and the cables between them; /etc/xdplab/host.toml unless given, if it is there.
    #[arg(long, value_name = "FILE")]
    pub(crate) host: Option<PathBuf>,
    /// Says which of them fit the cables of this topology, and if none do, what each failed.
    #[arg(long = "for", value_name = "TOPOLOGY")]
    pub(crate) topology: Option<PathBuf>,
    /// Finds which ports are cabled together, and says what to add to the host file. Takes every NIC that a lab may take for
    /// some seconds, sends marked frames from each, and gives all back as they were. A switch that joins just two looks like
    /// a cable.
    #[arg(long, conflicts_with_all = ["topology", "all", "verbose"])]
    pub(crate) discover: bool,
    /// Devices without a PCI device too, such as bridges and veth pairs, which are no NICs.
    #[arg(long, short)]
    pub(crate) all: bool,
    /// Everything that is known of each, and of its driver.
    #[arg(long, short)]
    pub(crate) verbose: bool,
    /// How the result is printed.
    #[arg(long, value_enum, default_value_t)]
    pub(crate) format: Format,
}

#[derive(Debug, Args)]
pub(crate) struct CheckArgs {
    /// Topology files.
    #[arg(required = true, value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,
    #[command(flatten)]
    pub(crate) nics: NicArgs,
    /// How the result is printed.
    #[arg(long, value_enum, default_value_t)]
    pub(crate) format: Format,
}

#[derive(Debug, Args)]
pub(crate) struct UpArgs {
    /// The topology file.
    pub(crate) file: PathBuf,
    #[command(flatten)]
    pub(crate) nics: NicArgs,
    /// How the result is printed.
    #[arg(long, value_enum, default_value_t)]
    pub(crate) format: Format,
}

#[derive(Debug, Args)]
pub(crate) struct DownArgs {
    /// The labs' names.
    #[arg(required_unless_present = "all", value_name = "LAB")]
    pub(crate) labs: Vec<String>,
    /// Every persistent lab.
    #[arg(long, conflicts_with = "labs")]
    pub(crate) all: bool,
    /// How the result is printed.
    #[arg(long, value_enum, default_value_t)]
    pub(crate) format: Format,
}

#[derive(Debug, Args)]
pub(crate) struct InspectArgs {
    /// The lab's name.
    pub(crate) lab: String,
    /// How the result is printed.
    #[arg(long, value_enum, default_value_t)]
    pub(crate) format: Format,
}

#[derive(Debug, Args)]
pub(crate) struct ExecArgs {
    /// The lab's name.
    pub(crate) lab: String,
    /// The node's name.
    pub(crate) node: String,
    /// The command and its arguments, behind `--`.
    #[arg(required = true, last = true, value_name = "CMD")]
    pub(crate) command: Vec<OsString>,
}

#[derive(Debug, Args)]
pub(crate) struct RunArgs {
    /// Topology files.
    #[arg(required = true, value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,
    /// Only the scenario of this name; may be given several times.
    #[arg(long = "scenario", value_name = "NAME")]
    pub(crate) scenarios: Vec<String>,
    /// Frames of the correctness phase, in place of the file's.
    #[arg(long, value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) frames: Option<u64>,
    /// Batch of the `live` engine, in place of the file's.
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=256))]
    pub(crate) batch: Option<u32>,
    /// Leaves pricing out: correctness only.
    #[arg(long)]
    pub(crate) no_pricing: bool,
    /// Where accepted baselines are, against which `budget-ns` binds.
    #[arg(long, value_name = "DIR", default_value = xdplab::baseline::FOLDER)]
    pub(crate) baselines: PathBuf,
    /// A baseline of another fingerprint will do, where there is none of this one.
    #[arg(long)]
    pub(crate) across: bool,
    /// Samples where the time goes, after pricing; puts folded stacks and a flame graph of each priced scenario into DIR.
    #[arg(
        long,
        value_name = "DIR",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "xdplab-profile",
        conflicts_with = "no_pricing"
    )]
    pub(crate) profile: Option<PathBuf>,
    /// Shows every ledger and check, not only those of scenarios that did not pass.
    #[arg(long, short)]
    pub(crate) verbose: bool,
    #[command(flatten)]
    pub(crate) nics: NicArgs,
    /// How the report is printed.
    #[arg(long, value_enum, default_value_t)]
    pub(crate) format: Format,
}

#[derive(Debug, Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of the command line")]
pub(crate) struct CompareArgs {
    /// The baseline: a topology (.toml), a report (.json) or an object; with `--kernel`, the topology to run under both.
    pub(crate) a: PathBuf,
    /// The candidate, of the same kind.
    #[arg(required_unless_present = "kernel", conflicts_with = "kernel")]
    pub(crate) b: Option<PathBuf>,
    /// A kernel that the topology is run under, in virtual machines: the baseline, and once more the candidate.
    #[arg(long, value_name = "IMAGE", conflicts_with_all = ["topology", "change_a", "change_b", "no_reload", "across"])]
    pub(crate) kernel: Vec<PathBuf>,
    /// Boots of each kernel, which take turns; 6 at least.
    #[arg(long, value_name = "N", default_value_t = 6, requires = "kernel")]
    pub(crate) boots: usize,
    /// Adds an argument to both kernels' command lines; may be given several times.
    #[arg(long, value_name = "ARGUMENT", requires = "kernel")]
    pub(crate) append: Vec<String>,
    /// Adds an argument to the baseline's.
    #[arg(long, value_name = "ARGUMENT", requires = "kernel")]
    pub(crate) append_a: Vec<String>,
    /// Adds an argument to the candidate's.
    #[arg(long, value_name = "ARGUMENT", requires = "kernel")]
    pub(crate) append_b: Vec<String>,
    /// Adds NICs to the machines, as `xdplab vm` does: one without `:N`, and an odd one has no cable.
    #[arg(long, value_name = "DRIVER[:N]", requires = "kernel")]
    pub(crate) nic: Vec<NicRequest>,
    /// Memory of the machines.
    #[arg(long, default_value = "2G", requires = "kernel")]
    pub(crate) memory: String,
    /// Processors of the machines.
    #[arg(long, default_value_t = 2, requires = "kernel", value_parser = clap::value_parser!(u32).range(1..=255))]
    pub(crate) cpus: u32,
    /// What the candidate may cost more, in nanoseconds a packet; without it the comparison only reports.
    #[arg(long, value_name = "NS")]
    pub(crate) budget: Option<f64>,
    /// The candidate may not be faster by more than the budget either.
    #[arg(long, requires = "budget")]
    pub(crate) within: bool,
    /// A change of the baseline's topology: `path.to.key=VALUE`; may be given several times.
    #[arg(long = "a", value_name = "KEY=VALUE")]
    pub(crate) change_a: Vec<String>,
    /// A change of the candidate's topology.
    #[arg(long = "b", value_name = "KEY=VALUE")]
    pub(crate) change_b: Vec<String>,
    /// The topology in which objects are compared, in place of the program that `--replace` names.
    #[arg(long, value_name = "FILE", requires = "replace")]
    pub(crate) topology: Option<PathBuf>,
    /// The program of the topology that objects stand in for.
    #[arg(long, value_name = "PROGRAM", requires = "topology")]
    pub(crate) replace: Option<String>,
    /// The program in the objects; needed where they have several.
    #[arg(long)]
    pub(crate) program: Option<String>,
    /// Only the scenario of this name; may be given several times.
    #[arg(long = "scenario", value_name = "NAME")]
    pub(crate) scenarios: Vec<String>,
    /// Longest measuring, in seconds.
    #[arg(long, default_value_t = 60.0)]
    pub(crate) seconds: f64,
    /// Most reloads.
    #[arg(long, default_value_t = 256)]
    pub(crate) reloads: usize,
    /// Where all random orders and paddings start from; from the clock unless given.
    #[arg(long)]
    pub(crate) seed: Option<u64>,
    /// Loads programs once only: a negative control, which takes code placement for a difference.
    #[arg(long)]
    pub(crate) no_reload: bool,
    /// Leaves the noise floor out, and takes any budget.
    #[arg(long)]
    pub(crate) no_floor: bool,
    /// Compares reports whose fingerprints differ, and says so in every line.
    #[arg(long)]
    pub(crate) across: bool,
    #[command(flatten)]
    pub(crate) nics: NicArgs,
    /// Exit codes for `git bisect run`: 0 good, 1 regressed, 125 can't be judged.
    #[arg(long)]
    pub(crate) bisect: bool,
    /// How the result is printed.
    #[arg(long, value_enum, default_value_t)]
    pub(crate) format: CompareFormat,
}

#[derive(Debug, Args)]
pub(crate) struct AcceptArgs {
    /// The report, as `run --format json` wrote it.
    pub(crate) report: PathBuf,
    /// Where baselines are stored.
    #[arg(long, value_name = "DIR", default_value = xdplab::baseline::FOLDER)]
    pub(crate) baselines: PathBuf,
}

/// How a comparison is printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub(crate) enum CompareFormat {
    /// For people.
    #[default]
    Text,
    /// A Markdown table.
    Md,
    /// Plain text of 72 columns, for a patch's cover letter.
    CoverLetter,
    /// For machines.
    Json,
}

#[derive(Debug, Args)]
pub(crate) struct CalibrateArgs {
    /// Longest comparison of a program with itself, in seconds.
    #[arg(long, default_value_t = 20.0)]
    pub(crate) seconds: f64,
    /// Steps of extra work of a known slowdown; may be given several times.
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub(crate) extra: Vec<u32>,
    /// Where all random orders and paddings start from; from the clock unless given.
    #[arg(long)]
    pub(crate) seed: Option<u64>,
    /// How the result is printed.
    #[arg(long, value_enum, default_value_t)]
    pub(crate) format: BenchFormat,
}

#[derive(Debug, Args)]
pub(crate) struct BenchArgs {
    #[command(subcommand)]
    pub(crate) name: BenchName,
}

/// The benchmarks.
#[derive(Debug, Subcommand)]
pub(crate) enum BenchName {
    /// One run of a program by the number of programs attached, and where the kernel's dispatcher ends.
    Dispatcher(DispatcherArgs),
    /// `redirect_map` and broadcast to one port and to several: copies, clones, and what each further clone costs.
    Broadcast(BroadcastArgs),
    /// Dropping frames: native and generic, by touch level, by one queue and by several.
    Drop(PathArgs),
    /// `redirect_map` to one port: native and generic, by kind of map, with and without an egress program.
    Redirect(PathArgs),
    /// A key-value store in the packet's metadata: what operations cost, where it survives, how much room it has.
    Traits(PathArgs),
    /// Flow lookups by key length, number of flows and kind of map, found and not found.
    Flow(FlowArgs),
}

#[derive(Debug, Args)]
pub(crate) struct DispatcherArgs {
    /// Samples where the time goes in runs of one program; puts folded stacks and flame graphs into DIR.
    #[arg(long, value_name = "DIR", num_args = 0..=1, require_equals = true, default_missing_value = "xdplab-profile")]
    pub(crate) profile: Option<PathBuf>,
    /// Programs to attach, one after the other; 50 unless given.
    #[arg(long, value_parser = clap::value_parser!(u32).range(2..=256))]
    pub(crate) entries: Option<u32>,
    /// How the result is printed.
    #[arg(long, value_enum, default_value_t)]
    pub(crate) format: BenchFormat,
}

#[derive(Debug, Args)]
pub(crate) struct BroadcastArgs {
    /// Fewer rounds and windows: wider intervals, the same checks.
    #[arg(long)]
    pub(crate) quick: bool,
    /// Most targets of the matrix.
    #[arg(long, default_value_t = 8, value_parser = clap::value_parser!(u32).range(2..=8))]
    pub(crate) targets: u32,
    /// What runs behind the targets; may be given several times, all three unless given.
    #[arg(long, value_enum)]
    pub(crate) inner: Vec<InnerName>,
    /// Size of the maps; as many slots as targets unless given.
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=65_536))]
    pub(crate) max_entries: Option<u32>,
    /// Samples where the time goes on two of the paths, and what differs; puts folded stacks and flame graphs into DIR.
    #[arg(long, value_name = "DIR", num_args = 0..=1, require_equals = true, default_missing_value = "xdplab-profile")]
    pub(crate) profile: Option<PathBuf>,
    /// How the result is printed.
    #[arg(long, value_enum, default_value_t)]
    pub(crate) format: BenchFormat,
}

#[derive(Debug, Args)]
pub(crate) struct PathArgs {
    /// Fewer rounds and windows: wider intervals, the same checks.
    #[arg(long)]
    pub(crate) quick: bool,
    /// Samples where the time goes on two of the paths, and what differs; puts folded stacks and flame graphs into DIR.
    #[arg(long, value_name = "DIR", num_args = 0..=1, require_equals = true, default_missing_value = "xdplab-profile")]
    pub(crate) profile: Option<PathBuf>,
    /// How the result is printed.
    #[arg(long, value_enum, default_value_t)]
    pub(crate) format: BenchFormat,
}

#[derive(Debug, Args)]
pub(crate) struct FlowArgs {
    /// Fewer rounds and windows: wider intervals, the same checks.
    #[arg(long)]
    pub(crate) quick: bool,
    /// Key length in bytes; may be given several times, all that there are unless given.
    #[arg(long = "key-bytes", value_name = "BYTES")]
    pub(crate) key_bytes: Vec<u32>,
    /// Most flows.
    #[arg(long, default_value_t = 1_000_000, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub(crate) flows: u32,
    /// Samples where the time goes on two of the paths, and what differs; puts folded stacks and flame graphs into DIR.
    #[arg(long, value_name = "DIR", num_args = 0..=1, require_equals = true, default_missing_value = "xdplab-profile")]
    pub(crate) profile: Option<PathBuf>,
    /// How the result is printed.
    #[arg(long, value_enum, default_value_t)]
    pub(crate) format: BenchFormat,
}

/// What runs behind the targets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum InnerName {
    /// No program: the stack takes the frame.
    Nothing,
    /// A program that passes it to the stack.
    Pass,
    /// A program that drops it.
    Drop,
}

/// How a benchmark's result is printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub(crate) enum BenchFormat {
    /// For people.
    #[default]
    Text,
    /// Markdown tables.
    Md,
    /// For machines.
    Json,
}

/// How a report is rendered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub(crate) enum ReportFormat {
    /// For people.
    #[default]
    Text,
    /// Markdown tables.
    Md,
    /// Plain text of at most 72 columns, to be pasted into a patch's cover letter: of `run` and `compare`.
    CoverLetter,
    /// One page with pictures, which needs no other file and no script.
    Html,
    /// `JUnit` XML: of `run`.
    Junit,
    /// As it was.
    Json,
}

#[derive(Debug, Args)]
pub(crate) struct ReportArgs {
    /// The report, as `--format json` of `run`, `compare`, `calibrate` or `bench` wrote it.
    pub(crate) file: PathBuf,
    /// Shows every ledger and check.
    #[arg(long, short)]
    pub(crate) verbose: bool,
    /// How it is rendered.
    #[arg(long, value_enum, default_value_t)]
    pub(crate) format: ReportFormat,
}

/// How a history is printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub(crate) enum HistoryFormat {
    /// For people.
    #[default]
    Text,
    /// Markdown tables.
    Md,
    /// A picture.
    Svg,
    /// For machines.
    Json,
}

#[derive(Debug, Args)]
pub(crate) struct HistoryArgs {
    /// A folder with reports of `xdplab run --format json`, or a lab's name: then the folder is the one that you are in.
    #[arg(value_name = "DIR_OR_LAB", default_value = ".")]
    pub(crate) place: PathBuf,
    /// Only the scenario of this name.
    #[arg(long, value_name = "NAME")]
    pub(crate) scenario: Option<String>,
    /// How it is printed.
    #[arg(long, value_enum, default_value_t)]
    pub(crate) format: HistoryFormat,
}

#[derive(Debug, Args)]
pub(crate) struct VmArgs {
    /// The kernel: an image, or the folder of an unpacked package with `boot` and `lib/modules`.
    #[arg(long, value_name = "IMAGE")]
    pub(crate) kernel: PathBuf,
    /// Adds NICs, cabled in pairs: `virtio_net:2`, `vmxnet3:2`, `e1000e:2`; may be given several times. Without `:N` it is
    /// one. An odd one has no cable, and no carrier.
    #[arg(long, value_name = "DRIVER[:N]")]
    pub(crate) nic: Vec<NicRequest>,
    /// Adds an argument to the kernel's command line; may be given several times.
    #[arg(long, value_name = "ARGUMENT")]
    pub(crate) append: Vec<String>,
    /// Memory of the machine.
    #[arg(long, default_value = "2G")]
    pub(crate) memory: String,
    /// Processors of the machine.
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u32).range(1..=255))]
    pub(crate) cpus: u32,
    /// Emulates the processor even where KVM works.
    #[arg(long)]
    pub(crate) emulate: bool,
    /// Runs this program in place of xdplab, such as a test suite's binary.
    #[arg(long, value_name = "FILE")]
    pub(crate) program: Option<PathBuf>,
    /// Shows the machine's console on standard error.
    #[arg(long, short)]
    pub(crate) verbose: bool,
    /// The command, as after `xdplab`.
    #[arg(last = true, required = true, value_name = "COMMAND")]
    pub(crate) command: Vec<OsString>,
}

/// How a topology is drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub(crate) enum GraphFormat {
    /// Mermaid, as GitHub renders it.
    #[default]
    Mermaid,
    /// Graphviz.
    Dot,
    /// A picture.
    Svg,
}

#[derive(Debug, Args)]
pub(crate) struct GraphArgs {
    /// The topology file.
    pub(crate) file: PathBuf,
    /// How it is drawn.
    #[arg(long, value_enum, default_value_t)]
    pub(crate) format: GraphFormat,
}

#[derive(Debug, Args)]
pub(crate) struct CompletionsArgs {
    /// The shell.
    #[arg(value_enum)]
    pub(crate) shell: Shell,
}
