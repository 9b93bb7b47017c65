//! Reading a package: from one tar file or from a directory.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, BufReader, Read};
use std::path::Path;

use super::error::io_error;
use super::{IN_MEMORY, MANIFEST_FILE, Package, PackageError};
use crate::manifest::{MANIFEST_VERSION, Manifest};
use crate::validate::check_file_name;

/// The largest manifest that is read, in bytes.
const MAX_MANIFEST_BYTES: u64 = 64 << 20;

impl Package {
    /// Reads a package, a directory or a tar file.
    ///
    /// # Errors
    /// Anything missing, damaged, of another version or contradictory.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, PackageError> {
        let path = path.as_ref();
        let metadata = fs::metadata(path).map_err(|e| io_error(path, e))?;
        let (manifest, files) = if metadata.is_dir() {
            read_dir(path)?
        } else {
            open_tar(path)?
        };
        Self::check_files(manifest, files)
    }

    /// Reads the package that [`Package::to_bytes`] or [`Package::write_file`] wrote.
    ///
    /// # Errors
    /// As [`Package::open`].
    ///
    /// ```
    /// # use axe_package::{Package, PackageError};
    /// assert!(matches!(Package::from_bytes(b"ELF"), Err(PackageError::NotAPackage { .. })));
    /// ```
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, PackageError> {
        let (manifest, files) = read_tar(bytes, Path::new(IN_MEMORY))?;
        Self::check_files(manifest, files)
    }
}

/// The bytes that say what a tar file starts with: the manifest's name and the zero behind it.
const NAME_START: usize = MANIFEST_FILE.len() + 1;

/// A tar file of ours has the manifest's name in its first bytes, the first header's name field.
fn names_manifest(start: &[u8; NAME_START]) -> bool {
    start.strip_prefix(MANIFEST_FILE.as_bytes()) == Some(&[0])
}

pub(super) fn starts_with_manifest(path: &Path) -> bool {
    let mut start = [0; NAME_START];
    let read = File::open(path).and_then(|mut f| f.read_exact(&mut start));
    read.is_ok() && names_manifest(&start)
}

fn parse_manifest(path: &Path, json: &[u8]) -> Result<Manifest, PackageError> {
    #[derive(serde::Deserialize)]
    struct VersionOnly {
        version: u64,
    }
    let json_error = |source| PackageError::Json {
        path: path.to_owned(),
        source,
    };
    // The version first, so that another version's fields are not called mistakes.
    let version: VersionOnly = serde_json::from_slice(json).map_err(json_error)?;
    if version.version != u64::from(MANIFEST_VERSION) {
        return Err(PackageError::Version {
            path: path.to_owned(),
            got: version.version,
        });
    }
    serde_json::from_slice(json).map_err(json_error)
}

type Content = (Manifest, BTreeMap<String, Vec<u8>>);

fn open_tar(path: &Path) -> Result<Content, PackageError> {
    let file = File::open(path).map_err(|e| io_error(path, e))?;
    read_tar(BufReader::new(file), path)
}

/// Reads a tar file; `path` is for messages.
fn read_tar(mut tar: impl Read, path: &Path) -> Result<Content, PackageError> {
    let mut start = [0; NAME_START];
    let begins = tar.read_exact(&mut start).is_ok() && names_manifest(&start);
    if !begins {
        return Err(foreign(path, "it does not start with a manifest"));
    }
    let mut archive = tar::Archive::new(start.chain(tar));
    let mut manifest = None;
    let mut files = BTreeMap::new();
    for entry in archive.entries().map_err(|e| io_error(path, e))? {
        let entry = entry.map_err(|e| damaged(path, &e))?;
        let (name, bytes) = read_entry(entry, path)?;
        if manifest.is_none() {
            manifest = Some(parse_manifest(path, &bytes)?);
        } else {
            check_file_name("files", &name)?;
            files.insert(name, bytes);
        }
    }
    let manifest = manifest.ok_or_else(|| foreign(path, "it has no manifest"))?;
    Ok((manifest, files))
}

/// The name and the content of a file in a tar file.
fn read_entry(
    entry: tar::Entry<'_, impl Read>,
    path: &Path,
) -> Result<(String, Vec<u8>), PackageError> {
    let name = String::from_utf8_lossy(&entry.path_bytes()).into_owned();
    if !entry.header().entry_type().is_file() {
        let reason = format!("`{}` is not a regular file", name.escape_debug());
        return Err(foreign(path, &reason));
    }
    let want = entry.size();
    let limit = if name == MANIFEST_FILE {
        MAX_MANIFEST_BYTES
    } else {
        u64::MAX
    };
    let mut bytes = Vec::new();
    entry
        .take(limit)
        .read_to_end(&mut bytes)
        .map_err(|e| damaged(path, &e))?;
    let got = bytes.len() as u64;
    if got != want {
        let file = name;
        return Err(PackageError::Size { file, want, got });
    }
    Ok((name, bytes))
}

fn foreign(path: &Path, reason: &str) -> PackageError {
    PackageError::NotAPackage {
        path: path.to_owned(),
        reason: reason.to_owned(),
    }
}

fn damaged(path: &Path, error: &io::Error) -> PackageError {
    foreign(path, &format!("damaged or cut off: {error}"))
}

fn read_dir(path: &Path) -> Result<Content, PackageError> {
    let manifest_path = path.join(MANIFEST_FILE);
    let metadata = fs::metadata(&manifest_path)
        .map_err(|e| foreign(path, &format!("{MANIFEST_FILE}: {e}")))?;
    if metadata.len() > MAX_MANIFEST_BYTES {
        let reason = format!("{MANIFEST_FILE} has {} bytes", metadata.len());
        return Err(foreign(path, &reason));
    }
    let json = fs::read(&manifest_path).map_err(|e| io_error(&manifest_path, e))?;
    let manifest = parse_manifest(path, &json)?;
    let mut files = BTreeMap::new();
    for name in manifest.files.keys() {
        check_file_name("files", name)?;
        let file = path.join(name);
        match fs::read(&file) {
            Ok(bytes) => files.insert(name.clone(), bytes),
            Err(e) if e.kind() == io::ErrorKind::NotFound => {
                return Err(PackageError::MissingFile(name.clone()));
            }
            Err(e) => return Err(io_error(&file, e)),
        };
    }
    Ok((manifest, files))
}
