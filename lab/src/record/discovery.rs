//! What `nics --discover` found. Field names are a contract (`xdplab.discovery/1`). Ports are named by PCI address.

use serde::{Deserialize, Serialize};

/// The `schema` of a [`DiscoveryReport`].
pub const DISCOVERY_SCHEMA: &str = "xdplab.discovery/1";

/// Which ports of a host are cabled together.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DiscoveryReport {
    /// [`DISCOVERY_SCHEMA`].
    pub schema: String,
    /// The ports that were taken, in the inventory's order.
    pub ports: Vec<DiscoveredPort>,
    /// Pairs of ports that hear each other and nobody else.
    pub cables: Vec<DiscoveredCable>,
    /// Groups of ports that are joined by more than a cable: a switch, a bridge, a hub.
    pub switches: Vec<Vec<String>>,
    /// Pairs of which one hears the other, and not the other way.
    pub one_way: Vec<OneWay>,
    /// Ports that hear themselves alone.
    pub looped: Vec<String>,
    /// Ports with a carrier that hear nobody, and that nobody hears.
    pub alone: Vec<String>,
    /// Ports whose link did not come up.
    pub no_carrier: Vec<String>,
    /// Ports that were not taken.
    pub not_taken: Vec<NotTaken>,
    /// Where the host file stands, or would.
    pub host_file: String,
    /// What to add to the host file, in TOML; empty where it has all cables.
    pub to_add: String,
    /// What else there is to say.
    pub notes: Vec<String>,
}

/// A port that was taken.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DiscoveredPort {
    /// Its PCI address.
    pub pci: String,
    /// Its name on the host.
    pub name: String,
    /// Its driver.
    pub driver: String,
    /// Its label in the host file.
    pub label: Option<String>,
    /// Its speed in Mbit/s while it was up, where it has one.
    pub speed: Option<u32>,
    /// Ports whose frames it received.
    pub hears: Vec<String>,
}

/// A cable.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DiscoveredCable {
    /// The ports that it joins.
    pub ends: [String; 2],
    /// Whether the host file has it.
    pub in_host_file: bool,
}

/// A way that frames go, but not back.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OneWay {
    /// Whose frames arrive.
    pub from: String,
    /// Where.
    pub to: String,
}

/// A port that was not taken.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NotTaken {
    /// Its PCI address, where it has one.
    pub pci: Option<String>,
    /// Its name.
    pub name: String,
    /// Its driver.
    pub driver: String,
    /// Why.
    pub reason: String,
    /// What frees it, where anything does.
    pub fix: Option<String>,
}
