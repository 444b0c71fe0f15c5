/* barewire: SPI at the cost of the wire, for C.
 *
 * Made by cbindgen from the crate barewire-c: edit that. The book's page "The C library" is the guide.
 *
 * Each function returns BW_OK, or why it failed; bw_last_error() says it in words. Handles may be used by any thread.
 * A handle that is NULL, closed, or none is an error and no undefined behaviour; other pointers are as each function
 * says. No function may be called in a signal handler.
 */

#ifndef BAREWIRE_H
#define BAREWIRE_H

#include <stddef.h>
#include <stdint.h>

/*
 The version of this header and its library: major << 16 | minor << 8 | patch.
 */
#define BW_VERSION (2 << 8)

/*
 Clock phase: data is sampled on the trailing edge.
 */
#define BW_CPHA 1

/*
 Clock polarity: the clock idles high.
 */
#define BW_CPOL 2

/*
 Clock idles low, data sampled on the leading edge.
 */
#define BW_MODE_0 0

/*
 Clock idles low, data sampled on the trailing edge.
 */
#define BW_MODE_1 1

/*
 Clock idles high, data sampled on the leading edge.
 */
#define BW_MODE_2 2

/*
 Clock idles high, data sampled on the trailing edge.
 */
#define BW_MODE_3 3

/*
 Chip select is active high.
 */
#define BW_CS_HIGH 4

/*
 Words are sent least significant bit first.
 */
#define BW_LSB_FIRST 8

/*
 The controller receives what it sends.
 */
#define BW_LOOP 32

/*
 No chip select line moves.
 */
#define BW_NO_CS 64

/*
 A callback's answer: the message is done.
 */
#define BW_DONE 0

/*
 A callback's answer: the message is queued again.
 */
#define BW_AGAIN 1

/*
 How many lengths of transfers statistics tell apart: up to 1 byte, 2 to 3, 4 to 7, and so on to 65,536 and more.
 */
#define BW_HISTO_BUCKETS 17

/*
 What a function returns: BW_OK, or why it failed. The numbers never change; a later version may add some.
 */
enum bw_error
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : int32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
    /*
     It worked.
     */
    BW_OK = 0,
    /*
     A pointer that must not be NULL is.
     */
    BW_ERROR_NULL = 1,
    /*
     The handle is none of this kind.
     */
    BW_ERROR_HANDLE = 2,
    /*
     The object was closed, or its bus was.
     */
    BW_ERROR_CLOSED = 3,
    /*
     The object is of the process that called fork: open the bus again in the child. A child that shares the memory (vfork,
     CLONE_VM) may use no bus before it execs, and gets no text.
     */
    BW_ERROR_FORKED = 4,
    /*
     A struct's size is none that this library knows, or a field it does not know is set.
     */
    BW_ERROR_SIZE = 5,
    /*
     An argument is out of its range.
     */
    BW_ERROR_ARGUMENT = 6,
    /*
     There is no room for another object.
     */
    BW_ERROR_MEMORY = 7,
    /*
     The library failed inside: a mistake of barewire's, to be reported.
     */
    BW_ERROR_PANIC = 8,
    /*
     The bus's name is wrong; nothing was opened.
     */
    BW_ERROR_NAME = 9,
    /*
     The bus could not be opened, served, or closed in order.
     */
    BW_ERROR_OPEN = 10,
    /*
     The bus is taken, or another thread uses the object, or the message is submitted.
     */
    BW_ERROR_BUSY = 11,
    /*
     The thread has the bus already, by its lock or in a callback, and would wait for itself.
     */
    BW_ERROR_WOULD_DEADLOCK = 12,
    /*
     The thread does not hold the bus's lock.
     */
    BW_ERROR_NOT_LOCKED = 13,
    /*
     The message has not run yet.
     */
    BW_ERROR_PENDING = 14,
    /*
     The message is not submitted.
     */
    BW_ERROR_NOT_SUBMITTED = 15,
    /*
     The bus is no simulated board.
     */
    BW_ERROR_NOT_SIMULATED = 16,
    /*
     The controller did not finish in time.
     */
    BW_ERROR_TIMEOUT = 17,
    /*
     A received word was lost.
     */
    BW_ERROR_OVERRUN = 18,
    /*
     The operating system failed the message: see os_errno.
     */
    BW_ERROR_OS = 19,
    /*
     Running the message failed inside; how much of it was clocked is unknown.
     */
    BW_ERROR_ABORTED = 20,
    /*
     The message is longer than the bus takes.
     */
    BW_ERROR_MESSAGE_TOO_LONG = 21,
    /*
     The message has more transfers than the bus takes.
     */
    BW_ERROR_TOO_MANY_TRANSFERS = 22,
    /*
     The message has no transfers.
     */
    BW_ERROR_EMPTY = 23,
    /*
     A length is no multiple of the word's, or longer than memory.
     */
    BW_ERROR_LENGTH = 24,
    /*
     A transfer's two buffers overlap and are not the same.
     */
    BW_ERROR_OVERLAP = 25,
    /*
     The controller has no words of this length.
     */
    BW_ERROR_BITS_PER_WORD = 26,
    /*
     The speed is zero, or below the controller's slowest clock.
     */
    BW_ERROR_SPEED = 27,
    /*
     The controller or the board does not have this mode.
     */
    BW_ERROR_MODE = 28,
    /*
     The bus has no such chip select, or cannot drive it as asked.
     */
    BW_ERROR_CHIP_SELECT = 29,
    /*
     cs_change on the last transfer would leave the chip selected.
     */
    BW_ERROR_CS_CHANGE = 30,
    /*
     A delay is longer than can be made.
     */
    BW_ERROR_DELAY = 31,
    /*
     The bus cannot set this for a single transfer.
     */
    BW_ERROR_NOT_PER_TRANSFER = 32,
    /*
     Another failure: see the text.
     */
    BW_ERROR_OTHER = 33,
    /*
     Counting is off: there are no counts.
     */
    BW_ERROR_NOT_COUNTING = 34,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum bw_error bw_error;
#else
typedef int32_t bw_error;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

/*
 A bus. A handle: not to be looked into.
 */
typedef struct bw_bus bw_bus;

/*
 A chip on a bus, with its settings. A handle.
 */
typedef struct bw_device bw_device;

/*
 A message to submit. A handle. One thread at a time uses it.
 */
typedef struct bw_message bw_message;

/*
 A message that was validated once. A handle. One thread at a time uses it.
 */
typedef struct bw_prepared bw_prepared;

/*
 More about the thread's last failed call. Set size before the call.
 */
typedef struct {
    /*
     sizeof(bw_failure).
     */
    uint32_t size;
    /*
     The code that was returned.
     */
    int32_t error;
    /*
     The operating system's error number, or 0.
     */
    int32_t os_errno;
    /*
     Zero.
     */
    int32_t reserved;
    /*
     The index of the transfer that failed.
     */
    uint64_t transfer_index;
    /*
     Bytes of whole transfers that were clocked before it.
     */
    uint64_t actual_length;
} bw_failure;

/*
 Called with notes for people while a bus is opened. note is valid during the call.
 */
typedef void (*bw_note_fn)(void *user, const char *note);

/*
 What was on the wire, under Linux's names. Set size before the call.
 */
typedef struct {
    /*
     sizeof(bw_statistics).
     */
    uint32_t size;
    /*
     Zero.
     */
    uint32_t reserved;
    /*
     Messages that were run, including those that failed.
     */
    uint64_t messages;
    /*
     Transfers that were clocked.
     */
    uint64_t transfers;
    /*
     Messages that failed.
     */
    uint64_t errors;
    /*
     Messages that failed because the controller did not finish in time.
     */
    uint64_t timedout;
    /*
     Messages whose caller waited for them, including prepared ones.
     */
    uint64_t spi_sync;
    /*
     Those of spi_sync that took no place in the queue.
     */
    uint64_t spi_sync_immediate;
    /*
     Messages that were submitted.
     */
    uint64_t spi_async;
    /*
     Bytes of the transfers that were clocked.
     */
    uint64_t bytes;
    /*
     Bytes received into a buffer.
     */
    uint64_t bytes_rx;
    /*
     Bytes sent from a buffer.
     */
    uint64_t bytes_tx;
    /*
     Transfers by length.
     */
    uint64_t transfer_bytes_histo[BW_HISTO_BUCKETS];
    /*
     Transfers longer than the controller's maximum burst.
     */
    uint64_t transfers_split_maxsize;
} bw_statistics;

/*
 What a simulated board counted since it was opened. Set size before the call.
 */
typedef struct {
    /*
     sizeof(bw_simulated).
     */
    uint32_t size;
    /*
     Zero.
     */
    uint32_t reserved;
    /*
     The board's time since power-up, in nanoseconds.
     */
    uint64_t virtual_ns;
    /*
     Bits clocked.
     */
    uint64_t bits;
    /*
     Register reads.
     */
    uint64_t register_reads;
    /*
     Register writes.
     */
    uint64_t register_writes;
    /*
     How many rules were broken on the wire that harm data or chips.
     */
    uint64_t violations;
} bw_simulated;

/*
 A device's settings, under Linux's names. Set all to zero, then size, and the fields that matter: zero is the
 usual value of each but speed_hz. Delays are in nanoseconds and are rounded up.
 */
typedef struct {
    /*
     sizeof(bw_settings).
     */
    uint32_t size;
    /*
     Clock polarity, phase and flags: BW_MODE_0 to BW_MODE_3, BW_CS_HIGH, … The bits are Linux's.
     */
    uint32_t mode;
    /*
     The fastest clock that the chip supports, in hertz, above zero. The clock is never faster.
     */
    uint32_t speed_hz;
    /*
     The index in the controller's table of chip selects.
     */
    uint8_t chip_select;
    /*
     Bits of a word; 0 for 8. Words of 16 and 32 bits have the processor's byte order.
     */
    uint8_t bits_per_word;
    /*
     Waiting messages of higher priority go first; 0 is the lowest.
     */
    uint8_t priority;
    /*
     Must be zero.
     */
    uint8_t reserved;
    /*
     From CS active to the first clock edge.
     */
    uint32_t cs_setup_ns;
    /*
     From the last clock edge to CS inactive.
     */
    uint32_t cs_hold_ns;
    /*
     The least time for which CS stays inactive.
     */
    uint32_t cs_inactive_ns;
    /*
     Between two words of a transfer.
     */
    uint32_t word_delay_ns;
    /*
     A transfer that takes longer on the wire, in nanoseconds, waits by interrupt, if the controller has one; a shorter one is
     polled. 0 for the controller's limit, 1 for always by interrupt, UINT32_MAX for never. Since 0.2.
     */
    uint32_t poll_limit_ns;
} bw_settings;

/*
 A device's settings as the hardware implements them. Set size before the call.
 */
typedef struct {
    /*
     sizeof(bw_effective).
     */
    uint32_t size;
    /*
     The clock, in hertz, rounded down.
     */
    uint32_t speed_hz;
    /*
     From CS active to the first clock edge, at least, in nanoseconds.
     */
    uint64_t cs_setup_ns;
    /*
     From the last clock edge to CS inactive, at least, in nanoseconds.
     */
    uint64_t cs_hold_ns;
    /*
     The least time for which CS stays inactive, in nanoseconds.
     */
    uint64_t cs_inactive_ns;
    /*
     The least time between two words, in nanoseconds.
     */
    uint64_t word_delay_ns;
    /*
     The quantum of delays, in nanoseconds, rounded up.
     */
    uint64_t quantum_ns;
    /*
     Clocks for which SCK rests after each word.
     */
    uint32_t word_rest_clocks;
    /*
     Zero.
     */
    uint32_t reserved;
} bw_effective;

/*
 What a controller can do. Set size before the call.
 */
typedef struct {
    /*
     sizeof(bw_limits).
     */
    uint32_t size;
    /*
     The fastest clock, in hertz.
     */
    uint32_t max_speed_hz;
    /*
     The slowest clock, in hertz, rounded up.
     */
    uint32_t min_speed_hz;
    /*
     Supported word lengths: bit n - 1 stands for words of n bits.
     */
    uint32_t bits_per_word_mask;
    /*
     The frequency of the timer that makes delays, in hertz.
     */
    uint32_t timer_hz;
    /*
     The longest delay of one transfer, in nanoseconds.
     */
    uint32_t max_delay_ns;
    /*
     The longest message, in bytes, between two points where CS is inactive; UINT64_MAX if unlimited.
     */
    uint64_t max_message_bytes;
} bw_limits;

/*
 One transfer of a message, under Linux's names. Set all to zero, then the fields that matter: a field of zero takes
 the device's value.
 */
typedef struct {
    /*
     The bytes to send, or NULL for zeros.
     */
    const void *tx;
    /*
     Where the received bytes go, or NULL. May be the same as tx, but must not overlap it otherwise.
     */
    void *rx;
    /*
     How many bytes each of them has.
     */
    size_t len;
    /*
     The clock of this transfer, in hertz.
     */
    uint32_t speed_hz;
    /*
     The delay after this transfer, in nanoseconds.
     */
    uint32_t delay_ns;
    /*
     The delay between words of this transfer, in nanoseconds.
     */
    uint32_t word_delay_ns;
    /*
     With cs_change: how long CS stays inactive at least, in nanoseconds.
     */
    uint32_t cs_change_delay_ns;
    /*
     Bits of a word of this transfer.
     */
    uint8_t bits_per_word;
    /*
     Not zero: CS becomes inactive and active again between this transfer and the next.
     */
    uint8_t cs_change;
    /*
     Must be zero.
     */
    uint8_t reserved[14];
} bw_transfer;

/*
 Called each time a submitted message ran, by the thread that ran it, which has the bus: the worker, or one whose own
 message was before it. result is BW_OK or why it failed, length how many bytes were clocked. Returns BW_DONE
 or BW_AGAIN.

 It may submit other messages and free any. It must not wait for the bus: those calls return
 BW_ERROR_WOULD_DEADLOCK. No exception, no longjmp and no pthread_exit may leave it; a C++ exception and
 pthread_exit end the program.
 */
typedef int (*bw_callback)(void *user, bw_message *message, bw_error result, size_t length);

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

/*
 The library's version as text, for example 0.2.0.
 */
const char *bw_version(void);

/*
 The library's version as a number, to compare with BW_VERSION of the header.
 */
uint32_t bw_version_number(void);

/*
 The name of a code, for example BW_ERROR_NULL; BW_ERROR_? for a number that is none.
 */
const char *bw_error_name(int32_t error);

/*
 What went wrong in the calling thread's last call that failed, in words; empty if none did. It names the thing and,
 where there is one, the remedy. Valid until the thread's next call that fails.
 */
const char *bw_last_error(void);

/*
 More about the calling thread's last call that failed. All zero if none did.

 The caller promises:
 failure is NULL or points at a struct whose size is set.
 */
bw_error bw_last_failure(bw_failure *failure);

/*
 Opens the bus of that name, for example sim:rpi3, null:, spidev:/dev/spidev0.0 or mem:…, and stores its handle
 in *bus. note, which may be NULL, gets notes and warnings for people, and which process is waited for.

 The caller promises:
 name is NULL or a string; bus is NULL or valid for a write. note is as its type says.
 */
bw_error bw_bus_open(const char *name,
                     bw_note_fn note,
                     void *user,
                     bw_bus **bus);

/*
 Closes a bus: waits for the message on the wire and for another thread's lock, releases the controller, and keeps
 what a simulated flash chip has in its file. Queued messages, and later ones of any thread, fail with
 BW_ERROR_CLOSED. Its devices, prepared messages and messages keep their handles, and are to be closed too.

 A lock that the calling thread holds is released first. If the call fails with BW_ERROR_OPEN, the bus is closed all
 the same, and the text says what could not be kept.
 */
bw_error bw_bus_close(bw_bus *bus);

/*
 The bus's name without options, as text in a buffer of size bytes; cut, if there is less room.

 The caller promises:
 name is NULL or valid for writes of size bytes.
 */
bw_error bw_bus_name(bw_bus *bus, char *name, size_t size);

/*
 Waits at least that many nanoseconds of the bus's time: on a simulated board its time passes, and none of the
 process's; else up to 20 µs are spun and more is slept.
 */
bw_error bw_delay_ns(bw_bus *bus, uint64_t delay_ns);

/*
 The bus's time in nanoseconds, from some moment on.

 The caller promises:
 now_ns is NULL or valid for a write.
 */
bw_error bw_now_ns(bw_bus *bus, uint64_t *now_ns);

/*
 Turns counting on, if counting is not zero, or off. It is off at first; when off it costs next to nothing.
 */
bw_error bw_set_counting(bw_bus *bus, int32_t counting);

/*
 The counts of messages since counting was switched on, taken at one moment between two messages. BW_ERROR_NOT_COUNTING
 while it is off: zeros would look like a count.

 The caller promises:
 statistics is NULL or points at a struct whose size is set.
 */
bw_error bw_get_statistics(bw_bus *bus,
                           bw_statistics *statistics);

/*
 What a simulated board counted since it was opened; BW_ERROR_NOT_SIMULATED for another bus.

 The caller promises:
 simulated is NULL or points at a struct whose size is set.
 */
bw_error bw_get_simulated(bw_bus *bus, bw_simulated *simulated);

/*
 The first violations on a simulated board's wire, in words: number index, in a buffer of size bytes.
 BW_ERROR_ARGUMENT if there are not so many.

 The caller promises:
 violation is NULL or valid for writes of size bytes.
 */
bw_error bw_get_violation(bw_bus *bus, size_t index, char *violation, size_t size);

/*
 Opens a device on the bus and stores its handle in *device. The mode flags that its chip select needs are
 added.

 The caller promises:
 settings is NULL or points at a struct whose size is set; device is NULL or valid for a write.
 */
bw_error bw_device_open(bw_bus *bus, const bw_settings *settings, bw_device **device);

/*
 Closes a device. Its prepared messages and messages stay usable.
 */
bw_error bw_device_close(bw_device *device);

/*
 The settings as the hardware implements them.

 The caller promises:
 effective is NULL or points at a struct whose size is set.
 */
bw_error bw_get_effective(bw_device *device, bw_effective *effective);

/*
 What the controller can do.

 The caller promises:
 limits is NULL or points at a struct whose size is set.
 */
bw_error bw_get_limits(bw_device *device, bw_limits *limits);

/*
 Runs a message of count transfers and waits for it. *length, if length is not NULL, gets its length in bytes.
 If it fails, bw_last_failure says at which transfer; CS is inactive in every case.

 The caller promises:
 transfers is NULL or valid for count of them. Their buffers are NULL or valid for len bytes, and nothing else uses
 them during the call. length is NULL or valid for a write.
 */
bw_error bw_sync(bw_device *device,
                 const bw_transfer *transfers,
                 size_t count,
                 size_t *length);

/*
 bw_sync if the bus is free and nothing is queued, else BW_ERROR_BUSY. Never waits for another.

 The caller promises:
 As bw_sync.
 */
bw_error bw_try_sync(bw_device *device, const bw_transfer *transfers, size_t count, size_t *length);

/*
 Runs a message of one transfer: sends len bytes of tx, or zeros if it is NULL, and receives as many into rx, unless
 it is NULL. Both may be the same buffer.

 The caller promises:
 tx and rx are NULL or valid for len bytes, and nothing else uses them during the call.
 */
bw_error bw_exchange(bw_device *device,
                     const void *tx,
                     void *rx,
                     size_t len);

/*
 Runs a message of two transfers: sends tx_len bytes, then receives rx_len, as Linux's spi_write_then_read.

 The caller promises:
 tx and rx are valid for their lengths, or NULL if these are zero; nothing else uses them during the call.
 */
bw_error bw_write_then_read(bw_device *device,
                            const void *tx,
                            size_t tx_len,
                            void *rx,
                            size_t rx_len);

/*
 Waits for the bus and locks it for the calling thread: until bw_unlock its messages run with no other between them,
 and other threads' wait. A second call of the same thread, and one in a callback, returns BW_ERROR_WOULD_DEADLOCK.
 A thread that ends releases its locks.
 */
bw_error bw_lock(bw_bus *bus);

/*
 Locks the bus if it is free; else BW_ERROR_BUSY. Never waits.
 */
bw_error bw_try_lock(bw_bus *bus);

/*
 Releases the lock. BW_ERROR_NOT_LOCKED if the calling thread does not hold it; another's stays.
 */
bw_error bw_unlock(bw_bus *bus);

/*
 Prepares a message: validates it and computes its register values, once. Stores its handle in *prepared. The
 transfers are copied; their buffers are not: each run sends what is in tx then, and receives into rx.

 The caller promises:
 transfers is NULL or valid for count of them. Their buffers are NULL or valid for len bytes until
 bw_prepared_free, and nothing else uses them during a run. prepared is NULL or valid for a write.
 */
bw_error bw_prepare(bw_device *device,
                    const bw_transfer *transfers,
                    size_t count,
                    bw_prepared **prepared);

/*
 Runs a prepared message and waits for it. *length, if length is not NULL, gets its length in bytes. If another
 thread runs it, BW_ERROR_BUSY.

 The caller promises:
 The message's buffers are as bw_prepare says. length is NULL or valid for a write.
 */
bw_error bw_prepared_run(bw_prepared *prepared,
                         size_t *length);

/*
 bw_prepared_run if the bus is free and nothing is queued, else BW_ERROR_BUSY. Never waits for another.

 The caller promises:
 As bw_prepared_run.
 */
bw_error bw_prepared_try_run(bw_prepared *prepared, size_t *length);

/*
 Frees a prepared message. If another thread runs it, it is freed, and its buffers are in use, until that ends.
 */
bw_error bw_prepared_free(bw_prepared *prepared);

/*
 Makes a message to submit, and stores its handle in *message. The transfers are copied; their buffers are not.
 callback, which may be NULL, is called each time it ran. The message may be submitted again and again.

 The caller promises:
 transfers is NULL or valid for count of them. Their buffers are NULL or valid for len bytes until
 bw_message_free, and nothing else uses them while the message is submitted. callback is as its type says and may be
 called in any thread with user. message is NULL or valid for a write.
 */
bw_error bw_message_new(bw_device *device,
                        const bw_transfer *transfers,
                        size_t count,
                        bw_callback callback,
                        void *user,
                        bw_message **message);

/*
 Submits the message: it runs after those submitted before it, and the call does not wait. BW_ERROR_BUSY if it is
 submitted and has not run.

 The caller promises:
 The message's buffers and callback are as bw_message_new says.
 */
bw_error bw_submit(bw_message *message);

/*
 How the message ran last: BW_OK or why it failed; BW_ERROR_PENDING while it has not run. *length, if length is not
 NULL, gets its length in bytes. Does not wait.

 The caller promises:
 length is NULL or valid for a write.
 */
bw_error bw_poll(bw_message *message,
                 size_t *length);

/*
 Waits until the message ran, then does as bw_poll. BW_ERROR_WOULD_DEADLOCK under the
 thread's own lock and in a callback.

 The caller promises:
 length is NULL or valid for a write.
 */
bw_error bw_wait(bw_message *message, size_t *length);

/*
 Cancels the message: removes it from the queue, or waits until it ran. *removed, if removed is not NULL, gets 1 if it
 was removed without running, else 0.

 The caller promises:
 removed is NULL or valid for a write.
 */
bw_error bw_cancel(bw_message *message,
                   int32_t *removed);

/*
 Frees the message; cancels it first if it is submitted. In a callback it may be called too, also for the message
 that ran: the bus keeps it until a later call outside, and its buffers must stay until the callback returned.
 */
bw_error bw_message_free(bw_message *message);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* BAREWIRE_H */
