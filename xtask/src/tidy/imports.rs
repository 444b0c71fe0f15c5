//! Reads which modules a Rust file imports, as text: enough for the rules on layers and circles.
//!
//! # How it works
//! 1. The compiler's own lexer (the crate proc-macro2) takes the text apart, so that a path in a comment, a
//!    string or an example is no import.
//! 2. Items under `#[cfg(test)]` and `#[cfg(doc)]` are left out: tests may look anywhere, and links in
//!    the documentation are no dependency.
//! 3. Every `use` is taken apart into its names, and every other path that begins with `crate`,
//!    `super` or `self` is kept.
//!
//! # Not supported
//! Names brought in by `*`; paths inside macros other than as written.

use proc_macro2::{Delimiter, TokenStream, TokenTree};

/// A path that a file names.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Import {
    pub(super) line: usize,
    /// Its parts: `crate`, `super` or `self` first, or the name of a child module or a crate.
    pub(super) path: Vec<String>,
    /// Its name in this file, if a `use` brings it in.
    pub(super) alias: Option<String>,
}

/// A file's modules and imports.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Reading {
    pub(super) imports: Vec<Import>,
    /// Child modules that exist only in tests.
    pub(super) test_modules: Vec<String>,
}

type Token = (usize, String);

/// Reads one file.
pub(super) fn read(text: &str) -> Reading {
    let mut reading = Reading::default();
    let tokens = without_tests(&tokens(text), &mut reading.test_modules);
    let mut at = 0;
    while at < tokens.len() {
        let (line, token) = (tokens[at].0, tokens[at].1.as_str());
        if token == "use" {
            at += 1;
            tree(&tokens, &mut at, &[], &mut reading.imports);
        } else if matches!(token, "crate" | "super" | "self") && is(&tokens, at + 1, "::") {
            let mut path = vec![token.to_string()];
            while is(&tokens, at + 1, "::") && tokens.get(at + 2).is_some_and(|t| is_name(&t.1)) {
                path.push(tokens[at + 2].1.clone());
                at += 2;
            }
            reading.imports.push(Import { line, path, alias: None });
            at += 1;
        } else {
            at += 1;
        }
    }
    reading
}

/// One branch of a `use`: a name, a path, or several in braces.
fn tree(tokens: &[Token], at: &mut usize, prefix: &[String], found: &mut Vec<Import>) {
    let mut path = prefix.to_vec();
    while let Some((line, token)) = tokens.get(*at) {
        let line = *line;
        *at += 1;
        match token.as_str() {
            "::" => {}
            "{" => {
                while *at < tokens.len() && !is(tokens, *at, "}") {
                    tree(tokens, at, &path, found);
                    if is(tokens, *at, ",") {
                        *at += 1;
                    }
                }
                *at += 1;
                return;
            }
            "*" => {
                found.push(Import { line, path, alias: None });
                return;
            }
            name => {
                // `a::{self}` is `a`.
                if name != "self" || path.is_empty() {
                    path.push(name.to_string());
                }
                if is(tokens, *at, "::") {
                    continue;
                }
                let mut alias = path.last().cloned();
                if is(tokens, *at, "as") {
                    alias = tokens.get(*at + 1).map(|token| token.1.clone());
                    *at += 2;
                }
                found.push(Import { line, path, alias });
                return;
            }
        }
    }
}

fn is(tokens: &[Token], at: usize, wanted: &str) -> bool {
    tokens.get(at).is_some_and(|token| token.1 == wanted)
}

fn is_name(token: &str) -> bool {
    token.starts_with(|c: char| c.is_alphabetic() || c == '_')
}

/// Names and punctuation, with their lines; nothing of a text that is no Rust.
fn tokens(text: &str) -> Vec<Token> {
    let mut found = Vec::new();
    if let Ok(stream) = text.parse() {
        flatten(stream, &mut found);
    }
    found
}

fn flatten(stream: TokenStream, found: &mut Vec<Token>) {
    for tree in stream {
        let line = tree.span().start().line;
        match tree {
            TokenTree::Group(group) => {
                let (open, close) = match group.delimiter() {
                    Delimiter::Parenthesis => ("(", ")"),
                    Delimiter::Brace => ("{", "}"),
                    Delimiter::Bracket => ("[", "]"),
                    Delimiter::None => ("", ""),
                };
                found.push((line, open.into()));
                flatten(group.stream(), found);
                found.push((group.span_close().start().line, close.into()));
            }
            TokenTree::Punct(punct) => match found.last_mut() {
                // Two colons side by side are one.
                Some((_, last)) if last == ":" && punct.as_char() == ':' => last.push(':'),
                _ => found.push((line, punct.to_string())),
            },
            TokenTree::Ident(name) => found.push((line, name.to_string())),
            // Their contents are no imports.
            TokenTree::Literal(_) => found.push((line, "\"\"".into())),
        }
    }
}

/// The tokens without the items that only tests or the documentation have.
fn without_tests(tokens: &[Token], test_modules: &mut Vec<String>) -> Vec<Token> {
    const HIDDEN: [&[&str]; 3] = [
        &["#", "[", "cfg", "(", "test", ")", "]"],
        &["#", "[", "cfg", "(", "doc", ")", "]"],
        &["#", "[", "cfg", "(", "all", "(", "test"],
    ];
    let mut kept = Vec::new();
    let mut at = 0;
    while at < tokens.len() {
        let begins =
            |words: &&[&str]| words.iter().enumerate().all(|(n, word)| is(tokens, at + n, word));
        if !HIDDEN.iter().any(begins) {
            kept.push(tokens[at].clone());
            at += 1;
            continue;
        }
        // Its attributes, then the item up to its `;` or its closing brace.
        while is(tokens, at, "#") {
            at = after_group(tokens, at + 1);
        }
        if let Some(module) = tokens[at..].iter().position(|token| token.1 == "mod")
            && module <= 4
            && is(tokens, at + module + 2, ";")
        {
            test_modules.push(tokens[at + module + 1].1.clone());
        }
        while at < tokens.len() && !matches!(tokens[at].1.as_str(), ";" | "{") {
            at += 1;
        }
        at = if is(tokens, at, "{") { after_group(tokens, at) } else { at + 1 };
    }
    kept
}

/// The index after the bracket that closes the one at `at`.
fn after_group(tokens: &[Token], at: usize) -> usize {
    let mut depth = 0_usize;
    for (index, token) in tokens.iter().enumerate().skip(at) {
        match token.1.as_str() {
            "{" | "[" | "(" => depth += 1,
            "}" | "]" | ")" => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth == 0 {
            return index + 1;
        }
    }
    tokens.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn paths(text: &str) -> Vec<String> {
        read(text).imports.iter().map(|import| import.path.join("::")).collect()
    }

    #[test]
    fn a_tree_is_taken_apart() {
        let text = "pub(crate) use crate::{a::{self, B}, c::D as E};\nuse super::f;\n";
        assert_eq!(paths(text), ["crate::a", "crate::a::B", "crate::c::D", "super::f"]);
        let reading = read(text);
        let aliases: Vec<_> = reading.imports.iter().flat_map(|i| i.alias.as_deref()).collect();
        assert_eq!(aliases, ["a", "B", "E", "f"]);
        assert_eq!(reading.imports[3].line, 2);
    }

    #[test]
    fn paths_in_code_are_imports() {
        let text = "fn f() -> crate::a::B { super::super::c(crate::d::E::new()) }\n";
        assert_eq!(paths(text), ["crate::a::B", "super::super::c", "crate::d::E::new"]);
        assert!(paths("pub(crate) fn f(self) {}\n").is_empty());
    }

    #[test]
    fn comments_and_strings_are_no_imports() {
        for text in [
            "//! use crate::a;\n",
            "/* use crate::a; */",
            "const A: &str = \"crate::a \\\" crate::b\";",
            "const A: &str = r#\"crate::a \" crate::b\"#;",
            "const A: [char; 2] = ['\"', '\\''];",
        ] {
            assert!(paths(text).is_empty(), "{text}");
        }
        assert_eq!(paths("fn f<'a>(x: &'a crate::b::C) {}"), ["crate::b::C"]);
        assert_eq!(paths("const A: char = '\"'; use crate::a;"), ["crate::a"]);
        assert_eq!(paths("const A: &str = for_r\"b\"; use crate::a;"), ["crate::a"]);
    }

    #[test]
    fn tests_and_links_may_look_anywhere() {
        let text = "#[cfg(test)]\nmod tests;\n#[cfg(doc)]\nuse crate::a;\n#[cfg(test)]\n\
                    #[allow(x)]\nmod more { use crate::b; fn f() { {} } }\nuse crate::c;\n";
        let reading = read(text);
        assert_eq!(reading.test_modules, ["tests"]);
        assert_eq!(reading.imports.len(), 1);
        assert_eq!((reading.imports[0].line, paths(text)), (8, vec!["crate::c".to_string()]));
    }
}
