//! Storage beside the log that an order needs: its label and the capacity of the files.

use tickpath_deribit::error_code::ErrorCode;

use super::Front;
use crate::fault::Fault;

impl Front {
    /// Returns an error when the side files have no capacity.
    pub(super) fn check_storage(&self) -> Result<(), Fault> {
        match self.has_storage {
            true => Ok(()),
            false => Err(Fault::because(
                ErrorCode::TemporarilyUnavailable,
                "the venue's disk is full: orders with new labels, triggers and links wait for room",
            )),
        }
    }

    /// Returns the number for a label and a ClOrdID; the number of labels per account is limited.
    pub(super) fn label_number(
        &mut self,
        account: usize,
        label: &str,
        client_id: &str,
    ) -> Result<u32, Fault> {
        let known = &self.accounts[account];
        let is_full = known.labels.len() >= self.settings.max_labels;
        let number = match self.labels.find(label, client_id) {
            Some(number) if number == 0 || !is_full || known.labels.contains(&number) => number,
            _ if is_full => {
                let reason = "the account has as many labels as it may: use one that it had";
                return Err(Fault::because(ErrorCode::OtherReject, reason));
            }
            _ => {
                self.check_storage()?;
                let number = self.labels.number(label, client_id);
                number.ok_or(Fault::new(ErrorCode::TemporarilyUnavailable))?
            }
        };
        self.accounts[account].note_label(number);
        Ok(number)
    }
}
