//! The protocol end to end: a client and a server over a socket and a page.

mod any;
mod beside_linux;
mod over_the_page;
mod traces;

use proptest::prelude::*;

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn every_message_is_answered(bytes in proptest::collection::vec(any::<u8>(), 1..2_000)) {
        any::drive(&bytes);
    }
}
