//! Where boxes, ports and lines go in the SVG picture: columns by distance from the sender.
//!
//! ```text
//!   column 0        column 1             column 2
//!  +---------+     +------------+       +---------+
//!  | gen     |     | dut        |       | sink    |
//!  |     tx0 *-----* rx0   out0 *-------* in0     |
//!  +---------+     +------------+       +---------+
//! ```

use std::collections::VecDeque;

use super::{link_label, port_label};
use crate::topology::model::{LinkKind, PortId, Topology};

/// Height of a row of text, in pixels.
pub(super) const ROW: f64 = 20.0;
/// Width of a character, in pixels: what a 12-pixel monospaced font has, and a little more.
pub(super) const CHARACTER: f64 = 7.4;
/// Space between columns, for the links' labels.
const GAP: f64 = 40.0;
/// Space between boxes of a column, and around the picture.
pub(super) const MARGIN: f64 = 24.0;

/// A node or a bridge.
pub(super) struct Frame {
    pub(super) title: String,
    pub(super) is_bridge: bool,
    pub(super) x: f64,
    pub(super) y: f64,
    pub(super) width: f64,
    pub(super) height: f64,
    /// Ports on the left and on the right, top down.
    pub(super) sides: [Vec<Row>; 2],
}

/// A port in its box.
pub(super) struct Row {
    port: PortId,
    pub(super) name: String,
    pub(super) program: Option<String>,
}

/// A line between two boxes.
pub(super) struct Line {
    pub(super) from: (f64, f64),
    pub(super) to: (f64, f64),
    /// Whether it leaves and enters on the right, between boxes of one column.
    pub(super) bent: bool,
    pub(super) label: String,
}

/// The picture.
pub(super) struct Layout {
    pub(super) frames: Vec<Frame>,
    pub(super) lines: Vec<Line>,
    pub(super) width: f64,
    pub(super) height: f64,
}

/// Width of a text, in pixels.
fn text_width(text: &str) -> f64 {
    text.chars().count() as f64 * CHARACTER
}

/// Lays a topology out.
pub(super) fn layout(topology: &Topology) -> Layout {
    // Boxes: nodes first, then bridges. Lines: between two boxes, by port where the box is a node.
    let mut edges: Vec<(PortId, Option<PortId>, usize, usize, String)> = Vec::new();
    let mut bridges = Vec::new();
    let node_of = |port: PortId| topology.ports[port.0].node.0;
    for link in &topology.links {
        let label = link_label(link);
        if link.kind == LinkKind::Bridge {
            let hub = topology.nodes.len() + bridges.len();
            bridges.push(label);
            edges.extend(link.ends.iter().map(|end| (*end, None, node_of(*end), hub, String::new())));
        } else if let [a, b] = link.ends[..] {
            edges.push((a, Some(b), node_of(a), node_of(b), label));
        }
    }
    let count = topology.nodes.len() + bridges.len();
    let start = topology.scenarios.first().map_or(0, |scenario| node_of(scenario.traffic.from));
    let columns = distances(count, start, &edges.iter().map(|edge| (edge.2, edge.3)).collect::<Vec<_>>());

    let mut frames: Vec<Frame> = (0..count)
        .map(|index| Frame {
            title: match topology.nodes.get(index) {
                Some(node) => node.name.clone(),
                None => bridges[index - topology.nodes.len()].clone(),
            },
            is_bridge: index >= topology.nodes.len(),
            x: 0.0,
            y: 0.0,
            width: 0.0,
            height: 0.0,
            sides: [Vec::new(), Vec::new()],
        })
        .collect();
    for (a, b, from, to, _) in &edges {
        for (port, here, there) in [(Some(*a), *from, *to), (*b, *to, *from)] {
            let Some(port) = port else { continue };
            let (name, program) = port_label(topology, port);
            let side = usize::from(columns[there] >= columns[here]);
            frames[here].sides[side].push(Row { port, name, program });
        }
    }
    let last = columns.iter().copied().max().unwrap_or(0);
    let mut x = MARGIN;
    let mut height: f64 = 0.0;
    for column in 0..=last {
        let mut y = MARGIN;
        let mut widest: f64 = 0.0;
        for frame in frames.iter_mut().zip(&columns).filter(|(_, at)| **at == column).map(|(frame, _)| frame) {
            let side = |side: &[Row]| side.iter().map(|row| text_width(&row.text())).fold(0.0, f64::max);
            let rows = frame.sides[0].len().max(frame.sides[1].len());
            frame.width = (side(&frame.sides[0]) + side(&frame.sides[1]) + 48.0).max(text_width(&frame.title) + 32.0);
            frame.height = ROW * (rows as f64 + 1.0) + 14.0;
            (frame.x, frame.y) = (x, y);
            y += frame.height + MARGIN;
            widest = widest.max(frame.width);
        }
        for frame in frames.iter_mut().zip(&columns).filter(|(_, at)| **at == column).map(|(frame, _)| frame) {
            frame.width = widest;
        }
        height = height.max(y);
        let labels = edges.iter().filter(|edge| columns[edge.2].min(columns[edge.3]) == column);
        x += widest + GAP + labels.map(|edge| text_width(&edge.4)).fold(0.0, f64::max);
    }
    // Short columns stand in the middle of the tall ones.
    for column in 0..=last {
        let of_column = |at: &usize| *at == column;
        let bottom = frames.iter().zip(&columns).filter(|(_, at)| of_column(at)).map(|(f, _)| f.y + f.height);
        let shift = (height - MARGIN - bottom.fold(0.0, f64::max)) / 2.0;
        for (frame, _) in frames.iter_mut().zip(&columns).filter(|(_, at)| of_column(at)) {
            frame.y += shift;
        }
    }
    let anchor = |port: Option<PortId>, here: usize, there: usize| {
        let frame: &Frame = &frames[here];
        let side = usize::from(columns[there] >= columns[here]);
        let row = port.and_then(|port| frame.sides[side].iter().position(|row| row.port == port));
        let y = match row {
            Some(row) => frame.row_y(side, row),
            None => frame.y + frame.height / 2.0,
        };
        (frame.x + if side == 1 { frame.width } else { 0.0 }, y)
    };
    let lines = edges
        .iter()
        .map(|(a, b, from, to, label)| Line {
            from: anchor(Some(*a), *from, *to),
            to: anchor(*b, *to, *from),
            bent: columns[*from] == columns[*to],
            label: label.clone(),
        })
        .collect();
    Layout { lines, width: x.max(text_width(&topology.about) + 2.0 * MARGIN), height, frames }
}

impl Frame {
    /// Middle of a row, in pixels from the top. The shorter side stands in the middle of the longer one.
    pub(super) fn row_y(&self, side: usize, row: usize) -> f64 {
        let rows = self.sides[0].len().max(self.sides[1].len()) - self.sides[side].len();
        self.y + ROW * (row as f64 + rows as f64 / 2.0 + 1.5) + 7.0
    }
}

impl Row {
    /// The row's text: the port, and in brackets its program.
    pub(super) fn text(&self) -> String {
        self.program.as_ref().map_or_else(|| self.name.clone(), |program| format!("{} [{program}]", self.name))
    }
}

/// Distances from a start; what can't be reached starts over at 0.
fn distances(count: usize, start: usize, edges: &[(usize, usize)]) -> Vec<usize> {
    let mut neighbours = vec![Vec::new(); count];
    for (a, b) in edges {
        neighbours[*a].push(*b);
        neighbours[*b].push(*a);
    }
    let mut distance = vec![None; count];
    for first in std::iter::once(start).chain(0..count).filter(|first| *first < count) {
        if distance[first].is_some() {
            continue;
        }
        distance[first] = Some(0);
        let mut queue = VecDeque::from([(first, 0)]);
        while let Some((at, far)) = queue.pop_front() {
            for next in &neighbours[at] {
                if distance[*next].is_none() {
                    distance[*next] = Some(far + 1);
                    queue.push_back((*next, far + 1));
                }
            }
        }
    }
    distance.into_iter().map(Option::unwrap_or_default).collect()
}

#[cfg(test)]
mod tests {
    use super::distances;

    #[test]
    fn what_is_not_joined_starts_a_picture_of_its_own() {
        assert_eq!(distances(5, 1, &[(0, 1), (1, 2), (3, 4)]), [1, 0, 1, 0, 1]);
    }
}
