// A C++ exception that leaves a callback of barewire.h ends the program; barewire.hpp brings it to wait().
#include <barewire.hpp>

#include <cstdio>
#include <cstring>
#include <stdexcept>

static std::uint8_t tx[4] = {0x9f}, rx[4];

static int throws(void *, bw_message *, bw_error, std::size_t)
{
    throw std::runtime_error("out of a callback");
}

int main(int argc, char **)
{
    barewire::Bus bus("sim:imx8mp");
    barewire::Device device(bus, barewire::settings(0, 20'000'000));
    if (argc > 1) {
        bw_transfer transfer = barewire::transfer(tx, rx, 4);
        bw_message *message = nullptr;
        barewire::check(bw_message_new(device.get(), &transfer, 1, throws, nullptr, &message));
        barewire::check(bw_submit(message));
        bw_wait(message, nullptr);
        return 0;
    }
    barewire::Message message(device, {barewire::transfer(tx, rx, 4)},
                              [](bw_error, std::size_t) { throw std::runtime_error("out of a callback"); });
    message.submit();
    try {
        message.wait();
        return 1;
    } catch (const std::runtime_error &error) {
        if (std::strcmp(error.what(), "out of a callback") != 0)
            return 1;
    }
    try {
        barewire::Bus noted("sim:imx8mp,flash=/nonexistent/chip.bin", [](const char *) {});
        return 1;
    } catch (const barewire::Error &error) {
        if (error.code() != BW_ERROR_OPEN)
            return 1;
    }
    std::puts("ok");
    return 0;
}
