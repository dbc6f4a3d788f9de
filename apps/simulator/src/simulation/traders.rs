//! What is done to traders, and what they did.

use super::Simulation;
use crate::Observed;
use crate::trader;
use crate::trader_profile::TraderBlow;

impl Simulation {
    pub(super) fn deal_to_trader(&mut self, place: usize, blow: TraderBlow) {
        let now = self.now;
        match blow {
            TraderBlow::Kill => {
                self.count("trader killed");
                self.traders[place].crash(now);
            }
            TraderBlow::Stop => {
                self.count("trader stopped and started");
                self.traders[place].stop(now);
            }
            TraderBlow::Cut(time) => self.cut(self.traders[place].host(), time),
            TraderBlow::Stall(time) => {
                self.count("trader stalled");
                let first = self.starved.len() - trader::AGENTS * (self.traders.len() - place);
                for until in &mut self.starved[first..first + trader::AGENTS] {
                    *until = (*until).max(now + time);
                }
            }
            TraderBlow::StepClock(ahead_ns) => {
                self.count("trader's clock stepped");
                let ahead = self.profile.epoch.saturating_add_signed(ahead_ns) as i64;
                self.network.wires().network.set_clock(self.traders[place].host(), ahead);
            }
        }
    }

    /// What there was for the checkers of traders to judge.
    pub(super) fn count_trading(&mut self, observed: &Observed) {
        for life in &observed.traders {
            let fills = life
                .positions
                .iter()
                .map(|position| position.bought().fill_count + position.sold().fill_count);
            let open = if life.ended.is_none() { life.orders.len() as u64 } else { 0 };
            for (what, count) in [
                ("traders' lives", 1),
                ("traders' fills", fills.sum()),
                ("traders' orders open at the end", open),
                ("traders' orders taken after all", life.revived),
                ("traders' lost market updates", life.lost_updates),
            ] {
                *self.counts.entry(what).or_default() += count;
            }
        }
    }
}
