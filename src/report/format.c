#include "report/format.h"

#include <math.h>

struct tl_text tl_format_time(double ns)
{
	static const struct {
		double ns;
		const char *name;
	} units[] = {{1e9, "s"}, {1e6, "ms"}, {1e3, "µs"}, {1, "ns"}};
	struct tl_text t;
	unsigned u = 0;
	double v;

	if (!(ns >= 0.5)) {
		snprintf(t.s, sizeof t.s, "0");
		return t;
	}
	/* What would be rounded up to 1000 of a unit is 1 of the next. */
	while (u < 3 && ns < units[u].ns * 0.9995)
		u++;
	v = ns / units[u].ns;
	if (u == 3)
		snprintf(t.s, sizeof t.s, "%.0f ns", v);
	else
		snprintf(t.s, sizeof t.s, "%.*f %s",
			 v < 9.995   ? 2
			 : v < 99.95 ? 1
				     : 0,
			 v, units[u].name);
	return t;
}

struct tl_text tl_format_calls(uint64_t calls, enum tl_how how)
{
	static const char *const before[] = {"", "≥ ", "~", ""};
	struct tl_text t;

	if (how == TL_HOW_SAMPLED)
		snprintf(t.s, sizeof t.s, "-");
	else
		snprintf(t.s, sizeof t.s, "%s%llu", before[how], (unsigned long long)calls);
	return t;
}

struct tl_text tl_format_self(double ns, enum tl_self self)
{
	struct tl_text t = tl_format_time(ns), upper;

	if (self != TL_SELF_UPPER)
		return t;
	snprintf(upper.s, sizeof upper.s, "≤ %.40s", t.s);
	return upper;
}

unsigned tl_format_width(const char *s)
{
	unsigned n = 0;

	for (; *s; s++)
		n += ((unsigned char)*s & 0xc0) != 0x80;
	return n;
}

void tl_format_right(FILE *out, const char *s, unsigned width)
{
	for (unsigned n = tl_format_width(s); n < width; n++)
		putc(' ', out);
	fputs(s, out);
}
