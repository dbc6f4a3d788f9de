//! Users, what each may do, how often, and who is banned.
