#include "report/dprofpp.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/strbuf.h"

enum { PAGE = 60, HEADING = 4 };

/* A heading's number is cut, not rounded; in fixed notation, however small; 0 where more
 * was taken out than there was. */
static void put_heading_number(char *s, size_t n, double v)
{
	snprintf(s, n, "%.15g", v > 0 ? v : 0);
	if (strchr(s, 'e'))
		snprintf(s, n, "%.8f", v);
	s[8] = 0;
}

static void put_heading(const struct tl_dprofpp *d)
{
	static const char *const labels[] = {"User", "System", "Real", "User+System"};
	char number[400];

	put_heading_number(number, sizeof number, (d->h->run[TL_WALL] - d->overhead) / d->h->hz);
	fprintf(d->out, "Total Elapsed Time = %8s Seconds\n", number);
	put_heading_number(number, sizeof number, d->run);
	fprintf(d->out, "  %11s Time = %8s Seconds\n", labels[d->clock], number);
	fprintf(d->out, "%-9s Times\n", d->o->on['I'] ? "Inclusive" : "Exclusive");
	fputs("%Time ExclSec CumulS #Calls sec/call Csec/c  Name\n", d->out);
}

/* The end of the piece of S that goes into W columns, as Perl's `^' fields cut: behind the
 * last `-' or before the last blank, if there is one within W + 1 bytes. *PAD is how long
 * it is taken to be when blanks are put before it. */
static size_t cut(const char *s, size_t w, size_t *pad)
{
	size_t n = strlen(s);

	*pad = n;
	if (n <= w)
		return n;
	for (size_t i = w + 1; i-- > 0;)
		if (s[i] == '-' || s[i] == ' ') {
			*pad = i;
			return s[i] == '-' ? i + 1 : i;
		}
	return *pad = w;
}

/* One column, to the right. What was cut off is moved to the front of S. */
static void put_right(struct tl_strbuf *line, char *s, size_t w)
{
	size_t pad, n = cut(s, w, &pad);
	const char *rest = s + n;

	for (; pad < w; pad++)
		tl_strbuf_putc(line, ' ');
	tl_strbuf_add(line, s, n);
	while (*rest == ' ')
		rest++;
	memmove(s, rest, strlen(rest) + 1);
}

/* The integer part is never cut: the column widens. */
static void put_number(struct tl_strbuf *line, char *s, size_t w)
{
	size_t whole = strcspn(s, ".");

	if (whole > w)
		w = whole;
	put_right(line, s, w);
}

static void decimals(char *s, size_t n, unsigned places, double v)
{
	if (!(v > 0)) /* over-corrected */
		v = 0;
	snprintf(s, n, "%.*f", (int)places, v);
}

struct row_text {
	char percent[400], self[400], total[400], calls[400], per_call[400], total_per_call[400];
};

static void format_row(const struct tl_dprofpp *d, const struct tl_dp_row *r, struct row_text *t)
{
	double self = r->self / d->h->hz, total = r->total / d->h->hz;
	double of;

	decimals(t->self, sizeof t->self, 3, self);
	decimals(t->total, sizeof t->total, 3, total);
	snprintf(t->calls, sizeof t->calls, "%.0f", r->calls);
	decimals(t->per_call, sizeof t->per_call, 4, r->calls ? self / r->calls : 0);
	decimals(t->total_per_call, sizeof t->total_per_call, 4, r->calls ? total / r->calls : 0);
	of = strtod(d->o->on['I'] ? t->total : t->self, NULL); /* as printed */
	decimals(t->percent, sizeof t->percent, 2, d->run ? of / d->run * 100 : 0);
}

static void put_line(const struct tl_dprofpp *d, struct tl_strbuf *line, unsigned *lines)
{
	size_t n = line->n;

	if (!d->o->on['q'] && *lines == PAGE) {
		putc('\f', d->out);
		put_heading(d);
		*lines = HEADING;
	}
	while (n && line->s[n - 1] == ' ')
		n--;
	fwrite(line->s, 1, n, d->out);
	putc('\n', d->out);
	++*lines;
	tl_strbuf_clear(line);
}

/* A name that does not fit goes on below itself. */
static const char *put_name(struct tl_strbuf *line, const char *s, size_t w)
{
	size_t pad, n = cut(s, w, &pad);

	for (size_t i = 0; i < n; i++) {
		unsigned char c = s[i];

		tl_strbuf_putc(line, c < ' ' || c == 127 ? ' ' : (char)c);
	}
	for (s += n; *s == ' ';)
		s++;
	return s;
}

static void put_row(const struct tl_dprofpp *d, const struct tl_dp_row *r, unsigned *lines)
{
	struct tl_strbuf line = {0};
	const char *name = r->name;
	struct row_text t;

	format_row(d, r, &t);
	tl_strbuf_puts(&line, " ");
	put_number(&line, t.percent, 4);
	tl_strbuf_puts(&line, "   ");
	put_number(&line, t.self, 5);
	tl_strbuf_puts(&line, " ");
	put_number(&line, t.total, 6);
	tl_strbuf_puts(&line, " ");
	put_number(&line, t.calls, 6);
	tl_strbuf_puts(&line, "   ");
	put_number(&line, t.per_call, 6);
	tl_strbuf_puts(&line, " ");
	put_number(&line, t.total_per_call, 6);
	tl_strbuf_puts(&line, "  ");
	name = put_name(&line, name, d->o->name_width);
	put_line(d, &line, lines);
	while (*name) {
		tl_strbuf_printf(&line, "%14s", "");
		put_right(&line, t.total, 6);
		tl_strbuf_printf(&line, "%17s", "");
		put_right(&line, t.total_per_call, 6);
		tl_strbuf_puts(&line, "  ");
		name = put_name(&line, name, d->o->name_width);
		put_line(d, &line, lines);
	}
	tl_strbuf_fini(&line);
}

/* `-O n' counts down to 0 exactly: from a fraction, a word or below it never gets there. */
static size_t limit(const struct tl_dprofpp *d)
{
	const char *s = d->o->arg['O'];
	double v;

	if (!s || !*s || !strcmp(s, "0"))
		return 15;
	v = strtod(s, NULL);
	return v >= 1 && v == floor(v) && v < 1e15 ? (size_t)v : (size_t)-1;
}

void tl_dprofpp_table(struct tl_dprofpp *d)
{
	size_t n = limit(d);
	unsigned lines = HEADING;

	if (!d->rows.n)
		return;
	if (!d->o->on['q'])
		put_heading(d);
	for (size_t i = 0; i < d->rows.n && i < n; i++)
		put_row(d, &d->rows.at[i], &lines);
}
