// barewire for C++17: the handles of barewire.h close themselves, and errors are exceptions. Nothing else: what is not
// here is a call of barewire.h with get().
//
// An object must not outlive what it was made from only in one respect: buffers. They stay the caller's.
#ifndef BAREWIRE_HPP
#define BAREWIRE_HPP

#include "barewire.h"

#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <initializer_list>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace barewire {

// What a call failed with: its code, and barewire's words.
class Error : public std::runtime_error {
public:
    Error(bw_error code, const std::string &text) : std::runtime_error(text), code_(code) {}

    bw_error code() const noexcept { return code_; }
    const char *name() const noexcept { return bw_error_name(static_cast<std::int32_t>(code_)); }

private:
    bw_error code_;
};

// Throws unless the code is BW_OK.
inline void check(bw_error error)
{
    if (error != BW_OK)
        throw Error(error, bw_last_error());
}

// Settings for a chip select at a clock: mode 0, words of 8 bits.
inline bw_settings settings(std::uint8_t chip_select, std::uint32_t speed_hz, std::uint32_t mode = BW_MODE_0)
{
    bw_settings settings{};
    settings.size = sizeof settings;
    settings.chip_select = chip_select;
    settings.speed_hz = speed_hz;
    settings.mode = mode;
    return settings;
}

// A transfer with the device's settings. Either buffer may be null.
inline bw_transfer transfer(const void *tx, void *rx, std::size_t len)
{
    bw_transfer transfer{};
    transfer.tx = tx;
    transfer.rx = rx;
    transfer.len = len;
    return transfer;
}

namespace detail {

// A handle that one object owns.
template <typename T, bw_error (*close)(T *)>
class Handle {
public:
    Handle() noexcept = default;
    Handle(Handle &&other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}
    Handle &operator=(Handle &&other) noexcept
    {
        std::swap(handle_, other.handle_);
        return *this;
    }
    Handle(const Handle &) = delete;
    Handle &operator=(const Handle &) = delete;
    ~Handle()
    {
        if (handle_)
            close(handle_);
    }

    // The handle, for the functions of barewire.h.
    T *get() const noexcept { return handle_; }

protected:
    T *handle_ = nullptr;
};

} // namespace detail

// A bus. Closes itself; close() does too, and throws what could not be kept.
class Bus : public detail::Handle<bw_bus, bw_bus_close> {
public:
    using Note = std::function<void(const char *)>;

    explicit Bus(const char *name, const Note &note = {})
    {
        // An exception may not cross barewire: it is thrown on this side again.
        struct Told {
            const Note *note;
            std::exception_ptr thrown;
        } told{&note, nullptr};
        const auto tell = [](void *user, const char *text) {
            auto *told = static_cast<Told *>(user);
            try {
                if (*told->note)
                    (*told->note)(text);
            } catch (...) {
                told->thrown = std::current_exception();
            }
        };
        check(bw_bus_open(name, tell, &told, &handle_));
        if (told.thrown) {
            close();
            std::rethrow_exception(told.thrown);
        }
    }
    explicit Bus(const std::string &name, const Note &note = {}) : Bus(name.c_str(), note) {}

    void close()
    {
        if (handle_)
            check(bw_bus_close(std::exchange(handle_, nullptr)));
    }
    void delay_ns(std::uint64_t ns) { check(bw_delay_ns(handle_, ns)); }
};

// The bus's lock for the calling thread, until the end of its scope.
class Lock {
public:
    explicit Lock(const Bus &bus) : bus_(bus.get()) { check(bw_lock(bus_)); }
    Lock(const Lock &) = delete;
    Lock &operator=(const Lock &) = delete;
    ~Lock() { bw_unlock(bus_); }

private:
    bw_bus *bus_;
};

// A chip on a bus, with its settings.
class Device : public detail::Handle<bw_device, bw_device_close> {
public:
    Device(const Bus &bus, const bw_settings &settings) { check(bw_device_open(bus.get(), &settings, &handle_)); }

    // Runs a message of one transfer and waits for it.
    void exchange(const void *tx, void *rx, std::size_t len) { check(bw_exchange(handle_, tx, rx, len)); }

    // Runs a message and waits for it; its length in bytes.
    std::size_t sync(const bw_transfer *transfers, std::size_t count)
    {
        std::size_t length = 0;
        check(bw_sync(handle_, transfers, count, &length));
        return length;
    }
    std::size_t sync(std::initializer_list<bw_transfer> transfers) { return sync(transfers.begin(), transfers.size()); }
};

// A prepared message over the caller's buffers, which outlive it.
class Prepared : public detail::Handle<bw_prepared, bw_prepared_free> {
public:
    Prepared(const Device &device, std::initializer_list<bw_transfer> transfers)
    {
        check(bw_prepare(device.get(), transfers.begin(), transfers.size(), &handle_));
    }

    // Runs it and waits; its length in bytes.
    std::size_t run()
    {
        std::size_t length = 0;
        check(bw_prepared_run(handle_, &length));
        return length;
    }
};

// A message to submit, over the caller's buffers, which outlive it. An exception of the callback is thrown by wait().
class Message {
public:
    using Callback = std::function<void(bw_error, std::size_t)>;

    Message(const Device &device, std::initializer_list<bw_transfer> transfers, Callback callback = {})
        : state_(std::make_unique<State>())
    {
        state_->callback = std::move(callback);
        check(bw_message_new(device.get(), transfers.begin(), transfers.size(), called, state_.get(), &state_->message));
    }

    bw_message *get() const noexcept { return state_->message; }

    void submit()
    {
        state_->thrown = nullptr;
        check(bw_submit(get()));
    }

    // Waits until it ran; its length in bytes.
    std::size_t wait()
    {
        std::size_t length = 0;
        check(bw_wait(get(), &length));
        if (state_->thrown)
            std::rethrow_exception(std::exchange(state_->thrown, nullptr));
        return length;
    }

    // Whether it was removed before it ran.
    bool cancel()
    {
        std::int32_t removed = 0;
        check(bw_cancel(get(), &removed));
        return removed != 0;
    }

private:
    struct State {
        Callback callback;
        std::exception_ptr thrown;
        bw_message *message = nullptr;

        ~State()
        {
            // Waits until the callback has ended; so a Message must not be destroyed in its own callback.
            if (message)
                bw_message_free(message);
        }
    };

    static int called(void *user, bw_message *, bw_error error, std::size_t length)
    {
        auto *state = static_cast<State *>(user);
        try {
            if (state->callback)
                state->callback(error, length);
        } catch (...) {
            state->thrown = std::current_exception();
        }
        return BW_DONE;
    }

    std::unique_ptr<State> state_;
};

} // namespace barewire

#endif
