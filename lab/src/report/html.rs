//! Reports as one HTML page each, with pictures: it needs no other file, no network and no script.

use maud::{DOCTYPE, Markup, PreEscaped, html};

use super::{
    bench,
    compare::{self, Shown, machine, verdict},
    grid::Grid,
    numbers::{difference, four, interval, mpps, nanoseconds, thousands},
    plot::{Chart, Dot, Series, Whisker, Whiskers},
    profile,
    table::is_number,
    text::{all_notes, published},
    verdict::word,
};
use crate::{
    record::{
        Fingerprint, Ledger, Report, ScenarioRecord, Verdict,
        bench::BenchReport,
        compare::{CalibrateReport, CompareReport, CompareRow},
        stored::Stored,
    },
    xdp::XdpMode,
};

const STYLE: &str = "body{font:15px/1.5 sans-serif;max-width:72em;margin:2em auto;padding:0 1em;color:#222}\
table{border-collapse:collapse;margin:1em 0;font-size:14px}\
th,td{padding:.2em .8em;border-bottom:1px solid #ddd;text-align:left;vertical-align:top}\
td.n{text-align:right;font-family:monospace;white-space:nowrap}caption{text-align:left;font-weight:bold}\
.good{color:#00684c}.bad{color:#b00020;font-weight:bold}.open{color:#8a5a00}\
svg{max-width:100%;height:auto;display:block;margin:1em 0}section{margin-bottom:3em}";

/// A page of reports of any kind, one below the other.
pub fn page(reports: &[Stored]) -> String {
    let title = match reports {
        [Stored::Run(report)] => format!("xdplab run: {}", report.lab),
        [one] => format!("xdplab {}", one.verb()),
        _ => "xdplab".to_owned(),
    };
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width";
                title { (title) }
                style { (PreEscaped(STYLE)) }
            }
            body {
                @for report in reports {
                    section {
                        @match report {
                            Stored::Run(report) => (run(report)),
                            Stored::Compare(report) => (comparison(report)),
                            Stored::Calibrate(report) => (calibration(report)),
                            Stored::Bench(report) => (benchmark(report)),
                        }
                    }
                }
            }
        }
    };
    page.into_string()
}

fn run(report: &Report) -> Markup {
    let has_published = report.scenarios.iter().any(|s| s.published_mpps.is_some());
    let mut head =
        vec!["scenario", "mode", "verdict", "offered", "delivered", "dropped", "lost", "clones", "ns/packet", "Mpps"];
    if has_published {
        head.extend(["published", "ratio"]);
    }
    let mut grid = Grid::new("scenarios", &head);
    for s in &report.scenarios {
        let (ns, rate) = s.cost.as_ref().map_or_else(Default::default, |cost| (nanoseconds(cost), mpps(cost)));
        let (delivered, dropped) = s.ledger.ends();
        let [offered, delivered, dropped, lost, clones] =
            [s.ledger.offered, delivered, dropped, s.ledger.lost(), s.clones].map(thousands);
        let verdict = word(s.verdict).to_owned();
        let mode = s.mode.to_string();
        let mut cells = vec![s.name.clone(), mode, verdict, offered, delivered, dropped, lost, clones, ns, rate];
        if has_published {
            cells.extend(published(s));
        }
        grid.rows.push(cells);
    }
    html! {
        h1 { (report.lab) }
        p { (report.about) }
        p { "started " (report.started) }
        ul {
            @for line in machine(&report.fingerprint) { li { (line) } }
            @for link in &report.links {
                li {
                    (link.ends.join(" -- ")) ": " (link.kind)
                    @if let Some(nic) = &link.stands_in_for { ", a " (link.made_of) " pair that stands in for " (nic) }
                }
            }
        }
        (table(&grid))
        @for s in &report.scenarios { (scenario(s)) }
        ul { @for note in all_notes(report) { li { (note) } } }
        (fingerprint(&report.fingerprint))
    }
}

fn scenario(s: &ScenarioRecord) -> Markup {
    let mut checks = Grid::new("checks", &["check", "verdict", "limit", "measured"]);
    for check in &s.checks {
        let held = match (check.ok, check.undecided) {
            (true, _) => "pass",
            (false, true) => "undecided",
            (false, false) => "FAIL",
        };
        checks.row([check.what.clone(), held.to_owned(), check.limit.clone(), check.measured.clone()]);
    }
    html! {
        h2 { (s.name) " (" (s.mode) "): " span class=[class(word(s.verdict))] { (word(s.verdict)) } }
        @if let Some(reason) = &s.reason { p { (reason) } }
        @if s.verdict != Verdict::Skipped { (table(&ledger(&s.ledger, s.clones))) }
        @if !checks.rows.is_empty() { (table(&checks)) }
        @if let Some(cost) = &s.cost { (PreEscaped(windows(&cost.windows, cost.ci).svg())) }
        @if let Some(profile) = &s.profile {
            details {
                summary { "where the time goes, " (profile::summary(profile)) }
                pre { (profile::top(profile, profile::TOP, s.cost.as_ref().map(|cost| cost.ns))) }
            }
        }
    }
}

fn ledger(ledger: &Ledger, clones: u64) -> Grid {
    let mut grid = Grid::new("ledger", &["where", "what", "frames", "cause", "fix"]);
    let mut row =
        |at: &str, what: String, frames: String| grid.row([at.to_owned(), what, frames, String::new(), String::new()]);
    row("", "offered".to_owned(), thousands(ledger.offered));
    if clones > 0 {
        row("", "clones".to_owned(), thousands(clones));
    }
    for (port, frames) in &ledger.delivered {
        row(port, "delivered".to_owned(), thousands(*frames));
    }
    for d in &ledger.dropped {
        let what = if d.by_verdict { format!("dropped by {}", d.reason) } else { format!("lost, {}", d.reason) };
        let [cause, fix] = [&d.cause, &d.fix].map(|words| words.clone().unwrap_or_default());
        grid.row([d.at.clone(), what, thousands(d.frames), cause, fix]);
    }
    let others = [
        ("duplicated", ledger.duplicated),
        ("reordered", ledger.reordered),
        ("corrupted", ledger.corrupted),
        ("of other origin, not in the account", ledger.foreign),
    ];
    let mut row =
        |what: &str, frames: String| grid.row([String::new(), what.to_owned(), frames, String::new(), String::new()]);
    for (what, frames) in others.into_iter().filter(|(_, frames)| *frames > 0) {
        row(what, thousands(frames));
    }
    row("unaccounted", thousands(ledger.unaccounted));
    grid
}

/// Dots of a picture; more of them nobody can tell apart.
const MOST_DOTS: usize = 300;

/// The windows in the order of measuring, with the ends of the median's interval. Where they are many, some that follow
/// each other are one dot: their median, and from their smallest to their largest.
fn windows(windows: &[f64], ci: [f64; 2]) -> Chart {
    let together = windows.len().div_ceil(MOST_DOTS).max(1);
    let dot = |(n, some): (usize, &[f64])| {
        let mut sorted = some.to_vec();
        sorted.sort_by(f64::total_cmp);
        let first = n * together + 1;
        let which = if together == 1 { format!("window {first}") } else { format!("windows {first} and on") };
        let y = sorted[sorted.len() / 2];
        let ends = (together > 1).then(|| [sorted[0], sorted[sorted.len() - 1]]);
        Dot { x: first as f64, y, ci: ends, label: format!("{which}: {} ns", four(y)) }
    };
    let dots: Vec<Dot> = windows.chunks(together).enumerate().map(dot).collect();
    let each = if together == 1 { String::new() } else { format!(" (a dot is {together} of them)") };
    let ends = [0.5, windows.len() as f64 + 0.5];
    Chart {
        title: format!("{} windows{each}, and the median's 90 % interval", windows.len()),
        y: "ns/packet".to_owned(),
        x: "window, in the order of measuring".to_owned(),
        series: vec![Series { name: String::new(), joined: dots.len() <= 200, dots }],
        levels: ci.map(|end| [ends[0], ends[1], end]).to_vec(),
        marks: Vec::new(),
    }
}

fn comparison(report: &CompareReport) -> Markup {
    // A picture a mode: native and generic costs are of different sizes.
    let of_mode = |mode: XdpMode| {
        let rows: Vec<Whisker> =
            report.rows.iter().filter(|row| row.mode == mode).map(|row| whisker(report, row)).collect();
        let budget = if rows.iter().any(|row| row.budget.is_some()) { "; dashed: what it may be at most" } else { "" };
        let floor = if report.floor_ns.is_some() { "; grey: the noise floor" } else { "" };
        Whiskers {
            title: format!("{mode}: b - a with its interval{floor}{budget}"),
            x: "ns/packet".to_owned(),
            rows,
            floor: report.floor_ns,
            from_zero: true,
        }
    };
    let pictures = [XdpMode::Native, XdpMode::Generic].map(of_mode);
    let pictures: Vec<String> = pictures.iter().filter(|picture| !picture.rows.is_empty()).map(Whiskers::svg).collect();
    html! {
        (shown(&compare::shown(report), &pictures))
        (fingerprint(&report.fingerprint))
    }
}

fn calibration(report: &CalibrateReport) -> Markup {
    html! {
        (shown(&compare::calibration(report), &[]))
        (fingerprint(&report.fingerprint))
    }
}

fn whisker(report: &CompareReport, row: &CompareRow) -> Whisker {
    let ci = match row.ci {
        [Some(low), Some(high)] => Some([low, high]),
        _ => None,
    };
    Whisker {
        name: row.name.clone(),
        verdict: format!(": {}", verdict(report, row)),
        value: row.delta_ns,
        ci,
        budget: row.budget_ns,
        label: format!(
            "{}: {} ns, interval {}, {} blocks",
            row.name,
            difference(row.delta_ns, row.a_ns),
            interval(row.ci, row.a_ns),
            thousands(row.blocks)
        ),
    }
}

fn benchmark(report: &BenchReport) -> Markup {
    let (title, bench::Shown { mut grids, sentences }) = bench::shown(report);
    let mut checks = Grid::new("checks", &["check", "verdict", "limit", "measured"]);
    for check in &report.checks {
        let held = match (check.ok, check.undecided) {
            (true, _) => "pass",
            (false, true) => "undecided",
            (false, false) => "FAIL",
        };
        checks.row([check.what.clone(), held.to_owned(), check.limit.clone(), check.measured.clone()]);
    }
    if !checks.rows.is_empty() {
        grids.push(checks);
    }
    let page = Shown {
        title: title.to_owned(),
        about: machine(&report.fingerprint),
        grids,
        sentences: sentences
            .into_iter()
            .chain(report.notes.iter().map(|note| format!("note: {note}")))
            .chain([format!("{} in {:.1} s", word(report.verdict), report.seconds)])
            .collect(),
    };
    html! {
        (shown(&page, &bench::pictures(report)))
        (fingerprint(&report.fingerprint))
    }
}

/// Title, lines, pictures, tables, sentences.
fn shown(shown: &Shown, pictures: &[String]) -> Markup {
    html! {
        h1 { (shown.title) }
        ul { @for line in &shown.about { li { (line) } } }
        @for picture in pictures { (PreEscaped(picture)) }
        @for grid in &shown.grids { (table(grid)) }
        ul { @for sentence in &shown.sentences { li { (sentence) } } }
    }
}

fn table(grid: &Grid) -> Markup {
    html! {
        table {
            caption { (grid.title) }
            thead { tr { @for head in &grid.head { th { (head) } } } }
            tbody {
                @for row in &grid.rows {
                    tr { @for cell in row { td class=[class(cell)] { (cell) } } }
                }
            }
        }
    }
}

/// Numbers stand to the right, and verdicts have a colour each.
fn class(cell: &str) -> Option<&'static str> {
    match cell.trim_end_matches([' ', '*']) {
        "pass" | "ok" | "improved" => Some("good"),
        "FAIL" | "REGRESSED" => Some("bad"),
        "inconclusive" | "undecided" | "skipped" => Some("open"),
        _ if is_number(cell) => Some("n"),
        _ => None,
    }
}

fn fingerprint(fingerprint: &Fingerprint) -> Markup {
    html! {
        details {
            summary { "fingerprint: what must be equal for two results to be comparable" }
            table { tbody { @for (name, value) in &fingerprint.0 { tr { td { (name) } td { (value) } } } } }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::sample;

    fn of(report: Stored) -> String {
        page(&[report])
    }

    #[test]
    fn a_run_as_a_page() {
        insta::assert_snapshot!(of(Stored::Run(Box::new(sample::passing()))).replace("><", ">\n<"));
    }

    #[test]
    fn a_comparison_as_a_page() {
        insta::assert_snapshot!(of(Stored::Compare(Box::new(sample::across()))).replace("><", ">\n<"));
    }

    #[test]
    fn a_benchmark_as_a_page() {
        insta::assert_snapshot!(of(Stored::Bench(Box::new(sample::bench()))).replace("><", ">\n<"));
    }

    #[test]
    fn many_windows_are_few_dots_that_span_them() {
        let values: Vec<f64> = (0..1_000).map(f64::from).collect();
        let chart = windows(&values, [1.0, 2.0]);
        let dots = &chart.series[0].dots;
        assert_eq!((dots.len(), dots[0].ci, dots[249].ci), (250, Some([0.0, 3.0]), Some([996.0, 999.0])));
        assert_eq!(windows(&values[..300], [1.0, 2.0]).series[0].dots.len(), 300);
        assert!(windows(&[], [1.0, 2.0]).series[0].dots.is_empty());
    }

    #[test]
    fn a_page_needs_nothing_else_and_names_can_not_leave_their_place() {
        let mut report = sample::failing();
        report.lab = "<script>alert(1)</script>".to_owned();
        report.scenarios[0].name = "\"><img src=x>".to_owned();
        let mut compare = sample::comparison();
        compare.rows[0].name = "</svg><script>".to_owned();
        let all = [
            Stored::Run(Box::new(report)),
            Stored::Compare(Box::new(compare)),
            Stored::Calibrate(Box::new(sample::calibration())),
            Stored::Bench(Box::new(sample::bench())),
        ];
        let page = page(&all);
        for word in ["<script", "<img", "<link", "src=", "href=", "@import", "url("] {
            assert!(!page.replace("&quot;&gt;&lt;img src=x&gt;", "").contains(word), "{word}");
        }
        assert_eq!(page.matches("<svg ").count(), page.matches("</svg>").count());
        assert_eq!(page.matches("<section>").count(), 4);
    }
}
