//! The counts of a source tree.

use std::collections::BTreeMap;
use std::ops::Range;

use crate::rust::{
    RustSource, closing, is_one_word, is_word, item_end, test_attributes, test_modules, type_names,
    words,
};

/// Numbers that code is cast to by `as`.
const NUMBERS: &[&str] = &[
    "u8", "u16", "u32", "u64", "u128", "usize", "i8", "i16", "i32", "i64", "i128", "isize", "f32",
    "f64",
];
const PANICS: &[&str] =
    &["panic!", "unreachable!", "todo!", "unimplemented!", "assert!", "assert_eq!", "assert_ne!"];
const DEBUG_ASSERTS: &[&str] = &["debug_assert!", "debug_assert_eq!", "debug_assert_ne!"];
const PARAMETERS_MAX: usize = 5;

/// The figures of a source tree.
#[derive(Debug, Default)]
pub(super) struct SourceCounts {
    /// Lines of each file.
    pub(super) files: Vec<usize>,
    /// Lines of each function that has a body.
    pub(super) functions: Vec<usize>,
    /// How deep braces are nested within the body of each function.
    pub(super) depths: Vec<usize>,
    pub(super) unwraps: usize,
    pub(super) panics: usize,
    pub(super) debug_asserts: usize,
    pub(super) casts: usize,
    pub(super) unsafes: usize,
    pub(super) clones: usize,
    pub(super) publics: usize,
    /// Functions with more than [`PARAMETERS_MAX`] parameters beside `self`.
    pub(super) long_lists: usize,
    /// Functions that have a tuple as parameter.
    pub(super) tuples: usize,
    /// Lines of comments within the bodies of functions, documentation left out.
    pub(super) reasons: usize,
    /// Lines of documentation.
    pub(super) docs: usize,
    /// Types that have a name of their own.
    pub(super) types: usize,
    /// Types of which the name is one word.
    pub(super) short_names: usize,
}

impl SourceCounts {
    /// Counts files by their paths; those that are compiled only for tests are left out.
    pub(super) fn of(sources: &BTreeMap<String, RustSource>) -> Self {
        let tests: Vec<String> =
            sources.iter().flat_map(|(path, rust)| test_modules(path, &rust.code)).collect();
        let is_test = |path: &str| {
            path.ends_with("/tests.rs") || tests.iter().any(|test| path.starts_with(test))
        };
        let mut counts = Self::default();
        for (_, rust) in sources.iter().filter(|(path, _)| !is_test(path)) {
            let code = rust.code_without_tests();
            counts.add(&code);
            counts.comments(rust, &code);
        }
        counts
    }

    pub(super) fn lines(&self) -> usize {
        self.files.iter().sum()
    }

    /// A count, and how many it is for each 1,000 lines.
    pub(super) fn rate(&self, count: usize) -> String {
        format!("{count} ({:.2})", count as f64 * 1000.0 / self.lines().max(1) as f64)
    }

    fn add(&mut self, code: &str) {
        let all = |list: &[&str]| list.iter().map(|word| count(code, word)).sum::<usize>();
        self.files.push(lines(code));
        self.unwraps += code.matches(".unwrap()").count() + code.matches(".expect(").count();
        self.panics += all(PANICS);
        self.debug_asserts += all(DEBUG_ASSERTS);
        self.casts += words(code, "as").filter(|at| is_cast(&code[at + 2..])).count();
        self.unsafes += count(code, "unsafe");
        self.clones += code.matches(".clone()").count() + code.matches("::clone(").count();
        self.publics += words(code, "pub").filter(|at| !code[at + 3..].starts_with('(')).count();
        for at in words(code, "fn") {
            self.function(code, at);
        }
        for (_, name) in type_names(code) {
            self.types += 1;
            self.short_names += usize::from(is_one_word(name));
        }
    }

    /// Comments of what is compiled only for tests are left out: their code is blank in `code`.
    fn comments(&mut self, rust: &RustSource, code: &str) {
        let bodies: Vec<_> = words(code, "fn").filter_map(|at| body(code, at)).collect();
        let hidden = hidden(&rust.code, code);
        for comment in &rust.comments {
            let lines = comment.text.lines().count();
            let is_within = |spans: &[Range<usize>]| spans.iter().any(|s| s.contains(&comment.at));
            if is_within(&hidden) {
            } else if comment.is_doc() {
                self.docs += lines;
            } else if is_within(&bodies) {
                self.reasons += lines;
            }
        }
    }

    fn function(&mut self, code: &str, at: usize) {
        let Some(parameters) = parameters(&code[at + 2..]) else { return };
        let end = item_end(code, at);
        if code[..end].ends_with('}') {
            self.functions.push(lines(&code[at..end]));
            self.depths.push(depth(&code[at..end]));
        }
        let named = parameters.iter().filter(|parameter| parameter.contains(':')).count();
        self.long_lists += usize::from(named > PARAMETERS_MAX);
        self.tuples += usize::from(parameters.iter().any(|parameter| is_tuple(parameter)));
    }
}

/// The body of the function whose `fn` stands at `at`.
fn body(code: &str, at: usize) -> Option<Range<usize>> {
    let end = item_end(code, at);
    let open = at + code[at..end].find('{')?;
    code[..end].ends_with('}').then_some(open..end)
}

/// The items that are blank in the code without tests.
fn hidden(all: &str, without: &str) -> Vec<Range<usize>> {
    let starts = test_attributes(all).map(|(start, from)| start..item_end(all, from));
    starts.filter(|span| without[span.clone()].trim().is_empty()).collect()
}

fn count(code: &str, word: &str) -> usize {
    match word.strip_suffix('!') {
        Some(name) => {
            words(code, name).filter(|at| code[at + name.len()..].starts_with('!')).count()
        }
        None => words(code, word).count(),
    }
}

fn lines(code: &str) -> usize {
    code.lines().filter(|line| !line.trim().is_empty()).count()
}

fn is_cast(rest: &str) -> bool {
    let rest = rest.trim_start();
    let length = rest.bytes().take_while(|byte| is_word(*byte)).count();
    NUMBERS.contains(&&rest[..length])
}

/// How deep the braces of a function are nested within its body.
fn depth(function: &str) -> usize {
    let (mut depth, mut deepest) = (0_usize, 0);
    for byte in function.bytes() {
        match byte {
            b'{' => depth += 1,
            b'}' => depth = depth.saturating_sub(1),
            _ => {}
        }
        deepest = deepest.max(depth);
    }
    deepest.saturating_sub(1)
}

/// The parameters of a function, from behind its `fn`; none where that is a function's type.
fn parameters(rest: &str) -> Option<Vec<&str>> {
    let name = rest.trim_start();
    let length = name.bytes().take_while(|byte| is_word(*byte) || *byte == b'$').count();
    let behind = &name[length..];
    let from = if behind.starts_with('<') { split(behind, '>')?.len() + 1 } else { 0 };
    let list = behind[from..].trim_start();
    if length == 0 || !list.starts_with('(') {
        return None;
    }
    let mut inner = &list[1..closing(list, 0) - 1];
    let mut parameters = vec![];
    while let Some(parameter) = split(inner, ',') {
        parameters.push(parameter);
        inner = &inner[parameter.len() + 1..];
    }
    parameters.push(inner);
    parameters.retain(|parameter| !parameter.trim().is_empty());
    Some(parameters)
}

/// The text before the first `end` that is in no bracket.
fn split(text: &str, end: char) -> Option<&str> {
    let (mut depth, mut before) = (0_i32, ' ');
    for (at, character) in text.char_indices() {
        let is_arrow = character == '>' && matches!(before, '-' | '=');
        match character {
            '>' if is_arrow => {}
            _ if character == end && depth == i32::from(end == '>') => return Some(&text[..at]),
            '(' | '[' | '{' | '<' => depth += 1,
            ')' | ']' | '}' | '>' => depth -= 1,
            _ => {}
        }
        before = character;
    }
    None
}

fn is_tuple(parameter: &str) -> bool {
    let Some((_, kind)) = parameter.rsplit_once("): ").or_else(|| parameter.split_once(':')) else {
        return false;
    };
    let kind = kind.trim_start().trim_start_matches('&').trim_start();
    let kind = kind.strip_prefix("mut ").unwrap_or(kind);
    kind.starts_with('(') && !kind.starts_with("()")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(files: &[(&str, &str)]) -> SourceCounts {
        let scan = |(path, text): &(&str, &str)| ((*path).to_owned(), RustSource::scan(text));
        SourceCounts::of(&files.iter().map(scan).collect())
    }

    #[test]
    fn tests_comments_and_strings_do_not_count() {
        let counts = counts(&[
            (
                "src/lib.rs",
                "//! x as u8\nfn a() {\n\n    b(\"y as u8 .unwrap()\"); // .unwrap()\n}\n\
                 #[cfg(test)]\nmod model;\n#[cfg(all(test, any(a, b)))]\nmod tests {\n\
                 fn t() { c().unwrap() }\n}\n",
            ),
            ("src/model.rs", "fn m() { panic!() }\n"),
            ("src/model/more.rs", "fn n() { panic!() }\n"),
            ("src/models.rs", "fn o() { debug_assert!(d as u64 == 1 as T); }\n"),
            ("src/a/tests.rs", "fn p() { panic!() }\n"),
        ]);
        assert_eq!((counts.lines(), counts.functions.len(), counts.files.len()), (4, 2, 2));
        assert_eq!((counts.unwraps, counts.panics), (0, 0));
        assert_eq!((counts.debug_asserts, counts.casts), (1, 1));
    }

    #[test]
    fn reasons_and_names_are_counted() {
        let text = "//! a\n/// b\n// c\nfn d() {\n    // e\n    // f\n    g();\n}\n\
                    struct Route;\nenum RouteKind {}\n\
                    #[cfg(test)]\nmod tests {\nstruct No;\nfn h() {\n// i\n}\n}\n";
        let counts = counts(&[("src/lib.rs", text)]);
        assert_eq!((counts.docs, counts.reasons), (2, 2));
        assert_eq!((counts.types, counts.short_names), (2, 1));
    }

    #[test]
    fn functions_are_measured_with_their_parameters() {
        let text = "pub fn a<F: Fn(u8) -> u8>(f: F, (g, h): (u8, u8)) { if f { g } }\n\
                    pub(crate) fn b(&self, a: A<B, C>, c: (), d: D, e: E, f: F) {\n}\n\
                    fn c(&self, a: A, b: B, c: C, d: D, e: E, f: fn(u8) -> u8) {\n}\n\
                    fn d(a: &mut (u8, u8));\nfn e(a: impl Fn((u8, u8))) {}\n";
        let counts = counts(&[("src/lib.rs", text)]);
        assert_eq!(counts.functions, [1, 2, 2, 1]);
        assert_eq!(counts.depths, [1, 0, 0, 0]);
        assert_eq!((counts.publics, counts.long_lists, counts.tuples), (1, 1, 2));
    }
}
