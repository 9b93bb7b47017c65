//! A package on disk: a tar file or a directory, `manifest.json` and the files it lists.
//!
//! Writing is atomic: everything goes to a temporary neighbour that is renamed into place, so a
//! reader sees the old package, the new one, or none. Reading checks the size and hash of every
//! file against the manifest and refuses files that it does not list.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs::{self, File};
use std::io::{self, BufReader, BufWriter, Read, Write as _};
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, RenameFlags, renameat_with};
use sha2::{Digest, Sha256};
use thiserror::Error;

use crate::manifest::{BufferInit, FileInfo, MANIFEST_VERSION, Manifest};
use crate::validate::{ManifestError, check_file_name};

/// The manifest's name in a package.
pub const MANIFEST_FILE: &str = "manifest.json";

/// What messages call a package that is no file.
const IN_MEMORY: &str = "package in memory";

/// The largest manifest that is read, in bytes.
const MAX_MANIFEST_BYTES: u64 = 64 << 20;

/// Why a package could not be read or written.
#[derive(Debug, Error)]
pub enum PackageError {
    /// The operating system refused.
    #[error("{}: {source}", path.display())]
    Io {
        /// The file or directory.
        path: PathBuf,
        /// What it said.
        source: io::Error,
    },
    /// Neither a directory with a manifest nor a tar file that starts with one.
    #[error("{}: not a kernel package: {reason}", path.display())]
    NotAPackage {
        /// The file or directory.
        path: PathBuf,
        /// What was found.
        reason: String,
    },
    /// The manifest's format is of another version.
    #[error("{}: manifest version {got}, this program reads version {MANIFEST_VERSION}; compile the source again", path.display())]
    Version {
        /// The package.
        path: PathBuf,
        /// The version found.
        got: u64,
    },
    /// The manifest is not JSON of the right form.
    #[error("{}: {MANIFEST_FILE}: {source}", path.display())]
    Json {
        /// The package.
        path: PathBuf,
        /// Where and why.
        source: serde_json::Error,
    },
    /// The manifest contradicts itself.
    #[error("invalid package manifest: {0}")]
    Manifest(#[from] ManifestError),
    /// A file that the manifest lists is not there.
    #[error("file `{0}` is missing from the package")]
    MissingFile(String),
    /// A file that the manifest does not list.
    #[error("file `{0}` is in the package but not in its manifest")]
    UnlistedFile(String),
    /// A file is cut off or has grown.
    #[error(
        "file `{file}` has {got} bytes, its manifest says {want}; the package is damaged or cut off"
    )]
    Size {
        /// The file.
        file: String,
        /// The size in the manifest in bytes.
        want: u64,
        /// The size found in bytes.
        got: u64,
    },
    /// A file's content changed.
    #[error("file `{0}` does not have the hash that the manifest says; the package is damaged")]
    Hash(String),
    /// A constant's data does not fill its shape.
    #[error("buffer `{buffer}` needs {want} bytes, its file `{file}` has {got}")]
    ConstantSize {
        /// The buffer.
        buffer: String,
        /// Its file.
        file: String,
        /// The size of its shape in bytes.
        want: u64,
        /// The size of the file in bytes.
        got: u64,
    },
    /// The destination exists and is no package, so it is left alone.
    #[error("{}: exists and is not a kernel package; remove it first", .0.display())]
    Occupied(PathBuf),
}

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
            let BufferInit::Data { file } = &buffer.init else {
                continue;
            };
            let got = files.get(file).map_or(0, |bytes| bytes.len() as u64);
            let dims = buffer
                .shape
                .iter()
                .map(|d| d.as_const().and_then(|d| u64::try_from(d).ok()));
            let want = dims
                .into_iter()
                .try_fold(buffer.dtype.bytes() as u64, |n, d| n.checked_mul(d?));
            if want != Some(got) {
                let (buffer, file) = (buffer.name.clone(), file.clone());
                return Err(PackageError::ConstantSize {
                    buffer,
                    file,
                    want: want.unwrap_or(u64::MAX),
                    got,
                });
            }
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

    /// Writes the package as one tar file, atomically, replacing an older package at `path`.
    /// The same package gives the same bytes.
    ///
    /// # Errors
    /// What the operating system refuses; a destination that is no package.
    pub fn write_file(&self, path: impl AsRef<Path>) -> Result<(), PackageError> {
        let path = path.as_ref();
        refuse_to_replace_foreign(path, false)?;
        let temp = tempfile::Builder::new()
            .prefix(".axe-package-")
            .tempfile_in(parent(path))
            .map_err(|e| io_error(path, e))?;
        let written = self.write_tar(BufWriter::new(temp), path)?;
        let finish = || -> io::Result<()> {
            let temp = written
                .into_inner()
                .map_err(io::IntoInnerError::into_error)?;
            set_mode(temp.as_file(), 0o644)?;
            temp.as_file().sync_all()?;
            temp.persist(path)?;
            Ok(())
        };
        finish().map_err(|e| io_error(path, e))
    }

    /// Writes the package as a directory, atomically, replacing an older package at `path`.
    ///
    /// # Errors
    /// What the operating system refuses; a destination that is no package.
    pub fn write_dir(&self, path: impl AsRef<Path>) -> Result<(), PackageError> {
        let path = path.as_ref();
        refuse_to_replace_foreign(path, true)?;
        let temp = tempfile::Builder::new()
            .prefix(".axe-package-")
            .tempdir_in(parent(path))
            .map_err(|e| io_error(path, e))?;
        let manifest = self.manifest_json(path)?;
        let all = std::iter::once((MANIFEST_FILE, manifest.as_slice())).chain(self.files());
        let fill = || -> io::Result<()> {
            for (name, bytes) in all {
                let file = temp.path().join(name);
                fs::create_dir_all(parent(&file))?;
                let mut file = File::create(file)?;
                file.write_all(bytes)?;
                file.sync_all()?;
            }
            set_mode(&File::open(temp.path())?, 0o755)?;
            if path.exists() {
                // Swap the two, then the temporary directory's guard removes the old one.
                renameat_with(CWD, temp.path(), CWD, path, RenameFlags::EXCHANGE)?;
            } else {
                fs::rename(temp.path(), path)?;
            }
            Ok(())
        };
        fill().map_err(|e| io_error(path, e))
    }

    /// The package as the bytes of one tar file: what [`Package::write_file`] writes.
    ///
    /// # Errors
    /// A manifest that JSON cannot hold.
    pub fn to_bytes(&self) -> Result<Vec<u8>, PackageError> {
        self.write_tar(Vec::new(), Path::new(IN_MEMORY))
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

    /// Writes the tar file to `out`; `path` is for messages.
    fn write_tar<W: io::Write>(&self, out: W, path: &Path) -> Result<W, PackageError> {
        let mut tar = tar::Builder::new(out);
        let manifest = self.manifest_json(path)?;
        append(&mut tar, MANIFEST_FILE, &manifest).map_err(|e| io_error(path, e))?;
        for (name, bytes) in &self.files {
            append(&mut tar, name, bytes).map_err(|e| io_error(path, e))?;
        }
        tar.into_inner().map_err(|e| io_error(path, e))
    }

    fn manifest_json(&self, path: &Path) -> Result<Vec<u8>, PackageError> {
        let mut json =
            serde_json::to_vec_pretty(&self.manifest).map_err(|source| PackageError::Json {
                path: path.to_owned(),
                source,
            })?;
        json.push(b'\n');
        Ok(json)
    }
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

fn io_error(path: &Path, source: io::Error) -> PackageError {
    PackageError::Io {
        path: path.to_owned(),
        source,
    }
}

fn parent(path: &Path) -> &Path {
    match path.parent() {
        Some(dir) if !dir.as_os_str().is_empty() => dir,
        _ => Path::new("."),
    }
}

/// Temporary files are private; results are for everybody.
pub(crate) fn set_mode(file: &File, mode: u32) -> io::Result<()> {
    use std::os::unix::fs::PermissionsExt;
    file.set_permissions(fs::Permissions::from_mode(mode))
}

fn append<W: io::Write>(tar: &mut tar::Builder<W>, name: &str, bytes: &[u8]) -> io::Result<()> {
    let mut header = tar::Header::new_ustar();
    header.set_size(bytes.len() as u64);
    header.set_mode(0o644);
    header.set_mtime(0);
    tar.append_data(&mut header, name, bytes)
}

fn refuse_to_replace_foreign(path: &Path, directory: bool) -> Result<(), PackageError> {
    let Ok(metadata) = fs::symlink_metadata(path) else {
        return Ok(());
    };
    let ours = if directory {
        metadata.is_dir() && (path.join(MANIFEST_FILE).is_file() || is_empty_dir(path))
    } else {
        metadata.is_file() && (metadata.len() == 0 || starts_with_manifest(path))
    };
    if ours {
        Ok(())
    } else {
        Err(PackageError::Occupied(path.to_owned()))
    }
}

fn is_empty_dir(path: &Path) -> bool {
    fs::read_dir(path).is_ok_and(|mut entries| entries.next().is_none())
}

/// The bytes that say what a tar file starts with: the manifest's name and the zero behind it.
const NAME_START: usize = MANIFEST_FILE.len() + 1;

/// A tar file of ours has the manifest's name in its first bytes, the first header's name field.
fn names_manifest(start: &[u8; NAME_START]) -> bool {
    start.strip_prefix(MANIFEST_FILE.as_bytes()) == Some(&[0])
}

fn starts_with_manifest(path: &Path) -> bool {
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
    let foreign = |reason: &str| PackageError::NotAPackage {
        path: path.to_owned(),
        reason: reason.to_owned(),
    };
    let mut start = [0; NAME_START];
    let begins = tar.read_exact(&mut start).is_ok() && names_manifest(&start);
    if !begins {
        return Err(foreign("it does not start with a manifest"));
    }
    let mut archive = tar::Archive::new(start.chain(tar));
    let mut manifest = None;
    let mut files = BTreeMap::new();
    for entry in archive.entries().map_err(|e| io_error(path, e))? {
        let entry = entry.map_err(|e| foreign(&format!("damaged or cut off: {e}")))?;
        let name = String::from_utf8_lossy(&entry.path_bytes()).into_owned();
        if !entry.header().entry_type().is_file() {
            return Err(foreign(&format!(
                "`{}` is not a regular file",
                name.escape_debug()
            )));
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
            .map_err(|e| foreign(&format!("damaged or cut off: {e}")))?;
        if bytes.len() as u64 != want {
            return Err(PackageError::Size {
                file: name,
                want,
                got: bytes.len() as u64,
            });
        }
        if manifest.is_none() {
            manifest = Some(parse_manifest(path, &bytes)?);
        } else {
            check_file_name("files", &name)?;
            files.insert(name, bytes);
        }
    }
    Ok((
        manifest.ok_or_else(|| foreign("it has no manifest"))?,
        files,
    ))
}

fn read_dir(path: &Path) -> Result<Content, PackageError> {
    let manifest_path = path.join(MANIFEST_FILE);
    let metadata = fs::metadata(&manifest_path).map_err(|e| PackageError::NotAPackage {
        path: path.to_owned(),
        reason: format!("{MANIFEST_FILE}: {e}"),
    })?;
    if metadata.len() > MAX_MANIFEST_BYTES {
        let reason = format!("{MANIFEST_FILE} has {} bytes", metadata.len());
        return Err(PackageError::NotAPackage {
            path: path.to_owned(),
            reason,
        });
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
