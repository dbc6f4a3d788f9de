//! ITCH 5.0, MoldUDP64, SoupBinTCP and OUCH 5.0.
