//! Names that packets give by number, told once.

use std::collections::HashMap;

use super::wire::Message;

/// Most names that are remembered; more of them would take memory without end.
const MOST: usize = 1 << 16;

/// Table of names, by its field in `InternedData`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// Names of events.
    Event = 2,
    /// Names of annotations.
    Annotation = 3,
    /// Texts of annotations.
    Text = 29,
}

/// Names with their numbers, and those that no packet has told yet.
#[derive(Debug, Default)]
pub struct Names {
    numbers: HashMap<Kind, HashMap<String, u64>>,
    new: Message,
}

impl Names {
    /// Number of a name, from 1.
    pub fn number(&mut self, kind: Kind, name: &str) -> u64 {
        self.known(kind, name).unwrap_or_else(|| {
            let names = self.numbers.entry(kind).or_default();
            let number = names.len() as u64 + 1;
            names.insert(name.to_owned(), number);
            let entry = Message::default().int(1, number).text(2, name);
            self.new = std::mem::take(&mut self.new).message(kind as u32, &entry);
            number
        })
    }

    fn known(&self, kind: Kind, name: &str) -> Option<u64> {
        self.numbers.get(&kind)?.get(name).copied()
    }

    /// Takes the entries of names that are new since the last time.
    pub fn take_new(&mut self) -> Message {
        std::mem::take(&mut self.new)
    }

    fn annotation(&mut self, name: &str) -> Message {
        Message::default().int(1, self.number(Kind::Annotation, name))
    }

    /// Annotation with a whole number.
    pub fn int(&mut self, name: &str, value: i64) -> Message {
        self.annotation(name).int(4, value as u64)
    }

    /// Annotation with a floating-point number.
    pub fn double(&mut self, name: &str, value: f64) -> Message {
        self.annotation(name).double(5, value)
    }

    /// Annotation with a text.
    pub fn text(&mut self, name: &str, value: &str) -> Message {
        let annotation = self.annotation(name);
        let many = self.numbers.get(&Kind::Text).is_some_and(|names| names.len() >= MOST);
        if many && self.known(Kind::Text, value).is_none() {
            return annotation.text(6, value);
        }
        annotation.int(17, self.number(Kind::Text, value))
    }
}
