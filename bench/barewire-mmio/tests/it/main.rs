//! The protocol end to end: a client and a server over a socket and a page.

mod beside_linux;
mod over_the_page;
