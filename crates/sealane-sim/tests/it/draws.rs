//! The page with the map in a real browser.

use sealane_sim::{SimRun, SimWatch};
use sealane_testing::run_script;

/// Six machines, of which two wander and one, later, is put elsewhere.
const SIX: &str = "[[medium]]\nname = \"road\"\nprofile = \"11p\"\n\
                   [[motion]]\nname = \"about\"\nkind = \"wander\"\narea = [300, 100]\n\
                   speed_mps = 10\n\
                   [[node]]\nname = \"post\"\ncount = 4\nkind = \"flood\"\nmedia = [\"road\"]\n\
                   line = [90, 10]\n\
                   [[node]]\nname = \"car\"\ncount = 2\nkind = \"flood\"\nmedia = [\"road\"]\n\
                   motion = \"about\"\n\
                   [[flow]]\nfrom = \"car-1\"\nto = \"post-4\"\nevery_ms = 500\nbytes = 50\n\
                   [[event]]\nat_s = 9\ndo = \"move\"\nwho = [\"post-2\"]\nto = [50, 80]\n";

#[test]
#[ignore = "lab: needs Chromium and npm packages"]
fn a_map_on_which_machines_move_and_which_fetches_nothing() {
    let scenario = crate::sketch(20, SIX);
    let watch = SimWatch::new().with_page(&scenario, 1);
    let outcome = SimRun::new(scenario, 1, &[], watch).unwrap().finish().unwrap();
    let dir = tempfile::tempdir().unwrap();
    let page = dir.path().join("map.html");
    let text = outcome.page.unwrap().to_html(&outcome.summary.to_string());
    std::fs::write(&page, text).unwrap();
    run_script("map.mjs", "playwright-core", &[page.to_str().unwrap(), "6", "3"]);
}
