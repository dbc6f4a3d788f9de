//! The records that a log must hold, according to its acknowledged file and its generation file.

use tickpath_types::Sequence;

use crate::acknowledged::{ACKNOWLEDGED_FILE, Recorded};
use crate::generation::{self, Generation};
use crate::{OpenError, SessionName, Storage};

/// The records that a log must hold, and the files that require them.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct LogRequirement {
    /// Sequence up to which the log must hold every record.
    pub(crate) required: Sequence,
    /// True when it is certain that no record after `required` was acknowledged.
    pub(crate) is_exact: bool,
    pub(crate) recorded: Option<Recorded>,
    pub(crate) generation: Option<Generation>,
}

impl LogRequirement {
    /// Returns the requirement of the log of `session`, from `recorded` and the generation file. Damage to
    /// either file is an error unless a loss is accepted.
    pub(crate) fn of<S: Storage>(
        storage: &S,
        session: SessionName,
        recorded: Result<Option<Recorded>, OpenError>,
        accepts_loss: bool,
    ) -> Result<LogRequirement, OpenError> {
        let recorded = match recorded {
            Err(OpenError::Acknowledged) if accepts_loss => None,
            recorded => recorded?,
        };
        if let Some(found) = recorded.map(|recorded| recorded.acknowledged.session)
            && found != session
        {
            return Err(OpenError::Session { file: ACKNOWLEDGED_FILE.to_owned(), found, expected: session });
        }
        let generation = match generation::read(storage, session) {
            // The acknowledged file also holds the generation number, so the damaged file is not needed.
            Err(OpenError::Generation { .. }) if accepts_loss && recorded.is_some() => None,
            Ok(None) if recorded.is_some() && !accepts_loss => {
                return Err(OpenError::Generation { damage: "it is missing".to_owned() });
            }
            generation => generation?,
        };
        let closed_at = generation.and_then(|generation| generation.closed_at).unwrap_or_default();
        let mut requirement = LogRequirement { required: closed_at, is_exact: false, recorded, generation };
        if let Some(Recorded { acknowledged, .. }) = recorded {
            requirement.is_exact = acknowledged.boot != 0 && storage.boot() == Some(acknowledged.boot);
            if requirement.is_exact || !acknowledged.policy.acknowledges_unsynced() {
                requirement.required = closed_at.max(acknowledged.sequence);
            }
        }
        Ok(requirement)
    }
}
