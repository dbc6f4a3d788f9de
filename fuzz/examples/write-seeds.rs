//! Writes every fuzz target's seeds into `FOLDER/TARGET`, where `cargo fuzz` finds them.

use std::path::Path;

fn main() -> std::io::Result<()> {
    let folder = std::env::args_os().nth(1).expect("usage: write-seeds FOLDER");
    for (target, seeds) in tickpath_fuzz::inputs() {
        let folder = Path::new(&folder).join(target);
        std::fs::create_dir_all(&folder)?;
        for (index, seed) in seeds.iter().enumerate() {
            std::fs::write(folder.join(format!("seed-{index}")), seed)?;
        }
    }
    Ok(())
}
