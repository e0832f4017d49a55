//! SVG, drawn by hand: nothing else is needed to see it.

use std::fmt::Write as _;

use super::layout::{CHARACTER, Frame, Line, MARGIN, layout};
use crate::topology::model::Topology;

/// Room for title and description above the picture, in pixels.
const HEAD: f64 = 56.0;

/// The topology as an SVG picture: nodes as boxes with their ports and programs, links as lines.
pub fn svg(topology: &Topology) -> String {
    let picture = layout(topology);
    let (width, height) = (picture.width, picture.height + HEAD);
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width:.0}\" height=\"{height:.0}\" \
         viewBox=\"0 0 {width:.0} {height:.0}\" font-family=\"monospace\" font-size=\"12\">\n\
         <title>{}</title>\n\
         <rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n\
         <text x=\"{MARGIN}\" y=\"28\" font-size=\"16\" font-weight=\"bold\">{}</text>\n\
         <text x=\"{MARGIN}\" y=\"48\" fill=\"#555555\">{}</text>\n\
         <g transform=\"translate(0 {HEAD})\">\n",
        escape(&topology.name),
        escape(&topology.name),
        escape(&topology.about),
    );
    for line in &picture.lines {
        draw_line(&mut out, line);
    }
    for frame in &picture.frames {
        draw_frame(&mut out, frame);
    }
    // Labels last, so that no line runs through them.
    for line in picture.lines.iter().filter(|line| !line.label.is_empty()) {
        draw_label(&mut out, line);
    }
    out.push_str("</g>\n</svg>\n");
    out
}

/// How far a line between two boxes of one column is bent out, in pixels.
const BEND: f64 = 36.0;

fn draw_line(out: &mut String, line: &Line) {
    let ((x1, y1), (x2, y2)) = (line.from, line.to);
    let path = if line.bent {
        let far = x1.max(x2) + BEND;
        format!("M {x1:.1} {y1:.1} C {far:.1} {y1:.1} {far:.1} {y2:.1} {x2:.1} {y2:.1}")
    } else {
        format!("M {x1:.1} {y1:.1} L {x2:.1} {y2:.1}")
    };
    // Writing into a String can't fail, here and below.
    let _ = writeln!(out, "<path d=\"{path}\" fill=\"none\" stroke=\"#4477aa\" stroke-width=\"1.5\"/>");
}

fn draw_label(out: &mut String, line: &Line) {
    let x = if line.bent { line.from.0.max(line.to.0) + BEND * 0.75 } else { f64::midpoint(line.from.0, line.to.0) };
    let y = f64::midpoint(line.from.1, line.to.1);
    let width = line.label.chars().count() as f64 * CHARACTER + 4.0;
    let _ = writeln!(
        out,
        "<rect x=\"{:.1}\" y=\"{:.1}\" width=\"{width:.1}\" height=\"14\" fill=\"#ffffff\"/>\
         <text x=\"{x:.1}\" y=\"{:.1}\" text-anchor=\"middle\" fill=\"#335577\" font-size=\"11\">{}</text>",
        x - width / 2.0,
        y - 7.0,
        y + 4.0,
        escape(&line.label)
    );
}

fn draw_frame(out: &mut String, frame: &Frame) {
    let fill = if frame.is_bridge { "#eef3f8" } else { "#f7f7f2" };
    let _ = writeln!(
        out,
        "<rect x=\"{:.1}\" y=\"{:.1}\" width=\"{:.1}\" height=\"{:.1}\" rx=\"4\" fill=\"{fill}\" stroke=\"#333333\"/>\n\
         <text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\" font-weight=\"bold\">{}</text>",
        frame.x,
        frame.y,
        frame.width,
        frame.height,
        frame.x + frame.width / 2.0,
        frame.y + 17.0,
        escape(&frame.title)
    );
    for (side, rows) in frame.sides.iter().enumerate() {
        let (edge, x, anchor) = match side {
            0 => (frame.x, frame.x + 10.0, "start"),
            _ => (frame.x + frame.width, frame.x + frame.width - 10.0, "end"),
        };
        for (index, row) in rows.iter().enumerate() {
            let y = frame.row_y(side, index);
            let program = row
                .program
                .as_ref()
                .map(|program| format!(" <tspan fill=\"#aa3355\">[{}]</tspan>", escape(program)))
                .unwrap_or_default();
            let _ = writeln!(
                out,
                "<circle cx=\"{edge:.1}\" cy=\"{y:.1}\" r=\"3.5\" fill=\"#4477aa\"/>\
                 <text x=\"{x:.1}\" y=\"{:.1}\" text-anchor=\"{anchor}\">{}{program}</text>",
                y + 4.0,
                escape(&row.name)
            );
        }
    }
}

/// XML's own characters as entities; control characters, which XML has not, as spaces.
pub(crate) fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\u{fffe}' | '\u{ffff}' => out.push(' '),
            c if c.is_control() => out.push(' '),
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::escape;

    #[test]
    fn markup_and_control_characters_are_made_harmless() {
        assert_eq!(escape("<a href=\"x\">&\u{1b}"), "&lt;a href=&quot;x&quot;&gt;&amp; ");
    }
}
