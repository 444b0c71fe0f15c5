//! Which public types may be sent to other threads, checked by the compiler.

use super::Wired;
use crate::bus::queued::{Completed, Exchange, Fixed};
use crate::bus::{
    Bus, Device, Locked, Prepared, PreparedMessage, Pump, Queued, Statistics, Then, Transact,
};
use crate::controller::null::Null;
use crate::hal::{HalBus, HalDevice};

/// Fails to compile if `$type` implements the trait: then two implementations match.
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

// A lock stays with its thread on every bus: with priority inheritance only its thread can release
// it.
assert_not!(Locked<'static, Null>: Send);
assert_not!(HalBus<'static, Null>: Send);
// A pinned message has one owner; a shared reference to it must not reach a second thread.
assert_not!(Queued<'static, Null, Exchange<4>>: Sync);
assert_not!(Transact<'static, 'static, 'static, Null>: Sync);
// Any thread that holds the bus drives its controller, so the controller must be `Send`.
assert_not!(Bus<core::cell::Cell<*const ()>>: Sync);
assert_not!(Bus<core::cell::Cell<*const ()>>: Send);
