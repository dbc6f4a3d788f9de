//! The standard days of market data.

use tickpath_sim::ItchDayConfig;

use crate::context::Effort;

/// A day that every figure about market data is taken on: fixed by its settings, and by the hash of its bytes.
#[derive(Clone, Copy)]
pub(crate) struct StandardDay {
    pub(crate) name: &'static str,
    pub(crate) config: ItchDayConfig,
    /// Of the bytes of its file: xxh3, 64 bits.
    pub(crate) hash: u64,
    pub(crate) outcome: DayOutcome,
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
                    checksum: 0xbd8f_f0a1_a0e6_0e55,
                    live: 3089,
                    state_hash: 0xa3dc_5bcd_c242_4114,
                },
            },
            Effort::Quick => StandardDay {
                name: "itch-500-tenth",
                config: config.scaled(10),
                hash: 0x309b_95f2_4754_9c58,
                outcome: DayOutcome {
                    checksum: 0x052f_aff0_61f5_4e52,
                    live: 653,
                    state_hash: 0xac20_db41_afbe_a7a2,
                },
            },
            Effort::Smoke => StandardDay {
                name: "itch-500-smoke",
                config: config.scaled(250),
                hash: 0xd51a_1b86_fb11_a1a1,
                outcome: DayOutcome {
                    checksum: 0x346d_fa30_2934_f375,
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
                    checksum: 0x609d_011f_a742_c2d6,
                    live: 67612,
                    state_hash: 0xd7ab_600a_ebb8_bc76,
                },
            },
            Effort::Quick => StandardDay {
                name: "itch-8000-tenth",
                config: config.scaled(10),
                hash: 0xc7dc_10a9_ed58_70f0,
                outcome: DayOutcome {
                    checksum: 0x536e_ccdb_e9fd_174f,
                    live: 7115,
                    state_hash: 0xe24e_f8d5_2b3b_d3be,
                },
            },
            Effort::Smoke => StandardDay {
                name: "itch-8000-smoke",
                config: config.scaled(625),
                hash: 0x675c_1c15_804b_9b20,
                outcome: DayOutcome {
                    checksum: 0x5e28_403c_4c91_4298,
                    live: 126,
                    state_hash: 0xd406_fc6f_acc4_5344,
                },
            },
        }
    }
}
