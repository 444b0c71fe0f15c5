//! Simple commands of a snippet of shell: as much of the syntax as pages use. `bash -n` reads the rest.

/// A command with its arguments.
#[derive(Clone, Debug, Default)]
pub(super) struct Simple {
    /// The line on which it ends.
    pub(super) line: usize,
    pub(super) words: Vec<String>,
    /// The comment after it.
    pub(super) comment: String,
    /// Whether it reads another command's output or a file.
    pub(super) piped: bool,
    /// The directory that a `cd` before it went to.
    pub(super) dir: String,
}

/// Every simple command of `text`, which begins at `line`.
pub(super) fn commands(text: &str, line: usize) -> Vec<Simple> {
    let (mut found, mut whole, mut dir) = (Vec::new(), String::new(), String::new());
    for (line, part) in (line..).zip(text.lines()) {
        whole += part.strip_suffix('\\').unwrap_or(part);
        if part.ends_with('\\') {
            continue;
        }
        for mut simple in of_line(&std::mem::take(&mut whole)) {
            let is_word = |c: char| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_';
            let is_setting = |word: &str| {
                word.split_once('=').is_some_and(|(name, _)| name.chars().all(is_word))
            };
            let leads = |word: &String| {
                ["$", "sudo", "do", "then"].contains(&word.as_str()) || is_setting(word)
            };
            let first =
                simple.words.iter().position(|word| !leads(word)).unwrap_or(simple.words.len());
            simple.words.drain(..first);
            match simple.words.first().map(String::as_str) {
                None | Some("for" | "done" | "export") => {}
                Some("cd") => dir = simple.words.get(1).cloned().unwrap_or_default(),
                Some(_) => found.push(Simple { line, dir: dir.clone(), ..simple }),
            }
        }
    }
    found
}

fn of_line(line: &str) -> Vec<Simple> {
    let mut found = vec![Simple::default()];
    let mut rest = line.chars().peekable();
    let (mut word, mut quoted) = (String::new(), false);
    loop {
        let next = rest.next();
        let last = found.last_mut().expect("there is one");
        if next.is_none_or(|c| c.is_whitespace() || ";&|()<>".contains(c)) {
            let (done, empty) = (std::mem::take(&mut word), !std::mem::take(&mut quoted));
            if !done.is_empty() || !empty {
                last.words.push(done);
            }
        }
        match next {
            None => return found,
            Some('\'' | '"') => {
                quoted = true;
                word.extend(rest.by_ref().take_while(|c| Some(*c) != next));
            }
            Some('#') if word.is_empty() => {
                last.comment = rest.by_ref().collect::<String>().trim().into();
            }
            Some('$') if rest.peek() == Some(&'(') => {
                word.push('$');
                word.extend(rest.by_ref().take_while(|c| *c != ')'));
            }
            // The file of a redirection is no argument.
            Some(way @ ('<' | '>')) => {
                last.piped |= way == '<';
                while rest.next_if(|c| "<>& ".contains(*c)).is_some() {}
                while rest.next_if(|c| !c.is_whitespace() && !";&|()".contains(*c)).is_some() {}
            }
            Some(c @ (';' | '&' | '|' | '(' | ')')) => {
                let piped = c == '|' && rest.next_if_eq(&'|').is_none();
                found.push(Simple { piped, ..Simple::default() });
            }
            Some(c) if c.is_whitespace() => {}
            Some(c) => word.push(c),
        }
    }
}

#[test]
fn commands_of_a_snippet_are_told_apart() {
    let words = |text| {
        let found = commands(text, 1).into_iter();
        found
            .map(|simple| format!("{} {}", simple.line, simple.words.join("+")))
            .collect::<Vec<_>>()
    };
    assert_eq!(words("a b && sudo c; d | e &\nf"), ["1 a+b", "1 c", "1 d", "1 e", "2 f"]);
    assert_eq!(words("(cd x && A=b c 'd  e' \"f g\"h > h.bin)"), ["1 c+d  e+f gh"]);
    assert_eq!(words("a \\\n  b\nfor c in d; do\n  e $f > /dev/null\ndone"), ["2 a+b", "4 e+$f"]);
    assert_eq!(words("cc $(x --y z) w '' # all"), ["1 cc+$(x --y z+w+"]);
    let found = commands("cd x && d | e\n# all\na b#c  # must fail\n", 7);
    assert!(found[1].piped && found[0].dir == "x" && found[2].comment == "must fail");
    assert_eq!((found[2].line, &*found[2].words[1]), (9, "b#c"));
}
