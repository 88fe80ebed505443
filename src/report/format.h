/* report/format.h - numbers as a person reads them, and columns of them. */
#ifndef TL_REPORT_FORMAT_H
#define TL_REPORT_FORMAT_H

#include <stdint.h>
#include <stdio.h>

#include "trapline/marks.h"

struct tl_text {
	char s[48];
};

/* Three digits and a unit: `812 ns', `12.3 µs', `4.56 s', `0'. */
struct tl_text tl_format_time(double ns);
/* `N', `≥ N', `~N', and `-' when calls are not known. */
struct tl_text tl_format_calls(uint64_t calls, enum tl_how how);
/* A time under its uncertainty: `≤ T'. */
struct tl_text tl_format_self(double ns, enum tl_self self);

/* How many columns S takes: UTF-8 without wide or combining characters. */
unsigned tl_format_width(const char *s);
/* S, with blanks before it up to WIDTH columns. */
void tl_format_right(FILE *out, const char *s, unsigned width);

#endif
