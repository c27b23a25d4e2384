//! Pages of Parquet columns, checked before they are read.
//!
//! The library takes lengths and counts as a file gives them: a few bytes may claim gigabytes, and what contradicts itself
//! ends the process. Here a page is decompressed up to a limit, and a page that does not hold together is an error.

use std::fs::File;
use std::io::Read;
use std::sync::Arc;

use bytes::Bytes;
use parquet::basic::{Compression, Encoding, Type};
use parquet::column::page::{Page, PageMetadata, PageReader};
use parquet::column::reader::{ColumnReader, ColumnReaderImpl};
use parquet::errors::ParquetError;
use parquet::file::metadata::RowGroupMetaData;
use parquet::file::serialized_reader::SerializedPageReader;

/// Most bytes of a page: 64 times what writers aim at.
const MOST_BYTES: usize = 64 << 20;

/// The column at `place` of the row group `group` of `file`.
///
/// # Errors
/// Where its place is not in the file, or it has a type that no population has.
pub fn column(
    file: &Arc<File>,
    group: &RowGroupMetaData,
    place: usize,
) -> Result<ColumnReader, ParquetError> {
    let column = group.column(place);
    let start = column.dictionary_page_offset().unwrap_or(column.data_page_offset());
    let end = start.checked_add(column.compressed_size());
    let is_inside = start >= 0 && column.compressed_size() >= 0;
    let length = file.metadata()?.len();
    if !is_inside || end.and_then(|end| u64::try_from(end).ok()).is_none_or(|end| end > length) {
        return Err(wrong("a column is outside of the file"));
    }
    let rows = usize::try_from(group.num_rows())?;
    let stored = column.clone().into_builder().set_compression(Compression::UNCOMPRESSED).build()?;
    let descriptor = group.schema_descr().column(place);
    let pages = SerializedPageReader::new(Arc::clone(file), &stored, rows, None)?;
    let check = Check {
        compression: column.compression(),
        value_bytes: if matches!(descriptor.physical_type(), Type::INT64 | Type::DOUBLE) { 8 } else { 4 },
        is_nullable: descriptor.max_def_level() > 0,
        has_dictionary: false,
    };
    let pages = Box::new(Checked { pages, check });
    Ok(match descriptor.physical_type() {
        Type::INT32 => ColumnReader::Int32ColumnReader(ColumnReaderImpl::new(descriptor, pages)),
        Type::INT64 => ColumnReader::Int64ColumnReader(ColumnReaderImpl::new(descriptor, pages)),
        Type::FLOAT => ColumnReader::FloatColumnReader(ColumnReaderImpl::new(descriptor, pages)),
        Type::DOUBLE => ColumnReader::DoubleColumnReader(ColumnReaderImpl::new(descriptor, pages)),
        Type::BYTE_ARRAY => ColumnReader::ByteArrayColumnReader(ColumnReaderImpl::new(descriptor, pages)),
        _ => return Err(wrong("a column changes its type")),
    })
}

/// Pages of a column, each of which is checked.
struct Checked {
    /// Pages as they are stored.
    pages: SerializedPageReader<File>,
    check: Check,
}

/// Facts of a column that its pages are checked by.
struct Check {
    compression: Compression,
    /// Bytes that a value of a dictionary takes, at least.
    value_bytes: u64,
    is_nullable: bool,
    has_dictionary: bool,
}

impl Check {
    /// The page as it was before it was compressed.
    fn page(&mut self, mut page: Page) -> Result<Page, ParquetError> {
        let compression = self.compression;
        match &mut page {
            Page::DictionaryPage { buf, num_values, .. } => {
                *buf = decompressed(compression, buf, MOST_BYTES)?;
                if u64::from(*num_values) * self.value_bytes > buf.len() as u64 {
                    return Err(wrong("a dictionary is shorter than it says"));
                }
                self.has_dictionary = true;
            }
            Page::DataPage { buf, encoding, def_level_encoding, .. } => {
                *buf = decompressed(compression, buf, MOST_BYTES)?;
                if self.is_nullable && *def_level_encoding != Encoding::RLE {
                    return Err(wrong(format!("levels as {def_level_encoding}")));
                }
                self.encoding(*encoding)?;
            }
            Page::DataPageV2 {
                buf,
                encoding,
                def_levels_byte_len,
                rep_levels_byte_len,
                is_compressed,
                ..
            } => {
                let levels = u64::from(*def_levels_byte_len) + u64::from(*rep_levels_byte_len);
                let levels = usize::try_from(levels)?;
                if levels > buf.len() {
                    return Err(wrong("a page is shorter than its levels"));
                }
                if *is_compressed && compression != Compression::UNCOMPRESSED {
                    let values = decompressed(compression, &buf.slice(levels..), MOST_BYTES)?;
                    *buf = [&buf[..levels], &values].concat().into();
                }
                self.encoding(*encoding)?;
            }
        }
        Ok(page)
    }

    /// Refuses encodings whose counts the library believes, and indices without a dictionary.
    fn encoding(&self, encoding: Encoding) -> Result<(), ParquetError> {
        match encoding {
            Encoding::PLAIN | Encoding::DELTA_BINARY_PACKED | Encoding::BYTE_STREAM_SPLIT => Ok(()),
            Encoding::PLAIN_DICTIONARY | Encoding::RLE_DICTIONARY if self.has_dictionary => Ok(()),
            Encoding::PLAIN_DICTIONARY | Encoding::RLE_DICTIONARY => Err(wrong("a dictionary is missing")),
            _ => Err(wrong(format!("values are encoded as {encoding}: write them plain or by a dictionary"))),
        }
    }
}

impl Iterator for Checked {
    type Item = Result<Page, ParquetError>;

    fn next(&mut self) -> Option<Self::Item> {
        self.get_next_page().transpose()
    }
}

impl PageReader for Checked {
    fn get_next_page(&mut self) -> Result<Option<Page>, ParquetError> {
        self.pages.get_next_page()?.map(|page| self.check.page(page)).transpose()
    }

    fn peek_next_page(&mut self) -> Result<Option<PageMetadata>, ParquetError> {
        self.pages.peek_next_page()
    }

    fn skip_next_page(&mut self) -> Result<(), ParquetError> {
        self.pages.skip_next_page()
    }
}

/// The contents of `page`, if these are `most` bytes or fewer.
fn decompressed(compression: Compression, page: &Bytes, most: usize) -> Result<Bytes, ParquetError> {
    let too_long = || wrong(format!("a page is longer than {most} bytes"));
    let all = |from: &mut dyn Read| {
        let mut bytes = Vec::new();
        from.take(most as u64 + 1).read_to_end(&mut bytes)?;
        Ok::<_, ParquetError>(bytes)
    };
    let bytes = match compression {
        // A page without values may be stored as nothing.
        _ if page.is_empty() => return Ok(page.clone()),
        Compression::UNCOMPRESSED => return Ok(page.clone()),
        Compression::SNAPPY => {
            if snap::raw::decompress_len(page).map_err(wrong)? > most {
                return Err(too_long());
            }
            snap::raw::Decoder::new().decompress_vec(page).map_err(wrong)?
        }
        Compression::GZIP(_) => all(&mut flate2::read::MultiGzDecoder::new(&page[..]))?,
        Compression::BROTLI(_) => all(&mut brotli::Decompressor::new(&page[..], 1 << 16))?,
        Compression::ZSTD(_) => all(&mut zstd::Decoder::new(&page[..])?)?,
        Compression::LZ4_RAW => {
            // A byte of it stands for 255 at most.
            let longest = page.len().saturating_mul(255).min(most);
            lz4_flex::block::decompress(page, longest).map_err(|_| too_long())?
        }
        _ => return Err(wrong("LZO, and LZ4 in its old framing, are not read")),
    };
    if bytes.len() > most { Err(too_long()) } else { Ok(bytes.into()) }
}

fn wrong(what: impl ToString) -> ParquetError {
    ParquetError::General(what.to_string())
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;

    const MOST: usize = 1000;

    fn compressed(compression: Compression, bytes: &[u8]) -> Bytes {
        let page = match compression {
            Compression::SNAPPY => snap::raw::Encoder::new().compress_vec(bytes).unwrap(),
            Compression::GZIP(_) => {
                let mut writer = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
                writer.write_all(bytes).unwrap();
                writer.finish().unwrap()
            }
            Compression::BROTLI(_) => {
                let mut writer = brotli::CompressorWriter::new(Vec::new(), 4096, 5, 20);
                writer.write_all(bytes).unwrap();
                writer.into_inner()
            }
            Compression::ZSTD(_) => zstd::encode_all(bytes, 1).unwrap(),
            Compression::LZ4_RAW => lz4_flex::block::compress(bytes),
            _ => bytes.to_vec(),
        };
        page.into()
    }

    #[test]
    fn a_page_is_decompressed_up_to_a_limit() {
        let all = [
            Compression::SNAPPY,
            Compression::GZIP(Default::default()),
            Compression::BROTLI(Default::default()),
            Compression::ZSTD(Default::default()),
            Compression::LZ4_RAW,
        ];
        for compression in all {
            let contents: Vec<u8> = (0..MOST).map(|at| (at / 7) as u8).collect();
            let found = decompressed(compression, &compressed(compression, &contents), MOST).unwrap();
            assert_eq!(found, contents, "{compression:?}");
            let longer = compressed(compression, &[7; 10 * MOST]);
            assert!(longer.len() < MOST, "{compression:?}");
            let error = decompressed(compression, &longer, MOST).unwrap_err().to_string();
            assert!(error.contains("longer than 1000 bytes"), "{compression:?}: {error}");
        }
        // A few bytes that claim 4 GiB.
        let claims = Bytes::from_static(&[0xff, 0xff, 0xff, 0xff, 0x0f, 0]);
        assert!(decompressed(Compression::SNAPPY, &claims, MOST).is_err());
    }

    fn check() -> Check {
        Check {
            compression: Compression::UNCOMPRESSED,
            value_bytes: 8,
            is_nullable: true,
            has_dictionary: false,
        }
    }

    fn data(encoding: Encoding, def_level_encoding: Encoding) -> Page {
        Page::DataPage {
            buf: Bytes::from_static(&[0; 16]),
            num_values: 2,
            encoding,
            def_level_encoding,
            rep_level_encoding: Encoding::RLE,
            statistics: None,
        }
    }

    #[test]
    fn pages_that_contradict_themselves_are_refused() {
        let mut check = check();
        let refused = |check: &mut Check, page: Page, what: &str| {
            let Err(error) = check.page(page) else { panic!("{what}") };
            assert!(error.to_string().contains(what), "{error}");
        };
        refused(&mut check, data(Encoding::RLE_DICTIONARY, Encoding::RLE), "dictionary is missing");
        refused(&mut check, data(Encoding::DELTA_BYTE_ARRAY, Encoding::RLE), "write them plain");
        refused(&mut check, data(Encoding::PLAIN, Encoding::PLAIN), "levels as");
        let dictionary = |num_values| Page::DictionaryPage {
            buf: Bytes::from_static(&[0; 16]),
            num_values,
            encoding: Encoding::PLAIN,
            is_sorted: false,
        };
        refused(&mut check, dictionary(u32::MAX), "shorter than it says");
        assert!(check.page(dictionary(2)).is_ok());
        assert!(check.page(data(Encoding::RLE_DICTIONARY, Encoding::RLE)).is_ok());
        let levels = |def_levels_byte_len| Page::DataPageV2 {
            buf: Bytes::from_static(&[0; 16]),
            num_values: 2,
            encoding: Encoding::PLAIN,
            num_nulls: 0,
            num_rows: 2,
            def_levels_byte_len,
            rep_levels_byte_len: u32::MAX,
            is_compressed: false,
            statistics: None,
        };
        refused(&mut check, levels(1), "shorter than its levels");
    }
}
