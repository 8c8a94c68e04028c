//! A TOML file and what is wrong with it: file, line, key, value, limit and fix (SPEC 10).

use crate::amount::FIX_MARK;
use crate::message::{ErrorBody, ErrorCode};
use serde::de::DeserializeOwned;
use std::fmt;
use std::io::Read;
use std::ops::Range;
use std::path::Path;
use toml::de::{DeTable, DeValue};
use toml::Spanned;

/// The largest file that is read, bytes.
pub const MAX_FILE: u64 = 1 << 20;

/// What is wrong with one value, before its file and line are known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// The key, dotted: `pg.3.xoff`, `port.h1.speed`.
    pub key: String,
    /// What is wrong, with the numbers.
    pub message: String,
    /// The offending value.
    pub value: Option<String>,
    /// What it would have to keep to.
    pub limit: Option<String>,
    /// What to do.
    pub fix: String,
}

impl Finding {
    /// Something wrong with `key`.
    pub fn new(key: impl Into<String>, message: impl Into<String>, fix: impl Into<String>) -> Self {
        let (key, message, fix) = (key.into(), message.into(), fix.into());
        Self { key, message, value: None, limit: None, fix }
    }

    /// With the value and the limit it misses.
    #[must_use]
    #[allow(clippy::needless_pass_by_value, reason = "numbers are written where they are known")]
    pub fn numbers(mut self, value: impl ToString, limit: impl ToString) -> Self {
        self.value = Some(value.to_string());
        self.limit = Some(limit.to_string());
        self
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.key, self.message)?;
        if let (Some(value), Some(limit)) = (&self.value, &self.limit) {
            write!(f, " (value {value}, limit {limit})")?;
        }
        write!(f, "; {}", self.fix)
    }
}

impl std::error::Error for Finding {}

impl From<Finding> for ErrorBody {
    fn from(finding: Finding) -> Self {
        let mut body = Self::new(ErrorCode::Refused, finding.message).at(finding.key);
        if let Some(value) = finding.value {
            body = body.value(value);
        }
        body.limit = finding.limit.map(String::into_boxed_str);
        body.fix(finding.fix)
    }
}

/// A [`Finding`] with its place in a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DocError {
    /// The file as it was named.
    pub file: String,
    /// The line, from 1; `None` where the file couldn't be read at all.
    pub line: Option<usize>,
    /// What is wrong.
    pub finding: Box<Finding>,
}

impl fmt::Display for DocError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            Some(line) => write!(f, "{}:{line}: {}", self.file, self.finding),
            None => write!(f, "{}: {}", self.file, self.finding),
        }
    }
}

impl std::error::Error for DocError {}

impl From<DocError> for ErrorBody {
    fn from(error: DocError) -> Self {
        let line = error.line.map(|line| format!(":{line}")).unwrap_or_default();
        let place = format!("{}{line}: {}", error.file, error.finding.key);
        Self::from(*error.finding).at(place)
    }
}

/// A file's name and text.
#[derive(Clone, Debug)]
pub struct Source {
    file: String,
    text: String,
}

impl Source {
    /// A text that was read from `file`, or that goes by this name.
    pub fn new(file: impl Into<String>, text: impl Into<String>) -> Self {
        Self { file: file.into(), text: text.into() }
    }

    /// Reads a file of at most [`MAX_FILE`] bytes.
    ///
    /// # Errors
    /// [`DocError`] without a line, if it can't be read, is too large or isn't UTF-8.
    pub fn read(path: &Path) -> Result<Self, DocError> {
        let file = path.display().to_string();
        let wrong = |finding: Finding| DocError {
            file: file.clone(),
            line: None,
            finding: Box::new(finding),
        };
        let unreadable = |error: std::io::Error| {
            wrong(Finding::new("file", format!("can't be read: {error}"), "check path and rights"))
        };
        // Not by its size: that of a pipe or a device is 0.
        let (mut text, file_itself) = (String::new(), std::fs::File::open(path));
        let limited = file_itself.map_err(unreadable)?.take(MAX_FILE + 1);
        std::io::BufReader::new(limited).read_to_string(&mut text).map_err(unreadable)?;
        if text.len() as u64 > MAX_FILE {
            let finding = Finding::new("file", "is too large", "keep documents below 1 MiB");
            return Err(wrong(finding.numbers(format!("more than {MAX_FILE}"), MAX_FILE)));
        }
        Ok(Self { file, text })
    }

    /// The file's name.
    pub fn file(&self) -> &str {
        &self.file
    }

    /// The text.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Reads the text as a document of type `T`.
    ///
    /// # Errors
    /// [`DocError`] with line, key and fix, for bad TOML, unknown or missing keys, wrong types
    /// and amounts that can't be read.
    pub fn parse<T: DeserializeOwned>(&self) -> Result<T, DocError> {
        toml::from_str(&self.text).map_err(|error| {
            let span = error.span().unwrap_or(0..0);
            let entry = self.smallest_around(&span);
            let (message, fix) = explain(error.message());
            // A key that is nothing, as in ` = 1`, has no name to be found by.
            let named = entry.as_ref().map(|entry| entry.path.as_str());
            let key = named.filter(|path| !path.is_empty()).unwrap_or("file");
            let mut finding = Finding::new(key, message, fix);
            let is_value = entry.is_some_and(|entry| entry.value == span);
            let text = self.text.get(span.clone()).unwrap_or_default();
            if is_value && !text.contains('\n') {
                finding.value = Some(text.to_owned());
            }
            let line = Some(self.line_at(span.start));
            DocError { file: self.file.clone(), line, finding: Box::new(finding) }
        })
    }

    /// Gives a finding its line: that of its key. A key of one port (`port.h1.pg.3.xoff`) that
    /// the file doesn't have is looked for without the port, then ever shorter.
    pub fn locate(&self, finding: Finding) -> DocError {
        let entries = self.entries();
        let line_of = |path: &str| {
            let entry = entries.iter().find(|entry| entry.path == path)?;
            Some(self.line_at(entry.key.start))
        };
        let mut paths = vec![finding.key.as_str()];
        if let Some((_, shared)) =
            finding.key.strip_prefix("port.").and_then(|rest| rest.split_once('.'))
        {
            paths.push(shared);
        }
        let shorter = |path: &str| path.rsplit_once('.').map(|(front, _)| front.to_owned());
        let mut line = paths.iter().find_map(|path| line_of(path));
        for path in paths.iter().rev() {
            let mut path = shorter(path);
            while let (None, Some(front)) = (line, path.as_deref()) {
                line = line_of(front);
                path = shorter(front);
            }
        }
        let line = Some(line.unwrap_or(1));
        DocError { file: self.file.clone(), line, finding: Box::new(finding) }
    }

    fn line_at(&self, offset: usize) -> usize {
        let before = self.text.as_bytes().get(..offset).unwrap_or(self.text.as_bytes());
        1 + before.iter().filter(|byte| **byte == b'\n').count()
    }

    fn entries(&self) -> Vec<Entry> {
        let mut entries = Vec::new();
        let (table, _) = DeTable::parse_recoverable(&self.text);
        collect_table("", table.get_ref(), &mut entries);
        entries
    }

    fn smallest_around(&self, span: &Range<usize>) -> Option<Entry> {
        let around = |range: &Range<usize>| range.start <= span.start && range.end >= span.end;
        let size = |entry: &Entry| {
            let of = if around(&entry.key) { &entry.key } else { &entry.value };
            of.end - of.start
        };
        let entries = self.entries().into_iter();
        entries.filter(|e| around(&e.key) || around(&e.value)).min_by_key(size)
    }
}

/// One key of the file.
#[derive(Debug)]
struct Entry {
    path: String,
    key: Range<usize>,
    value: Range<usize>,
}

fn collect_table(prefix: &str, table: &DeTable<'_>, out: &mut Vec<Entry>) {
    for (key, value) in table {
        let dot = if prefix.is_empty() { "" } else { "." };
        let path = format!("{prefix}{dot}{}", key.get_ref());
        out.push(Entry { path: path.clone(), key: key.span(), value: value.span() });
        collect_value(&path, value, out);
    }
}

fn collect_value(path: &str, value: &Spanned<DeValue<'_>>, out: &mut Vec<Entry>) {
    match value.get_ref() {
        DeValue::Table(table) => collect_table(path, table, out),
        DeValue::Array(array) => {
            for (index, element) in array.iter().enumerate() {
                // An element with a name goes by it: `port.h1.speed`.
                let table = element.get_ref().as_table();
                let name = table.and_then(|t| t.get("name")).and_then(|n| n.get_ref().as_str());
                let path = match name {
                    Some(name) => format!("{path}.{name}"),
                    None => format!("{path}.{index}"),
                };
                let span = element.span();
                out.push(Entry { path: path.clone(), key: span.clone(), value: span });
                collect_value(&path, element, out);
            }
        }
        _ => {}
    }
}

/// Turns a parser's message into what is wrong and what to do.
fn explain(message: &str) -> (String, String) {
    if let Some((what, fix)) = message.split_once(FIX_MARK) {
        return (what.to_owned(), fix.to_owned());
    }
    if let Some(rest) = message.strip_prefix("unknown field ") {
        let (name, expected) = rest.split_once(", ").unwrap_or((rest, "expected another"));
        let known = expected.replace("expected one of ", "").replace("expected ", "");
        return (format!("unknown key {name}"), format!("remove it, or use {known}"));
    }
    if let Some(rest) = message.strip_prefix("unknown variant ") {
        let (name, expected) = rest.split_once(", ").unwrap_or((rest, "expected another"));
        let known = expected.replace("expected one of ", "").replace("expected ", "");
        return (format!("{name} is no value of this key"), format!("use {known}"));
    }
    if let Some(name) = message.strip_prefix("missing field ") {
        return (format!("the key {name} is missing"), format!("add {name} = …"));
    }
    if let Some((got, expected)) = message.split_once(", expected ") {
        if let Some(range) = range_of(expected) {
            return (format!("out of range: {}", got.trim_start_matches("invalid value: ")), range);
        }
        // The parser's own words, about the text and not about a value.
        if !message.starts_with("invalid type") && !message.starts_with("invalid value") {
            return (got.to_owned(), format!("correct the TOML: {expected} is expected here"));
        }
        return (got.to_owned(), format!("write {expected}"));
    }
    (message.trim().replace('\n', ", "), "correct the TOML".to_owned())
}

/// What a number of this type can be.
fn range_of(kind: &str) -> Option<String> {
    let (least, most) = match kind {
        "u8" => (0, i64::from(u8::MAX)),
        "u16" => (0, i64::from(u16::MAX)),
        "u32" => (0, i64::from(u32::MAX)),
        "u64" => (0, i64::MAX),
        "i8" => (i64::from(i8::MIN), i64::from(i8::MAX)),
        _ => return None,
    };
    Some(format!("use a whole number in {least}..{most}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::amount::Rate;
    use serde::Deserialize;

    #[derive(Debug, Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Doc {
        #[allow(dead_code)]
        port: Vec<Port>,
    }

    #[derive(Debug, Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Port {
        #[allow(dead_code)]
        name: String,
        #[allow(dead_code)]
        mtu: Option<u16>,
        #[allow(dead_code)]
        speed: Rate,
    }

    fn error(text: &str) -> DocError {
        Source::new("a.toml", text).parse::<Doc>().unwrap_err()
    }

    #[test]
    fn a_key_that_is_nothing_is_told_as_the_files() {
        for text in ["\n = 1\n", "port = []\n = [\n", "\"\" = 2\n"] {
            let error = error(text);
            assert!(!error.finding.key.is_empty() && error.line.is_some(), "{error}");
        }
    }

    #[test]
    fn an_unknown_key_is_named_with_its_line_and_the_known_ones() {
        let error = error("[[port]]\nname = \"h1\"\nspeed = \"1G\"\nsped = 1\n");
        assert_eq!((error.line, error.finding.key.as_str()), (Some(4), "port.h1.sped"));
        assert_eq!(error.finding.fix, "remove it, or use `name`, `mtu`, `speed`");
    }

    #[test]
    fn a_bad_amount_is_named_with_value_and_fix() {
        let error = error("[[port]]\nname = \"h1\"\nspeed = \"1Gb\"\n");
        assert_eq!(
            error.to_string(),
            "a.toml:3: port.h1.speed: \"1Gb\" is not a rate; \
             write \"400G\", \"2.5G\", \"100M\" or \"64k\" (bit/s)"
        );
        assert_eq!(error.finding.value.as_deref(), Some("\"1Gb\""));
    }

    #[test]
    fn a_number_out_of_range_gets_the_range_and_broken_text_no_value() {
        for number in ["70000", "-1"] {
            let error = error(&format!("[[port]]\nname = \"h1\"\nmtu = {number}\n"));
            assert_eq!(error.finding.fix, "use a whole number in 0..65535", "{error}");
            assert!(error.finding.message.starts_with("out of range: integer"), "{error}");
        }
        let kind = error("[[port]]\nname = \"h1\"\nmtu = \"a\"\n");
        assert!(!kind.to_string().contains("u16"), "{kind}");
        let open = error("[[port]]\nname = \"h1\nmtu = 1500\n");
        assert!(open.finding.fix.starts_with("correct the TOML: "), "{open}");
    }

    #[test]
    fn a_missing_key_and_broken_toml_have_lines() {
        let missing = error("# one\n[[port]]\nname = \"h1\"\n");
        assert_eq!(missing.line, Some(2));
        assert!(missing.finding.message.contains("`speed` is missing"), "{missing}");
        assert_eq!(error("[[port]]\nname = \n").line, Some(2));
        assert_eq!(
            error("[[port]]\nname = 3\nspeed = \"1G\"").finding.key,
            "port.h1.name".replace("h1", "0")
        );
    }

    #[test]
    fn a_finding_is_located_at_its_own_key_the_ports_or_the_shared_one() {
        let text = "[pg.3]\nxoff = 1\n[port.h1.pg.3]\nxon = 2\n";
        let source = Source::new("p.toml", text);
        let line = |key: &str| source.locate(Finding::new(key, "m", "f")).line;
        assert_eq!(line("pg.3.xoff"), Some(2));
        assert_eq!(line("port.h1.pg.3.xon"), Some(4));
        assert_eq!(line("port.h1.pg.3.xoff"), Some(2));
        assert_eq!(line("port.h2.pg.3.headroom"), Some(1));
        assert_eq!(line("nothing.at.all"), Some(1));
    }
}
