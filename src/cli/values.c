#include <config.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cli/record_options.h"

struct unit {
	const char *name;
	double factor;
};

static const struct unit times[] = {
    {"", 1e9},	 {"s", 1e9},  {"ms", 1e6},   {"us", 1e3},
    {"ns", 1.0}, {"m", 60e9}, {"min", 60e9}, {"h", 3600e9},
};

#define KIB 1024.0
static const struct unit sizes[] = {
    {"", 1.0},	     {"B", 1.0},	   {"K", KIB},
    {"M", KIB *KIB}, {"G", KIB *KIB *KIB}, {"T", KIB *KIB *KIB *KIB},
};

/* A decimal number: no sign, no exponent, no inf, nothing of the locale. */
static bool number(const char *text, double *value, const char **rest)
{
	size_t n = strspn(text, "0123456789.");
	char *copy, *end;
	bool good;

	if (!n)
		return false;
	copy = tl_strndup(text, n);
	*value = strtod(copy, &end);
	good = end != copy && !*end;
	free(copy);
	*rest = text + n;
	return good;
}

static const struct unit *find(const struct unit *units, size_t n, const char *name, size_t len)
{
	for (size_t i = 0; i < n; i++)
		if (strlen(units[i].name) == len && !strncasecmp(units[i].name, name, len))
			return &units[i];
	return NULL;
}

int tl_value_time(const char *option, const char *text, uint64_t *ns)
{
	const struct unit *u = NULL;
	const char *rest;
	double v;

	if (number(text, &v, &rest))
		u = find(times, sizeof times / sizeof *times, rest, strlen(rest));
	if (!u)
		return tl_fail(-EINVAL,
			       "%s %s: not a time; write seconds, or a unit as in 500ms, 1m",
			       option, text);
	/* 100 years: what fits in 64 bits of ns with room to add two of them. */
	if (v * u->factor > 100.0 * 366 * 86400 * 1e9)
		return tl_fail(-ERANGE, "%s %s: too long; leave it out for no limit", option, text);
	*ns = (uint64_t)(v * u->factor + 0.5);
	return TL_OK;
}

int tl_value_size(const char *option, const char *text, uint64_t *bytes)
{
	const struct unit *u = NULL;
	const char *rest;
	size_t n;
	double v;

	if (number(text, &v, &rest)) {
		n = strlen(rest);
		if (n == 3 && !strcasecmp(rest + 1, "iB"))
			n = 1;
		else if (n == 2 && !strcasecmp(rest + 1, "B"))
			n = 1;
		u = find(sizes, sizeof sizes / sizeof *sizes, rest, n);
	}
	if (!u)
		return tl_fail(-EINVAL, "%s %s: not a size; write bytes, or a unit as in 10M, 1G",
			       option, text);
	if (v * u->factor < 1 || v * u->factor > 0x1p62)
		return tl_fail(-ERANGE, "%s %s: out of range; leave it out for no limit", option,
			       text);
	*bytes = (uint64_t)(v * u->factor);
	return TL_OK;
}

int tl_value_count(const char *option, const char *text, unsigned *n)
{
	unsigned long v;
	char *end;

	errno = 0;
	v = strtoul(text, &end, 10);
	if (*text < '0' || *text > '9' || *end || errno || !v || v > 1000000000)
		return tl_fail(-EINVAL, "%s %s: not a whole number above 0", option, text);
	*n = v;
	return TL_OK;
}
