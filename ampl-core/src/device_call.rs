//! Calls of libraries that communicate between devices, as the names of regions that stand for them.
//!
//! Such a call only puts work into a queue of the device. Its name says what was put there, and the length of the region is
//! that of the call, not of the transfer.

use std::fmt::{self, Display, Formatter};

use serde::ser::{Serialize, SerializeStruct, Serializer};

/// Names of `ncclDataType_t`, which RCCL shares, and their bytes.
const TYPES: [(&str, u64); 12] = [
    ("int8", 1),
    ("uint8", 1),
    ("int32", 4),
    ("uint32", 4),
    ("int64", 8),
    ("uint64", 8),
    ("float16", 2),
    ("float32", 4),
    ("float64", 8),
    ("bfloat16", 2),
    ("float8e4m3", 1),
    ("float8e5m2", 1),
];

/// A call that enqueues communication of a device: `ncclAllReduce type=float32 count=1024 bytes=4096 comm=0`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct DeviceCall<'a> {
    /// The function: `ncclAllReduce`.
    pub function: &'a str,
    /// The library's number of the elements' type.
    pub datatype: i32,
    /// Elements, as the call counts them.
    pub count: u64,
    /// Number of the communicator in its process, in the order of their first use; `None` beyond those that are numbered.
    pub communicator: Option<u32>,
}

impl<'a> DeviceCall<'a> {
    /// Name of its elements' type; `None` for one that is not known.
    pub fn type_name(&self) -> Option<&'static str> {
        Some(TYPES.get(usize::try_from(self.datatype).ok()?)?.0)
    }

    /// Bytes of an element; `None` for a type that is not known.
    pub fn type_bytes(&self) -> Option<u64> {
        Some(TYPES.get(usize::try_from(self.datatype).ok()?)?.1)
    }

    /// Count times the bytes of an element; `None` for a type that is not known.
    pub fn bytes(&self) -> Option<u64> {
        self.count.checked_mul(self.type_bytes()?)
    }

    /// The call that a region's name stands for; `None` for other names.
    pub fn parse(name: &'a str) -> Option<Self> {
        let mut words = name.split(' ');
        let function = words.next().filter(|function| function.starts_with("nccl"))?;
        let datatype = words.next()?.strip_prefix("type=")?;
        let by_name = TYPES.iter().position(|(known, _)| *known == datatype);
        let datatype = by_name.map_or_else(|| datatype.parse().ok(), |at| i32::try_from(at).ok())?;
        let count = words.next()?.strip_prefix("count=")?.parse().ok()?;
        let mut call = Self { function, datatype, count, communicator: None };
        for word in words {
            match word.strip_prefix("comm=") {
                Some(number) => call.communicator = Some(number.parse().ok()?),
                None => word.strip_prefix("bytes=").filter(|bytes| bytes.parse::<u64>().is_ok()).map(drop)?,
            }
        }
        Some(call)
    }
}

impl Serialize for DeviceCall<'_> {
    fn serialize<S: Serializer>(&self, out: S) -> Result<S::Ok, S::Error> {
        let mut fields = out.serialize_struct("DeviceCall", 6)?;
        fields.serialize_field("function", self.function)?;
        fields.serialize_field("count", &self.count)?;
        fields.serialize_field("datatype", &self.type_name())?;
        fields.serialize_field("datatype_bytes", &self.type_bytes())?;
        fields.serialize_field("bytes", &self.bytes())?;
        fields.serialize_field("communicator", &self.communicator)?;
        fields.end()
    }
}

impl Display for DeviceCall<'_> {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        write!(out, "{} type=", self.function)?;
        match self.type_name() {
            Some(name) => out.write_str(name)?,
            None => write!(out, "{}", self.datatype)?,
        }
        write!(out, " count={}", self.count)?;
        self.bytes().map_or(Ok(()), |bytes| write!(out, " bytes={bytes}"))?;
        self.communicator.map_or(Ok(()), |number| write!(out, " comm={number}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_survive_their_names() {
        for datatype in -1..14 {
            for communicator in [None, Some(0), Some(1023)] {
                for count in [0, 1024, u64::MAX] {
                    let call = DeviceCall { function: "ncclBcast", datatype, count, communicator };
                    assert_eq!(DeviceCall::parse(&call.to_string()), Some(call));
                }
            }
        }
        let call = DeviceCall { function: "ncclAllReduce", datatype: 7, count: 1024, communicator: Some(0) };
        assert_eq!(call.to_string(), "ncclAllReduce type=float32 count=1024 bytes=4096 comm=0");
    }

    #[test]
    fn other_names_are_no_calls() {
        for name in [
            "",
            "step",
            "ncclAllReduce",
            "ncclAllReduce type=x count=1",
            "a type=int8 count=1",
            "nccl type=1 count=1 more",
        ] {
            assert_eq!(DeviceCall::parse(name), None, "{name}");
        }
    }
}
