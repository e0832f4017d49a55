//! The published figures, compiled in from `fixtures/published`, whose README names the sources.

use std::collections::BTreeMap;

use crate::{
    record::{
        LinkRecord,
        bench::{DispatcherPublished, FlowPublished, PathPublished, TraitPublished},
    },
    xdp::XdpMode,
};

macro_rules! file {
    ($name:literal) => {
        include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/fixtures/published/", $name))
    };
}

/// The rows of a table of comma-separated values, each by its column's name. None of the files quotes a value.
fn rows(text: &'static str) -> impl Iterator<Item = BTreeMap<&'static str, &'static str>> {
    let mut lines = text.lines().filter(|line| !line.is_empty());
    let head: Vec<&str> = lines.next().unwrap_or_default().split(',').collect();
    lines.map(move |line| head.iter().copied().zip(line.split(',')).collect())
}

fn text(row: &BTreeMap<&str, &str>, column: &str) -> String {
    row.get(column).copied().unwrap_or_default().to_owned()
}

fn number(row: &BTreeMap<&str, &str>, column: &str) -> f64 {
    maybe(row, column).unwrap_or(f64::NAN)
}

fn maybe(row: &BTreeMap<&str, &str>, column: &str) -> Option<f64> {
    row.get(column)?.parse().ok()
}

/// One run by the number of programs, ns.
pub fn dispatcher() -> Vec<DispatcherPublished> {
    rows(file!("dispatcher_v4.csv"))
        .map(|row| DispatcherPublished {
            jump_targets: text(&row, "jump_targets"),
            function_position: text(&row, "function_position"),
            mitigations: text(&row, "mitigations"),
            entries: number(&row, "entries") as u32,
            image_bytes: number(&row, "image_bytes") as u32,
            ns_per_run: number(&row, "ns_per_run"),
        })
        .collect()
}

/// Dropping in the driver and in the stack, Mpps.
pub fn drop() -> Vec<PathPublished> {
    rows(file!("dispatcher_v3.csv"))
        .map(|row| PathPublished {
            version: format!("{}, mitigations={}", text(&row, "variant"), text(&row, "mitigations")),
            test: "drop".to_owned(),
            generic_mpps: maybe(&row, "xdp_skb_drop_mpps"),
            native_mpps: maybe(&row, "xdp_drv_drop_mpps"),
            note: format!("one run {} ns", text(&row, "xdp_perf_ns")),
        })
        .collect()
}

/// Redirects and broadcasts, Mpps.
pub fn redirect() -> Vec<PathPublished> {
    rows(file!("redirect_broadcast_v10.csv"))
        .map(|row| PathPublished {
            version: text(&row, "kernel"),
            test: format!("{} {}->{}", text(&row, "test"), text(&row, "in"), text(&row, "out")),
            generic_mpps: maybe(&row, "generic_mpps"),
            native_mpps: maybe(&row, "native_mpps"),
            note: text(&row, "note"),
        })
        .collect()
}

/// The NICs of the published figures: what they are called there, and the kernel's name of the driver.
const NICS: [(&str, &str); 2] = [("i40e", "i40e"), ("mlx4", "mlx4_en")];

/// What was published of a scenario by its name, in one mode, in Mpps: the lowest and the highest figure. The names are
/// those of `topologies/published`. `links` are those that its frames cross: a figure is of a NIC, and says nothing where
/// none of them is a cable, or one is made of NICs of a driver that the name has not.
pub fn of_scenario(name: &str, mode: XdpMode, links: &[LinkRecord]) -> Option<(f64, f64)> {
    let words: Vec<&str> = name.split(|c: char| !c.is_ascii_alphanumeric()).collect();
    let was_published = |driver: &str| NICS.iter().any(|(word, kernels)| *kernels == driver && words.contains(word));
    let mut cables = links.iter().filter(|link| link.kind == "cable").peekable();
    cables.peek()?;
    // Two ports of different drivers are `a and b`.
    if !cables.all(|cable| cable.stands_in_for.is_some() || cable.made_of.split(" and ").all(was_published)) {
        return None;
    }
    let in_mode = |row: &PathPublished| match mode {
        XdpMode::Native => row.native_mpps,
        XdpMode::Generic => row.generic_mpps,
    };
    let figures: Vec<f64> = match name {
        "drop i40e, dispatcher" => {
            drop().iter().filter(|row| row.version.starts_with("dispatcher,")).filter_map(in_mode).collect()
        }
        "drop i40e, dispatcher full" => {
            drop().iter().filter(|row| row.version.starts_with("dispatcher_full")).filter_map(in_mode).collect()
        }
        "xdp_flow i40e->veth, hash" if mode == XdpMode::Native => flow().iter().map(|row| row.drop_mpps).collect(),
        _ => redirect().iter().filter(|row| row.test == name).filter_map(in_mode).collect(),
    };
    let low = figures.iter().copied().reduce(f64::min)?;
    let high = figures.iter().copied().reduce(f64::max)?;
    Some((low, high))
}

/// Where a flow lookup's time goes, percent by symbol.
pub fn flow() -> Vec<FlowPublished> {
    rows(file!("xdp_flow_hashtab.csv"))
        .map(|row| FlowPublished {
            prefetch: text(&row, "prefetch"),
            long_compare: text(&row, "long_compare"),
            drop_mpps: number(&row, "drop_mpps"),
            rank: number(&row, "rank") as u32,
            percent: number(&row, "percent"),
            symbol: text(&row, "symbol"),
        })
        .collect()
}

/// Operations on traits and the calls that they are held against, ns by CPU.
pub fn traits() -> Vec<TraitPublished> {
    rows(file!("traits_inline_move.csv"))
        .map(|row| TraitPublished {
            operation: text(&row, "operation"),
            ns: row
                .iter()
                .filter(|(column, _)| **column != "operation")
                .filter_map(|(column, value)| Some(((*column).to_owned(), value.parse().ok()?)))
                .collect(),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_of_every_file_is_read() {
        let lines = |text: &str| text.lines().count() - 1;
        assert_eq!(dispatcher().len(), lines(file!("dispatcher_v4.csv")));
        assert_eq!(drop().len(), lines(file!("dispatcher_v3.csv")));
        assert_eq!(redirect().len(), lines(file!("redirect_broadcast_v10.csv")));
        assert_eq!(flow().len(), lines(file!("xdp_flow_hashtab.csv")));
        assert_eq!(traits().len(), lines(file!("traits_inline_move.csv")));
    }

    fn link(kind: &str, made_of: &str, stands_in_for: Option<&str>) -> LinkRecord {
        LinkRecord {
            ends: vec!["gen:tx0".to_owned(), "dut:rx0".to_owned()],
            kind: kind.to_owned(),
            made_of: made_of.to_owned(),
            nics: None,
            stands_in_for: stands_in_for.map(str::to_owned),
        }
    }

    #[test]
    fn a_scenario_named_as_published_has_its_figures() {
        let of = |name: &str, mode| of_scenario(name, mode, &[link("cable", "veth", Some("i40e"))]);
        assert_eq!(of("redirect_map i40e->i40e", XdpMode::Native), Some((9.3, 9.7)));
        assert_eq!(of("redirect_map i40e->i40e", XdpMode::Generic), Some((1.9, 1.9)));
        assert_eq!(of("redirect_map_multi i40e->mlx4+veth", XdpMode::Native), Some((3.8, 3.9)));
        assert_eq!(of("drop i40e, dispatcher full", XdpMode::Native), Some((20.4, 20.4)));
        assert_eq!(of("drop at dut", XdpMode::Native), None);
    }

    #[test]
    fn a_figure_stands_only_beside_the_nics_that_it_was_published_of() {
        let of = |name: &str, cables: &[&str]| {
            let veth = link("veth", "veth", None);
            let links: Vec<LinkRecord> =
                cables.iter().map(|driver| link("cable", driver, None)).chain([veth]).collect();
            of_scenario(name, XdpMode::Native, &links).is_some()
        };
        let (one, two) = ("redirect_map i40e->veth", "redirect_map_multi i40e->mlx4+veth");
        assert!(of(one, &["i40e"]) && of(two, &["i40e", "mlx4_en"]) && of("drop i40e, dispatcher", &["i40e"]));
        for (name, cables) in [
            (one, &["virtio_net"][..]),
            (one, &["i40e and virtio_net"]),
            (one, &["mlx4_en"]),
            (one, &["i40e", "virtio_net"]),
            (two, &["i40e", "mlx5_core"]),
            ("drop i40e, dispatcher", &["e1000e"]),
            // No NIC, and none that veth stands in for.
            (one, &[]),
        ] {
            assert!(!of(name, cables), "{name} on {cables:?}");
        }
    }

    #[test]
    fn figures_are_numbers() {
        assert!(dispatcher().iter().all(|row| row.ns_per_run >= 1.0));
        assert!(drop().iter().all(|row| row.native_mpps.is_some() && row.generic_mpps.is_some()));
        assert!(redirect().iter().all(|row| row.native_mpps.is_some()));
        assert!(flow().iter().all(|row| row.percent > 0.0));
        assert!(traits().iter().all(|row| row.ns.len() == 3));
    }
}
