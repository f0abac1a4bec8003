//! Shell blocks of a Markdown page, and the output blocks below them.

/// A shell block, and the text block that follows it, if one does.
pub(crate) struct Block {
    /// The number of the line at which the shell block begins, from 1.
    pub(crate) line: usize,
    /// The lines of the shell block.
    pub(crate) shell: String,
    /// The text block below the shell block, if there is one.
    pub(crate) output: Option<String>,
}

/// Returns all shell blocks of a page.
pub(crate) fn blocks(readme: &str) -> Vec<Block> {
    let mut blocks: Vec<Block> = Vec::new();
    let mut open: Option<(usize, &str, String)> = None;
    for (number, line) in (1..).zip(readme.lines()) {
        match (&mut open, line.strip_prefix("```")) {
            (None, Some(kind)) => open = Some((number, kind, String::new())),
            (Some((line, kind, body)), Some(_)) => {
                match *kind {
                    "sh" => blocks.push(Block { line: *line, shell: body.clone(), output: None }),
                    "text" => {
                        let block = blocks.last_mut().expect("an output block has a shell block before it");
                        block.output = Some(body.clone());
                    }
                    _ => {}
                }
                open = None;
            }
            (Some((_, _, body)), None) => {
                body.push_str(line);
                body.push('\n');
            }
            (None, None) => {}
        }
    }
    blocks
}

/// Returns whether the lines match. A line `...` in `wanted` matches any number of lines.
pub(crate) fn matches(wanted: &[String], got: &[String]) -> bool {
    match wanted.split_first() {
        None => got.is_empty(),
        Some((first, rest)) if first == "..." => (0..=got.len()).any(|skip| matches(rest, &got[skip..])),
        Some((first, rest)) => {
            got.split_first().is_some_and(|(line, left)| line == first && matches(rest, left))
        }
    }
}
