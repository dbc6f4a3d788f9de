//! Users that came to stand in the configuration since the venue was started.

use std::ops::RangeInclusive;
use std::path::Path;

use tickpath_types::{InstrumentId, InstrumentTable};

use super::AdminClient;
use crate::ExchangeConfig;
use crate::roster::{AddUserError, Roster, UserView};
use crate::users::UserSettings;
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
    roster: &Roster,
    instruments: &InstrumentTable,
) -> Result<Option<Reloaded>, String> {
    let config = config.ok_or("this venue was not started from a configuration file")?;
    let (_, listed) = ExchangeConfig::load(config).map_err(|error| error.to_string())?;
    let new = new_users(listed, roster, instruments)?;
    if new.len() > client.room() {
        return Err(format!(
            "{} users are new and the venue takes {} at a time: try again, or name fewer",
            new.len(),
            client.room()
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
    roster: &Roster,
    instruments: &InstrumentTable,
) -> Result<Vec<UserSettings>, String> {
    let VenueSettings { mut users, instruments: named, .. } = listed;
    let known = roster.len();
    let mut pairs = roster.iter().zip(&users);
    if users.len() < known || !pairs.all(|(user, listed)| user.name().eq_ignore_ascii_case(&listed.name)) {
        let names: Vec<&str> = roster.iter().map(UserView::name).collect();
        return Err(format!(
            "the users of the venue are {}: keep them in this order, with new ones behind them",
            names.join(", ")
        ));
    }
    let mut new = users.split_off(known);
    if known + new.len() > roster.room() {
        return Err(AddUserError::Full { max: roster.room() }.to_string());
    }
    for user in &mut new {
        roster.check(&user.name).map_err(|error| error.to_string())?;
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
