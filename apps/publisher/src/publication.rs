//! Publishes a recording on multicast lines, and serves recovery.

use std::time::Duration;

use anyhow::ensure;
use tickpath_agent::{StopSignal, TscClock};
use tickpath_config::Speed;
use tickpath_types::Nanos;

use crate::addresses::Addresses;
use crate::channel::Channel;
use crate::options::PublishOptions;
use crate::packet::{Kind, PacketHead, read_head};
use crate::report::PublishReport;
use crate::source::{Source, Timed};
use crate::survey::{CHANNELS_MAX, INSTRUMENTS_MAX, SURVEY_PACKETS, Survey};

/// Default of `max_instruments` in a feed handler's configuration.
const INSTRUMENTS_DEFAULT: usize = 1_024;
/// Maximum number of packets sent between two polls for requests.
const PACKETS_PER_CYCLE: usize = 32;
/// Sleep time after a cycle without work.
const IDLE_SLEEP: Duration = Duration::from_micros(200);
/// Interval of the progress reports.
const PROGRESS_INTERVAL: Nanos = Nanos::from_millis(500);

/// The progress of a publication.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PublishProgress {
    /// Bytes of the file read so far; for a compressed file, compressed bytes.
    pub bytes: u64,
    /// Size of the file in bytes; 0 if unknown.
    pub bytes_total: u64,
    /// Packets published so far.
    pub packets: u64,
    /// True once all packets have been sent; then only recovery continues.
    pub is_sent: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Phase {
    Waiting { until: Nanos },
    Playing,
    Lingering { until: Nanos },
}

/// A recording that is ready to be published: channels are known and services are open.
pub struct Publication {
    options: PublishOptions,
    survey: Survey,
    source: Source,
    addresses: Option<Addresses>,
    channels: Vec<Channel>,
    pending: Timed,
    has_pending: bool,
    /// Recorded time of the first packet, in ns, and the local time at which it was sent.
    origin: Option<(u64, Nanos)>,
    packets: u64,
    unknown: u64,
    beyond_channels: u64,
    read_error: Option<String>,
}

impl Publication {
    /// Scans the recording for its channels, and opens the lines and services of each channel.
    ///
    /// # Errors
    /// The file is no recording, its first packets have no known protocol, or an address is unavailable. The
    /// error is one line of text that says what to do.
    pub fn open(options: PublishOptions) -> anyhow::Result<Publication> {
        ensure!(
            Some(options.line_a) != options.line_b,
            "lines A and B are the same group and port: give two"
        );
        ensure!(
            !options.file.exists() || options.file.is_file(),
            "{} is not a file: a published recording is read twice, so give a file, not a pipe",
            options.file.display()
        );
        let survey = Survey::of(&options)?;
        ensure!(
            !survey.keys.is_empty(),
            "{} has no packets of ITCH, XDP or IEX among its first {SURVEY_PACKETS}",
            options.file.display()
        );
        let mut addresses = options.recovery.map(Addresses::from);
        let mut channels = Vec::new();
        for (index, key) in survey.keys.iter().enumerate() {
            channels.push(Channel::open(
                *key,
                survey.product(key),
                index as u16,
                &options,
                addresses.as_mut(),
            )?);
        }
        Ok(Publication {
            source: Source::open(&options.file, options.session)?,
            options,
            survey,
            addresses,
            channels,
            pending: Timed::default(),
            has_pending: false,
            origin: None,
            packets: 0,
            unknown: 0,
            beyond_channels: 0,
            read_error: None,
        })
    }

    /// Returns the configuration (TOML) of a feed handler that receives all channels.
    #[must_use]
    pub fn feed_config(&self) -> String {
        let mut parts = Vec::with_capacity(self.channels.len() + 1);
        if let Some(date) = self.survey.date {
            parts.push(format!("[feed]\nsession_date = \"{date}\"\n"));
        }
        for channel in &self.channels {
            let mut text = channel.config(self.options.interface);
            let instruments = self.survey.instruments(channel.key());
            if instruments > INSTRUMENTS_DEFAULT {
                // Add capacity for instruments that the survey did not see.
                let capacity = (instruments + instruments / 4).min(INSTRUMENTS_MAX);
                text.push_str(&format!("max_instruments = {capacity}\n"));
            }
            parts.push(text);
        }
        parts.join("\n")
    }

    /// Publishes the recording. Recovery is served until the linger time after the last packet has passed.
    /// The stop signal ends the run early. `observer` receives the progress twice a second.
    pub fn run(
        mut self,
        clock: TscClock,
        stop: &StopSignal,
        observer: &mut dyn FnMut(&PublishProgress),
    ) -> PublishReport {
        let mut phase = Phase::Waiting { until: clock.now() + self.options.start_after };
        let mut next_progress = Nanos::ZERO;
        let is_stopped = loop {
            if stop.is_stopped() {
                break true;
            }
            let now = clock.now();
            let mut work = 0;
            phase = match phase {
                Phase::Waiting { until } if now >= until => Phase::Playing,
                Phase::Playing => match self.send_due(&clock) {
                    Some(sent) => {
                        work += sent;
                        Phase::Playing
                    }
                    None => {
                        self.channels.iter_mut().for_each(Channel::end);
                        Phase::Lingering { until: now + self.options.linger }
                    }
                },
                Phase::Lingering { until } if now >= until => break false,
                other => other,
            };
            work += self.channels.iter_mut().map(|channel| channel.poll(now)).sum::<usize>();
            let has_ended = matches!(phase, Phase::Lingering { until } if until == now + self.options.linger);
            if now >= next_progress || has_ended {
                next_progress = now + PROGRESS_INTERVAL;
                observer(&self.progress(matches!(phase, Phase::Lingering { .. })));
            }
            if work == 0 {
                std::thread::sleep(IDLE_SLEEP);
            }
        };
        let now = clock.now();
        self.channels.iter_mut().for_each(Channel::end);
        self.channels.iter_mut().for_each(|channel| {
            channel.poll(now);
            channel.close(now);
        });
        self.report(is_stopped)
    }

    /// Sends the packets that are due; returns their number, or `None` at the end of the recording and after
    /// a read error.
    fn send_due(&mut self, clock: &TscClock) -> Option<usize> {
        for sent in 0..PACKETS_PER_CYCLE {
            if !self.has_pending {
                match self.source.next(&mut self.pending) {
                    Ok(true) => self.has_pending = true,
                    Ok(false) => return None,
                    Err(error) => {
                        self.read_error = Some(format!("{error:#}"));
                        return None;
                    }
                }
            }
            let now = clock.now();
            if !self.is_due(now) {
                return Some(sent);
            }
            self.has_pending = false;
            self.publish(now);
        }
        Some(PACKETS_PER_CYCLE)
    }

    fn is_due(&mut self, now: Nanos) -> bool {
        let Speed::Hundredths(speed) = self.options.speed else { return true };
        let ts_ns = self.pending.ts_ns;
        let (first_ns, start) = *self.origin.get_or_insert((ts_ns, now));
        let recorded = u128::from(ts_ns.saturating_sub(first_ns));
        now.since(start).0 >= (recorded * 100 / u128::from(speed)) as u64
    }

    fn publish(&mut self, now: Nanos) {
        let Timed { dst: Some(dst), payload, .. } = &self.pending else { return };
        let Some(head) = read_head(payload, *dst) else {
            self.unknown += 1;
            return;
        };
        let head = PacketHead { key: self.survey.key_of(&head), ..head };
        let known = self.channels.iter().position(|channel| *channel.key() == head.key);
        let index = match known {
            Some(index) => index,
            None if head.kind == Kind::OutOfBand => return,
            None if self.channels.len() == CHANNELS_MAX => {
                self.beyond_channels += 1;
                return;
            }
            None => {
                let index = self.channels.len();
                let addresses = self.addresses.as_mut();
                match Channel::open(
                    head.key,
                    self.survey.product(&head.key),
                    index as u16,
                    &self.options,
                    addresses,
                ) {
                    Ok(channel) => {
                        tickpath_config::print_stderr(format_args!(
                            "tickpath: new channel:\n{}",
                            channel.config(self.options.interface)
                        ));
                        self.channels.push(channel);
                    }
                    Err(error) => {
                        self.beyond_channels += 1;
                        tickpath_config::print_stderr(format_args!(
                            "tickpath: {} is not published: {error:#}",
                            head.key
                        ));
                        return;
                    }
                }
                index
            }
        };
        self.packets += 1;
        self.channels[index].publish(now, &head, payload);
    }

    fn progress(&self, is_sent: bool) -> PublishProgress {
        let meter = self.source.meter();
        let (bytes, bytes_total) = (meter.position(), meter.len());
        PublishProgress { bytes, bytes_total, packets: self.packets, is_sent }
    }

    fn report(&self, is_stopped: bool) -> PublishReport {
        let (tcp, counters) = self.source.skipped_counts();
        PublishReport {
            file: self.options.file.clone(),
            channels: self.channels.iter().map(Channel::report).collect(),
            unknown: self.unknown,
            beyond_channels: self.beyond_channels,
            tcp,
            skipped: counters.skipped().to_vec(),
            read_error: self.read_error.clone(),
            is_stopped,
        }
    }
}
