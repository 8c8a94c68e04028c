//! The files of a repository, and what a check says about one of them.

use std::fmt;
use std::fs;
use std::io;
use std::path::Path;

/// Folders that hold nothing written by hand.
const NOT_OURS: [&str; 3] = ["target", ".git", "proptest-regressions"];

/// One text file.
#[derive(Clone, Debug)]
pub struct File {
    /// From the repository's top, with `/`.
    pub path: String,
    /// Its text.
    pub text: String,
}

impl File {
    /// What follows the last dot of its name; empty without one.
    pub fn extension(&self) -> &str {
        self.name().rsplit_once('.').map_or("", |(_, extension)| extension)
    }

    /// Its name without folders.
    pub fn name(&self) -> &str {
        self.path.rsplit('/').next().unwrap_or_default()
    }

    /// A finding on a line of it, counted from 1.
    pub fn finding(&self, line: usize, message: impl Into<String>) -> Finding {
        Finding { path: self.path.clone(), line, message: message.into() }
    }
}

/// A broken rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// The file.
    pub path: String,
    /// The line, counted from 1.
    pub line: usize,
    /// Which rule, with the numbers.
    pub message: String,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}", self.path, self.line, self.message)
    }
}

/// All text files of a repository.
#[derive(Clone, Debug, Default)]
pub struct Tree {
    /// Sorted by path.
    pub files: Vec<File>,
}

impl Tree {
    /// Reads every text file under `top`, without build output.
    ///
    /// # Errors
    /// What the system says about a folder or file that can't be read.
    pub fn read(top: &Path) -> io::Result<Self> {
        let mut files = Vec::new();
        collect(top, "", &mut files)?;
        files.sort_by(|a, b| a.path.cmp(&b.path));
        Ok(Self { files })
    }

    /// A tree made up of `(path, text)`.
    pub fn of(files: &[(&str, &str)]) -> Self {
        let file = |&(path, text): &(&str, &str)| File { path: path.into(), text: text.into() };
        Self { files: files.iter().map(file).collect() }
    }

    /// The file at `path`.
    pub fn get(&self, path: &str) -> Option<&File> {
        self.files.iter().find(|file| file.path == path)
    }

    /// The files with one of these extensions.
    pub fn with_extension<'a>(
        &'a self,
        extensions: &'a [&'a str],
    ) -> impl Iterator<Item = &'a File> {
        self.files.iter().filter(|file| extensions.contains(&file.extension()))
    }
}

fn collect(folder: &Path, prefix: &str, files: &mut Vec<File>) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        let path = if prefix.is_empty() { name.clone() } else { format!("{prefix}/{name}") };
        let kind = entry.file_type()?;
        if kind.is_dir() && !NOT_OURS.contains(&name.as_str()) {
            collect(&entry.path(), &path, files)?;
        } else if kind.is_file() {
            // A file that isn't UTF-8 is a capture or a picture: no rule reads it. One that is
            // gone since the folder was listed is an editor's.
            if let Ok(text) = fs::read_to_string(entry.path()) {
                files.push(File { path, text });
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_text_in_folders_but_no_build_output() {
        let top = tempfile::tempdir().unwrap();
        for (path, bytes) in
            [("b/x.rs", &b"fn x() {}"[..]), ("a.md", b"a"), ("target/y.rs", b"y"), ("p", b"\xff")]
        {
            let path = top.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, bytes).unwrap();
        }
        let tree = Tree::read(top.path()).unwrap();
        let paths: Vec<_> = tree.files.iter().map(|file| file.path.as_str()).collect();
        assert_eq!(paths, ["a.md", "b/x.rs"]);
        assert_eq!(tree.get("b/x.rs").map(File::extension), Some("rs"));
    }
}
