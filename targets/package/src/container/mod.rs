//! A package on disk: a tar file or a directory, `manifest.json` and the files it lists.
//!
//! Writing is atomic: everything goes to a temporary neighbour that is renamed into place, so a
//! reader sees the old package, the new one, or none. Reading checks the size and hash of every
//! file against the manifest and refuses files that it does not list.

mod error;
mod read;
mod write;

pub use error::PackageError;
pub(crate) use write::set_mode;

use std::collections::BTreeMap;
use std::fmt::Write as _;

use sha2::{Digest, Sha256};

use crate::manifest::{Buffer, BufferInit, FileInfo, Manifest};

/// The manifest's name in a package.
pub const MANIFEST_FILE: &str = "manifest.json";

/// What messages call a package that is no file.
const IN_MEMORY: &str = "package in memory";

/// A manifest and the content of its files, checked against each other.
#[derive(Debug, Clone, PartialEq)]
pub struct Package {
    manifest: Manifest,
    files: BTreeMap<String, Vec<u8>>,
}

impl Package {
    /// Puts a package together. `manifest.files` is computed from `files`.
    ///
    /// # Errors
    /// A manifest that does not validate, a file missing or unused, a constant of the wrong size.
    pub fn new(
        mut manifest: Manifest,
        files: BTreeMap<String, Vec<u8>>,
    ) -> Result<Self, PackageError> {
        let info = |bytes: &Vec<u8>| FileInfo {
            bytes: bytes.len() as u64,
            sha256: sha256_hex(bytes),
        };
        manifest.files = files
            .iter()
            .map(|(name, bytes)| (name.clone(), info(bytes)))
            .collect();
        Self::check(manifest, files)
    }

    fn check(manifest: Manifest, files: BTreeMap<String, Vec<u8>>) -> Result<Self, PackageError> {
        manifest.validate()?;
        let referenced = manifest.referenced_files();
        for name in &referenced {
            if !files.contains_key(*name) {
                return Err(PackageError::MissingFile((*name).to_owned()));
            }
        }
        if let Some(name) = files
            .keys()
            .find(|name| !referenced.contains(name.as_str()))
        {
            return Err(PackageError::UnlistedFile(name.clone()));
        }
        for buffer in &manifest.buffers {
            check_constant(buffer, &files)?;
        }
        Ok(Package { manifest, files })
    }

    /// The manifest.
    #[must_use]
    pub fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    /// The content of a file.
    #[must_use]
    pub fn file(&self, name: &str) -> Option<&[u8]> {
        self.files.get(name).map(Vec::as_slice)
    }

    /// All files in name order.
    pub fn files(&self) -> impl Iterator<Item = (&str, &[u8])> {
        self.files
            .iter()
            .map(|(name, bytes)| (name.as_str(), bytes.as_slice()))
    }

    /// Checks that the files are those that the manifest lists.
    fn check_files(
        manifest: Manifest,
        files: BTreeMap<String, Vec<u8>>,
    ) -> Result<Self, PackageError> {
        for (name, info) in &manifest.files {
            let bytes = files
                .get(name)
                .ok_or_else(|| PackageError::MissingFile(name.clone()))?;
            if bytes.len() as u64 != info.bytes {
                let (want, got) = (info.bytes, bytes.len() as u64);
                return Err(PackageError::Size {
                    file: name.clone(),
                    want,
                    got,
                });
            }
            if sha256_hex(bytes) != info.sha256 {
                return Err(PackageError::Hash(name.clone()));
            }
        }
        if let Some(name) = files
            .keys()
            .find(|name| !manifest.files.contains_key(*name))
        {
            return Err(PackageError::UnlistedFile(name.clone()));
        }
        Self::check(manifest, files)
    }
}

/// Checks that the data of a constant fills its shape.
fn check_constant(buffer: &Buffer, files: &BTreeMap<String, Vec<u8>>) -> Result<(), PackageError> {
    let BufferInit::Data { file } = &buffer.init else {
        return Ok(());
    };
    let got = files.get(file).map_or(0, |bytes| bytes.len() as u64);
    let dims = buffer
        .shape
        .iter()
        .map(|d| d.as_const().and_then(|d| u64::try_from(d).ok()));
    let want = dims
        .into_iter()
        .try_fold(buffer.dtype.bytes() as u64, |n, d| n.checked_mul(d?));
    if want == Some(got) {
        return Ok(());
    }
    let (buffer, file) = (buffer.name.clone(), file.clone());
    Err(PackageError::ConstantSize {
        buffer,
        file,
        want: want.unwrap_or(u64::MAX),
        got,
    })
}

/// The SHA-256 of `bytes` as 64 lower-case hex digits.
#[must_use]
pub fn sha256_hex(bytes: &[u8]) -> String {
    Sha256::digest(bytes)
        .iter()
        .fold(String::new(), |mut hex, byte| {
            let _ = write!(hex, "{byte:02x}");
            hex
        })
}
