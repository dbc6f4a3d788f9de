//! The table of all protocols of live channels.

use tickpath_iex::Feed;
use tickpath_net::Network;

use super::protocol::LiveProtocol;
use super::section::ProtocolName;

mod iex;
mod itch;
mod soup;
mod xdp;

/// Returns the protocol of this name.
pub(super) fn protocol<N: Network>(name: ProtocolName) -> &'static dyn LiveProtocol<N> {
    match name {
        ProtocolName::Itch => &itch::Itch,
        ProtocolName::ItchSoup => &soup::ItchSoup,
        ProtocolName::Xdp => &xdp::Xdp,
        ProtocolName::IexDeep => &iex::Iex(Feed::Deep10),
        ProtocolName::IexDeepPlus => &iex::Iex(Feed::DeepPlus10),
        ProtocolName::IexTops => &iex::Iex(Feed::Tops16),
        ProtocolName::IexTops15 => &iex::Iex(Feed::Tops15),
    }
}
