#include "event/header.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"

static const char *blanks(const char *s)
{
	while (isspace((unsigned char)*s))
		s++;
	return s;
}

/* `100', `-1.5e3', `1_000_000', `0x64'. NULL: no number. */
static const char *number(const char *s, double *v)
{
	char digits[64];
	size_t n = 0;
	char *end;

	for (; *s && strchr("+-.0123456789abcdefABCDEFxX_", *s) && n + 1 < sizeof digits; s++)
		if (*s != '_')
			digits[n++] = *s;
	digits[n] = 0;
	*v = strtod(digits, &end);
	return n && !*end && isfinite(*v) ? s : NULL;
}

static const char *quoted(const char *s, char **text)
{
	const char *end = strchr(s + 1, *s);

	if (!end)
		return NULL;
	*text = tl_strndup(s + 1, end - s - 1);
	return end + 1;
}

static void assign(struct tl_header *h, char **version, const char *name, size_t n, double v,
		   char **text)
{
	const struct {
		const char *name;
		double *to;
	} known[] = {
	    {"hz", &h->hz},
	    {"over_tests", &h->over_tests},
	    {"rrun_utime", &h->run[TL_USER]},
	    {"rrun_stime", &h->run[TL_SYS]},
	    {"rrun_rtime", &h->run[TL_WALL]},
	    {"over_utime", &h->over[TL_USER]},
	    {"over_stime", &h->over[TL_SYS]},
	    {"over_rtime", &h->over[TL_WALL]},
	};

	if (n == 10 && !memcmp(name, "XS_VERSION", n) && *text) {
		free(*version);
		h->xs_version = *version = *text;
		*text = NULL;
		return;
	}
	for (size_t i = 0; i < sizeof known / sizeof *known; i++)
		if (strlen(known[i].name) == n && !memcmp(known[i].name, name, n))
			*known[i].to = v;
}

void tl_header_line(struct tl_header *h, char **version, const char *line)
{
	const char *s = line;

	for (;;) {
		const char *name, *next;
		char *text = NULL;
		size_t n;
		double v = 0;

		while (*s == ';' || isspace((unsigned char)*s))
			s++;
		if (*s != '$')
			return;
		name = ++s;
		while (isalnum((unsigned char)*s) || *s == '_')
			s++;
		n = s - name;
		s = blanks(s);
		if (*s != '=')
			return;
		s = blanks(s + 1);
		next = *s == '\'' || *s == '"' ? quoted(s, &text) : number(s, &v);
		if (next && text)
			number(text, &v);
		if (next)
			next = blanks(next);
		if (next && (!*next || *next == ';'))
			assign(h, version, name, n, v, &text);
		free(text);
		if (!next || *next != ';')
			return;
		s = next;
	}
}

void tl_header_complete(struct tl_header *h)
{
	if (h->over_tests == 0)
		h->over_tests = 1;
	/* Fine enough that a fraction of a tick that is no ns cannot matter. */
	h->units_per_tick = 1;
	while (h->hz > 0 && h->hz * h->units_per_tick < 1e9 && h->units_per_tick < 1e9)
		h->units_per_tick *= 10;
	h->units_per_second = h->hz * h->units_per_tick;
}

/* Fractions and exponents: rare, so by the slow way. */
static int64_t ticks_real(const char *s, double units_per_tick, const char **end)
{
	char *stop;
	long double v;

	v = strtold(s, &stop) * (long double)units_per_tick;
	*end = stop;
	if (!(v < 0x1p63L))
		return INT64_MAX;
	return v <= -0x1p63L ? INT64_MIN : (int64_t)llrintl(v);
}

int64_t tl_ticks_parse(const char *s, double units_per_tick, const char **end)
{
	const char *p = s;
	bool minus = *p == '-';
	int64_t v = 0, scale = (int64_t)units_per_tick;
	const char *digits;

	if (*p == '-' || *p == '+')
		p++;
	for (digits = p; isdigit((unsigned char)*p); p++)
		if (__builtin_mul_overflow(v, 10, &v) || __builtin_add_overflow(v, *p - '0', &v))
			return ticks_real(s, units_per_tick, end);
	if (*p == '.' || ((*p == 'e' || *p == 'E') && p > digits))
		return ticks_real(s, units_per_tick, end);
	*end = p;
	if (__builtin_mul_overflow(v, scale, &v))
		v = INT64_MAX;
	return minus ? -v : v;
}
