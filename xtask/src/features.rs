//! The default features of the program. Each of them can be left out.

use crate::{run, say};
use serde_json::Value as Json;
use std::path::Path;

/// Checks that the program builds without each of its default features.
pub(crate) fn check(root: &Path) -> Result<(), String> {
    for (name, without) in without_each(root, "steersman-cli")? {
        say(&format!("== without the feature {name}"));
        let mut cargo = crate::cargo();
        cargo
            .args(["clippy", "--package", "steersman-cli"])
            .args(without);
        run(cargo.args(["--", "-D", "warnings"]))?;
    }
    Ok(())
}

/// The default features of a package, each with the options of cargo that leave out it alone.
pub(crate) fn without_each(
    root: &Path,
    package: &str,
) -> Result<Vec<(String, Vec<String>)>, String> {
    let out = crate::cargo()
        .current_dir(root)
        .args([
            "metadata",
            "--no-deps",
            "--offline",
            "--format-version",
            "1",
        ])
        .output()
        .map_err(|e| format!("`cargo` could not be started: {e}"))?;
    let metadata: Json = serde_json::from_slice(&out.stdout).map_err(|e| e.to_string())?;
    let packages = metadata["packages"].as_array().into_iter().flatten();
    let package = packages.into_iter().find(|one| one["name"] == package);
    let default = package.and_then(|package| package["features"]["default"].as_array());
    let default = default.ok_or_else(|| "the package has no default features".to_owned())?;
    let names: Vec<&str> = default.iter().filter_map(Json::as_str).collect();
    let without = |left: &str| {
        let others: Vec<&str> = names.iter().copied().filter(|name| *name != left).collect();
        let options = ["--no-default-features", "--features", &others.join(",")];
        (left.to_owned(), options.map(str::to_owned).to_vec())
    };
    Ok(names.iter().map(|name| without(name)).collect())
}

#[cfg(test)]
mod tests {
    use super::without_each;

    #[test]
    fn each_default_feature_can_be_left_out() {
        let all =
            without_each(&crate::tidy::root(), "steersman-cli").expect("cargo knows the package");
        assert!(all.iter().any(|(name, _)| name == "examples"));
    }
}
