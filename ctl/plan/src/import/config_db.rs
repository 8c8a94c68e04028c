//! CONFIG_DB as tables of rows of fields, whatever JSON type a value has; and its ways to refer
//! to a row (`name`, `[TABLE|name]`) and to list (`3,4`, `3-4`, `Ethernet0,Ethernet4`).

use holdfast_api::doc::Finding;
use holdfast_api::profile_doc::Slot;
use holdfast_core::units::{Bytes, CellSize, Cells};
use serde::de::{Deserialize, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use std::collections::BTreeMap;
use std::fmt;

/// A JSON value as CONFIG_DB has them: text, or a table of them. Nothing is kept of a list but
/// its elements joined by commas, which is how such fields are written without one.
#[derive(Clone, Debug, PartialEq)]
enum Value {
    Text(String),
    Table(BTreeMap<String, Value>),
}

struct ValueVisitor;

impl<'de> Visitor<'de> for ValueVisitor {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("tables of rows of fields")
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Text(value.to_string()))
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<Value, E> {
        Ok(Value::Text(value.to_string()))
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<Value, E> {
        Ok(Value::Text(value.to_string()))
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<Value, E> {
        Ok(Value::Text(value.to_string()))
    }

    fn visit_str<E: Error>(self, value: &str) -> Result<Value, E> {
        Ok(Value::Text(value.trim().to_owned()))
    }

    fn visit_unit<E: Error>(self) -> Result<Value, E> {
        Ok(Value::Text("NULL".to_owned()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Value, A::Error> {
        let mut texts = Vec::new();
        while let Some(value) = list.next_element::<Value>()? {
            match value {
                Value::Text(text) => texts.push(text),
                // Lists of objects stand in tables that aren't ours.
                Value::Table(_) => {
                    while list.next_element::<IgnoredAny>()?.is_some() {}
                    return Ok(Value::Text("(a list of objects)".to_owned()));
                }
            }
        }
        Ok(Value::Text(texts.join(",")))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Value, A::Error> {
        let mut table = BTreeMap::new();
        while let Some(key) = map.next_key::<String>()? {
            if table.contains_key(&key) {
                return Err(A::Error::custom(format!("{key:?} is there twice")));
            }
            table.insert(key, map.next_value()?);
        }
        Ok(Value::Table(table))
    }
}

impl<'de> Deserialize<'de> for Value {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ValueVisitor)
    }
}

/// One row.
#[derive(Clone, Debug)]
pub(super) struct Row {
    /// `TABLE|key`.
    pub place: String,
    fields: BTreeMap<String, String>,
}

impl Row {
    /// A field, `None` where it is absent.
    pub fn get(&self, field: &str) -> Option<&str> {
        self.fields.get(field).map(String::as_str)
    }

    /// All fields in the order of their names.
    pub fn fields(&self) -> impl Iterator<Item = (&str, &str)> {
        self.fields.iter().map(|(name, value)| (name.as_str(), value.as_str()))
    }

    /// `TABLE|key|field`.
    pub fn at(&self, field: &str) -> String {
        format!("{}|{field}", self.place)
    }

    /// A field that must be there.
    pub fn needed(&self, field: &str) -> Result<&str, Finding> {
        self.get(field).ok_or_else(|| {
            let message = format!("the field {field} is missing");
            Finding::new(self.at(field), message, format!("add {field}"))
        })
    }

    /// Refuses fields that nothing here reads: they would change what the row means.
    pub fn only(&self, known: &[&str]) -> Result<(), Finding> {
        match self.fields.keys().find(|field| !known.contains(&field.as_str())) {
            None => Ok(()),
            Some(field) => {
                let fix = format!("remove it; known are {}", known.join(", "));
                Err(Finding::new(self.at(field), "this field can't be expressed", fix))
            }
        }
    }

    /// A whole number within `range`, `None` where the field is absent.
    pub fn number<T>(&self, field: &str, least: T, most: T) -> Result<Option<T>, Finding>
    where
        T: std::str::FromStr + PartialOrd + fmt::Display + Copy,
    {
        let Some(text) = self.get(field) else { return Ok(None) };
        let within = |number: &T| *number >= least && *number <= most;
        let number = text.parse().ok().filter(within);
        number.map(Some).ok_or_else(|| {
            let finding = Finding::new(self.at(field), "out of range", "use a number in range");
            finding.numbers(text, format!("{least}..{most}"))
        })
    }

    /// Bytes as cells, rounded up; `None` where the field is absent.
    pub fn cells(&self, field: &str, cell: CellSize) -> Result<Option<Cells>, Finding> {
        let most = u64::from(u32::MAX) * u64::from(cell.bytes());
        let bytes = self.number(field, 0, most)?;
        Ok(bytes.map(|bytes| Bytes(bytes).to_cells(cell)))
    }

    /// `true` or `false`; `false` where the field is absent.
    pub fn flag(&self, field: &str) -> Result<bool, Finding> {
        match self.get(field) {
            None | Some("false") => Ok(false),
            Some("true") => Ok(true),
            Some(other) => {
                let finding = Finding::new(self.at(field), "is no flag", "write true or false");
                Err(finding.numbers(other, "true, false"))
            }
        }
    }

    /// The name in a reference to a row of `table`: `name` or `[TABLE|name]`.
    pub fn reference(&self, field: &str, table: &str) -> Result<Option<&str>, Finding> {
        let Some(text) = self.get(field) else { return Ok(None) };
        let Some(inner) = text.strip_prefix('[') else { return Ok(Some(text)) };
        let inner = inner.strip_suffix(']').and_then(|inner| inner.split_once('|'));
        match inner {
            Some((named, name)) if named == table && !name.is_empty() => Ok(Some(name)),
            _ => {
                let message = format!("{text:?} refers to no row of {table}");
                let fix = format!("write the name, or [{table}|name]");
                Err(Finding::new(self.at(field), message, fix))
            }
        }
    }
}

/// The tables of one file.
#[derive(Debug)]
pub(super) struct ConfigDb {
    tables: BTreeMap<String, BTreeMap<String, Row>>,
}

static EMPTY: BTreeMap<String, Row> = BTreeMap::new();

impl ConfigDb {
    /// Reads JSON of which only `wanted` tables are kept, and the names of all others.
    pub fn parse(text: &str, wanted: &[&str]) -> Result<(Self, Vec<String>), Finding> {
        let top: Value = serde_json::from_str(text).map_err(|error| {
            let message = error.to_string();
            Finding::new(format!("line {}", error.line()), message, "correct the JSON")
        })?;
        let Value::Table(top) = top else {
            return Err(Finding::new("line 1", "is no CONFIG_DB", "import an object of tables"));
        };
        let (mut tables, mut others) = (BTreeMap::new(), Vec::new());
        for (name, value) in top {
            if wanted.contains(&name.as_str()) {
                tables.insert(name.clone(), rows(&name, value)?);
            } else {
                others.push(name);
            }
        }
        Ok((Self { tables }, others))
    }

    /// The rows of a table by key; empty where it is absent.
    pub fn table(&self, name: &str) -> &BTreeMap<String, Row> {
        self.tables.get(name).unwrap_or(&EMPTY)
    }

    /// The row that `from`'s `field` refers to; `None` where the field is absent.
    pub fn referred<'a>(
        &'a self,
        from: &Row,
        field: &str,
        table: &str,
    ) -> Result<Option<&'a Row>, Finding> {
        let Some(name) = from.reference(field, table)? else { return Ok(None) };
        let row = self.table(table).get(name);
        row.map(Some).ok_or_else(|| {
            let known: Vec<&str> = self.table(table).keys().map(String::as_str).take(8).collect();
            let fix = match known.as_slice() {
                [] => format!("add the table {table}"),
                names => format!("add it, or use {}", names.join(", ")),
            };
            Finding::new(from.at(field), format!("{table} has no {name:?}"), fix)
        })
    }
}

fn rows(table: &str, value: Value) -> Result<BTreeMap<String, Row>, Finding> {
    let wrong = |place: &str, what: &str| {
        Err(Finding::new(place, format!("is no {what}"), "write CONFIG_DB as SONiC dumps it"))
    };
    let Value::Table(entries) = value else { return wrong(table, "table of rows") };
    let mut rows = BTreeMap::new();
    for (key, value) in entries {
        let place = format!("{table}|{key}");
        let Value::Table(values) = value else { return wrong(&place, "row of fields") };
        let mut fields = BTreeMap::new();
        for (field, value) in values {
            let Value::Text(text) = value else {
                return wrong(&format!("{place}|{field}"), "value of a field");
            };
            // Rows without fields carry this one.
            if field != "NULL" {
                fields.insert(field, text);
            }
        }
        rows.insert(key, Row { place, fields });
    }
    Ok(rows)
}

/// `3`, `3-4`, `3,4`, `0-2,5`: numbers 0..7, each once; empty text is an empty list.
pub(super) fn slots(place: &str, text: &str) -> Result<Vec<Slot>, Finding> {
    let mut slots = Vec::new();
    for part in text.split(',').map(str::trim).filter(|part| !part.is_empty()) {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let slot = |text: &str| text.trim().parse().ok().and_then(Slot::new);
        let range = slot(first).zip(slot(last)).filter(|(first, last)| first <= last);
        let Some((first, last)) = range else {
            let finding = Finding::new(place, "is no list of numbers", "write 3, 3-4 or 3,4");
            return Err(finding.numbers(part, "0..7"));
        };
        for slot in (first.number()..=last.number()).filter_map(Slot::new) {
            if slots.contains(&slot) {
                let message = format!("{slot} is named twice");
                return Err(Finding::new(place, message, "name each once"));
            }
            slots.push(slot);
        }
    }
    slots.sort_unstable();
    Ok(slots)
}

/// The ports and slots of a key such as `Ethernet0,Ethernet4|3-4`.
pub(super) fn ports_and_slots(row: &Row, key: &str) -> Result<(Vec<String>, Vec<Slot>), Finding> {
    let parts: Vec<&str> = key.split('|').collect();
    let [ports, list] = parts.as_slice() else {
        let message = "the key isn't PORT|NUMBERS";
        return Err(Finding::new(&row.place, message, "write Ethernet0|3-4"));
    };
    let slots = slots(&row.place, list)?;
    if slots.is_empty() {
        return Err(Finding::new(&row.place, "names no number", "write Ethernet0|3-4"));
    }
    Ok((port_list(ports), slots))
}

/// `Ethernet0,Ethernet4` as names.
pub(super) fn port_list(text: &str) -> Vec<String> {
    text.split(',').map(|name| name.trim().to_owned()).collect()
}
