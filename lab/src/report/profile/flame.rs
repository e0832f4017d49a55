//! The flame graph: stacks as towers, callers below, each as wide as its share of the samples.

use std::{collections::BTreeMap, fmt::Write as _};

use super::summary;
use crate::{record::profile::Profile, report::numbers::thousands, topology::graph::escape};

/// Pixels: the picture, a function, the room above and below.
const WIDTH: f64 = 1_280.0;
const MARGIN: f64 = 10.0;
const ROW: f64 = 18.0;
const HEAD: f64 = 64.0;
const FOOT: f64 = 34.0;
/// A character of the type used, at its size.
const CHARACTER: f64 = 6.7;
/// What is narrower is not drawn: nobody sees it.
const NARROWEST: f64 = 0.4;

/// What the colours mean, with the colours of every other row.
const KERNEL: (&str, [&str; 2]) = ("kernel", ["#9db8d9", "#adc4e0"]);
const MODULE: (&str, [&str; 2]) = ("kernel module", ["#93cbbd", "#a5d5c9"]);
const BPF: (&str, [&str; 2]) = ("BPF", ["#ef8a62", "#f39b78"]);
const USER: (&str, [&str; 2]) = ("user", ["#c9c9c9", "#d4d4d4"]);

/// A function called from one place, with all below it.
#[derive(Default)]
struct Call<'a> {
    samples: u64,
    own: u64,
    callees: BTreeMap<&'a str, Call<'a>>,
}

impl<'a> Call<'a> {
    fn add(&mut self, stack: &'a [String], samples: u64) {
        self.samples += samples;
        match stack {
            [] => self.own += samples,
            [outermost, rest @ ..] => self.callees.entry(outermost).or_default().add(rest, samples),
        }
    }

    /// How many functions stand above each other where they are wide enough to be drawn.
    fn depth(&self, scale: f64) -> usize {
        let deep = |call: &Call<'_>| 1 + call.depth(scale);
        let seen = self.callees.values().filter(|call| call.samples as f64 * scale >= NARROWEST);
        seen.map(deep).max().unwrap_or(0)
    }
}

/// The profile as an SVG picture. Pointing at a function shows its name, its samples, its share, and how much of it is its
/// own; no script is needed.
pub fn flame_graph(profile: &Profile, title: &str) -> String {
    let mut root = Call::default();
    for stack in &profile.stacks {
        root.add(&stack.stack, stack.samples);
    }
    let scale = (WIDTH - 2.0 * MARGIN) / root.samples.max(1) as f64;
    let rows = root.depth(scale).max(1) as f64;
    let height = HEAD + rows * ROW + FOOT;
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{WIDTH:.0}\" height=\"{height:.0}\" \
         viewBox=\"0 0 {WIDTH:.0} {height:.0}\" font-family=\"monospace\" font-size=\"11\">\n\
         <style>g:hover > rect {{ stroke: #222222; }}</style>\n\
         <rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n\
         <text x=\"{MARGIN}\" y=\"26\" font-size=\"16\" font-weight=\"bold\">{}</text>\n\
         <text x=\"{MARGIN}\" y=\"46\" fill=\"#555555\">{}</text>\n",
        escape(title),
        escape(&summary(profile)),
    );
    let drawing = Drawing { all: root.samples.max(1), scale, bottom: HEAD + rows * ROW };
    drawing.callees(&mut out, &root, MARGIN, 0);
    legend(&mut out, height);
    out.push_str("</svg>\n");
    out
}

struct Drawing {
    all: u64,
    scale: f64,
    bottom: f64,
}

impl Drawing {
    fn callees(&self, out: &mut String, call: &Call<'_>, x: f64, level: usize) {
        let mut at = x;
        for (name, callee) in &call.callees {
            let width = callee.samples as f64 * self.scale;
            if width >= NARROWEST {
                self.function(out, name, callee, at, level);
                self.callees(out, callee, at, level + 1);
            }
            at += width;
        }
    }

    fn function(&self, out: &mut String, name: &str, call: &Call<'_>, x: f64, level: usize) {
        let width = call.samples as f64 * self.scale;
        let y = self.bottom - (level + 1) as f64 * ROW;
        let percent = |samples: u64| 100.0 * samples as f64 / self.all as f64;
        let own = if call.own == 0 { String::new() } else { format!(", {:.2} % its own", percent(call.own)) };
        // Writing into a String can't fail, here and below.
        let _ = writeln!(
            out,
            "<g><title>{}: {} samples, {:.2} %{own}</title><rect x=\"{x:.2}\" y=\"{y:.1}\" width=\"{:.2}\" \
             height=\"{:.1}\" rx=\"1\" fill=\"{}\"/>{}</g>",
            escape(name),
            thousands(call.samples),
            percent(call.samples),
            (width - 0.5).max(0.3),
            ROW - 1.0,
            colours(name).1[level % 2],
            label(name, x, y, width),
        );
    }
}

/// A function's name as far as it fits; nothing where not even a few letters do.
fn label(name: &str, x: f64, y: f64, width: f64) -> String {
    let room = ((width - 6.0) / CHARACTER) as usize;
    let shown = match name.chars().count() {
        length if length <= room => name.to_owned(),
        _ if room < 4 => return String::new(),
        _ => name.chars().take(room - 2).chain("..".chars()).collect(),
    };
    format!("<text x=\"{:.1}\" y=\"{:.1}\">{}</text>", x + 3.0, y + 12.5, escape(&shown))
}

fn colours(name: &str) -> (&'static str, [&'static str; 2]) {
    if name.ends_with(" [bpf]") {
        BPF
    } else if name.ends_with(" [user]") {
        USER
    } else if name.ends_with(']') {
        MODULE
    } else {
        KERNEL
    }
}

fn legend(out: &mut String, height: f64) {
    let mut x = MARGIN;
    for (what, [colour, _]) in [KERNEL, MODULE, BPF, USER] {
        let _ = writeln!(
            out,
            "<rect x=\"{x:.1}\" y=\"{:.1}\" width=\"12\" height=\"12\" rx=\"1\" fill=\"{colour}\"/>\
             <text x=\"{:.1}\" y=\"{:.1}\" fill=\"#555555\">{what}</text>",
            height - 22.0,
            x + 17.0,
            height - 12.0,
        );
        x += 40.0 + what.len() as f64 * CHARACTER;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::report::profile::sample;

    #[test]
    fn callers_stand_below_and_every_function_says_what_it_is() {
        insta::assert_snapshot!(flame_graph(&sample::redirect(), "redirect & <sink>"));
    }

    #[test]
    fn an_empty_profile_is_a_picture_too() {
        assert!(flame_graph(&Profile::default(), "nothing").ends_with("</svg>\n"));
    }

    #[test]
    fn a_label_is_cut_to_its_room_or_left_out() {
        let shown = |width| label("xdp_do_redirect", 0.0, 0.0, width);
        assert!(shown(200.0).contains(">xdp_do_redirect<"));
        assert!(shown(60.0).contains(">xdp_do..<"), "{}", shown(60.0));
        assert_eq!(shown(20.0), "");
    }

    proptest! {
        #[test]
        fn a_functions_callees_and_its_own_samples_are_all_of_it(
            stacks in prop::collection::vec((prop::collection::vec("[a-c]", 1..6), 1_u64..1000), 1..30),
        ) {
            fn whole(call: &Call<'_>) -> bool {
                call.samples == call.own + call.callees.values().map(|callee| callee.samples).sum::<u64>()
                    && call.callees.values().all(whole)
            }
            let mut root = Call::default();
            for (stack, samples) in &stacks {
                root.add(stack, *samples);
            }
            prop_assert!(whole(&root));
            prop_assert_eq!(root.samples, stacks.iter().map(|(_, samples)| samples).sum::<u64>());
        }
    }
}
