//! Rust source as two views: code of equal length, and string literals.
//!
//! The checks read text, not syntax trees: a scanner of this size is enough to tell code from
//! comments and strings, and keeps the first build short.

/// A string literal.
pub(crate) struct Literal {
    /// Where its opening quote (or prefix) stands, in bytes.
    pub(crate) at: usize,
    /// What it says, escapes resolved.
    pub(crate) text: String,
}

/// The views of one source file. Each keeps every line break and byte offset of the original.
pub(crate) struct Rust {
    /// Only code: comments and what stands between quotes are blank.
    pub(crate) code: String,
    /// The string literals, in order.
    pub(crate) literals: Vec<Literal>,
}

impl Rust {
    /// Scans `source`.
    pub(crate) fn scan(source: &str) -> Self {
        let mut scanner = Scanner { source, at: 0, code: vec![], literals: vec![] };
        while scanner.at < source.len() {
            scanner.step();
        }
        Self {
            code: String::from_utf8_lossy(&scanner.code).into_owned(),
            literals: scanner.literals,
        }
    }

    /// The code with all that is compiled only for tests left blank.
    pub(crate) fn code_without_tests(&self) -> String {
        let mut code = self.code.clone();
        let mut from = 0;
        while let Some(found) = code[from..].find("#[cfg(test)]") {
            let start = from + found;
            from = item_end(&code, start + 12);
            code.replace_range(start..from, &blank(&code[start..from]));
        }
        code
    }

    /// The string literals outside of what is compiled only for tests.
    pub(crate) fn literals_without_tests(&self) -> impl Iterator<Item = &Literal> {
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

struct Scanner<'a> {
    source: &'a str,
    at: usize,
    code: Vec<u8>,
    literals: Vec<Literal>,
}

impl Scanner<'_> {
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
        self.code.extend(blank(text).bytes());
        self.at += length;
    }

    fn literal(&mut self, prefix: usize, length: usize, close: usize, text: String) {
        self.literals.push(Literal { at: self.at, text });
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
        let rust = Rust::scan(source);
        assert_eq!(rust.code.len(), source.len());
        assert!(!rust.code.contains(['{', '}', 'x', 'y', 'q']), "{}", rust.code);
        let texts: Vec<_> = rust.literals.iter().map(|literal| &*literal.text).collect();
        assert_eq!(texts, ["x // {", "{ \"q\" "]);
        assert_eq!(rust.line(rust.literals[1].at), 2);
    }

    #[test]
    fn lifetimes_are_no_characters() {
        let rust = Rust::scan("fn f<'a>(x: &'a str) -> char { '{' } // é\nfn g() {}");
        assert_eq!(rust.code.matches('{').count(), 2);
        assert!(rust.code.contains("&'a str"));
    }

    #[test]
    fn escapes_are_resolved() {
        let rust = Rust::scan("f(\"a\\\"b\\n\\\n   c\")");
        assert_eq!(rust.literals[0].text, "a\"b\nc");
    }

    #[test]
    fn tests_can_be_left_out() {
        let rust = Rust::scan(
            "fn a() { \"x\"; }\n#[cfg(test)]\nmod tests { fn b() { \"y\" } }\nfn c() {}",
        );
        let code = rust.code_without_tests();
        assert!(code.contains("fn a") && code.contains("fn c") && !code.contains("fn b"), "{code}");
        let texts: Vec<_> = rust.literals_without_tests().map(|literal| &*literal.text).collect();
        assert_eq!(texts, ["x"]);
    }
}
