//! The list of attempts without a defence in `SECURITY.md`, taken from the rows of
//! `docs/THREATS.md`, and the address for reports there.

use crate::process::XtaskResult;
use crate::tree::SourceTree;

/// The page for a reader with two minutes.
pub(crate) const SECURITY: &str = "SECURITY.md";
/// The page with all roles and attempts.
pub(crate) const THREATS: &str = "docs/THREATS.md";

const BEGIN: &str = "<!-- no defence -->\n";
const END: &str = "<!-- end of no defence -->";
const NONE: &str = "**no defence**";
const REPORT: &str = "Report to: ";

/// The page with the rows that its list should have, if both pages are there.
pub(crate) fn page(tree: &SourceTree) -> Option<(String, XtaskResult<String>)> {
    let (security, threats) = (tree.get(SECURITY)?, tree.get(THREATS)?);
    let list = security.split_once(BEGIN).zip(security.split_once(END));
    let page = list.map(|((before, _), (_, after))| {
        format!("{before}{BEGIN}{}{END}{after}", undefended(threats))
    });
    Some((SECURITY.to_owned(), page.ok_or_else(|| format!("{SECURITY} has no `{BEGIN}`"))))
}

/// Each role, and its attempts that nothing prevents.
fn undefended(threats: &str) -> String {
    let mut list = String::from("| role | can |\n|---|---|\n");
    let mut role = "";
    for line in threats.lines() {
        if let Some(heading) = line.strip_prefix("## ") {
            role = heading;
        }
        let mut cells = line.split(" | ");
        let attempt = cells.next().and_then(|cell| cell.strip_prefix("| "));
        if let Some(attempt) = attempt.filter(|_| cells.any(|cell| cell.contains(NONE))) {
            list += &format!("| {role} | {attempt} |\n");
        }
    }
    list
}

/// The address at which somebody reads reports of weaknesses.
pub(crate) fn address(security: &str) -> XtaskResult<&str> {
    let line = security.lines().find_map(|line| line.strip_prefix(REPORT));
    let is_address = |line: &&str| line.contains('@') || line.contains("https://");
    line.filter(is_address).ok_or_else(|| {
        format!("{SECURITY} names no address; write one behind `{REPORT}`, with an @ or https://")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_attempt_without_a_defence_stands_on_the_short_page() {
        let threats = "# T\n\nA row says **no defence**.\n\n## A relay\n\n| tries to | holds |\n\
                       |---|---|\n| read | it has no keys |\n| drop | **no defence** yet |\n\n\
                       ## A hub\n\n| withhold | bounded; else **no defence** | nobody |\n";
        let security = format!("# S\n{BEGIN}| stale |\n{END}\nmore\n");
        let tree = SourceTree::sample(&[(SECURITY, &security), (THREATS, threats)]);
        let list = "| role | can |\n|---|---|\n| A relay | drop |\n| A hub | withhold |\n";
        assert_eq!(page(&tree).unwrap().1.unwrap(), format!("# S\n{BEGIN}{list}{END}\nmore\n"));
        let tree = SourceTree::sample(&[(SECURITY, "# S\n"), (THREATS, threats)]);
        assert!(page(&tree).unwrap().1.unwrap_err().contains("no defence"));
    }

    #[test]
    fn a_release_needs_an_address_for_reports() {
        for none in ["", "Report to:\n", "Report to: nobody is named yet\n"] {
            assert!(address(none).unwrap_err().contains("names no address"), "{none}");
        }
        assert_eq!(address("# S\n\nReport to: a@b.example\n"), Ok("a@b.example"));
        assert_eq!(address("Report to: https://b.example/new\n"), Ok("https://b.example/new"));
    }
}
