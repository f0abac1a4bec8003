//! Transcripts as files, held against what is told now. Included, with its macro, by every test that has a folder of them.
//!
//! With `WAYFARE_BLESS=1` in the environment they are written down anew. Commit them only if you can explain every line
//! that changed.

use std::fs;
use std::path::Path;

/// The transcripts of a crate's `tests/` folder: a test for each, by a function that tells a script (`of` something, where
/// they are told of different things), and one that no file there has no test. It leaves behind `folder()`.
macro_rules! transcripts {
    (in $folder:literal, told by $tell:path; $($test:ident: $file:literal $(of $what:expr)?;)*) => {
        fn folder() -> std::path::PathBuf {
            [env!("CARGO_MANIFEST_DIR"), "tests", $folder].iter().collect()
        }

        $(#[test]
        fn $test() {
            told::check(&folder(), $file, |script| $tell(script $(, &$what)?));
        })*

        #[test]
        fn every_transcript_is_checked() {
            told::all_checked(&folder(), &[$($file),*]);
        }
    };
}

/// Tells a transcript again, by the script that it contains, and holds the two against each other.
pub(crate) fn check(folder: &Path, name: &str, tell: impl FnOnce(&str) -> String) {
    let path = folder.join(format!("{name}.txt"));
    let told = fs::read_to_string(&path).unwrap();
    let now = tell(&told);
    if blessed() {
        fs::write(&path, &now).unwrap();
    }
    let differs = told.lines().zip(now.lines()).position(|(old, new)| old != new);
    let line = differs.unwrap_or(told.lines().count().min(now.lines().count()));
    let at = |text: &str| text.lines().nth(line).unwrap_or("(the end)").to_owned();
    assert!(
        told == now || blessed(),
        "{name}.txt, line {}:\n  told: {}\n  now:  {}\n\n{now}",
        line + 1,
        at(&told),
        at(&now)
    );
}

/// That a folder has transcripts of these names and no others: none is left unchecked.
pub(crate) fn all_checked(folder: &Path, files: &[&str]) {
    let names = fs::read_dir(folder).unwrap().map(|file| file.unwrap().file_name().into_string().unwrap());
    let mut names: Vec<String> = names.map(|name| name.trim_end_matches(".txt").to_owned()).collect();
    names.sort();
    let mut checked = files.to_vec();
    checked.sort_unstable();
    assert_eq!(names, checked);
}

#[expect(clippy::disallowed_methods, reason = "a switch for whoever maintains the transcripts")]
fn blessed() -> bool {
    std::env::var("WAYFARE_BLESS").is_ok()
}
