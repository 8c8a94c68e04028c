//! Tables of CONFIG_DB while they are written: rows that are equal are one row.

use serde_json::{Map, Value};

/// All tables.
#[derive(Debug, Default)]
pub(super) struct Tables(Map<String, Value>);

/// A row's fields.
pub(super) type Fields = Vec<(&'static str, String)>;

impl Tables {
    /// Adds a row.
    pub fn row(
        &mut self,
        table: &str,
        key: &str,
        fields: impl IntoIterator<Item = (String, String)>,
    ) {
        let fields = fields.into_iter().map(|(name, value)| (name, Value::String(value)));
        let row = Value::Object(fields.collect());
        let rows = self.0.entry(table).or_insert_with(|| Value::Object(Map::new()));
        if let Value::Object(rows) = rows {
            rows.insert(key.to_owned(), row);
        }
    }

    /// The name of a row of these fields: `prefix`, `prefix_2` … as there are different ones.
    pub fn named(
        &mut self,
        table: &str,
        prefix: &str,
        fields: impl IntoIterator<Item = (String, String)>,
    ) -> String {
        let fields = fields.into_iter().map(|(name, value)| (name, Value::String(value)));
        let row = Value::Object(fields.collect());
        let rows = self.0.entry(table).or_insert_with(|| Value::Object(Map::new()));
        let Value::Object(rows) = rows else { return prefix.to_owned() };
        let mut count = 1u32;
        loop {
            let name = if count == 1 { prefix.to_owned() } else { format!("{prefix}_{count}") };
            match rows.get(&name) {
                Some(other) if *other == row => return name,
                Some(_) => count += 1,
                None => {
                    rows.insert(name.clone(), row);
                    return name;
                }
            }
        }
    }

    /// As JSON, as SONiC dumps it.
    pub fn text(self) -> String {
        format!("{:#}\n", Value::Object(self.0))
    }
}

/// Fields with owned names.
pub(super) fn owned(fields: Fields) -> impl Iterator<Item = (String, String)> {
    fields.into_iter().map(|(name, value)| (name.to_owned(), value))
}
