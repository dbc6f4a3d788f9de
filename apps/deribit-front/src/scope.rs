//! Scopes of keys and tokens.

use std::fmt;

/// Level of access.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Access {
    /// No access.
    #[default]
    None,
    /// Read access.
    Read,
    /// Read and write access.
    ReadWrite,
}

/// Scope of a key or a token, in Deribit's format: `account:read trade:read_write`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Scope {
    /// Summary and settings of the account.
    pub account: Access,
    /// Orders, trades and positions.
    pub trade: Access,
    /// Deposits and withdrawals.
    pub wallet: Access,
    /// The named session of a token; a token without one belongs to its connection.
    pub session: Option<String>,
    /// Lifetime of a token, in seconds.
    pub expires_s: Option<u64>,
    /// True if the text names any of the three, even as none.
    pub names_access: bool,
}

impl Scope {
    /// Parses words separated by spaces; unknown words are ignored.
    #[must_use]
    pub fn parse(text: &str) -> Scope {
        let mut scope = Scope::default();
        for word in text.split_whitespace() {
            let Some((name, value)) = word.split_once(':') else { continue };
            let access = match value {
                "read" => Access::Read,
                "read_write" => Access::ReadWrite,
                _ => Access::None,
            };
            scope.names_access |= matches!(name, "account" | "trade" | "wallet");
            match name {
                "account" => scope.account = access,
                "trade" => scope.trade = access,
                "wallet" => scope.wallet = access,
                "session" => scope.session = Some(value.to_owned()),
                "expires" => scope.expires_s = value.parse().ok(),
                _ => {}
            }
        }
        scope
    }

    /// Returns the requested scope limited by the key's, or the key's scope if nothing is requested.
    #[must_use]
    pub fn narrowed(&self, asked: &Scope) -> Scope {
        let narrow = |key: Access, own: Access| if asked.names_access { key.min(own) } else { key };
        Scope {
            account: narrow(self.account, asked.account),
            trade: narrow(self.trade, asked.trade),
            wallet: narrow(self.wallet, asked.wallet),
            session: asked.session.clone(),
            expires_s: asked.expires_s,
            names_access: true,
        }
    }
}

impl fmt::Display for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.session {
            Some(session) => write!(f, "session:{session}")?,
            None => f.write_str("connection")?,
        }
        f.write_str(" mainaccount")?;
        for (name, access) in [("account", self.account), ("trade", self.trade), ("wallet", self.wallet)] {
            match access {
                Access::None => write!(f, " {name}:none")?,
                Access::Read => write!(f, " {name}:read")?,
                Access::ReadWrite => write!(f, " {name}:read_write")?,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_may_do_what_is_asked_and_what_its_key_may() {
        let key = Scope::parse("account:read trade:read_write");
        let narrowed =
            key.narrowed(&Scope::parse("session:desk trade:read account:read_write expires:60 what:ever"));
        assert_eq!(narrowed.to_string(), "session:desk mainaccount account:read trade:read wallet:none");
        assert_eq!((narrowed.expires_s, narrowed.wallet), (Some(60), Access::None));
        assert_eq!(
            key.narrowed(&Scope::default()).to_string(),
            "connection mainaccount account:read trade:read_write wallet:none"
        );
        for none in ["trade:none", "account:none trade:none wallet:none", "trade:what"] {
            let nothing = key.narrowed(&Scope::parse(none));
            assert_eq!(nothing.to_string(), "connection mainaccount account:none trade:none wallet:none");
        }
    }
}
