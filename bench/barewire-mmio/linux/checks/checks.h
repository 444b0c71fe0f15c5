/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* What the guest's checks share. Every line that xtask reads is written here. */
#ifndef CHECKS_H
#define CHECKS_H

#include <stdbool.h>
#include <stddef.h>

/* Lines of the protocol, see xtask's linux_on_sim/protocol.rs. */
void passed(const char *name);
__attribute__((format(printf, 2, 3))) void failed(const char *name, const char *why, ...);
__attribute__((format(printf, 2, 3))) void skipped(const char *name, const char *why, ...);
/* passed if right, else failed for that reason. */
void judge(const char *name, bool right, const char *why);
/* "ACCESSES bytes reads writes": what one message of that many bytes costs at the controller. */
void accesses(size_t bytes, double reads, double writes);
/* "FRAME reads writes": what a frame there and back costs at the controller. */
void frame_accesses(double reads, double writes);
/* "TRACED from to": which accesses of the controller, as the kernel counts them, belong to one message. */
void traced(unsigned long from, unsigned long to);
/* A figure for people. */
__attribute__((format(printf, 1, 2))) void note(const char *format, ...);

/* The content of a small file without its line's end; an empty text if it cannot be read. */
const char *content(const char *path, char *text, size_t size);
/* The first path that matches, waiting up to seconds for it; false if there is none. */
bool find(const char *pattern, char *path, size_t size, int seconds);
/* The kernel's count of a controller's accesses: "reads" or "writes". */
unsigned long counted(const char *which);
/* Numbers that are the same on every run. */
unsigned int random_number(void);
/* A number of the kernel's command line, name=number; otherwise the default. */
unsigned long option(const char *name, unsigned long otherwise);

/* Binds this project's module in place of Linux's driver of the controller; false, and a check has failed. */
bool take_module(void);
/* And gives the controller back to Linux's driver. */
void leave_module(void);

void check_loopback(void);
void check_spidev(void);
void check_mute(void);
void check_nor(void);
void check_can(void);
void check_can_errors(void);
void check_can_off(void);
void check_can_flood(void);
void check_can_utils(void);
void check_adc(void);
void check_touch(void);

#endif
