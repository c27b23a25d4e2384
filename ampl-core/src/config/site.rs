//! Call sites as configuration writes them: `file:line`, `module+0xoffset`, or ranges of a module.
//!
//! A line is shown and stored by its name, and matched by its code. Before the program starts, the code is appended to
//! the name, `file:line=module+0xlow-0xhigh`; no job file needs to write it.

use std::fmt;

/// A call site named in a configuration.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Site {
    /// `file.c:123`
    Line {
        /// File name, with as many directories as it takes to tell it apart.
        file: String,
        /// Line, from 1.
        line: u32,
        /// Code of the line; empty until `ampl run` or `ampl exec` has looked it up.
        code: Vec<CodeRange>,
    },
    /// `module+0xoffset`, `module+0xlow-0xhigh`, or several of them separated by commas.
    Code(Vec<CodeRange>),
}

/// A piece of code in one module.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct CodeRange {
    /// File name of the executable or library, without directories.
    pub module: String,
    /// First offset from the module's load address.
    pub low: u64,
    /// End of the piece, exclusive; absent where one return address was given.
    pub high: Option<u64>,
}

impl CodeRange {
    /// `true` if a call that returns to `return_offset` in this module lies here.
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
        if !text.contains("+0x") {
            return line(text, Vec::new());
        }
        // Names of files and modules may have the sign, too.
        let resolved = |(at, sign): (usize, &str)| line(&text[..at], code_ranges(&text[at + sign.len()..])?);
        text.match_indices('=').find_map(resolved).or_else(|| code_ranges(text).map(Self::Code))
    }

    /// The code that makes its calls; none of a line that has not been looked up.
    pub fn code(&self) -> &[CodeRange] {
        match self {
            Self::Line { code, .. } | Self::Code(code) => code,
        }
    }

    /// The site with its code behind its name, as [`Site::parse`] reads it back.
    pub fn with_code(&self) -> String {
        match self {
            Self::Line { code, .. } if !code.is_empty() => format!("{self}={}", Ranges(code)),
            _ => self.to_string(),
        }
    }
}

fn line(text: &str, code: Vec<CodeRange>) -> Option<Site> {
    let (file, line) = text.rsplit_once(':')?;
    let line: u32 = line.parse().ok()?;
    (!file.is_empty() && line > 0).then(|| Site::Line { file: file.to_owned(), line, code })
}

fn code_ranges(text: &str) -> Option<Vec<CodeRange>> {
    text.split(',').map(|part| code_range(part.trim())).collect()
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
    /// The name that the user has given it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Line { file, line, .. } => write!(f, "{file}:{line}"),
            Self::Code(ranges) => Ranges(ranges).fmt(f),
        }
    }
}

/// Ranges as they are written, separated by commas.
pub(super) struct Ranges<'a>(pub(super) &'a [CodeRange]);

impl fmt::Display for Ranges<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, range) in self.0.iter().enumerate() {
            let comma = if index == 0 { "" } else { "," };
            write!(f, "{comma}{}+{:#x}", range.module, range.low)?;
            if let Some(high) = range.high {
                write!(f, "-{high:#x}")?;
            }
        }
        Ok(())
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
    fn a_line_that_has_its_code_keeps_its_name() {
        for (name, code) in
            [("solve.c:12", "app+0x10-0x20,libx.so.1+0x30-0x31"), ("a=b.c:3", "my=app+0x1-0x2")]
        {
            let text = format!("{name}={code}");
            let site = Site::parse(&text).expect(&text);
            assert_eq!((site.to_string(), site.with_code()), (name.into(), text));
            assert_eq!(Some(site.code()), Site::parse(code).as_ref().map(Site::code));
            let bare = Site::parse(name).expect(name);
            assert!(bare.code().is_empty() && bare.with_code() == name);
        }
        // A module's name alone.
        assert_eq!(Site::parse("my=app+0x1").map(|site| site.to_string()), Some("my=app+0x1".into()));
    }

    #[test]
    fn what_is_no_site() {
        for text in
            ["", ":", "solve.c", "solve.c:0", "solve.c:-1", ":3", "+0x1", "app+0x", "app+0xg", "app+0x2-0x2"]
        {
            assert_eq!(Site::parse(text), None, "{text}");
        }
        assert_eq!(Site::parse("app+0x10-20"), None, "the end needs its 0x");
        assert_eq!(Site::parse("a.c:1="), None);
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
