// SPDX-License-Identifier: GPL-2.0 OR MIT OR Apache-2.0
/* A driver of no chip, for guests alone: what the SPI core costs a client inside the kernel.
 *
 * Bound to a device (driver_override), it has one file in sysfs. A line written there is carried out before the write
 * returns, four bytes a transfer:
 *   sync N     spi_sync of N transfers
 *   async N    spi_async of N transfers, whose end is awaited: through the queue and the pump's thread
 * guests/spisteps.c writes it, and guests/steps.c counts what runs.
 */
#include <linux/completion.h>
#include <linux/module.h>
#include <linux/spi/spi.h>
#include <linux/sysfs.h>

enum { TRANSFERS_MAX = 16, BYTES = 4 };

struct client {
	struct spi_message message;
	struct spi_transfer transfer[TRANSFERS_MAX];
	struct completion done;
	/* Of its own cache lines, should the driver use DMA. */
	u8 sent[BYTES] ____cacheline_aligned;
	u8 received[TRANSFERS_MAX * BYTES] ____cacheline_aligned;
};

static void ended(void *of)
{
	complete(of);
}

static ssize_t exchange_store(struct device *dev, struct device_attribute *attribute, const char *text, size_t length)
{
	struct spi_device *spi = to_spi_device(dev);
	struct client *client = spi_get_drvdata(spi);
	char way[8];
	unsigned int transfers, i;
	int error;

	if (sscanf(text, "%7s %u", way, &transfers) != 2 || !transfers || transfers > TRANSFERS_MAX)
		return -EINVAL;
	spi_message_init(&client->message);
	for (i = 0; i < transfers; i++) {
		client->transfer[i] = (struct spi_transfer) {
			.tx_buf = client->sent,
			.rx_buf = client->received + i * BYTES,
			.len = BYTES,
			.speed_hz = 20000000,
		};
		spi_message_add_tail(&client->transfer[i], &client->message);
	}
	if (!strcmp(way, "sync")) {
		error = spi_sync(spi, &client->message);
	} else if (!strcmp(way, "async")) {
		reinit_completion(&client->done);
		client->message.complete = ended;
		client->message.context = &client->done;
		error = spi_async(spi, &client->message);
		if (!error)
			wait_for_completion(&client->done);
	} else {
		error = -EINVAL;
	}
	return error ? error : length;
}
static DEVICE_ATTR_WO(exchange);

static int bind(struct spi_device *spi)
{
	struct client *client = devm_kzalloc(&spi->dev, sizeof(*client), GFP_KERNEL);

	if (!client)
		return -ENOMEM;
	/* The JEDEC id, which changes nothing in a flash. */
	client->sent[0] = 0x9f;
	init_completion(&client->done);
	spi_set_drvdata(spi, client);
	return device_create_file(&spi->dev, &dev_attr_exchange);
}

static void unbind(struct spi_device *spi)
{
	device_remove_file(&spi->dev, &dev_attr_exchange);
}

static struct spi_driver steps_driver = {
	.driver = { .name = "steps_spi" },
	.probe = bind,
	.remove = unbind,
};
module_spi_driver(steps_driver);

MODULE_DESCRIPTION("SPI messages of a client inside the kernel, to be counted");
MODULE_LICENSE("Dual MIT/GPL");
