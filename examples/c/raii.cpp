// The same library from C++: what is opened closes itself, and what fails throws.
#include <barewire.hpp>

#include <array>
#include <cstdio>

int main()
{
    try {
        barewire::Bus bus("sim:imx8mp");
        barewire::Device flash(bus, barewire::settings(0, 20'000'000));

        std::array<std::uint8_t, 4> tx{0x9f}, rx{};
        flash.exchange(tx.data(), rx.data(), rx.size());
        std::printf("%02x %02x %02x\n", rx[1], rx[2], rx[3]);

        rx.fill(0);
        barewire::Prepared id(flash, {barewire::transfer(tx.data(), rx.data(), rx.size())});
        {
            // No other message comes between these.
            barewire::Lock lock(bus);
            for (int i = 0; i < 3; i++)
                id.run();
        }

        int ran = 0;
        rx.fill(0);
        barewire::Message later(
            flash, {barewire::transfer(tx.data(), rx.data(), rx.size())},
            [&](bw_error error, std::size_t) { ran += error == BW_OK; });
        later.submit();
        later.wait();
        std::printf("submitted: %02x %02x %02x, called %d times\n", rx[1], rx[2], rx[3], ran);

        try {
            barewire::Device none(bus, barewire::settings(99, 1'000'000));
        } catch (const barewire::Error &error) {
            std::printf("%s: %s\n", error.name(), error.what());
        }
        return ran == 1 && rx[1] == 0xef ? 0 : 1;
    } catch (const barewire::Error &error) {
        std::fprintf(stderr, "%s: %s\n", error.name(), error.what());
        return 1;
    }
}
