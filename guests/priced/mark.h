/* SPDX-License-Identifier: GPL-2.0 OR MIT OR Apache-2.0 */
/* The marks of guests/priced.c, for programs and for modules of the kernel, on aarch64 alone. */
#ifndef MARK_H
#define MARK_H

/* How often an operation runs before it is counted, how often in a loop, and how often after idling: for longer than the 4 s
 * after which either driver has put the block to sleep (the module looks every 2 s whether a message came). */
enum { WARM_UP = 40, WARM = 10, COLD = 4, IDLE_MS = 5000 };

/* An operation begins: orr x23,x23,x23. */
#define BEGIN(label) do { \
	register const char *label_ asm("x0") = (label); \
	asm volatile(".inst 0xaa1702f7" :: "r"(label_) : "memory"); \
} while (0)
/* It ends: orr x24,x24,x24. */
#define END() asm volatile(".inst 0xaa180318" ::: "memory")

/* NAME and its label's end, in a buffer that has room: "NAME BYTES warm". */
#define PRICE(name, bytes, idle, operation) do { \
	char text_[64]; \
	int i_; \
	for (i_ = 0; i_ < WARM_UP; i_++) { \
		BEGIN("-"); \
		operation; \
		END(); \
	} \
	snprintf(text_, sizeof(text_), "%s %d warm", name, (int)(bytes)); \
	for (i_ = 0; i_ < WARM; i_++) { \
		BEGIN(text_); \
		operation; \
		END(); \
	} \
	snprintf(text_, sizeof(text_), "%s %d cold", name, (int)(bytes)); \
	for (i_ = 0; i_ < COLD; i_++) { \
		idle; \
		BEGIN(text_); \
		operation; \
		END(); \
	} \
} while (0)

#endif
