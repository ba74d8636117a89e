//! Names of single machines: home folders, and hosts of package registries.

use super::TidyFindings;
use crate::tree::SourceTree;

/// Folders that exist on one machine only. Written in two parts, so that this file passes.
const FOLDERS: &[&str] = &[
    concat!("/ro", "ot/"),
    concat!("/ho", "me/"),
    concat!("/wo", "rk/"),
    concat!("/Us", "ers/"),
    concat!("C:\\Us", "ers\\"),
];

/// Where packages come from is the business of each machine's settings.
const HOSTS: &[&str] = &[
    concat!("index.", "crates.io"),
    concat!("static.", "crates.io"),
    concat!("crates.io", "-index"),
    concat!("registry.", "npmjs.org"),
    concat!("registry.", "yarnpkg.com"),
    concat!("pypi", ".org"),
    concat!("pythonhosted", ".org"),
    concat!("proxy.", "golang.org"),
    concat!("artif", "actory"),
];

/// The one registry that lock files and deny.toml name.
const PUBLIC: &str = concat!("https://github.com/rust-lang/crates.io", "-index");

pub(super) fn check(tree: &SourceTree, findings: &mut TidyFindings) {
    for (path, text) in tree.files() {
        for (index, line) in text.lines().enumerate() {
            if let Some(folder) = FOLDERS.iter().find(|folder| names_folder(line, folder)) {
                let what = format!("a path of one machine, `{folder}`");
                findings.add(path, index + 1, what, "use a path relative to the root");
            }
            if let Some(host) = names_host(path, line) {
                let what = format!("the registry `{host}`");
                findings.add(path, index + 1, what, "leave it to cargo, npm and pip");
            }
        }
    }
}

/// A folder counts only where a path begins: not inside of a longer path or address.
fn names_folder(line: &str, folder: &str) -> bool {
    line.match_indices(folder).any(|(at, _)| {
        let before = line[..at].chars().next_back();
        !before
            .is_some_and(|c| c.is_alphanumeric() || matches!(c, '_' | '-' | '.' | '}' | '*' | '~'))
    })
}

fn names_host<'a>(path: &str, line: &'a str) -> Option<&'a str> {
    let is_lock = path.ends_with("Cargo.lock");
    let public_here = is_lock || path == "deny.toml";
    let line = line.trim();
    if public_here && line.contains(PUBLIC) {
        return None;
    }
    let elsewhere = is_lock && line.starts_with("source = \"registry+")
        || path.ends_with("package-lock.json") && line.starts_with("\"resolved\": \"http");
    let host = HOSTS.iter().find_map(|host| line.find(host).map(|at| &line[at..at + host.len()]));
    host.or(elsewhere.then_some(line))
}

#[cfg(test)]
mod tests {
    use super::super::said;
    use super::*;

    fn found(path: &str, text: &str) -> Vec<String> {
        said(check, &SourceTree::sample(&[(path, text)]))
    }

    #[test]
    fn every_folder_and_host_is_found_in_any_file() {
        for folder in FOLDERS {
            assert_eq!(
                found("results/a.txt", &format!("built in ({folder}x)\n")).len(),
                1,
                "{folder}"
            );
        }
        for host in HOSTS {
            assert_eq!(found("sdk/a.json", &format!("https://{host}/x\n")).len(), 1, "{host}");
        }
    }

    #[test]
    fn topics_and_addresses_are_no_folders() {
        let topic = concat!("fleet/7/wo", "rk/on and https://a.example/ho", "me/x\n");
        assert_eq!(found("docs/A.md", topic), Vec::<String>::new());
    }

    #[test]
    fn lock_files_name_the_public_registry_only() {
        let public = format!("source = \"registry+{PUBLIC}\"\n");
        assert_eq!(found("fuzz/Cargo.lock", &public), Vec::<String>::new());
        assert_eq!(found("docs/A.md", &public).len(), 1);
        assert_eq!(found("Cargo.lock", "source = \"registry+https://mirror.example/\"\n").len(), 1);
        let resolved = "  \"resolved\": \"https://mirror.example/ws.tgz\",\n";
        assert_eq!(found("tests/js/package-lock.json", resolved).len(), 1);
    }
}
