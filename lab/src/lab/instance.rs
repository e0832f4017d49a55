//! Which lab: the name that people use, and the number that its frames carry.

use std::{
    collections::hash_map::RandomState,
    fmt,
    hash::{BuildHasher as _, Hasher as _},
};

/// One lab brought up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Instance {
    /// The topology's name.
    pub lab: String,
    /// Tells ephemeral instances of one topology apart; `None` for the persistent one.
    pub tag: Option<String>,
    /// What the lab's frames carry in their marker; never 0.
    pub number: u16,
}

impl Instance {
    /// A persistent lab, of which a name has one.
    pub fn persistent(lab: &str) -> Self {
        Self { lab: lab.to_owned(), tag: None, number: number(random()) }
    }

    /// An ephemeral instance, of which there may be any number.
    pub fn ephemeral(lab: &str) -> Self {
        let random = random();
        Self { lab: lab.to_owned(), tag: Some(format!("{:08x}", random >> 32)), number: number(random) }
    }
}

impl fmt::Display for Instance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.tag {
            Some(tag) => write!(f, "{}@{tag}", self.lab),
            None => f.write_str(&self.lab),
        }
    }
}

/// The standard library seeds every `RandomState` anew from the system; that is all that is needed here.
fn random() -> u64 {
    RandomState::new().build_hasher().finish() ^ u64::from(std::process::id()).rotate_left(32)
}

fn number(random: u64) -> u16 {
    (random as u16).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ephemeral_instances_have_names_of_their_own() {
        let (a, b) = (Instance::ephemeral("star"), Instance::ephemeral("star"));
        assert_ne!(a.to_string(), b.to_string());
        assert!(a.to_string().starts_with("star@"));
        assert_eq!(Instance::persistent("star").to_string(), "star");
    }
}
