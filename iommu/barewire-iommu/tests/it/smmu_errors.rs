//! SMMU_GERROR on a fake SMMU: the acknowledged errors, and those returned to the caller.

use barewire_iommu::FlushError;
use barewire_iommu::smmu::Polls;
use barewire_iommu::smmu::v3::{Command, GlobalError, GlobalErrors, Settings, Smmu};

use crate::smmu_fake::{Fake, Options, Ram};

const SYNC: [u64; 2] = [0x46, 0];

/// Runs `test` on an SMMU that has just been brought up.
fn with_smmu(options: Options, test: impl FnOnce(&Fake<'_>, &Smmu<'_, &Fake<'_>, Ram>)) {
    let ram = Ram::new(1 << 18);
    let fake = Fake::new(&ram, options);
    let settings = Settings { command_queue_log2: 4, patience: Polls(100), ..Settings::default() };
    let smmu = Smmu::new(&fake, &ram, settings).expect("it comes up");
    fake.state().executed.clear();
    test(&fake, &smmu);
}

/// EVENTQ_ABT, PRIQ_ABT, the four MSI aborts, SFM, and two that later versions of the manual have.
#[test]
fn flaw_6_every_active_error_is_acknowledged() {
    for bit in [2, 3, 4, 5, 6, 7, 8, 9, 10, 31] {
        with_smmu(Options::default(), |fake, smmu| {
            for _ in 0..2 {
                fake.state().gerror ^= 1 << bit;
                let errors = smmu.handle_errors();
                assert_eq!(errors.bits(), 1 << bit);
                assert_eq!(fake.state().active_errors(), 0, "bit {bit} stays active");
            }
        });
    }
    with_smmu(Options::default(), |fake, smmu| {
        fake.state().gerror ^= 0b1_1111_1100;
        assert_eq!(smmu.handle_errors().bits(), 0b1_1111_1100);
        assert_eq!(fake.state().active_errors(), 0);
    });
}

/// A reason that no manual has yet: the command is passed over, as an illegal one.
#[test]
fn flaw_6_an_unknown_reason_does_not_stop_the_queue() {
    for reason in [4, 0x7f] {
        with_smmu(Options::default(), |fake, smmu| {
            {
                let mut options = fake.options.lock().unwrap();
                (options.illegal, options.reason) = (vec![0x30], reason);
            }
            let batch = [Command::cfgi_ste(1, true), Command::TLBI_NSNH_ALL];
            assert_eq!(smmu.run(&batch), Err(FlushError::Command(reason as u8)));
            assert_eq!(fake.state().executed, [batch[0].0, SYNC, SYNC]);
            assert_eq!(smmu.run(&[Command::cfgi_ste(2, true)]), Ok(()));
            assert_eq!(fake.state().active_errors(), 0);
        });
    }
}

#[test]
fn flaw_6_every_error_is_a_value() {
    let errors = [
        (2, GlobalError::EventQueueAbort, "EVENTQ_ABT_ERR"),
        (3, GlobalError::PageRequestQueueAbort, "PRIQ_ABT_ERR"),
        (4, GlobalError::CommandQueueMsiAbort, "MSI_CMDQ_ABT_ERR"),
        (5, GlobalError::EventQueueMsiAbort, "MSI_EVENTQ_ABT_ERR"),
        (6, GlobalError::PageRequestQueueMsiAbort, "MSI_PRIQ_ABT_ERR"),
        (7, GlobalError::GlobalErrorMsiAbort, "MSI_GERROR_ABT_ERR"),
        (8, GlobalError::ServiceFailure, "SFM_ERR"),
        (9, GlobalError::CommandQueueControlPage, "CMDQP_ERR"),
        (10, GlobalError::DevicePermissionTable, "DPT_ERR"),
        (31, GlobalError::Other(31), "bit 31"),
    ];
    for (bit, error, name) in errors {
        with_smmu(Options::default(), |fake, smmu| {
            assert_eq!(smmu.handle_errors(), GlobalErrors::NONE);
            fake.state().gerror ^= 1 << bit;
            let reported = smmu.handle_errors();
            assert_eq!(reported.iter().collect::<Vec<_>>(), [error]);
            assert!(reported.contains(error) && !reported.is_empty());
            assert!(!reported.contains(GlobalError::Other(30)));
            assert_eq!(u32::from(error.bit()), bit);
            assert!(reported.to_string().starts_with(name), "{reported}");
            // Once; but Service Failure Mode stays until a reset.
            assert_eq!(error.is_terminal(), bit == 8);
            let again = if error.is_terminal() { reported } else { GlobalErrors::NONE };
            assert_eq!(smmu.handle_errors(), again);
        });
    }
    assert_eq!(GlobalErrors::NONE.to_string(), "no error");
}

/// A call that recovers from a refused command also acknowledges the other active errors. It is not
/// lost.
#[test]
fn flaw_6_an_error_that_a_flush_acknowledges_is_reported_later() {
    with_smmu(Options::default(), |fake, smmu| {
        fake.options.lock().unwrap().illegal = vec![0x30];
        fake.state().gerror ^= 1 << 2;
        assert_eq!(smmu.run(&[Command::TLBI_NSNH_ALL]), Err(FlushError::Command(1)));
        assert_eq!(fake.state().active_errors(), 0);
        let errors = smmu.handle_errors();
        assert_eq!(errors.iter().collect::<Vec<_>>(), [GlobalError::EventQueueAbort]);
        assert!(smmu.handle_errors().is_empty());
    });
}

/// Two CPUs that handle errors toggle each bit once, and each error is reported, once.
#[test]
fn flaw_6_two_cpus_that_handle_errors() {
    with_smmu(Options::default(), |fake, smmu| {
        let rounds = if cfg!(miri) { 3 } else { 2000 };
        let reported = std::thread::scope(|scope| {
            let handle = || {
                let count = |_| usize::from(smmu.handle_errors().bits() == 1 << 2);
                (0..rounds).map(count).sum::<usize>()
            };
            let both = [scope.spawn(handle), scope.spawn(handle)];
            let mut raised = 0;
            for _ in 0..rounds {
                let mut state = fake.state();
                if state.active_errors() == 0 {
                    state.gerror ^= 1 << 2;
                    raised += 1;
                }
            }
            let reported = both.map(|thread| thread.join().unwrap()).iter().sum::<usize>();
            (raised, reported + usize::from(!smmu.handle_errors().is_empty()))
        });
        assert_eq!(fake.state().active_errors(), 0);
        // If two errors are acknowledged before a report, they are reported as one.
        assert!(reported.1 >= 1 && reported.1 <= reported.0, "{reported:?}");
    });
}
