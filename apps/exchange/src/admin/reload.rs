//! Users that came to stand in the configuration since the venue was started.

use std::ops::RangeInclusive;
use std::path::Path;

use tickpath_types::{InstrumentId, InstrumentTable};
use tickpath_venue::{RegisterError, UserRegistry, UserSettings, UserView};

use super::AdminClient;
use crate::ExchangeConfig;
use crate::venue::VenueSettings;

/// Users on their way to the venue.
#[derive(Debug)]
pub(super) struct Reloaded {
    /// Numbers of the commands that add them.
    pub(super) ids: RangeInclusive<u64>,
    /// Their names.
    pub(super) added: Vec<String>,
}

/// Has the venue add the users that stand in its configuration behind those that it has; `None` when there are none.
/// Whatever else was changed there waits for the next start.
///
/// # Errors
/// What is wrong, in one line that says what to change.
pub(super) fn reload_users(
    config: Option<&Path>,
    client: &mut AdminClient,
    registry: &UserRegistry,
    instruments: &InstrumentTable,
) -> Result<Option<Reloaded>, String> {
    let config = config.ok_or("this venue was not started from a configuration file")?;
    let (_, listed) = ExchangeConfig::load(config).map_err(|error| error.to_string())?;
    let new = new_users(listed, registry, instruments)?;
    if new.len() > client.capacity() {
        return Err(format!(
            "{} users are new and the venue takes {} at a time: try again, or name fewer",
            new.len(),
            client.capacity()
        ));
    }
    let mut ids: Option<RangeInclusive<u64>> = None;
    for user in &new {
        let id = client.submit_user(user).map_err(|error| error.to_string())?;
        ids = Some(*ids.as_ref().map_or(&id, RangeInclusive::start)..=id);
    }
    let added = new.into_iter().map(|user| user.name).collect();
    Ok(ids.map(|ids| Reloaded { ids, added }))
}

/// Those behind the users that there are, as the venue numbers its instruments.
fn new_users(
    listed: VenueSettings,
    registry: &UserRegistry,
    instruments: &InstrumentTable,
) -> Result<Vec<UserSettings>, String> {
    let VenueSettings { mut users, instruments: named, .. } = listed;
    let known = registry.len();
    let mut pairs = registry.iter().zip(&users);
    if users.len() < known || !pairs.all(|(user, listed)| user.name().eq_ignore_ascii_case(&listed.name)) {
        let names: Vec<&str> = registry.iter().map(UserView::name).collect();
        return Err(format!(
            "the users of the venue are {}: keep them in this order, with new ones behind them",
            names.join(", ")
        ));
    }
    let mut new = users.split_off(known);
    if known + new.len() > registry.room() {
        return Err(RegisterError::Full { max: registry.room() }.to_string());
    }
    for user in &mut new {
        registry.check(&user.name).map_err(|error| error.to_string())?;
        let name = &user.name;
        for id in user.instruments.iter_mut().flatten() {
            *id = as_numbered(*id, &named, instruments).map_err(|symbol| {
                format!("user '{name}': the venue has no instrument '{symbol}' yet: add it first")
            })?;
        }
    }
    Ok(new)
}

/// The id that the venue has for an instrument of the file; its symbol when the venue lacks it.
fn as_numbered(
    id: InstrumentId,
    named: &InstrumentTable,
    instruments: &InstrumentTable,
) -> Result<InstrumentId, String> {
    let symbol = named.symbol(id).ok_or_else(|| id.to_string())?;
    instruments.find(symbol).ok_or_else(|| symbol.to_string())
}
