//! The arguments of a call as a URL's query: `port=h1&pg=3`. What a word means is decided by the
//! type of its argument, so a port may be called `1`. A list has commas: `kinds=edge,drop`.

use holdfast_api::message::{arguments_of, Call, ErrorBody};
use serde::de::value::{Error, MapDeserializer, SeqDeserializer};
use serde::de::{Deserializer, Error as _, IntoDeserializer, Visitor};
use serde::forward_to_deserialize_any;

/// The call `name` with the arguments in `query`.
///
/// # Errors
/// [`ErrorBody`] with the code `unknown_call` or `bad_argument`.
pub(crate) fn read_call(name: &str, query: &str) -> Result<Call, ErrorBody> {
    let pairs = form_urlencoded::parse(query.as_bytes());
    let words = pairs.map(|(key, value)| {
        let word = Word { key: key.to_string(), text: value.into_owned() };
        (key.into_owned(), word)
    });
    arguments_of(name, MapDeserializer::new(words))
}

/// One value.
struct Word {
    key: String,
    text: String,
}

impl Word {
    fn is_no(&self, what: &str) -> Error {
        Error::custom(format!("{} is no {what}: {:?}", self.key, self.text))
    }
}

impl<'de> IntoDeserializer<'de, Error> for Word {
    type Deserializer = Self;

    fn into_deserializer(self) -> Self {
        self
    }
}

macro_rules! parsed {
    ($($method:ident $visit:ident $type:ty, $what:literal;)*) => {$(
        fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
            let value: $type = self.text.parse().map_err(|_| self.is_no($what))?;
            visitor.$visit(value)
        }
    )*};
}

impl<'de> Deserializer<'de> for Word {
    type Error = Error;

    parsed! {
        deserialize_bool visit_bool bool, "true or false";
        deserialize_u8 visit_u8 u8, "whole number from 0 to 255";
        deserialize_u16 visit_u16 u16, "whole number from 0 to 65535";
        deserialize_u32 visit_u32 u32, "whole number from 0 to 4294967295";
        deserialize_u64 visit_u64 u64, "whole number from 0 on";
        deserialize_i8 visit_i8 i8, "whole number from -128 to 127";
        deserialize_i16 visit_i16 i16, "whole number";
        deserialize_i32 visit_i32 i32, "whole number";
        deserialize_i64 visit_i64 i64, "whole number";
        deserialize_f64 visit_f64 f64, "number";
    }

    /// Where both a number and a text will do, as for amounts.
    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        match self.text.parse::<u64>() {
            Ok(number) => visitor.visit_u64(number),
            Err(_) => visitor.visit_string(self.text),
        }
    }

    fn deserialize_string<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_string(self.text)
    }

    fn deserialize_str<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_string(self.text)
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_some(self)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        visitor: V,
    ) -> Result<V::Value, Error> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _name: &'static str,
        _variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        visitor.visit_enum(self.text.into_deserializer())
    }

    /// An empty text is an empty list.
    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        let Self { key, text } = self;
        let parts = text.split(',').filter(|part| !text.is_empty() || !part.is_empty());
        let words = parts.map(|part| Self { key: key.clone(), text: part.to_owned() });
        let mut words = SeqDeserializer::new(words);
        let list = visitor.visit_seq(&mut words)?;
        words.end()?;
        Ok(list)
    }

    forward_to_deserialize_any! {
        i128 u128 f32 char bytes byte_buf unit unit_struct tuple tuple_struct map struct
        identifier ignored_any
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use holdfast_api::message::{ErrorCode, EventKind, PgFilter, ShowFdb, Trace};

    fn refused(name: &str, query: &str) -> String {
        let error = read_call(name, query).unwrap_err();
        assert_eq!(error.code, ErrorCode::BadArgument, "{error}");
        error.to_string()
    }

    #[test]
    fn words_are_read_as_their_argument_wants_them() {
        let port = Some("1".to_owned());
        let call = Call::ShowPg(PgFilter { port, pg: Some(3) });
        assert_eq!(read_call("show_pg", "port=1&pg=3").unwrap(), call);
        let port = Some("a b&c=\u{e4}".to_owned());
        let call = Call::ShowFdb(ShowFdb { port, max: Some(10), ..ShowFdb::default() });
        assert_eq!(read_call("show_fdb", "port=a+b%26c%3D%C3%A4&max=10").unwrap(), call);
        let trace = Trace {
            since: Some(vec![1, 2]),
            kinds: Some(vec![EventKind::Edge, EventKind::Drop]),
            record: Some(Vec::new()),
            ..Trace::default()
        };
        let query = "since=1,2&kinds=edge,drop&record=";
        assert_eq!(read_call("trace", query).unwrap(), Call::Trace(trace));
        for query in ["", "&", "&&"] {
            assert!(matches!(read_call("ping", query), Ok(Call::Ping(_))), "{query:?}");
        }
    }

    #[test]
    fn a_wrong_word_is_named() {
        assert!(refused("show_pg", "pg=x").contains("pg is no whole number from 0 to 255: \"x\""));
        assert!(refused("show_pg", "pg=256").contains("pg is no whole number"));
        assert!(refused("show_pg", "pg=").contains("pg is no whole number"));
        assert!(refused("show_pg", "prot=h1").contains("`prot`"));
        assert!(refused("show_pg", "port=h1&port=h2").contains("duplicate field `port`"));
        assert!(refused("trace", "kinds=edges").contains("`edges`"));
        assert!(refused("trace", "since=1,,2").contains("since is no whole number"));
        assert!(refused("ping", "x=1").contains("`x`"));
        let error = read_call("pong", "").unwrap_err();
        assert_eq!(error.code, ErrorCode::UnknownCall);
    }
}
