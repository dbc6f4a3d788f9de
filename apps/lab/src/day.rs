//! The standard days of market data, written once and kept.

use std::fs::{self, File};
use std::io::{IsTerminal, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail, ensure};
use tickpath_sim::{ItchDay, ItchDayConfig};
use xxhash_rust::xxh3::{Xxh3, xxh3_64};

use crate::context::Effort;

/// Frames made between two looks at the progress.
const FRAMES: usize = 1 << 16;

/// A day that every figure about market data is taken on: fixed by its settings, and by the hash of its bytes.
pub(crate) struct StandardDay {
    name: &'static str,
    config: ItchDayConfig,
    /// Of the bytes of its file.
    hash: u64,
    outcome: DayOutcome,
}

/// What a day must lead to, whoever reads it.
#[derive(Clone, Copy)]
pub(crate) struct DayOutcome {
    /// Of every field of every message.
    pub(crate) checksum: u64,
    /// Orders that rest at the end.
    pub(crate) live: u32,
    /// Of all books at the end.
    pub(crate) state_hash: u64,
}

impl StandardDay {
    /// `itch-500`, or a smaller one for less effort.
    pub(crate) const fn itch_500(effort: Effort) -> StandardDay {
        let config = ItchDayConfig::itch_500();
        match effort {
            Effort::Full => StandardDay {
                name: "itch-500",
                config,
                hash: 0xbacf_4af5_a4a3_b5c6,
                outcome: DayOutcome {
                    checksum: 0x625f_063a_4e52_353f,
                    live: 3089,
                    state_hash: 0xa3dc_5bcd_c242_4114,
                },
            },
            Effort::Quick => StandardDay {
                name: "itch-500-tenth",
                config: config.scaled(10),
                hash: 0x309b_95f2_4754_9c58,
                outcome: DayOutcome {
                    checksum: 0xfb4d_3ac3_1fa6_01e0,
                    live: 653,
                    state_hash: 0xac20_db41_afbe_a7a2,
                },
            },
            Effort::Smoke => StandardDay {
                name: "itch-500-smoke",
                config: config.scaled(250),
                hash: 0xd51a_1b86_fb11_a1a1,
                outcome: DayOutcome {
                    checksum: 0x72cd_9ef9_3333_cb3e,
                    live: 16,
                    state_hash: 0x5605_2ca5_a0b6_c672,
                },
            },
        }
    }

    /// `itch-8000`, or a smaller one for less effort.
    pub(crate) const fn itch_8000(effort: Effort) -> StandardDay {
        let config = ItchDayConfig::itch_8000();
        match effort {
            Effort::Full => StandardDay {
                name: "itch-8000",
                config,
                hash: 0xab11_64a6_38aa_2f35,
                outcome: DayOutcome {
                    checksum: 0x9d52_a45a_fc11_1342,
                    live: 67612,
                    state_hash: 0xd7ab_600a_ebb8_bc76,
                },
            },
            Effort::Quick => StandardDay {
                name: "itch-8000-tenth",
                config: config.scaled(10),
                hash: 0xc7dc_10a9_ed58_70f0,
                outcome: DayOutcome {
                    checksum: 0x032a_d84d_deeb_eaad,
                    live: 7115,
                    state_hash: 0xe24e_f8d5_2b3b_d3be,
                },
            },
            Effort::Smoke => StandardDay {
                name: "itch-8000-smoke",
                config: config.scaled(625),
                hash: 0x675c_1c15_804b_9b20,
                outcome: DayOutcome {
                    checksum: 0x5ac4_6ce9_0625_1f4f,
                    live: 126,
                    state_hash: 0xd406_fc6f_acc4_5344,
                },
            },
        }
    }

    pub(crate) const fn config(&self) -> &ItchDayConfig {
        &self.config
    }

    pub(crate) const fn outcome(&self) -> DayOutcome {
        self.outcome
    }

    /// The bytes of the day's file: read from the cache, or made and kept there. The smallest are not kept.
    pub(crate) fn load(&self, effort: Effort) -> anyhow::Result<Vec<u8>> {
        if effort == Effort::Smoke {
            let mut bytes = Vec::new();
            ItchDay::new(self.config)?.append_frames(usize::MAX, &mut bytes);
            self.check(&bytes).context("made just now")?;
            return Ok(bytes);
        }
        let path = cache_folder()?.join(format!("{}.itch", self.name));
        if let Ok(bytes) = fs::read(&path) {
            match self.check(&bytes) {
                Ok(()) => return Ok(bytes),
                Err(error) => eprintln!("{}: {error}; making it anew", path.display()),
            }
        }
        self.make(&path).with_context(|| format!("cannot write {}", path.display()))?;
        let bytes = fs::read(&path).with_context(|| format!("cannot read {}", path.display()))?;
        self.check(&bytes)?;
        Ok(bytes)
    }

    fn check(&self, bytes: &[u8]) -> anyhow::Result<()> {
        let hash = xxh3_64(bytes);
        ensure!(hash == self.hash, "its hash is {hash:#018x} and should be {:#018x}", self.hash);
        Ok(())
    }

    /// Writes the day beside its place and moves it there when it is whole.
    fn make(&self, path: &Path) -> anyhow::Result<()> {
        let folder = path.parent().context("the cache has no folder")?;
        fs::create_dir_all(folder)?;
        let unfinished = path.with_extension("unfinished");
        let result = self.write(&unfinished, path);
        if result.is_err() {
            // Nothing is lost with it, and nothing can be done if it stays.
            let _ = fs::remove_file(&unfinished);
        }
        result?;
        Ok(fs::rename(&unfinished, path)?)
    }

    fn write(&self, to: &Path, path: &Path) -> anyhow::Result<()> {
        let mut file = File::create(to)?;
        let mut day = ItchDay::new(self.config)?;
        let (mut hash, mut frames, mut made, mut bytes) = (Xxh3::new(), Vec::new(), 0_u64, 0_u64);
        let is_terminal = std::io::stderr().is_terminal();
        let mut shown = 0;
        loop {
            frames.clear();
            let count = day.append_frames(FRAMES, &mut frames) as u64;
            if count == 0 {
                break;
            }
            hash.update(&frames);
            file.write_all(&frames)?;
            (made, bytes) = (made + count, bytes + frames.len() as u64);
            let percent = 100 * made / self.config.messages.max(1);
            if is_terminal && percent > shown {
                shown = percent;
                eprint!("\rlab bench: writing {} once: {percent}%", path.display());
            }
        }
        if is_terminal {
            eprintln!();
        }
        eprintln!("lab bench: {} holds {} ({made} messages, {bytes} bytes)", path.display(), self.name);
        let hash = hash.digest();
        if hash != self.hash {
            bail!("{} came out with the hash {hash:#018x}, not {:#018x}", self.name, self.hash);
        }
        Ok(())
    }
}

/// Where files are kept that can be made again: `$XDG_CACHE_HOME/tickpath`, or `~/.cache/tickpath`.
fn cache_folder() -> anyhow::Result<PathBuf> {
    let from = |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let caches = from("XDG_CACHE_HOME").or_else(|| Some(from("HOME")?.join(".cache")));
    Ok(caches
        .context("neither XDG_CACHE_HOME nor HOME names a folder for the standard days")?
        .join("tickpath"))
}
