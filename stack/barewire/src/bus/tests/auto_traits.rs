//! Which public types go to other threads: told by the compiler.

use super::Wired;
use crate::bus::queued::{Completed, Exchange, Fixed};
use crate::bus::{
    Bus, Device, Locked, Prepared, PreparedMessage, Pump, Queued, Statistics, Then, Transact,
};
use crate::controller::null::Null;
use crate::hal::{HalBus, HalDevice};

/// Fails to compile if `$type` is the trait: then two implementations are candidates.
macro_rules! assert_not {
    ($type:ty: $trait:ident) => {
        const _: fn() = || {
            trait Ambiguous<A> {
                fn it() {}
            }
            impl<T: ?Sized> Ambiguous<()> for T {}
            struct Is;
            impl<T: ?Sized + $trait> Ambiguous<Is> for T {}
            let _ = <$type as Ambiguous<_>>::it;
        };
    };
}

const fn send<T: Send>() {}
const fn sync<T: Sync>() {}

const _: () = {
    send::<Bus<Null>>();
    sync::<Bus<Null>>();
    send::<Device<'static, Null>>();
    sync::<Device<'static, Null>>();
    send::<Prepared<'static, Null, 4>>();
    sync::<Prepared<'static, Null, 4>>();
    send::<PreparedMessage<'static, 'static, 'static, Null>>();
    send::<Queued<'static, Null, Exchange<4>>>();
    send::<Queued<'static, Null, Fixed<2>>>();
    send::<Queued<'static, Wired<'static>, Exchange<4>>>();
    send::<crate::bus::queued::Running<'static, 'static, Null, Exchange<4>>>();
    send::<Transact<'static, 'static, 'static, Null>>();
    send::<Statistics>();
    sync::<Statistics>();
    send::<Pump>();
    send::<Then>();
    send::<Completed<'static>>();
    send::<HalDevice<'static, Null>>();
};

// A lock stays with its thread on every bus: one that lends priorities can be released by no other.
assert_not!(Locked<'static, Null>: Send);
assert_not!(HalBus<'static, Null>: Send);
// What is pinned is one owner's, who may not be two.
assert_not!(Queued<'static, Null, Exchange<4>>: Sync);
assert_not!(Transact<'static, 'static, 'static, Null>: Sync);
// A bus drives its controller from whichever thread holds it.
assert_not!(Bus<core::cell::Cell<*const ()>>: Sync);
assert_not!(Bus<core::cell::Cell<*const ()>>: Send);
