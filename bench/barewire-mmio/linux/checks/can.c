// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * can0 by mcp251xfd: frames to the far node, which sends each back with its identifier's lowest bit flipped.
 *
 * Every frame that comes back is compared with the next one sent: none may be lost, doubled or out of order.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/can.h>
#include <linux/can/error.h>
#include <linux/can/netlink.h>
#include <linux/can/raw.h>
#include <linux/if_link.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "checks.h"

/* Frames on their way: less than the sockets' buffers hold. */
#define WINDOW 24

/* The first frames of an echo, whose accesses are counted: as many in a short run as in a long one. */
#define COUNTED 500

static char why[256];
/* The sum over the last echo's frames, which the far node has too. */
static uint64_t echoed;

struct netlink_request {
	struct nlmsghdr head;
	struct ifinfomsg info;
	char room[512];
};

static struct rtattr *append(struct netlink_request *request, int type, const void *data, size_t size)
{
	struct rtattr *attribute =
		(struct rtattr *)((char *)request + NLMSG_ALIGN(request->head.nlmsg_len));

	attribute->rta_type = type;
	attribute->rta_len = RTA_LENGTH(size);
	if (size)
		memcpy(RTA_DATA(attribute), data, size);
	request->head.nlmsg_len = NLMSG_ALIGN(request->head.nlmsg_len) + RTA_ALIGN(attribute->rta_len);
	return attribute;
}

static void end(struct netlink_request *request, struct rtattr *nest)
{
	nest->rta_len = (char *)request + request->head.nlmsg_len - (char *)nest;
}

/*
 * Sets can0's rates and takes it up, as `ip link set can0 up type can bitrate … dbitrate … fd on
 * restart-ms 100` does.
 */
static bool take_up(int index, unsigned int rate, unsigned int data_rate)
{
	struct netlink_request request = {
		.head = {
			.nlmsg_len = NLMSG_LENGTH(sizeof(struct ifinfomsg)),
			.nlmsg_type = RTM_NEWLINK,
			.nlmsg_flags = NLM_F_REQUEST | NLM_F_ACK,
		},
		.info = { .ifi_family = AF_UNSPEC, .ifi_index = index, .ifi_change = IFF_UP, .ifi_flags = IFF_UP },
	};
	struct can_bittiming nominal = { .bitrate = rate }, data = { .bitrate = data_rate };
	struct can_ctrlmode mode = { .mask = CAN_CTRLMODE_FD, .flags = CAN_CTRLMODE_FD };
	struct {
		struct nlmsghdr head;
		struct nlmsgerr error;
		char room[512];
	} answer;
	struct rtattr *info, *can;
	uint32_t restart_ms = 100;
	int netlink = socket(AF_NETLINK, SOCK_RAW, NETLINK_ROUTE);

	info = append(&request, IFLA_LINKINFO, NULL, 0);
	append(&request, IFLA_INFO_KIND, "can", 3);
	can = append(&request, IFLA_INFO_DATA, NULL, 0);
	append(&request, IFLA_CAN_BITTIMING, &nominal, sizeof(nominal));
	append(&request, IFLA_CAN_DATA_BITTIMING, &data, sizeof(data));
	append(&request, IFLA_CAN_CTRLMODE, &mode, sizeof(mode));
	append(&request, IFLA_CAN_RESTART_MS, &restart_ms, sizeof(restart_ms));
	end(&request, can);
	end(&request, info);
	if (send(netlink, &request, request.head.nlmsg_len, 0) < 0 ||
	    recv(netlink, &answer, sizeof(answer), 0) < 0) {
		snprintf(why, sizeof(why), "netlink: %s", strerror(errno));
		return false;
	}
	close(netlink);
	snprintf(why, sizeof(why), "ip link set up: %s", strerror(-answer.error.error));
	return answer.head.nlmsg_type == NLMSG_ERROR && answer.error.error == 0;
}

/* Frame n: the same on every run. Identifiers are even, so that the far node's are odd. */
static size_t make(uint32_t n, struct canfd_frame *frame)
{
	static const uint8_t lengths[] = { 0, 1, 2, 3, 4, 5, 6, 7, 8, 12, 16, 20, 24, 32, 48, 64 };
	uint32_t mixed = (n + 1) * 2654435761u;
	bool fd = mixed >> 28 & 1;
	size_t index;

	memset(frame, 0, sizeof(*frame));
	frame->can_id = mixed >> 27 & 1 ? ((mixed & CAN_EFF_MASK & ~1u) | CAN_EFF_FLAG) :
					  (mixed & CAN_SFF_MASK & ~1u);
	frame->len = fd ? lengths[n % 16] : n % 9;
	if (fd && mixed >> 29 & 1)
		frame->flags = CANFD_BRS;
	for (index = 0; index < frame->len; index++)
		frame->data[index] = (mixed >> index % 24) + index * 41;
	return fd ? CANFD_MTU : CAN_MTU;
}

/* FNV-1a over identifiers and data, as the far node's. */
static uint64_t summed(uint64_t sum, const struct canfd_frame *frame)
{
	uint32_t id = frame->can_id & CAN_EFF_MASK;
	size_t index;

	for (index = 0; index < 4 + (size_t)frame->len; index++) {
		uint8_t byte = index < 4 ? id >> 8 * index : frame->data[index - 4];

		sum = (sum ^ byte) * 0x100000001b3ULL;
	}
	return sum;
}

static bool same(const struct canfd_frame *sent, const struct canfd_frame *heard)
{
	/* ESI is the far node's own. */
	return heard->can_id == (sent->can_id ^ 1) && heard->len == sent->len &&
	       (heard->flags & CANFD_BRS) == (sent->flags & CANFD_BRS) &&
	       memcmp(heard->data, sent->data, sent->len) == 0;
}

/* With suffered, error frames are counted there; without, the first one is a failure. */
static bool echo(int can, uint32_t count, unsigned int *suffered)
{
	uint32_t out = 0, in = 0;
	uint64_t sum = 0;
	unsigned long reads = counted("reads"), writes = counted("writes");

	while (in < count) {
		struct pollfd ready = { .fd = can, .events = POLLIN };
		struct canfd_frame frame, expected;
		size_t size, got;

		while (out < count && out - in < WINDOW) {
			size = make(out, &frame);
			if (write(can, &frame, size) != (ssize_t)size) {
				if (errno == ENOBUFS)
					break;
				snprintf(why, sizeof(why), "frame %u: %s", out, strerror(errno));
				return false;
			}
			out++;
		}
		bool full = out == count || out - in == WINDOW;

		if (poll(&ready, 1, full ? 2000 : 1) != 1) {
			if (!full)
				continue;
			snprintf(why, sizeof(why), "%u sent, %u came back, then none", out, in);
			return false;
		}
		got = read(can, &frame, sizeof(frame));
		if (frame.can_id & CAN_ERR_FLAG && suffered) {
			++*suffered;
			continue;
		}
		if (frame.can_id & CAN_ERR_FLAG) {
			snprintf(why, sizeof(why), "error frame %#x %02x %02x %02x at %u", frame.can_id,
				 frame.data[0], frame.data[1], frame.data[2], in);
			return false;
		}
		size = make(in, &expected);
		if (got != size || !same(&expected, &frame)) {
			snprintf(why, sizeof(why), "frame %u came back as %#x, %u bytes; sent %#x, %u bytes",
				 in, frame.can_id, frame.len, expected.can_id, expected.len);
			return false;
		}
		sum = summed(sum, &frame);
		if (++in == COUNTED)
			frame_accesses((double)(counted("reads") - reads) / COUNTED,
				       (double)(counted("writes") - writes) / COUNTED);
	}
	echoed = sum;
	return true;
}

static void tell_sum(unsigned long count)
{
	note("can-sum %016llx after %lu frames", (unsigned long long)echoed, count);
}

static unsigned long statistic(const char *name)
{
	char path[128], text[32];
	unsigned long value = 0;

	snprintf(path, sizeof(path), "/sys/class/net/can0/statistics/%s", name);
	sscanf(content(path, text, sizeof(text)), "%lu", &value);
	return value;
}

/* Takes can0 up and opens a socket on it, which hears errors also; or -1, and the check has failed. */
static int opened(void)
{
	struct sockaddr_can address = { .can_family = AF_CAN };
	int on = 1, size = 1 << 20, can;
	can_err_mask_t errors = CAN_ERR_MASK;
	char path[64];

	if (!find("/sys/class/net/can0", path, sizeof(path), 5)) {
		failed("can", "no can0 appeared");
		return -1;
	}
	address.can_ifindex = if_nametoindex("can0");
	if (!take_up(address.can_ifindex, option("rate", 500000), option("data_rate", 2000000))) {
		failed("can-up", "%s", why);
		return -1;
	}
	passed("can-up");
	can = socket(AF_CAN, SOCK_RAW, CAN_RAW);
	setsockopt(can, SOL_CAN_RAW, CAN_RAW_FD_FRAMES, &on, sizeof(on));
	setsockopt(can, SOL_CAN_RAW, CAN_RAW_ERR_FILTER, &errors, sizeof(errors));
	setsockopt(can, SOL_SOCKET, SO_RCVBUF, &size, sizeof(size));
	if (bind(can, (struct sockaddr *)&address, sizeof(address)) < 0) {
		failed("can-up", "bind: %s", strerror(errno));
		return -1;
	}
	return can;
}

void check_can(void)
{
	unsigned long count = option("frames", 1000);
	int can = opened();

	if (can < 0)
		return;
	judge("can-echo", echo(can, count, NULL), why);
	tell_sum(count);
	snprintf(why, sizeof(why), "rx %lu, tx %lu of %lu; errors %lu and %lu, dropped %lu, overflows %lu",
		 statistic("rx_packets"), statistic("tx_packets"), count, statistic("rx_errors"),
		 statistic("tx_errors"), statistic("rx_dropped"), statistic("rx_over_errors"));
	/* 6.1 counts a sent frame's echo in the kernel among the received. */
	judge("can-counts",
	      statistic("rx_packets") >= count && statistic("tx_packets") == count &&
		      !statistic("rx_errors") && !statistic("tx_errors") && !statistic("rx_dropped"),
	      why);
	close(can);
}

/* Whatever goes wrong on the bus or on the way from the chip: every frame comes back, once and in order. */
void check_can_errors(void)
{
	unsigned long count = option("frames", 1000);
	unsigned int suffered = 0;
	int can = opened();

	if (can < 0)
		return;
	judge("can-errors-echo", echo(can, count, &suffered), why);
	tell_sum(count);
	note("can: %u error frames; receive errors %lu, transmit errors %lu", suffered, statistic("rx_errors"),
	     statistic("tx_errors"));
	close(can);
}

/* Reads frames until none comes for so long. Counts those that have all flags of the error, with data[1] & detail. */
static unsigned int drain(int can, int quiet_ms, canid_t error, uint8_t detail, unsigned int *frames)
{
	struct pollfd ready = { .fd = can, .events = POLLIN };
	struct canfd_frame frame;
	unsigned int found = 0;

	while (poll(&ready, 1, quiet_ms) == 1 && read(can, &frame, sizeof(frame)) > 0) {
		if (!(frame.can_id & CAN_ERR_FLAG))
			++*frames;
		else if ((frame.can_id & error) == error && (!detail || frame.data[1] & detail))
			found++;
	}
	return found;
}

/* A frame is destroyed again and again: off, and on again by itself, as restart-ms says. */
void check_can_off(void)
{
	struct canfd_frame frame = { .can_id = 0x100, .len = 8 };
	unsigned int turn, off = 0, restarted = 0, frames = 0;
	int can = opened();

	if (can < 0)
		return;
	for (turn = 0; turn < 2000 && !off; turn++) {
		(void)!write(can, &frame, CAN_MTU);
		off = drain(can, 5, CAN_ERR_BUSOFF, 0, &frames);
	}
	snprintf(why, sizeof(why), "%u frames came back, and no frame says that it is off", frames);
	judge("can-off", off == 1 && frames > 0, why);
	restarted = drain(can, 500, CAN_ERR_RESTARTED, 0, &frames);
	snprintf(why, sizeof(why), "%u frames say that it was restarted", restarted);
	judge("can-restarted", restarted == 1, why);
	judge("can-off-echo", echo(can, 200, NULL), why);
	close(can);
}

/* More frames than the chip's FIFO holds while its SPI is slow: the loss is reported, and the rest goes on. */
void check_can_flood(void)
{
	struct canfd_frame frame = { .can_id = 0x100, .len = 8 };
	unsigned int overflows, frames = 0;
	int can = opened();

	if (can < 0)
		return;
	(void)!write(can, &frame, CAN_MTU);
	overflows = drain(can, 500, CAN_ERR_CRTL, CAN_ERR_CRTL_RX_OVERFLOW, &frames);
	snprintf(why, sizeof(why), "%u frames came, %u said that some were lost, %lu were counted", frames, overflows,
		 statistic("rx_over_errors"));
	judge("can-overflow", overflows > 0 && statistic("rx_over_errors") > 0 && frames < 201, why);
	note("can: %u of 201 frames came, %lu overflows", frames, statistic("rx_over_errors"));
	judge("can-flood-echo", echo(can, 200, NULL), why);
	close(can);
}

/* A program of can-utils', its output in a file. */
static pid_t started(const char *output, char *const arguments[])
{
	pid_t child = fork();

	if (child == 0) {
		int file = open(output, O_WRONLY | O_CREAT | O_TRUNC, 0644);

		dup2(file, 1);
		dup2(file, 2);
		execv(arguments[0], arguments);
		_exit(127);
	}
	return child;
}

static int ended(pid_t child)
{
	int status = 0;

	waitpid(child, &status, 0);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

/* A line of candump's log: "(0.1) can0 123#0102", or "123##1" and the data of CAN FD, or "123#R". */
static bool logged(const char *line, struct canfd_frame *frame)
{
	const char *data = strchr(line, '#');
	unsigned int byte;
	int id;

	memset(frame, 0, sizeof(*frame));
	if (!data || sscanf(line, "(%*[0-9.]) can0 %x", &id) != 1)
		return false;
	frame->can_id = id;
	data += data[1] == '#' ? 3 : 1;
	while (*data != 'R' && sscanf(data, "%2x", &byte) == 1) {
		frame->data[frame->len++] = byte;
		data += 2;
	}
	return true;
}

/* cangen's frames, of every kind, are what candump hears from the far node. */
void check_can_utils(void)
{
	char count[16], line[512], text[256];
	char *dump[] = { "/bin/candump", "-L", "-T", "5000", "can0", NULL };
	char *generate[] = { "/bin/cangen", "can0", "-x", "-m", "-g", "1", "-p", "100", "-n", count, NULL };
	unsigned long frames = option("frames", 1000), heard = 0;
	int can = opened();
	bool right;
	pid_t dumper;
	FILE *log;

	if (can < 0)
		return;
	close(can);
	snprintf(count, sizeof(count), "%lu", frames);
	dumper = started("/log", dump);
	/* It listens as soon as it runs. */
	usleep(100000);
	/* What they said is read when they have ended. */
	right = ended(started("/generated", generate)) == 0;
	judge("cangen", right, content("/generated", text, sizeof(text)));
	right = ended(dumper) == 0;
	judge("candump", right, content("/log", text, sizeof(text)));
	echoed = 0;
	log = fopen("/log", "r");
	while (log && fgets(line, sizeof(line), log)) {
		struct canfd_frame frame;

		if (logged(line, &frame)) {
			echoed = summed(echoed, &frame);
			heard++;
		}
	}
	snprintf(why, sizeof(why), "candump's log has %lu frames of %lu", heard, frames);
	judge("can-log", heard == frames, why);
	tell_sum(heard);
}
