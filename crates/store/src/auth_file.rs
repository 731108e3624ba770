//! Keys that are kept in `auth.json` (`host.md` 1.4): set and removed one by one.
//!
//! Owns the change of that file; what it does not know stays. Must never read a
//! key for anybody: `crew-model` does. Read `settings::file` for the settings.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use serde_json::json;

use crate::error::{Result, io_error};
use crate::settings::file::edit;

/// Stores the key of a provider, or removes what is stored for it. The file
/// stays private; fails when it cannot be read, parsed, locked or written, and
/// then nothing has changed.
pub fn set(path: &Path, provider: &str, key: Option<&str>) -> Result<()> {
    let value = key.map(|key| json!({"type": "api_key", "key": key}).to_string());
    edit(path, &[(vec![provider.to_owned()], value)])?;
    // One that somebody else made may be open to all.
    let private = Permissions::from_mode(0o600);
    fs::set_permissions(path, private).map_err(io_error("change the mode of", path))
}

#[cfg(test)]
mod tests {
    use super::*;

    // host.md 1.4.2, product.md P-14a.
    #[test]
    fn a_key_is_set_and_removed_and_all_else_stays() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("auth.json");
        let other = r#"{"other":{"type":"oauth","access":"a","unknown":[1]}}"#;
        fs::write(&path, other).unwrap();
        set(&path, "openai", Some("sk-\"1\"")).unwrap();
        let text = fs::read_to_string(&path).unwrap();
        let value: serde_json::Value = serde_json::from_str(&text).unwrap();
        assert_eq!(value["openai"], json!({"type": "api_key", "key": "sk-\"1\""}));
        assert_eq!(value["other"]["unknown"], json!([1]));
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        set(&path, "openai", None).unwrap();
        let text = fs::read_to_string(&path).unwrap();
        let expected: serde_json::Value = serde_json::from_str(other).unwrap();
        assert_eq!(serde_json::from_str::<serde_json::Value>(&text).unwrap(), expected);
    }

    #[test]
    fn a_file_that_does_not_parse_is_left_alone() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("auth.json");
        fs::write(&path, "{broken").unwrap();
        assert!(set(&path, "openai", Some("k")).is_err());
        assert_eq!(fs::read_to_string(&path).unwrap(), "{broken");
    }
}
