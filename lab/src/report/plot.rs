//! Small pictures of measured values, as SVG: no script and no other file is needed to see them.

use std::fmt::Write as _;

use super::numbers::four;
use crate::topology::graph::escape;

/// Pixels.
const WIDTH: f64 = 760.0;
const HEIGHT: f64 = 250.0;
const LEFT: f64 = 70.0;
const RIGHT: f64 = 20.0;
const TOP: f64 = 40.0;
const BOTTOM: f64 = 40.0;
/// A row of whiskers, and the room for its name.
const ROW: f64 = 24.0;
const NAMES: f64 = 260.0;
/// A character of the type used, at its size.
const CHARACTER: f64 = 6.7;

/// Series, in their order; these are told apart by people who see fewer colours, too (Okabe and Ito, 2008).
const COLOURS: [&str; 6] = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#e69f00"];
const INK: &str = "#333333";
const FAINT: &str = "#dddddd";

/// A measured value.
#[derive(Debug, Clone, Default)]
pub(super) struct Dot {
    pub(super) x: f64,
    pub(super) y: f64,
    /// Its interval.
    pub(super) ci: Option<[f64; 2]>,
    /// What pointing at it shows.
    pub(super) label: String,
}

/// Values that belong together.
#[derive(Debug, Clone, Default)]
pub(super) struct Series {
    pub(super) name: String,
    pub(super) dots: Vec<Dot>,
    /// Whether a line joins them.
    pub(super) joined: bool,
}

/// Values over something.
#[derive(Debug, Clone, Default)]
pub(super) struct Chart {
    pub(super) title: String,
    /// What the values are and are over, with units.
    pub(super) y: String,
    pub(super) x: String,
    pub(super) series: Vec<Series>,
    /// Horizontal levels: from, to, height.
    pub(super) levels: Vec<[f64; 3]>,
    /// Vertical marks and what each means.
    pub(super) marks: Vec<(f64, String)>,
}

impl Chart {
    /// The picture, for a file of its own or for a page.
    pub(super) fn svg(&self) -> String {
        let mut out = open(HEIGHT, &self.title);
        self.draw(&mut out);
        out.push_str("</svg>\n");
        out
    }

    fn draw(&self, out: &mut String) {
        let dots = || self.series.iter().flat_map(|series| &series.dots).filter(|dot| can_be_drawn(dot.y));
        let ends = |dot: &Dot| [dot.y, dot.ci.map_or(dot.y, |ci| ci[0]), dot.ci.map_or(dot.y, |ci| ci[1])];
        let places = dots().map(|dot| dot.x).chain(self.levels.iter().flat_map(|[from, to, _]| [*from, *to]));
        // What values are over is counted: windows, runs, programs.
        let across = Axis { step: 1.0, ..Axis::over(places, LEFT, WIDTH - RIGHT, 0.03).at_least(1.0) };
        let up = Axis::over(
            dots().flat_map(ends).chain(self.levels.iter().map(|level| level[2])),
            HEIGHT - BOTTOM,
            TOP,
            0.08,
        );
        text(out, LEFT, 18.0, "start", "font-weight=\"bold\"", &self.title);
        for value in up.ticks() {
            let y = up.at(value);
            line(out, [LEFT, y, WIDTH - RIGHT, y], FAINT, "");
            text(out, LEFT - 6.0, y + 4.0, "end", "", &tick(value));
        }
        for value in across.ticks() {
            let x = across.at(value);
            line(out, [x, HEIGHT - BOTTOM, x, HEIGHT - BOTTOM + 4.0], INK, "");
            text(out, x, HEIGHT - BOTTOM + 16.0, "middle", "", &tick(value));
        }
        line(out, [LEFT, HEIGHT - BOTTOM, WIDTH - RIGHT, HEIGHT - BOTTOM], INK, "");
        text(out, f64::midpoint(LEFT, WIDTH - RIGHT), HEIGHT - 6.0, "middle", "fill=\"#555555\"", &self.x);
        text(out, 8.0, TOP - 2.0, "start", "fill=\"#555555\"", &self.y);
        for (x, label) in &self.marks {
            let x = across.at(*x);
            let _ = write!(out, "<g><title>{}</title>", escape(label));
            line(out, [x, TOP, x, HEIGHT - BOTTOM], COLOURS[1], " stroke-dasharray=\"4 3\"");
            out.push_str("</g>\n");
        }
        for [from, to, height] in &self.levels {
            let y = up.at(*height);
            line(out, [across.at(*from), y, across.at(*to), y], COLOURS[2], " stroke-width=\"2\" opacity=\"0.7\"");
        }
        for (n, series) in self.series.iter().enumerate() {
            series_of(out, series, COLOURS[n % COLOURS.len()], &across, &up);
        }
        if self.series.len() > 1 {
            let mut x = WIDTH - RIGHT;
            for (n, series) in self.series.iter().enumerate().rev() {
                x -= series.name.chars().count() as f64 * CHARACTER;
                text(out, x, 18.0, "start", &format!("fill=\"{}\"", COLOURS[n % COLOURS.len()]), &series.name);
                x -= 14.0;
            }
        }
    }
}

fn series_of(out: &mut String, series: &Series, colour: &str, across: &Axis, up: &Axis) {
    let dots: Vec<&Dot> = series.dots.iter().filter(|dot| can_be_drawn(dot.y)).collect();
    if series.joined && dots.len() > 1 {
        let points: Vec<String> =
            dots.iter().map(|dot| format!("{:.1},{:.1}", across.at(dot.x), up.at(dot.y))).collect();
        let _ = writeln!(
            out,
            "<polyline points=\"{}\" fill=\"none\" stroke=\"{colour}\" opacity=\"0.6\"/>",
            points.join(" ")
        );
    }
    for dot in dots {
        let (x, y) = (across.at(dot.x), up.at(dot.y));
        let _ = write!(out, "<g><title>{}</title>", escape(&dot.label));
        if let Some([low, high]) = dot.ci.filter(|ci| ci.iter().all(|end| can_be_drawn(*end))) {
            line(out, [x, up.at(low), x, up.at(high)], colour, "");
        }
        let _ = writeln!(out, "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"2.5\" fill=\"{colour}\"/></g>");
    }
}

/// A row of [`Whiskers`].
#[derive(Debug, Clone, Default)]
pub(super) struct Whisker {
    pub(super) name: String,
    /// What stands behind the name, however long that is.
    pub(super) verdict: String,
    pub(super) value: f64,
    /// The interval; `None` where there is none yet.
    pub(super) ci: Option<[f64; 2]>,
    /// What it may be at most.
    pub(super) budget: Option<f64>,
    /// What pointing at it shows.
    pub(super) label: String,
}

/// Values with their intervals, a row each.
#[derive(Debug, Clone, Default)]
pub(super) struct Whiskers {
    pub(super) title: String,
    pub(super) x: String,
    pub(super) rows: Vec<Whisker>,
    /// The noise floor: a band about zero.
    pub(super) floor: Option<f64>,
    /// Whether the values are differences, so that zero belongs into the picture.
    pub(super) from_zero: bool,
}

impl Whiskers {
    /// The picture.
    pub(super) fn svg(&self) -> String {
        let height = TOP + ROW * self.rows.len() as f64 + BOTTOM;
        let mut out = open(height, &self.title);
        let floor = self.floor.filter(|floor| can_be_drawn(*floor)).map(f64::abs);
        let ends = self.rows.iter().flat_map(|row| {
            let ci = row.ci.into_iter().flatten();
            ci.chain([row.value]).chain(row.budget)
        });
        let band = floor.iter().flat_map(|floor| [-floor, *floor]);
        let across = Axis::over(ends.chain(band).chain(self.from_zero.then_some(0.0)), NAMES, WIDTH - RIGHT, 0.05);
        let bottom = height - BOTTOM;
        text(&mut out, 8.0, 18.0, "start", "font-weight=\"bold\"", &self.title);
        if let Some(floor) = floor {
            let (from, to) = (across.at(-floor), across.at(floor));
            let _ = writeln!(
                out,
                "<g><title>noise floor: {} ns</title><rect x=\"{from:.1}\" y=\"{TOP}\" width=\"{:.1}\" height=\"{:.1}\" \
                 fill=\"#eeeeee\"/></g>",
                four(floor),
                (to - from).max(1.0),
                bottom - TOP
            );
        }
        for value in across.ticks() {
            let x = across.at(value);
            line(&mut out, [x, TOP, x, bottom], FAINT, "");
            text(&mut out, x, bottom + 16.0, "middle", "", &tick(value));
        }
        if self.from_zero {
            let zero = across.at(0.0);
            line(&mut out, [zero, TOP, zero, bottom], INK, "");
        }
        for (n, row) in self.rows.iter().enumerate() {
            row.draw(&mut out, TOP + ROW * (n as f64 + 0.5), &across);
        }
        text(&mut out, f64::midpoint(NAMES, WIDTH - RIGHT), height - 6.0, "middle", "fill=\"#555555\"", &self.x);
        out.push_str("</svg>\n");
        out
    }
}

impl Whisker {
    fn draw(&self, out: &mut String, y: f64, across: &Axis) {
        let room = (((NAMES - 16.0) / CHARACTER) as usize).saturating_sub(self.verdict.chars().count());
        let short: String = match self.name.chars().count() {
            length if length <= room => self.name.clone(),
            _ => self.name.chars().take(room.saturating_sub(2)).chain("..".chars()).collect(),
        };
        let _ = write!(out, "<g><title>{}</title>", escape(&self.label));
        text(out, 8.0, y + 4.0, "start", "", &(short + &self.verdict));
        if let Some([low, high]) = self.ci.filter(|ci| ci.iter().all(|end| can_be_drawn(*end))) {
            let (from, to) = (across.at(low), across.at(high));
            line(out, [from, y, to, y], COLOURS[0], " stroke-width=\"2\"");
            for end in [from, to] {
                line(out, [end, y - 5.0, end, y + 5.0], COLOURS[0], "");
            }
        }
        if let Some(budget) = self.budget.filter(|budget| can_be_drawn(*budget)) {
            let x = across.at(budget);
            line(out, [x, y - 9.0, x, y + 9.0], COLOURS[1], " stroke-width=\"2\" stroke-dasharray=\"3 2\"");
        }
        if can_be_drawn(self.value) {
            let _ = write!(
                out,
                "<circle cx=\"{:.1}\" cy=\"{y:.1}\" r=\"3.5\" fill=\"{}\"/>",
                across.at(self.value),
                COLOURS[0]
            );
        }
        out.push_str("</g>\n");
    }
}

/// Several pictures below each other, as one.
pub(super) fn stack(charts: &[Chart]) -> String {
    let mut out = open(HEIGHT * charts.len().max(1) as f64, "history");
    for (n, chart) in charts.iter().enumerate() {
        let _ = writeln!(out, "<g transform=\"translate(0 {:.0})\">", HEIGHT * n as f64);
        chart.draw(&mut out);
        out.push_str("</g>\n");
    }
    out.push_str("</svg>\n");
    out
}

/// From values to pixels.
struct Axis {
    low: f64,
    high: f64,
    from: f64,
    to: f64,
    /// The least step between ticks.
    step: f64,
}

impl Axis {
    /// An axis that has all values and some room beside; values that are not finite have no place.
    fn over(values: impl Iterator<Item = f64>, from: f64, to: f64, beside: f64) -> Self {
        let (low, high) = values
            .filter(|value| can_be_drawn(*value))
            .fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), value| (low.min(value), high.max(value)));
        let (low, high) = if low > high { (0.0, 1.0) } else { (low, high) };
        // Halves: the range of two numbers may be none.
        let half = (high / 2.0 - low / 2.0).max(low.abs().max(high.abs()) * 1e-6).max(1e-9);
        let (middle, half) = (low / 2.0 + high / 2.0, half * (1.0 + 2.0 * beside));
        Self { low: middle - half, high: middle + half, from, to, step: 0.0 }
    }

    /// The same, over a range that is at least so wide.
    fn at_least(self, range: f64) -> Self {
        let (middle, half) = (self.low / 2.0 + self.high / 2.0, (self.high / 2.0 - self.low / 2.0).max(range / 2.0));
        Self { low: middle - half, high: middle + half, ..self }
    }

    fn at(&self, value: f64) -> f64 {
        let share = (value / 2.0 - self.low / 2.0) / (self.high / 2.0 - self.low / 2.0);
        self.from + share.clamp(-0.1, 1.1) * (self.to - self.from)
    }

    /// Round values, some five of them.
    fn ticks(&self) -> Vec<f64> {
        let rough = (self.high / 2.0 - self.low / 2.0) / 2.5;
        let power = 10_f64.powf(rough.log10().floor());
        let step = [1.0, 2.0, 5.0, 10.0]
            .into_iter()
            .map(|times| times * power)
            .find(|step| *step >= rough)
            .unwrap_or(rough)
            .max(self.step);
        let first = (self.low / step).ceil();
        (0..20).map(|n| (first + f64::from(n)) * step).take_while(|value| *value <= self.high).collect()
    }
}

/// A tick's number, as short as it is exact to a millionth.
fn tick(value: f64) -> String {
    if value != 0.0 && !(1e-4..1e7).contains(&value.abs()) {
        return format!("{value:.2e}");
    }
    let text = format!("{value:.6}");
    let text = text.trim_end_matches('0').trim_end_matches('.');
    if text == "-0" { "0".to_owned() } else { text.to_owned() }
}

fn open(height: f64, title: &str) -> String {
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{WIDTH:.0}\" height=\"{height:.0}\" viewBox=\"0 0 {WIDTH:.0} \
         {height:.0}\" font-family=\"monospace\" font-size=\"11\" role=\"img\">\n<title>{}</title>\n<rect width=\"100%\" \
         height=\"100%\" fill=\"#ffffff\"/>\n",
        escape(title)
    )
}

// Writing into a String can't fail, here and above.

fn line(out: &mut String, [x1, y1, x2, y2]: [f64; 4], colour: &str, more: &str) {
    let _ =
        writeln!(out, "<line x1=\"{x1:.1}\" y1=\"{y1:.1}\" x2=\"{x2:.1}\" y2=\"{y2:.1}\" stroke=\"{colour}\"{more}/>");
}

fn text(out: &mut String, x: f64, y: f64, anchor: &str, more: &str, words: &str) {
    let _ = writeln!(out, "<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\" {more}>{}</text>", escape(words));
}

/// Whether a value has a place on an axis: the span of two larger ones is not a number any more.
fn can_be_drawn(value: f64) -> bool {
    value.abs() < 1e300
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn ticks_are_round_and_lie_within() {
        let axis = Axis::over([95.2, 104.9].into_iter(), 0.0, 100.0, 0.0);
        assert_eq!(axis.ticks(), [96.0, 98.0, 100.0, 102.0, 104.0]);
        assert!((axis.at(95.2) - 0.0).abs() < 1e-6 && (axis.at(104.9) - 100.0).abs() < 1e-6);
        assert_eq!([96.0, 0.25, -0.0, 1e9].map(tick), ["96", "0.25", "0", "1.00e9"]);
    }

    #[test]
    fn a_span_that_is_no_number_has_no_place() {
        assert!(
            can_be_drawn(-1.0e9) && !can_be_drawn(1.766e308) && !can_be_drawn(f64::NAN) && !can_be_drawn(f64::INFINITY)
        );
    }

    proptest! {
        #[test]
        fn no_values_break_a_picture(values in prop::collection::vec(prop::array::uniform4(any::<f64>()), 0..6)) {
            let dots = values.iter().map(|[x, y, low, high]| Dot { x: *x, y: *y, ci: Some([*low, *high]), label: String::new() });
            let series = Series { name: "<&>".to_owned(), dots: dots.collect(), joined: true };
            let chart = Chart { series: vec![series], ..Chart::default() }.svg();
            let rows = values.iter().map(|[value, low, high, budget]| Whisker {
                value: *value, ci: Some([*low, *high]), budget: Some(*budget), ..Whisker::default()
            });
            let whiskers = Whiskers { rows: rows.collect(), floor: values.first().map(|v| v[0]), ..Whiskers::default() }.svg();
            for svg in [chart, whiskers] {
                prop_assert!(!svg.contains("NaN") && !svg.contains("inf") && svg.ends_with("</svg>\n"), "{}", svg);
            }
        }
    }
}
