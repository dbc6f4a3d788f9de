//! Adds users that were appended to the configuration file while the venue runs.

use std::ops::RangeInclusive;
use std::path::Path;

use tickpath_types::InstrumentTable;
use tickpath_venue::UserRegistry;

use super::AdminClient;
use crate::ExchangeConfig;
use crate::venue::VenueSettings;

/// Ids of the submitted commands that add users, and the names of these users.
pub(super) type Added = (RangeInclusive<u64>, Vec<String>);

/// Adds the users that the configuration file lists after the venue's existing users; `None` if there are
/// none. Other changes of the file take effect at the next start.
///
/// # Errors
/// A message of one line that says what to change.
pub(super) fn reload_users(
    config: Option<&Path>,
    client: &mut AdminClient,
    registry: &UserRegistry,
    instruments: &InstrumentTable,
) -> Result<Option<Added>, String> {
    let config = config.ok_or("this venue was not started from a configuration file")?;
    let (_, listed) = ExchangeConfig::load(config).map_err(|error| error.to_string())?;
    let VenueSettings { users, instruments: named, .. } = listed;
    let new = registry.new_users(users, &named, instruments)?;
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
    let names = new.into_iter().map(|user| user.name).collect();
    Ok(ids.map(|ids| (ids, names)))
}
