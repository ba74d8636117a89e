//! Rust source as two views: code of equal length, and string literals.
//!
//! The checks read text, not syntax trees: a scanner of this size is enough to tell code from
//! comments and strings, and keeps the first build short.

/// A string literal.
pub(crate) struct RustLiteral {
    /// Where its opening quote (or prefix) stands, in bytes.
    pub(crate) at: usize,
    /// The text of the literal, escapes resolved.
    pub(crate) text: String,
}

/// A comment, of one line or between `/*` and `*/`.
pub(crate) struct Comment {
    /// The place of its first slash, in bytes.
    pub(crate) at: usize,
    /// The whole comment, its slashes included.
    pub(crate) text: String,
}

impl Comment {
    /// Whether rustdoc shows it.
    pub(crate) fn is_doc(&self) -> bool {
        let text = &self.text;
        ["///", "//!", "/**", "/*!"].iter().any(|start| text.starts_with(start))
            && !text.starts_with("////")
    }
}

/// The views of one source file. Each keeps every line break and byte offset of the original.
pub(crate) struct RustSource {
    /// Only code: comments and what stands between quotes are blank.
    pub(crate) code: String,
    /// The string literals, in order.
    pub(crate) literals: Vec<RustLiteral>,
    /// The comments, in order.
    pub(crate) comments: Vec<Comment>,
}

impl RustSource {
    /// Scans `source`.
    pub(crate) fn scan(source: &str) -> Self {
        let mut scanner =
            RustScanner { source, at: 0, code: vec![], literals: vec![], comments: vec![] };
        while scanner.at < source.len() {
            scanner.step();
        }
        Self {
            code: String::from_utf8_lossy(&scanner.code).into_owned(),
            literals: scanner.literals,
            comments: scanner.comments,
        }
    }

    /// The code with all that is compiled only for tests left blank.
    pub(crate) fn code_without_tests(&self) -> String {
        let mut code = self.code.clone();
        for (start, from) in test_attributes(&self.code) {
            let end = item_end(&self.code, from);
            code.replace_range(start..end, &blank(&self.code[start..end]));
        }
        code
    }

    /// The string literals outside of what is compiled only for tests.
    pub(crate) fn literals_without_tests(&self) -> impl Iterator<Item = &RustLiteral> {
        let code = self.code_without_tests();
        self.literals.iter().filter(move |literal| code.as_bytes()[literal.at] != b' ')
    }

    /// The line, counted from 1, of a byte offset.
    pub(crate) fn line(&self, at: usize) -> usize {
        1 + self.code.as_bytes()[..at].iter().filter(|byte| **byte == b'\n').count()
    }
}

/// Whether a byte can be part of an identifier.
pub(crate) fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

/// Where `word` stands in `text` with no identifier byte on either side.
pub(crate) fn words<'a>(text: &'a str, word: &'a str) -> impl Iterator<Item = usize> + 'a {
    let bytes = text.as_bytes();
    text.match_indices(word).map(|(at, _)| at).filter(move |&at| {
        let before = at.checked_sub(1).map(|before| bytes[before]);
        let after = bytes.get(at + word.len()).copied();
        !before.is_some_and(is_word) && !after.is_some_and(is_word)
    })
}

/// The names of the types that `code` declares, and where they stand. Associated types are left
/// out: they are indented, and say what a trait asks for.
pub(crate) fn type_names(code: &str) -> impl Iterator<Item = (usize, &str)> {
    ["struct", "enum", "trait", "union", "type"].into_iter().flat_map(move |keyword| {
        words(code, keyword).filter_map(move |at| {
            let line = code[..at].rfind('\n').map_or(0, |end| end + 1);
            if keyword == "type" && code[line..at].starts_with(' ') {
                return None;
            }
            let from = at + keyword.len();
            let name = code[from..].trim_start();
            let start = code.len() - name.len();
            let length = name.bytes().take_while(|byte| is_word(*byte)).count();
            let is_name = name.starts_with(|first: char| first.is_ascii_uppercase());
            (is_name && start > from).then(|| (start, &name[..length]))
        })
    })
}

/// Whether a type's name is one word: `Waiting`, and not `RouteTable`.
pub(crate) fn is_one_word(name: &str) -> bool {
    name.bytes().skip(1).all(|byte| !byte.is_ascii_uppercase())
}

/// The end of the bracket that opens at `open` (its closing bracket included).
pub(crate) fn closing(code: &str, open: usize) -> usize {
    let mut depth = 0_usize;
    for (at, byte) in code.bytes().enumerate().skip(open) {
        match byte {
            b'(' | b'[' | b'{' => depth += 1,
            b')' | b']' | b'}' => {
                depth = depth.saturating_sub(1);
                if depth == 0 {
                    return at + 1;
                }
            }
            _ => {}
        }
    }
    code.len()
}

/// The end of the item that starts at `start`: its closing brace or its semicolon.
pub(crate) fn item_end(code: &str, start: usize) -> usize {
    let mut at = start;
    while let Some(byte) = code.as_bytes().get(at) {
        match byte {
            b'(' | b'[' => at = closing(code, at),
            b'{' => return closing(code, at),
            b';' => return at + 1,
            _ => at += 1,
        }
    }
    code.len()
}

fn blank(text: &str) -> String {
    text.bytes().map(|byte| if byte == b'\n' { '\n' } else { ' ' }).collect()
}

/// Where each item begins that is compiled only for tests, and where its attribute ends.
pub(crate) fn test_attributes(code: &str) -> impl Iterator<Item = (usize, usize)> + '_ {
    code.match_indices("#[cfg(").filter_map(|(at, _)| {
        let end = closing(code, at + 1);
        // A condition in `any(…)` or `not(…)` says nothing by itself.
        let needed = code[at..end].split("any(").next().unwrap_or_default();
        let needed = needed.split("not(").next().unwrap_or_default();
        words(needed, "test").next().is_some().then_some((at, end))
    })
}

/// The paths, as far as they are the same for file and folder, of modules that are only for tests.
pub(crate) fn test_modules(path: &str, code: &str) -> Vec<String> {
    let (folder, file) = path.rsplit_once('/').unwrap_or(("", path));
    let is_root = matches!(file, "lib.rs" | "main.rs" | "mod.rs");
    let own = if is_root { folder } else { path.trim_end_matches(".rs") };
    let mut modules = vec![];
    for (_, end) in test_attributes(code) {
        let item = code[end..item_end(code, end)].trim_start();
        if let Some(name) = item.strip_prefix("mod ").and_then(|item| item.strip_suffix(';')) {
            modules.extend(["/", "."].map(|next| format!("{own}/{}{next}", name.trim())));
        }
    }
    modules
}

struct RustScanner<'a> {
    source: &'a str,
    at: usize,
    code: Vec<u8>,
    literals: Vec<RustLiteral>,
    comments: Vec<Comment>,
}

impl RustScanner<'_> {
    fn step(&mut self) {
        let rest = &self.source[self.at..];
        let start_of_word = self.at == 0 || !is_word(self.source.as_bytes()[self.at - 1]);
        if rest.starts_with("//") {
            self.comment(rest.find('\n').unwrap_or(rest.len()));
        } else if rest.starts_with("/*") {
            self.comment(block_comment(rest));
        } else if let Some((prefix, hashes)) = raw_prefix(rest).filter(|_| start_of_word) {
            let close = format!("\"{}", "#".repeat(hashes));
            let body = &rest[prefix..];
            let length = body.find(&close).unwrap_or(body.len());
            self.literal(prefix, length, close.len(), body[..length].to_owned());
        } else if let Some(body) = rest.strip_prefix('"') {
            let length = quoted(body, '"');
            self.literal(1, length, 1, unescape(&body[..length]));
        } else if let Some(length) = char_literal(rest) {
            self.code.push(b'\'');
            self.blanks(length - 2);
            self.code.push(b'\'');
            self.at += length;
        } else {
            let length = rest.chars().next().map_or(1, char::len_utf8);
            self.code.extend_from_slice(&rest.as_bytes()[..length]);
            self.at += length;
        }
    }

    fn comment(&mut self, length: usize) {
        let text = &self.source[self.at..self.at + length];
        self.comments.push(Comment { at: self.at, text: text.to_owned() });
        self.code.extend(blank(text).bytes());
        self.at += length;
    }

    fn literal(&mut self, prefix: usize, length: usize, close: usize, text: String) {
        self.literals.push(RustLiteral { at: self.at, text });
        let end = (self.at + prefix + length + close).min(self.source.len());
        let whole = &self.source[self.at..end];
        let mut masked = blank(whole).into_bytes();
        masked[0] = b'"';
        if let Some(last) = masked.last_mut() {
            *last = b'"';
        }
        self.code.extend(masked);
        self.at = end;
    }

    fn blanks(&mut self, count: usize) {
        self.code.extend(std::iter::repeat_n(b' ', count));
    }
}

fn block_comment(text: &str) -> usize {
    let (mut depth, mut at) = (0_usize, 0);
    while at < text.len() {
        match text.as_bytes().get(at..at + 2) {
            Some(b"/*") => (depth, at) = (depth + 1, at + 2),
            Some(b"*/") => (depth, at) = (depth - 1, at + 2),
            _ => at += 1,
        }
        if depth == 0 {
            return at;
        }
    }
    text.len()
}

/// The length of `r#"` and its kin, and how many hashes it has.
fn raw_prefix(text: &str) -> Option<(usize, usize)> {
    let after = ["br", "cr", "r"].into_iter().find_map(|prefix| text.strip_prefix(prefix))?;
    let hashes = after.bytes().take_while(|byte| *byte == b'#').count();
    after[hashes..].starts_with('"').then_some((text.len() - after.len() + hashes + 1, hashes))
}

/// How many bytes stand before the closing quote.
fn quoted(text: &str, quote: char) -> usize {
    let mut escaped = false;
    for (at, character) in text.char_indices() {
        if escaped {
            escaped = false;
        } else if character == '\\' {
            escaped = true;
        } else if character == quote {
            return at;
        }
    }
    text.len()
}

/// The length of a character literal, quotes included; none for a lifetime.
fn char_literal(text: &str) -> Option<usize> {
    let inside = text.strip_prefix('\'')?;
    let first = inside.chars().next()?;
    if first == '\\' {
        return Some(quoted(inside, '\'') + 2);
    }
    inside[first.len_utf8()..].starts_with('\'').then_some(first.len_utf8() + 2)
}

fn unescape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('\\') {
        out += &rest[..at];
        let mut escape = rest[at + 1..].chars();
        let length = 1 + match escape.next() {
            Some('\n') => {
                let tail = &rest[at + 1..];
                tail.len() - tail.trim_start().len()
            }
            Some(character) => {
                out.push(match character {
                    'n' => '\n',
                    't' => '\t',
                    'r' => '\r',
                    '0' => '\0',
                    other => other,
                });
                character.len_utf8()
            }
            None => 0,
        };
        rest = &rest[at + length..];
    }
    out + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_and_comments_are_no_code() {
        let source = concat!(
            "let a = \"x // {\"; // } \"y\"\n",
            "let b = r#\"{ \"q\" \"#; /* { /* } */ */ let c = '\\'';"
        );
        let rust = RustSource::scan(source);
        assert_eq!(rust.code.len(), source.len());
        assert!(!rust.code.contains(['{', '}', 'x', 'y', 'q']), "{}", rust.code);
        let texts: Vec<_> = rust.literals.iter().map(|literal| &*literal.text).collect();
        assert_eq!(texts, ["x // {", "{ \"q\" "]);
        let comments: Vec<_> = rust.comments.iter().map(|comment| &*comment.text).collect();
        assert_eq!(comments, ["// } \"y\"", "/* { /* } */ */"]);
        assert_eq!(rust.line(rust.literals[1].at), 2);
    }

    #[test]
    fn lifetimes_are_no_characters() {
        let rust = RustSource::scan("fn f<'a>(x: &'a str) -> char { '{' } // é\nfn g() {}");
        assert_eq!(rust.code.matches('{').count(), 2);
        assert!(rust.code.contains("&'a str"));
    }

    #[test]
    fn names_of_types_are_found() {
        let code = "pub struct A;\nenum RouteKind {}\nimpl B for A {\n    type Err = C;\n}\n\
                    pub(crate) type D = u8; trait E {} fn structure() { x.type_id() }";
        let mut names: Vec<_> = type_names(code).map(|(_, name)| name).collect();
        names.sort_unstable();
        assert_eq!(names, ["A", "D", "E", "RouteKind"]);
        assert!(is_one_word("Waiting") && !is_one_word("RouteTable"));
    }

    #[test]
    fn escapes_are_resolved() {
        let rust = RustSource::scan("f(\"a\\\"b\\n\\\n   c\")");
        assert_eq!(rust.literals[0].text, "a\"b\nc");
    }

    #[test]
    fn tests_can_be_left_out() {
        let rust = RustSource::scan(
            "fn a() { \"x\"; }\n#[cfg(test)]\nmod tests { fn b() { \"y\" } }\nfn c() {}",
        );
        let code = rust.code_without_tests();
        assert!(code.contains("fn a") && code.contains("fn c") && !code.contains("fn b"), "{code}");
        let texts: Vec<_> = rust.literals_without_tests().map(|literal| &*literal.text).collect();
        assert_eq!(texts, ["x"]);
    }
}
