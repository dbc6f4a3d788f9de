//! Scans Rust code without its comments, literals and tests, with a minimal grammar.

/// Returns the source with comments and literals blanked out; line numbers do not change.
pub fn code_only(source: &str) -> String {
    let mut scanner =
        Scanner { chars: source.chars().collect(), at: 0, out: String::with_capacity(source.len()) };
    while scanner.at < scanner.chars.len() {
        scanner.step();
    }
    scanner.out
}

/// Returns code (from [`code_only`]) with every item under a `#[cfg(test)]` blanked out.
pub fn without_tests(code: &str) -> String {
    let mut out = code.to_owned();
    let mut from = 0;
    while let Some(start) = out[from..].find("#[cfg(").map(|index| from + index) {
        let attribute_end = out[start..].find(']').map_or(out.len(), |index| start + index + 1);
        let condition = &out[start..attribute_end];
        from = attribute_end;
        if has_word(condition, "test") && !has_word(condition, "not") {
            let end = item_end(&out, attribute_end);
            let blank: String = out[start..end].chars().map(|c| if c == '\n' { '\n' } else { ' ' }).collect();
            // A multi-byte character becomes one space, so the text may become shorter.
            out.replace_range(start..end, &blank);
            from = start;
        }
    }
    out
}

/// Returns the lines, from 1, that contain `word` as a whole word.
pub fn lines_with_word(text: &str, word: &str) -> Vec<usize> {
    let lines = text.lines().enumerate();
    lines.filter(|(_, line)| has_word(line, word)).map(|(index, _)| index + 1).collect()
}

/// Whether `text` contains `word` with no letter, digit or underscore on either side.
pub fn has_word(text: &str, word: &str) -> bool {
    let is_part = |c: char| c.is_alphanumeric() || c == '_';
    text.match_indices(word).any(|(start, found)| {
        let before = text[..start].chars().next_back();
        let after = text[start + found.len()..].chars().next();
        !before.is_some_and(is_part) && !after.is_some_and(is_part)
    })
}

/// Returns the end of the item that starts at `from`: after its block, or after its semicolon.
fn item_end(code: &str, from: usize) -> usize {
    let mut depth = 0_usize;
    for (index, c) in code[from..].char_indices() {
        match c {
            '{' => depth += 1,
            '}' if depth <= 1 => return from + index + 1,
            '}' => depth -= 1,
            ';' if depth == 0 => return from + index + 1,
            _ => {}
        }
    }
    code.len()
}

struct Scanner {
    chars: Vec<char>,
    at: usize,
    out: String,
}

impl Scanner {
    fn step(&mut self) {
        match self.chars[self.at] {
            '/' if self.peek(1) == Some('/') => self.blank_while(|c| c != '\n'),
            '/' if self.peek(1) == Some('*') => self.block_comment(),
            '"' => self.string(),
            'r' if !self.is_inside_word() || self.is_after_prefix() => self.raw_string_or_keep(),
            '\'' => self.char_or_lifetime(),
            _ => self.copy_char(),
        }
    }

    fn peek(&self, ahead: usize) -> Option<char> {
        self.chars.get(self.at + ahead).copied()
    }

    fn copy_char(&mut self) {
        self.out.push(self.chars[self.at]);
        self.at += 1;
    }

    fn blank(&mut self) {
        if let Some(&c) = self.chars.get(self.at) {
            self.out.push(if c == '\n' { '\n' } else { ' ' });
            self.at += 1;
        }
    }

    fn blank_while(&mut self, continues: impl Fn(char) -> bool) {
        while self.peek(0).is_some_and(&continues) {
            self.blank();
        }
    }

    fn is_inside_word(&self) -> bool {
        self.at > 0 && (self.chars[self.at - 1].is_alphanumeric() || self.chars[self.at - 1] == '_')
    }

    /// True after the `b` or `c` of `br"..."` or `cr"..."`.
    fn is_after_prefix(&self) -> bool {
        let is_start =
            self.at < 2 || !(self.chars[self.at - 2].is_alphanumeric() || self.chars[self.at - 2] == '_');
        matches!(self.chars[self.at - 1], 'b' | 'c') && is_start
    }

    fn block_comment(&mut self) {
        let mut depth = 0;
        while let Some(c) = self.peek(0) {
            match (c, self.peek(1)) {
                ('/', Some('*')) => depth += 1,
                ('*', Some('/')) => depth -= 1,
                _ => {
                    self.blank();
                    continue;
                }
            }
            self.blank();
            self.blank();
            if depth == 0 {
                break;
            }
        }
    }

    fn string(&mut self) {
        self.blank();
        while let Some(c) = self.peek(0) {
            self.blank();
            match c {
                '\\' => self.blank(),
                '"' => break,
                _ => {}
            }
        }
    }

    fn raw_string_or_keep(&mut self) {
        let hashes = (1..).take_while(|&ahead| self.peek(ahead) == Some('#')).count();
        if self.peek(1 + hashes) != Some('"') {
            return self.copy_char(); // an ordinary word, or a raw identifier
        }
        (0..hashes + 2).for_each(|_| self.blank());
        while let Some(c) = self.peek(0) {
            let is_end = c == '"' && (1..=hashes).all(|ahead| self.peek(ahead) == Some('#'));
            self.blank();
            if is_end {
                (0..hashes).for_each(|_| self.blank());
                break;
            }
        }
    }

    fn char_or_lifetime(&mut self) {
        if self.peek(1) == Some('\\') {
            (0..3).for_each(|_| self.blank());
            self.blank_while(|c| c != '\'');
            self.blank();
        } else if self.peek(2) == Some('\'') {
            (0..3).for_each(|_| self.blank());
        } else {
            self.copy_char();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(source: &str, kept: &str) {
        let code = code_only(source);
        assert_eq!(code.lines().count(), source.lines().count(), "{code:?}");
        assert_eq!(code.split_whitespace().collect::<Vec<_>>().join(" "), kept);
    }

    #[test]
    fn comments_and_literals_are_blanked() {
        check("a // b\nc /* d /* e */ f */ g", "a c g");
        check(r#"a("b \" c", 'd', '\'', '\u{1F600}', '"', b'x', b"y") z"#, "a( , , , , , b , b ) z");
        check("a(r\"b\\\", c) r#\"d \" e\"# r##\"f\"# g\"## br#\"h\"# z", "a( , c) b z");
        check(
            "fn f<'a>(x: &'a str, r#type: u8, for_r: u8) {}",
            "fn f<'a>(x: &'a str, r#type: u8, for_r: u8) {}",
        );
        check("let x = \"open\nend", "let x =");
        check("/* open", "");
        check("let q = '\\", "let q =");
    }

    #[test]
    fn tests_are_blanked_and_the_rest_stays() {
        let code = "fn a() {}\n#[cfg(test)]\nmod tests {\n fn b() { c(); }\n}\n#[cfg(test)]\nuse d;\nfn e() {}\n\
                    #[cfg(all(test, loom))]\nmod f { }\n#[cfg(not(test))]\nfn g() {}\n#[cfg(unix)]\nfn h() {}";
        let kept = without_tests(code);
        assert_eq!(kept.lines().count(), code.lines().count());
        let kept: Vec<&str> = kept.split_whitespace().collect();
        assert_eq!(kept.join(" "), "fn a() {} fn e() {} #[cfg(not(test))] fn g() {} #[cfg(unix)] fn h() {}");
    }

    #[test]
    fn test_items_may_be_truncated_or_non_ascii() {
        assert_eq!(without_tests("#[cfg(test)]\nmod é { ü").trim(), "");
        let around = without_tests("é #[cfg(test)] mod é {ü} a");
        assert_eq!(around.split_whitespace().collect::<Vec<_>>(), ["é", "a"]);
    }

    #[test]
    fn words_have_borders() {
        assert!(has_word("unsafe {", "unsafe") && has_word("(unsafe)", "unsafe"));
        assert!(!has_word("unsafe_code", "unsafe") && !has_word("notunsafe", "unsafe"));
        assert_eq!(lines_with_word("a\nb a\nab", "a"), [1, 2]);
    }
}
