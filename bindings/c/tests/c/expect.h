/* What the tests' programs share. */
#include <barewire.h>
#include <stdio.h>
#include <unistd.h>

/* Ends the program, without what exit() would do in a child, if a call does not return that code. */
#define EXPECT(call, code)                                                                                             \
    do {                                                                                                               \
        bw_error got_ = (call);                                                                                        \
        if (got_ != (code)) {                                                                                          \
            fprintf(stderr, "%d: %s: %s, not %s: %s\n", __LINE__, #call, bw_error_name(got_), #code, bw_last_error()); \
            _exit(1);                                                                                                  \
        }                                                                                                              \
    } while (0)
