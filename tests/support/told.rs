//! Compares transcripts in files with the present behaviour. Included, with its macro, by every test that has a folder
//! of transcripts.
//!
//! With `WAYFARE_BLESS=1` in the environment, the transcripts are written again. Commit new transcripts only if you can
//! explain every line that changed.

use std::fs;
use std::path::Path;

/// Defines a test for each transcript in `$folder` below a crate's `tests/`, and a test that each file in that folder
/// has a test. The function `$tell` runs a script. If a transcript has `of`, its value is the second argument. Also
/// defines `folder()`.
macro_rules! transcripts {
    (in $folder:literal, told by $tell:path; $($test:ident: $file:literal $(of $what:expr)?;)*) => {
        fn folder() -> std::path::PathBuf {
            [env!("CARGO_MANIFEST_DIR"), "tests", $folder].iter().collect()
        }

        $(#[test]
        fn $test() {
            crate::told::check(&folder(), $file, |script| $tell(script $(, &$what)?));
        })*

        #[test]
        fn every_transcript_is_checked() {
            crate::told::all_checked(&folder(), &[$($file),*]);
        }
    };
}

/// Runs the script that a transcript contains, and compares the result with the transcript.
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
        "{name}.txt, line {}:\n  file: {}\n  now:  {}\n\n{now}",
        line + 1,
        at(&told),
        at(&now)
    );
}

/// Checks that a folder has exactly the transcripts of these names.
pub(crate) fn all_checked(folder: &Path, files: &[&str]) {
    let names = fs::read_dir(folder).unwrap().map(|file| file.unwrap().file_name().into_string().unwrap());
    let mut names: Vec<String> = names.map(|name| name.trim_end_matches(".txt").to_owned()).collect();
    names.sort();
    let mut checked = files.to_vec();
    checked.sort_unstable();
    assert_eq!(names, checked);
}

#[expect(clippy::disallowed_methods, reason = "a switch for maintainers of the transcripts")]
fn blessed() -> bool {
    std::env::var("WAYFARE_BLESS").is_ok()
}
