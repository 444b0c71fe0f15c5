/* Prints the size of each public struct and the place of each field: what a compiled program depends on. */
#include <barewire.h>
#include <stdio.h>

#define STRUCT(type) printf("%s %zu\n", #type, sizeof(type))
#define FIELD(type, field) printf("  %-24s%4zu%5zu\n", #field, offsetof(type, field), sizeof(((type *)0)->field))

int main(void)
{
    STRUCT(bw_failure);
    FIELD(bw_failure, size);
    FIELD(bw_failure, error);
    FIELD(bw_failure, os_errno);
    FIELD(bw_failure, reserved);
    FIELD(bw_failure, transfer_index);
    FIELD(bw_failure, actual_length);
    STRUCT(bw_statistics);
    FIELD(bw_statistics, size);
    FIELD(bw_statistics, reserved);
    FIELD(bw_statistics, messages);
    FIELD(bw_statistics, transfers);
    FIELD(bw_statistics, errors);
    FIELD(bw_statistics, timedout);
    FIELD(bw_statistics, spi_sync);
    FIELD(bw_statistics, spi_sync_immediate);
    FIELD(bw_statistics, spi_async);
    FIELD(bw_statistics, bytes);
    FIELD(bw_statistics, bytes_rx);
    FIELD(bw_statistics, bytes_tx);
    FIELD(bw_statistics, transfer_bytes_histo);
    FIELD(bw_statistics, transfers_split_maxsize);
    STRUCT(bw_simulated);
    FIELD(bw_simulated, size);
    FIELD(bw_simulated, reserved);
    FIELD(bw_simulated, virtual_ns);
    FIELD(bw_simulated, bits);
    FIELD(bw_simulated, register_reads);
    FIELD(bw_simulated, register_writes);
    FIELD(bw_simulated, violations);
    STRUCT(bw_settings);
    FIELD(bw_settings, size);
    FIELD(bw_settings, mode);
    FIELD(bw_settings, speed_hz);
    FIELD(bw_settings, chip_select);
    FIELD(bw_settings, bits_per_word);
    FIELD(bw_settings, priority);
    FIELD(bw_settings, reserved);
    FIELD(bw_settings, cs_setup_ns);
    FIELD(bw_settings, cs_hold_ns);
    FIELD(bw_settings, cs_inactive_ns);
    FIELD(bw_settings, word_delay_ns);
    FIELD(bw_settings, poll_limit_ns);
    STRUCT(bw_effective);
    FIELD(bw_effective, size);
    FIELD(bw_effective, speed_hz);
    FIELD(bw_effective, cs_setup_ns);
    FIELD(bw_effective, cs_hold_ns);
    FIELD(bw_effective, cs_inactive_ns);
    FIELD(bw_effective, word_delay_ns);
    FIELD(bw_effective, quantum_ns);
    FIELD(bw_effective, word_rest_clocks);
    FIELD(bw_effective, reserved);
    STRUCT(bw_limits);
    FIELD(bw_limits, size);
    FIELD(bw_limits, max_speed_hz);
    FIELD(bw_limits, min_speed_hz);
    FIELD(bw_limits, bits_per_word_mask);
    FIELD(bw_limits, timer_hz);
    FIELD(bw_limits, max_delay_ns);
    FIELD(bw_limits, max_message_bytes);
    STRUCT(bw_transfer);
    FIELD(bw_transfer, tx);
    FIELD(bw_transfer, rx);
    FIELD(bw_transfer, len);
    FIELD(bw_transfer, speed_hz);
    FIELD(bw_transfer, delay_ns);
    FIELD(bw_transfer, word_delay_ns);
    FIELD(bw_transfer, cs_change_delay_ns);
    FIELD(bw_transfer, bits_per_word);
    FIELD(bw_transfer, cs_change);
    FIELD(bw_transfer, reserved);
    printf("bw_error %zu\n", sizeof(bw_error));
    return 0;
}
