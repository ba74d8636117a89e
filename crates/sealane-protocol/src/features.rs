use std::borrow::Cow;

/// The features of this hub that a client has to ask for before it uses them, by name (spec/hub.md
/// §5).
pub const FEATURES: [&str; 6] =
    ["batch", "nack-delay", "seek", "sealed", "publish", "session-next"];

/// The features of a hub of version 1 that does not list them yet.
const BASE: [&str; 4] = ["batch", "nack-delay", "seek", "sealed"];

/// The features that a hub lists when a subscription stands.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Features(Vec<Cow<'static, str>>);

impl Features {
    /// Those of this hub: [`FEATURES`].
    pub fn ours() -> Self {
        Self(FEATURES.map(Cow::from).into())
    }

    /// Those of a hub that lists none: the base of version 1.
    pub fn base() -> Self {
        Self(BASE.map(Cow::from).into())
    }

    /// Whether the hub lists this one.
    pub fn has(&self, feature: &str) -> bool {
        self.0.iter().any(|name| name == feature)
    }

    /// Their names, in the hub's order.
    pub fn names(&self) -> impl ExactSizeIterator<Item = &str> {
        self.0.iter().map(AsRef::as_ref)
    }
}

impl FromIterator<String> for Features {
    fn from_iter<I: IntoIterator<Item = String>>(names: I) -> Self {
        Self(names.into_iter().map(Cow::from).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hub_that_lists_nothing_has_the_base_and_this_one_has_more_or_the_same() {
        assert!(Features::base().has("seek") && !Features::base().has("teleport"));
        assert!(BASE.iter().all(|name| Features::ours().has(name)));
        let few: Features = ["batch".to_owned()].into_iter().collect();
        assert!(few.has("batch") && !few.has("seek"));
    }

    #[test]
    fn the_specification_lists_them() {
        let page = include_str!("../../../spec/hub.md");
        for name in FEATURES {
            assert!(page.contains(&format!("\n| `{name}` |")), "{name}");
        }
    }
}
