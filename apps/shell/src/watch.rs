//! Read-only commands: channels and their data, the message history, and the log.

use anyhow::Context;
use tickpath_config::Duration as TimeText;
use tickpath_deribit::envelope::Inbound;
use tickpath_types::Nanos;

use crate::execute::Done;
use crate::history::Way;
use crate::json_text;
use crate::link::{Link, Standing};
use crate::log::Module;
use crate::order::list;
use crate::print;
use crate::shell::{Failure, Shell};
use crate::words::{Arguments, counted};

/// Number of messages that `show` prints by default.
const SHOWN: usize = 20;
/// Default time-out of `wait`.
const WAIT_MAX: Nanos = Nanos::from_secs(60);
/// Upper bound of data that one `wait` keeps for the report, in bytes; omitted messages are counted.
const KEPT_MAX: usize = 16 << 20;
/// Time-out of a subscription.
const SUBSCRIBE_MAX: Nanos = Nanos::from_secs(10);

impl Shell {
    pub(crate) fn subscribe(&mut self, mut arguments: Arguments) -> Result<Done, Failure> {
        let channels = arguments.rest();
        arguments.finish()?;
        if channels.is_empty() {
            return Err(Failure::Invalid("which channels? e.g. ticker.BTC-PERPETUAL.100ms".to_owned()));
        }
        self.ensure_ready()?;
        self.want_all(&channels)?;
        // Done when the venue has confirmed or refused each channel.
        let is_settled = self.pump(SUBSCRIBE_MAX, |link| {
            let refused = link.refused_channels().count();
            link.active_channels() + refused >= link.channels().len()
        })?;
        let refused: Vec<String> = self.link().refused_channels().map(str::to_owned).collect();
        let refused: Vec<&String> = refused.iter().filter(|name| channels.contains(name)).collect();
        if !refused.is_empty() {
            // The refusals are reported here by name.
            self.link().forget_refusals();
            let names = list(refused.iter());
            for channel in refused {
                self.link().unsubscribe(channel);
            }
            return Err(Failure::NotDone(format!(
                "the venue does not give {names}: do they exist, and is a login needed?"
            )));
        }
        if !is_settled {
            return Err(Failure::Late("subscribe"));
        }
        Ok(Done::text(format!("subscribed: {}", counted(self.link().active_channels(), "channel"))))
    }

    /// Requests channels, all of them or none.
    fn want_all(&mut self, channels: &[String]) -> Result<(), Failure> {
        let mut link = self.link();
        let before = link.channels().clone();
        for channel in channels {
            if let Err(why) = link.subscribe(channel) {
                channels
                    .iter()
                    .filter(|name| !before.contains(*name))
                    .for_each(|name| link.unsubscribe(name));
                return Err(Failure::Invalid(why));
            }
        }
        Ok(())
    }

    pub(crate) fn unsubscribe(&mut self, mut arguments: Arguments) -> Result<Done, Failure> {
        let mut channels = arguments.rest();
        arguments.finish()?;
        if channels.is_empty() {
            return Err(Failure::Invalid("which channels? all ends every one".to_owned()));
        }
        let mut link = self.link();
        if channels.iter().any(|name| name == "all") {
            channels = link.channels().iter().cloned().collect();
        }
        if let Some(unknown) = channels.iter().find(|name| !link.channels().contains(*name)) {
            return Err(Failure::Invalid(format!("{unknown} is not subscribed: see subscriptions")));
        }
        channels.iter().for_each(|channel| link.unsubscribe(channel));
        drop(link);
        // Done when the venue has confirmed, or a lost connection has ended all subscriptions.
        let is_settled = self
            .pump(SUBSCRIBE_MAX, |link| link.ending_channels() == 0 || link.standing() != Standing::Ready)?;
        self.link().forget_ended();
        if !is_settled {
            return Err(Failure::Late("unsubscribe"));
        }
        Ok(Done::text(format!("unsubscribed: {}", counted(channels.len(), "channel"))))
    }

    pub(crate) fn subscriptions(&mut self, arguments: Arguments) -> Result<Done, Failure> {
        arguments.finish()?;
        self.pump(Nanos::ZERO, |_| true)?;
        let text = self.channel_lines(usize::MAX).join("\n");
        let link = self.link();
        let list: Vec<String> = link
            .channels()
            .iter()
            .map(|name| {
                let feed = link.feeds().get(name).filter(|feed| feed.count > 0);
                let last = feed.and_then(|feed| data_of(&link.history().entry(feed.place)?));
                let count = feed.map_or(0, |feed| feed.count);
                let last = last.unwrap_or_else(|| "null".to_owned());
                format!("{{\"channel\":\"{name}\",\"count\":{count},\"last\":{last}}}")
            })
            .collect();
        Ok(Done { text, json: Some(format!("[{}]", list.join(","))), ..Done::default() })
    }

    /// Formats each channel with its number of messages and the last one.
    pub(crate) fn channel_lines(&self, rows_max: usize) -> Vec<String> {
        let link = self.link();
        channel_lines(&link, rows_max)
    }

    pub(crate) fn wait(&mut self, mut arguments: Arguments) -> Result<Done, Failure> {
        let what = arguments.next("for").context("how long, or for which channel? wait 10s")?;
        let time = what.parse::<TimeText>();
        let count: u64 = match arguments.next("count") {
            None => 1,
            Some(count) => count.parse().context("how many messages? a number")?,
        };
        let max = arguments.named("timeout").map(|time| time.parse::<TimeText>()).transpose();
        let max = max.map_err(|error| Failure::Invalid(error.to_string()))?.map_or(WAIT_MAX, |time| time.0);
        arguments.finish()?;
        let channel = time.is_err().then_some(&what);
        if let Some(channel) = channel
            && !self.link().channels().contains(channel)
        {
            return Err(Failure::Invalid(format!(
                "{channel} is neither a time, such as 10s, nor a subscribed channel"
            )));
        }
        if self.link().standing() != Standing::Off {
            self.ensure_ready()?;
        }
        if self.is_watched {
            self.link().want_news(true);
        }
        let mut heard = Heard { is_silent: self.is_silent, is_kept: self.is_reported, ..Heard::default() };
        let result = self.pump_lines(time.map_or(max, |time| time.0), |link, lines| {
            while let Some((name, place)) = link.next_news() {
                lines.extend(heard.take(link, &name, place));
                heard.seen += u64::from(channel == Some(&name));
                if channel.is_some() && heard.seen >= count {
                    return true;
                }
            }
            heard.is_alone()
        });
        heard.left_out += self.link().take_lost_news();
        if self.is_watched {
            self.link().want_news(false);
        }
        let is_enough = result?;
        if heard.left_out > 0 && !heard.is_silent {
            let count = heard.left_out;
            tickpath_config::print_stderr(format_args!(
                "tickpath: wait: {} came faster than they were shown",
                counted(count, "message")
            ));
        }
        if heard.is_alone() {
            return Err(Failure::NotDone("the output has no reader any more".to_owned()));
        }
        match channel {
            Some(channel) if !is_enough => Err(Failure::NotDone(format!(
                "{} of {} of {channel} in time",
                heard.seen,
                counted(count, "message")
            ))),
            _ => Ok(Done { json: self.is_reported.then(|| heard.json()), ..Done::default() }),
        }
    }

    pub(crate) fn show(&mut self, mut arguments: Arguments) -> Result<Done, Failure> {
        let (mut count, mut text, mut way, mut is_short) = (SHOWN, None, None, false);
        for word in arguments.rest() {
            match (word.as_str(), word.parse()) {
                ("sent", _) => way = Some(Way::Sent),
                ("received", _) => way = Some(Way::Received),
                ("oneline", _) => is_short = true,
                (_, Ok(number)) => count = number,
                _ => text = Some(word),
            }
        }
        arguments.finish()?;
        let link = self.link();
        let is_meant = |entry: &crate::history::Entry| {
            way.is_none_or(|way| entry.way == way)
                && text.as_ref().is_none_or(|text| entry.text.contains(text.as_str()))
        };
        let entries: Vec<_> = link.history().entries().filter(is_meant).collect();
        let entries = &entries[entries.len().saturating_sub(count)..];
        let lines = entries.iter().map(|entry| {
            let sign = if entry.way == Way::Sent { '>' } else { '<' };
            let body =
                if is_short { json_text::one_line(&entry.text) } else { json_text::pretty(&entry.text) };
            let cut = if entry.text.len() < entry.len {
                format!("\n... of {} bytes", entry.len)
            } else {
                String::new()
            };
            format!("[{}] {sign} {body}{cut}", entry.at.0 / 1_000_000)
        });
        let text = match entries.is_empty() {
            true => "no such messages so far".to_owned(),
            false => lines.collect::<Vec<_>>().join("\n"),
        };
        let list = entries.iter().map(|entry| {
            serde_json::json!({
                "at_ms": entry.at.0 / 1_000_000,
                "way": if entry.way == Way::Sent { "sent" } else { "received" },
                "len": entry.len,
                "text": json_text::one_line(&entry.text),
            })
        });
        let json = self.is_reported.then(|| serde_json::Value::Array(list.collect()).to_string());
        Ok(Done { text, json, ..Done::default() })
    }

    pub(crate) fn log(&mut self, mut arguments: Arguments) -> Result<Done, Failure> {
        let words = arguments.rest();
        arguments.finish()?;
        if words.is_empty() {
            return Err(Failure::Invalid(format!(
                "log what? off, all, or some of {}",
                list(Module::ALL.iter().map(|module| module.name()))
            )));
        }
        let mut modules = Vec::new();
        for word in &words {
            match word.as_str() {
                "off" => modules.clear(),
                "all" => modules.extend(Module::ALL),
                name => modules.push(name.parse().map_err(Failure::Invalid)?),
            }
        }
        self.link().log(modules);
        Ok(Done::default())
    }
}

/// Formats each channel with its number of messages and the last one.
pub(crate) fn channel_lines(link: &Link, rows_max: usize) -> Vec<String> {
    let mut lines = Vec::new();
    for channel in link.channels().iter().take(rows_max) {
        let feed = link.feeds().get(channel).filter(|feed| feed.count > 0);
        let count = feed.map_or(0, |feed| feed.count);
        let last = feed.and_then(|feed| link.history().entry(feed.place));
        let last = last.map_or_else(|| "-".to_owned(), |entry| print::channel_line(channel, &entry.text));
        lines.push(format!("{channel}  #{count}  {last}"));
    }
    if lines.is_empty() {
        lines.push("no subscriptions".to_owned());
    }
    lines
}

/// Messages that arrived during a wait.
#[derive(Default)]
struct Heard {
    is_silent: bool,
    is_kept: bool,
    seen: u64,
    /// Data for the report, up to `KEPT_MAX` bytes.
    kept: Vec<String>,
    kept_len: usize,
    left_out: u64,
}

impl Heard {
    /// Records a message and returns the line to print, if any.
    fn take(&mut self, link: &Link, name: &str, place: u64) -> Option<String> {
        let Some(entry) = link.history().entry(place) else {
            self.left_out += 1;
            return None;
        };
        if self.is_kept {
            self.keep(name, &entry);
        }
        (!self.is_silent).then(|| format!("{name}  {}", print::channel_line(name, &entry.text)))
    }

    fn keep(&mut self, name: &str, entry: &crate::history::Entry) {
        match data_of(entry).filter(|data| self.kept_len + data.len() <= KEPT_MAX) {
            Some(data) => {
                self.kept_len += data.len();
                self.kept.push(format!("{{\"channel\":\"{name}\",\"data\":{data}}}"));
            }
            None => self.left_out += 1,
        }
    }

    /// Whether standard output has lost its reader.
    fn is_alone(&self) -> bool {
        !self.is_silent && !tickpath_config::has_reader()
    }

    fn json(&self) -> String {
        format!("{{\"messages\":[{}],\"left_out\":{}}}", self.kept.join(","), self.left_out)
    }
}

/// The unchanged data of a notification; `None` if it was truncated.
fn data_of(entry: &crate::history::Entry) -> Option<String> {
    match Inbound::parse(entry.text.as_bytes()) {
        Ok(Inbound::Notification(notification)) => Some(notification.data.text().to_owned()),
        _ => None,
    }
}
