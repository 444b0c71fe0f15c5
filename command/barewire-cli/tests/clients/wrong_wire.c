/* Copies, passes and closes an open node in each way that a preloaded library does not hear of, or hears of in another
 * process. Then it writes text to files and marks to the node; the test judges by what came out where. The node takes
 * one byte for each mark. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/spi/spidev.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static const char *path;
static int node;

/* What each line says goes to standard output by `write`, as that of many programs does. */
static void say(const char *text, long value) {
    char line[100];
    int bytes = snprintf(line, sizeof line, "%s: %ld\n", text, value);
    if (write(1, line, bytes) != bytes)
        _exit(2);
}

static void mark(int fd, uint8_t byte) {
    if (write(fd, &byte, 1) != 1)
        say("a mark failed", byte);
}

static void wait_for(pid_t child) {
    int status;
    if (waitpid(child, &status, 0) != child || status != 0)
        say("a child failed", status);
}

/* A pipe, one end of which has this number, carries text that the chip must not see. */
static void through_pipe(const char *what, int number) {
    int ends[2];
    char got[32];
    if (pipe(ends) != 0)
        _exit(3);
    if (ends[0] != number && ends[1] != number)
        say("the number is not taken", number);
    ssize_t sent = write(ends[1], what, strlen(what));
    ssize_t came = read(ends[0], got, sizeof got);
    if (sent != (ssize_t)strlen(what) || came != sent || memcmp(got, what, came) != 0)
        say(what, -1);
    close(ends[0]);
    close(ends[1]);
}

static void by_vfork(void) {
    pid_t child = vfork();
    if (child == 0) {
        dup2(node, 0);
        dup2(node, 1);
        execl("/bin/true", "true", (char *)NULL);
        _exit(1);
    }
    wait_for(child);
    char line[16] = "";
    say("after vfork, standard input", read(0, line, 6));
    if (strcmp(line, "input\n") != 0)
        say("standard input is another's", line[0]);
    child = vfork();
    if (child == 0) {
        close(node);
        _exit(0);
    }
    wait_for(child);
    mark(node, 0xa1);
    uint8_t mode = 9;
    say("the node in its parent", ioctl(node, SPI_IOC_RD_MODE, &mode) + mode);
}

static int shares(void *unused) {
    (void)unused;
    dup2(node, 1);
    mark(1, 0xa2);
    return 0;
}

static void by_clone_that_shares(void) {
    static char stack[64 << 10] __attribute__((aligned(64)));
    int flags = CLONE_VM | CLONE_VFORK | SIGCHLD;
    wait_for(clone(shares, stack + sizeof stack, flags, NULL));
    say("after clone", 0);
}

static void in_child(const char *what, pid_t child, uint8_t byte) {
    if (child == 0) {
        int copy = dup(node);
        int number = node;
        close(node);
        through_pipe(what, number);
        mark(copy, byte);
        _exit(0);
    }
    wait_for(child);
    say(what, 0);
}

static void closed_raw(void) {
    int ends[2];
    char got[8] = "";
    int fd = open(path, O_RDWR);
    syscall(SYS_close, fd);
    through_pipe("closed raw", fd);
    fd = open(path, O_RDWR);
    if (pipe(ends) != 0)
        _exit(3);
    syscall(SYS_dup3, ends[1], fd, 0);
    say("copied raw", write(fd, "text", 4));
    say("came", read(ends[0], got, sizeof got));
    struct spi_ioc_transfer one;
    memset(&one, 0, sizeof one);
    one.tx_buf = (uintptr_t)got;
    one.len = 4;
    int result = ioctl(fd, SPI_IOC_MESSAGE(1), &one);
    say("a message to a pipe", result < 0 ? errno : 0);
    close(fd);
}

static int pass_on(int raw) {
    int ends[2];
    char byte = 0;
    char room[CMSG_SPACE(sizeof(int))] = {0};
    struct iovec piece = {&byte, 1};
    struct msghdr message = {0};
    message.msg_iov = &piece;
    message.msg_iovlen = 1;
    message.msg_control = room;
    message.msg_controllen = sizeof room;
    struct cmsghdr *head = CMSG_FIRSTHDR(&message);
    head->cmsg_level = SOL_SOCKET;
    head->cmsg_type = SCM_RIGHTS;
    head->cmsg_len = CMSG_LEN(sizeof(int));
    memcpy(CMSG_DATA(head), &node, sizeof(int));
    if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends) != 0 || sendmsg(ends[0], &message, 0) != 1)
        _exit(4);
    memset(room, 0, sizeof room);
    long got = raw ? syscall(SYS_recvmsg, ends[1], &message, 0) : recvmsg(ends[1], &message, 0);
    if (got != 1)
        _exit(5);
    int fd;
    memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof fd);
    close(ends[0]);
    close(ends[1]);
    return fd;
}

static void passed_on(void) {
    static char many[70000];
    int fd = pass_on(0);
    mark(fd, 0xa7);
    say("too much", write(fd, many, sizeof many) < 0 ? errno : 0);
    char got[2];
    say("read", read(fd, got, 2));
    close(fd);
    fd = pass_on(1);
    mark(fd, 0xa8);
    say("too much, around the library", write(fd, many, sizeof many));
    close(fd);
}

int main(int count, char **arguments) {
    if (count < 2)
        return 1;
    path = arguments[1];
    node = open(path, O_RDWR);
    if (node < 0)
        return 1;
    say("opened", node);
    by_vfork();
    by_clone_that_shares();
    in_child("fork", fork(), 0xa3);
    in_child("_Fork", _Fork(), 0xa4);
    in_child("clone by system call", syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0), 0xa5);
    mark(node, 0xa6);
    closed_raw();
    passed_on();
    mark(node, 0xa9);
    say("done", 0);
    return 0;
}
