#include <config.h>

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/log.h"
#include "base/strbuf.h"
#include "cli/commands.h"

void tl_say(const char *fmt, ...)
{
	struct tl_strbuf b = {0};
	char text[4096];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof text, fmt, ap);
	va_end(ap);
	tl_strbuf_printf(&b, "trapline: %s\n", text);
	/* One write: the target's own lines on the same terminal must not get into it. */
	fflush(stdout);
	fputs(tl_strbuf_text(&b), stderr);
	tl_strbuf_fini(&b);
}

static void sink(enum tl_log_level level, const char *text)
{
	tl_say("%s%s", level == TL_LOG_WARNING ? "warning: " : "", text);
}

void tl_say_log(bool quiet, unsigned verbose)
{
	if (quiet)
		tl_log_set_sink(NULL, TL_LOG_WARNING);
	else
		tl_log_set_sink(sink, verbose > 1 ? TL_LOG_DEBUG
				      : verbose	  ? TL_LOG_NOTE
						  : TL_LOG_WARNING);
}

enum { WORD_MAX = 40 };

static unsigned min(unsigned a, unsigned b)
{
	return a < b ? a : b;
}

/* Edits that make B of A, two letters swapped being one; WORD_MAX when either is too long. */
static unsigned distance(const char *a, const char *b)
{
	unsigned d[WORD_MAX + 1][WORD_MAX + 1];
	size_t n = strlen(a), m = strlen(b);

	if (n > WORD_MAX || m > WORD_MAX)
		return WORD_MAX;
	for (size_t i = 0; i <= n; i++)
		for (size_t j = 0; j <= m; j++) {
			if (!i || !j) {
				d[i][j] = i + j;
				continue;
			}
			d[i][j] = min(d[i - 1][j - 1] + (a[i - 1] != b[j - 1]),
				      min(d[i - 1][j], d[i][j - 1]) + 1);
			if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
				d[i][j] = min(d[i][j], d[i - 2][j - 2] + 1);
		}
	return d[n][m];
}

const char *tl_nearest(const char *word, const char *const *candidates)
{
	const char *best = NULL;
	size_t n = strlen(word);
	unsigned least = n <= 3 ? 2 : n <= 6 ? 3 : 4; /* one more than is near */

	for (; *candidates; candidates++) {
		unsigned d = distance(word, *candidates);

		if (d < least) {
			least = d;
			best = *candidates;
		}
	}
	return best;
}

static const struct option *find_val(const struct option *longs, int val)
{
	for (; longs->name; longs++)
		if (longs->val == val)
			return longs;
	return NULL;
}

/* The long option that WORD (without dashes, perhaps with `=VALUE') may have meant. */
static const char *nearest_long(const char *word, const struct option *longs)
{
	const char *names[64], *best;
	size_t n = 0;
	char *plain = tl_strndup(word, strcspn(word, "="));

	for (; longs->name && n < 63; longs++)
		names[n++] = longs->name;
	names[n] = NULL;
	best = tl_nearest(plain, names);
	free(plain);
	return best;
}

static void say_unknown_long(const char *command, const char *word, const struct option *longs)
{
	const char *near = nearest_long(word, longs);
	size_t n = strcspn(word, "=");
	struct tl_strbuf b = {0};

	for (const struct option *o = longs; o->name; o++)
		if (!strncmp(o->name, word, n))
			tl_strbuf_printf(&b, "%s--%s", b.n ? ", " : "", o->name);
	if (b.n)
		tl_say("option --%.*s may mean %s; write it out", (int)n, word, tl_strbuf_text(&b));
	else if (near)
		tl_say("unknown option --%.*s; did you mean --%s? (`%s --help' lists them)", (int)n,
		       word, near, command);
	else
		tl_say("unknown option --%.*s; `%s --help' lists them", (int)n, word, command);
	tl_strbuf_fini(&b);
}

void tl_say_bad_option(const char *command, int got, char *const *argv, const struct option *longs)
{
	const struct option *known = optopt ? find_val(longs, optopt) : NULL;
	/* In the middle of `-abc' optind still is at that word, at its end behind it. */
	const char *word = argv[optind - 1];
	const char *near = NULL;

	if (optopt && argv[optind] && argv[optind][0] == '-' && argv[optind][1] == optopt)
		word = argv[optind];
	if (got == ':' && known) {
		tl_say("option --%s needs a value; `%s --help' says which", known->name, command);
	} else if (got == ':') {
		tl_say("option -%c needs a value; `%s --help' says which", optopt, command);
	} else if (!optopt) {
		say_unknown_long(command, word + 2, longs);
	} else if (known && word[1] == '-') {
		tl_say("option --%s takes no value; leave out what follows the `='", known->name);
	} else {
		/* -exact for --exact */
		if (word[1] == optopt && strlen(word) > 2)
			near = nearest_long(word + 1, longs);
		if (near)
			tl_say("unknown option -%c in %s; did you mean --%s?", optopt, word, near);
		else
			tl_say("unknown option -%c; `%s --help' lists them", optopt, command);
	}
}
