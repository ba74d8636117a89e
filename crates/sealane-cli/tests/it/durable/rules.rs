//! The rules that nothing may break. The tests look for all of them. For the search of a failure's
//! cause, `SEALANE_RULES=acks,places` leaves the other rules out. The load that could break those
//! is left out, too.

use std::sync::OnceLock;

const RULES: [&str; 7] = ["acks", "letters", "delays", "removal", "levels", "recovered", "places"];

/// Whether a rule is in force.
pub(crate) fn on(rule: &str) -> bool {
    static CHOSEN: OnceLock<Option<String>> = OnceLock::new();
    assert!(RULES.contains(&rule), "{rule}");
    let chosen = CHOSEN.get_or_init(chosen).as_ref();
    chosen.is_none_or(|list| list.split(',').any(|one| one == rule))
}

/// Those that are chosen; says where that is not all.
fn chosen() -> Option<String> {
    let list = std::env::var("SEALANE_RULES").ok()?;
    let unknown = list.split(',').find(|one| !RULES.contains(one));
    assert_eq!(unknown, None, "a rule is one of {RULES:?}");
    println!("NOT SHOWN: anything but {list}");
    Some(list)
}
