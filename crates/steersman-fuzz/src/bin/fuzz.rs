//! Runs one target under libFuzzer. `STEERSMAN_FUZZ` names the target, and `STEERSMAN_FUZZ_SEEDS` the folder in which its seeds are
//! put before libFuzzer reads them.
#![no_main]

use std::fs;
use std::path::PathBuf;
use std::sync::OnceLock;
use steersman_fuzz::Target;

static TARGET: OnceLock<Target> = OnceLock::new();

fn target() -> Target {
    *TARGET.get_or_init(|| {
        let name = std::env::var("STEERSMAN_FUZZ").expect("STEERSMAN_FUZZ names a target");
        Target::named(&name).unwrap_or_else(|| panic!("`{name}` is not a target"))
    })
}

libfuzzer_sys::fuzz_target!(
    init: {
        if let Some(folder) = std::env::var_os("STEERSMAN_FUZZ_SEEDS").map(PathBuf::from) {
            fs::create_dir_all(&folder).expect("the folder of seeds can be made");
            for (n, seed) in (target().seeds)().iter().enumerate() {
                fs::write(folder.join(n.to_string()), seed).expect("a seed can be written");
            }
        }
    },
    |data: &[u8]| target().run(data)
);
