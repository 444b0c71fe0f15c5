//! Where commands stand in a text: blocks and spans of a page, steps of a workflow, comments, `--help`.

/// A piece of text that may be a command.
#[derive(Debug)]
pub(super) struct Snippet {
    pub(super) line: usize,
    pub(super) text: String,
    /// Whether it stands in a sentence, where a command may be named without its arguments.
    pub(super) inline: bool,
}

/// Programs that mark a block without a language as a block of commands. Other lines of such a block are output.
const PROGRAMS: &str = "barewire bash cargo cc cmake curl dtc echo export fdtoverlay flashrom for git groupadd make \
                        modprobe pip pinctrl python3 sudo";

fn block(line: usize, text: &str) -> Snippet {
    Snippet { line, text: text.into(), inline: false }
}

/// Whether a line begins with one of those programs, whatever is set for it.
fn is_command(line: &str) -> bool {
    let first = line.split_whitespace().find(|word| !word.contains('='));
    PROGRAMS.split_whitespace().any(|program| Some(program) == first)
}

/// An example, and the remark after a gap.
fn with_remark(line: &str) -> String {
    let (text, remark) = line.split_once("  ").unwrap_or((line, ""));
    format!("{text} # {remark}")
}

/// Of Markdown: fenced and indented blocks, spans in backticks.
pub(super) fn of_page(page: &str) -> Vec<Snippet> {
    let (mut found, mut prose) = (Vec::new(), String::new());
    let mut fence: Option<(usize, &str, String)> = None;
    for (number, line) in (1..).zip(page.lines()) {
        match (line.trim_start().strip_prefix("```"), &mut fence) {
            (Some(language), None) => fence = Some((number + 1, language.trim(), String::new())),
            (Some(_), Some((first, language, text))) => {
                found.extend(fenced(*first, language, text));
                fence = None;
            }
            (None, Some((.., text))) => *text += &format!("{line}\n"),
            (None, None) if line.starts_with("    ") && is_command(line) => {
                found.push(block(number, line))
            }
            (None, None) => prose += line,
        }
        prose.push('\n');
    }
    found.extend(spans(&prose, 1));
    found
}

/// A fenced block, if it has commands; with `$` before its commands the rest is what they print.
fn fenced(first: usize, language: &str, text: &str) -> Vec<Snippet> {
    let prompts = (first..).zip(text.lines());
    let prompts = prompts.filter_map(|(line, text)| Some(block(line, text.strip_prefix("$ ")?)));
    let prompts: Vec<_> = prompts.collect();
    let begins = text.lines().find(|line| !line.is_empty() && !line.starts_with('#'));
    match language {
        "" | "sh" | "bash" | "console" if !prompts.is_empty() => prompts,
        "sh" | "bash" => vec![block(first, text)],
        "" if begins.is_some_and(is_command) => vec![block(first, text)],
        _ => Vec::new(),
    }
}

/// Spans in backticks, which may break with their line, and not with their paragraph.
fn spans(prose: &str, mut line: usize) -> Vec<Snippet> {
    let mut found = Vec::new();
    for paragraph in prose.split_inclusive("\n\n") {
        for (index, part) in paragraph.split('`').enumerate() {
            if index % 2 == 1 {
                // In a table a bar is escaped.
                let text =
                    part.replace("\\|", "|").split_whitespace().collect::<Vec<_>>().join(" ");
                found.push(Snippet { line, text, inline: true });
            }
            line += part.matches('\n').count();
        }
    }
    found
}

/// The commands of a workflow: what its steps run, in one line or in the more indented lines after `run: |`.
pub(super) fn of_workflow(workflow: &str) -> Vec<Snippet> {
    let lines: Vec<&str> = workflow.lines().collect();
    let indent = |line: &str| line.len() - line.trim_start().len();
    let mut found = Vec::new();
    for (index, line) in lines.iter().enumerate() {
        let Some(run) = line.trim_start().trim_start_matches("- ").strip_prefix("run:") else {
            continue;
        };
        let inside = lines[index + 1..].iter().take_while(|inner| indent(inner) > indent(line));
        found.push(match run.trim() {
            "|" => block(index + 2, &inside.map(|line| line.trim()).collect::<Vec<_>>().join("\n")),
            run => block(index + 1, run),
        });
    }
    found
}

/// The commands in a program's source: comment lines that are only a command, and spans.
pub(super) fn of_source(source: &str) -> Vec<Snippet> {
    let lines = (1..).zip(source.lines());
    let lines =
        lines.map(|(number, line)| (number, line.trim_start_matches(['/', '!', '*', '#', ' '])));
    let found = lines.flat_map(|(number, line)| {
        let is_command = is_command(line) && !line.starts_with("for ");
        let command = is_command.then(|| block(number, &with_remark(line)));
        command.into_iter().chain(spans(line, number))
    });
    found.collect()
}

/// The help texts of a command and of those below it: the name as a page (`barewire flash --help`), and its snippets.
pub(super) fn of_help(command: &clap::Command, name: &str) -> Vec<(String, Vec<Snippet>)> {
    let own = [
        command.get_about(),
        command.get_long_about(),
        command.get_after_help(),
        command.get_after_long_help(),
    ];
    let of_arguments =
        command.get_arguments().flat_map(|arg| [arg.get_help(), arg.get_long_help()]);
    let texts: Vec<String> =
        own.into_iter().chain(of_arguments).flatten().map(ToString::to_string).collect();
    let snippets = texts.iter().flat_map(|text| {
        let lines =
            (1..).zip(text.lines()).filter(|(_, line)| line.starts_with("  ") && is_command(line));
        lines.map(|(number, line)| block(number, &with_remark(line.trim()))).chain(spans(text, 1))
    });
    let mut found = vec![(format!("{name} --help"), snippets.collect())];
    for below in command.get_subcommands().filter(|below| below.get_name() != "help") {
        found.extend(of_help(below, &format!("{name} {}", below.get_name())));
    }
    found
}

#[test]
fn commands_are_found_where_they_stand() {
    fn told(found: Vec<Snippet>) -> Vec<String> {
        let tell = |it: Snippet| {
            format!("{}{} {}", it.line, if it.inline { "`" } else { "" }, it.text.trim())
        };
        found.into_iter().map(tell).collect()
    }
    let page = "It is `a\nb`.\n\n```\ncargo c # d\n```\n\n```\nprints this\n```\n```console\n$ e\nsaid\n```\n\n    barewire f\n| `g \\| h` |\n";
    assert_eq!(
        told(of_page(page)),
        ["5 cargo c # d", "12 e", "16 barewire f", "1` a b", "17` g | h"]
    );
    assert_eq!(told(of_page("```rust\ncargo c\n```\n```sh\nx\n```\n")), ["5 x"]);
    let workflow = "steps:\n  - run: a\n  - name: b\n    run: |\n      c\n      d\n  - uses: e\n";
    assert_eq!(told(of_workflow(workflow)), ["2 a", "5 c\nd"]);
    let source = "/* Reads.\n *   cc x.c -o x     the board\n */\n// In QEMU: `cargo run`\n";
    assert_eq!(told(of_source(source)), ["2 cc x.c -o x #    the board", "4` cargo run"]);
}
