//! Call sites as configuration writes them: `file:line`, `module+0xoffset`, or ranges of a module.

use std::fmt;

/// A call site named in a configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Site {
    /// `file.c:123`. `ampl exec` turns it into [`Site::Code`] before the program starts.
    Line {
        /// File name, with as many directories as it takes to tell it apart.
        file: String,
        /// From 1.
        line: u32,
    },
    /// `module+0xoffset`, `module+0xlow-0xhigh`, or several of them separated by commas.
    Code(Vec<CodeRange>),
}

/// A piece of code in one module.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CodeRange {
    /// File name of the executable or library, without directories.
    pub module: String,
    /// First offset from the module's load address.
    pub low: u64,
    /// End of the piece, exclusive; absent where one return address was given.
    pub high: Option<u64>,
}

impl CodeRange {
    /// Whether a call that returns to `return_offset` in this module lies here.
    ///
    /// A single offset is compared as it stands (decoded traces print return addresses); in a range the call
    /// instruction counts, which ends just before the return address.
    pub fn holds(&self, return_offset: u64) -> bool {
        match self.high {
            None => return_offset == self.low,
            Some(high) => return_offset > self.low && return_offset <= high,
        }
    }
}

impl Site {
    /// The site that `text` names, if it is one.
    pub fn parse(text: &str) -> Option<Self> {
        if text.contains("+0x") {
            return text
                .split(',')
                .map(|part| code_range(part.trim()))
                .collect::<Option<Vec<_>>>()
                .map(Self::Code);
        }
        let (file, line) = text.rsplit_once(':')?;
        let line: u32 = line.parse().ok()?;
        (!file.is_empty() && line > 0).then(|| Self::Line { file: file.to_owned(), line })
    }
}

fn code_range(text: &str) -> Option<CodeRange> {
    let (module, offsets) = text.rsplit_once("+0x")?;
    let hex = |digits: &str| {
        // from_str_radix would take a sign.
        digits.bytes().all(|byte| byte.is_ascii_hexdigit()).then(|| u64::from_str_radix(digits, 16).ok())?
    };
    let (low, high) = match offsets.split_once('-') {
        Some((low, high)) => (hex(low)?, Some(hex(high.strip_prefix("0x")?)?)),
        None => (hex(offsets)?, None),
    };
    let ascending = high.is_none_or(|high| low < high);
    (!module.is_empty() && ascending).then(|| CodeRange { module: module.to_owned(), low, high })
}

impl fmt::Display for Site {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Line { file, line } => write!(f, "{file}:{line}"),
            Self::Code(ranges) => {
                for (index, range) in ranges.iter().enumerate() {
                    let comma = if index == 0 { "" } else { "," };
                    write!(f, "{comma}{}+{:#x}", range.module, range.low)?;
                    if let Some(high) = range.high {
                        write!(f, "-{high:#x}")?;
                    }
                }
                Ok(())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sites_print_back() {
        for text in ["solve.c:12", "src/solve.c:12", "app+0x1a2b", "app+0x10-0x20,libx.so.1+0x30-0x31"] {
            assert_eq!(Site::parse(text).expect(text).to_string(), text);
        }
    }

    #[test]
    fn what_is_no_site() {
        for text in
            ["", ":", "solve.c", "solve.c:0", "solve.c:-1", ":3", "+0x1", "app+0x", "app+0xg", "app+0x2-0x2"]
        {
            assert_eq!(Site::parse(text), None, "{text}");
        }
        assert_eq!(Site::parse("app+0x10-20"), None, "the end needs its 0x");
    }

    #[test]
    fn ranges_hold_the_call_before_the_return_address() {
        let Some(Site::Code(ranges)) = Site::parse("app+0x10-0x20,app+0x40") else { panic!() };
        assert!(
            !ranges[0].holds(0x10)
                && ranges[0].holds(0x11)
                && ranges[0].holds(0x20)
                && !ranges[0].holds(0x21)
        );
        assert!(ranges[1].holds(0x40) && !ranges[1].holds(0x41));
    }
}
