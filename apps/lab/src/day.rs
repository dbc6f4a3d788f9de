//! The standard days: generated market data whose contents never change.

use tickpath_flowgen::ItchDayConfig;

use crate::context::Effort;

/// A generated day for the measurements of market data, identified by its settings and the hash of its file.
#[derive(Clone, Copy)]
pub(crate) struct StandardDay {
    pub(crate) name: &'static str,
    pub(crate) config: ItchDayConfig,
    /// 64-bit xxh3 hash of the day's file.
    pub(crate) hash: u64,
    /// Checksum over all fields of all messages.
    pub(crate) checksum: u64,
    /// Number of orders that rest at the end of the day.
    pub(crate) live: u32,
    /// Hash of all books at the end of the day.
    pub(crate) state_hash: u64,
}

impl StandardDay {
    /// Returns `itch-500`, or a smaller day for less effort.
    pub(crate) const fn itch_500(effort: Effort) -> StandardDay {
        let day = ItchDayConfig::itch_500();
        match effort {
            Effort::Full => StandardDay::new("itch-500", day, 0xbacf_4af5_a4a3_b5c6).with_result(
                0xbd8f_f0a1_a0e6_0e55,
                3089,
                0xa3dc_5bcd_c242_4114,
            ),
            Effort::Quick => StandardDay::new("itch-500-tenth", day.scaled(10), 0x309b_95f2_4754_9c58)
                .with_result(0x052f_aff0_61f5_4e52, 653, 0xac20_db41_afbe_a7a2),
            Effort::Smoke => StandardDay::new("itch-500-smoke", day.scaled(250), 0xd51a_1b86_fb11_a1a1)
                .with_result(0x346d_fa30_2934_f375, 16, 0x5605_2ca5_a0b6_c672),
        }
    }

    /// Returns `itch-8000`, or a smaller day for less effort.
    pub(crate) const fn itch_8000(effort: Effort) -> StandardDay {
        let day = ItchDayConfig::itch_8000();
        match effort {
            Effort::Full => StandardDay::new("itch-8000", day, 0xab11_64a6_38aa_2f35).with_result(
                0x609d_011f_a742_c2d6,
                67612,
                0xd7ab_600a_ebb8_bc76,
            ),
            Effort::Quick => StandardDay::new("itch-8000-tenth", day.scaled(10), 0xc7dc_10a9_ed58_70f0)
                .with_result(0x536e_ccdb_e9fd_174f, 7115, 0xe24e_f8d5_2b3b_d3be),
            Effort::Smoke => StandardDay::new("itch-8000-smoke", day.scaled(625), 0x675c_1c15_804b_9b20)
                .with_result(0x5e28_403c_4c91_4298, 126, 0xd406_fc6f_acc4_5344),
        }
    }

    const fn new(name: &'static str, config: ItchDayConfig, hash: u64) -> StandardDay {
        StandardDay { name, config, hash, checksum: 0, live: 0, state_hash: 0 }
    }

    const fn with_result(self, checksum: u64, live: u32, state_hash: u64) -> StandardDay {
        StandardDay { checksum, live, state_hash, ..self }
    }
}
