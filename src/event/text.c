#include "event/text.h"

#include <ctype.h>
#include <string.h>

#include "event/writer.h"

static const char digit_pairs[] =
    "0001020304050607080910111213141516171819202122232425262728293031323334353637383940414243"
    "4445464748495051525354555657585960616263646566676869707172737475767778798081828384858687"
    "888990919293949596979899";

char *tl_text_u64(char *p, uint64_t v)
{
	char d[20];
	size_t i = sizeof d;

	if (v < 10) {
		*p = '0' + v;
		return p + 1;
	}
	while (v >= 100) {
		memcpy(d + (i -= 2), digit_pairs + v % 100 * 2, 2);
		v /= 100;
	}
	if (v >= 10)
		memcpy(d + (i -= 2), digit_pairs + v * 2, 2);
	else
		d[--i] = '0' + v;
	memcpy(p, d + i, sizeof d - i);
	return p + (sizeof d - i);
}

char *tl_text_hex(char *p, uint32_t v)
{
	int shift = v ? (31 - __builtin_clz(v)) & ~3 : 0;

	for (; shift >= 0; shift -= 4)
		*p++ = "0123456789abcdef"[v >> shift & 15];
	return p;
}

char *tl_text_delta(char *p, uint64_t user_ns, uint64_t sys_ns, uint64_t wall_ns)
{
	*p++ = '@';
	*p++ = ' ';
	p = tl_text_u64(p, user_ns);
	*p++ = ' ';
	p = tl_text_u64(p, sys_ns);
	*p++ = ' ';
	p = tl_text_u64(p, wall_ns);
	*p++ = '\n';
	return p;
}

/* Devel::DProf's ids begin at 2, ours at 1. */
static uint32_t id_of(uint32_t func)
{
	return func + 1;
}

char *tl_text_mark(char *p, char sign, uint32_t func, unsigned flags)
{
	if (flags) {
		memcpy(p, "#! s\n", 5);
		if (flags & TL_MARK_FORCED)
			p[3] = 'f';
		else if (flags & TL_MARK_UNWOUND)
			p[3] = 'u';
		p += 5;
	}
	*p++ = sign;
	*p++ = ' ';
	p = tl_text_hex(p, id_of(func));
	*p++ = '\n';
	return p;
}

static bool is_blank(unsigned char c)
{
	return c == ' ' || (c >= '\t' && c <= '\r');
}

void tl_text_name(struct tl_strbuf *b, const char *name, const char *otherwise)
{
	const char *p = name && *name ? name : otherwise;
	char before = 0;

	for (; *p; p++) {
		unsigned char c = *p;

		if (c == ' ' && (before == ',' || (p[1] && strchr(">*&(", p[1]))))
			continue;
		before = is_blank(c) ? '_' : c < 0x20 || c == 0x7f ? '?' : (char)c;
		tl_strbuf_putc(b, before);
	}
}

void tl_text_line(struct tl_strbuf *b, const char *text)
{
	for (; *text; text++)
		tl_strbuf_putc(b, iscntrl((unsigned char)*text) ? '?' : *text);
}

void tl_writer_encode(struct tl_strbuf *b, const char *value)
{
	for (; value && *value; value++) {
		unsigned char c = *value;

		if (c <= ' ' || c == 0x7f || c == '%' || c == '=')
			tl_strbuf_printf(b, "%%%02x", c);
		else
			tl_strbuf_putc(b, c);
	}
}

/* One line of the marks, without its newline. */
struct line {
	const char *p, *end;
};

static bool next_line(struct line *l, const char **p, const char *end)
{
	const char *nl;

	if (*p == end)
		return false;
	nl = memchr(*p, '\n', end - *p);
	l->p = *p;
	l->end = nl ? nl : end;
	*p = nl ? nl + 1 : end;
	return true;
}

static bool number(struct line *l, uint64_t *v)
{
	const char *p = l->p;

	if (p == l->end || *p++ != ' ' || p == l->end || !isdigit((unsigned char)*p))
		return false;
	for (*v = 0; p < l->end && isdigit((unsigned char)*p); p++)
		*v = *v * 10 + (*p - '0');
	l->p = p;
	return true;
}

/* `@ u s r' */
static bool delta(struct line l, uint64_t v[3])
{
	l.p++;
	return number(&l, &v[0]) && number(&l, &v[1]) && number(&l, &v[2]) && l.p == l.end;
}

/* `+ id' or `- id': the function, or 0. */
static uint32_t marked(struct line l)
{
	uint64_t v = 0;

	if (l.end - l.p < 3 || l.p[1] != ' ' || l.end - l.p > 10)
		return 0;
	for (const char *p = l.p + 2; p < l.end; p++) {
		if (!isxdigit((unsigned char)*p))
			return 0;
		v = v << 4 | (isdigit((unsigned char)*p) ? *p - '0' : *p - 'a' + 10);
	}
	return v >= 2 && v <= UINT32_MAX ? v - 1 : 0;
}

static bool starts(struct line l, const char *with)
{
	size_t n = strlen(with);

	return (size_t)(l.end - l.p) >= n && !memcmp(l.p, with, n);
}

static bool scan_line(struct tl_scan *s, struct line l)
{
	uint32_t func;
	uint64_t v[3];

	switch (l.p < l.end ? *l.p : 0) {
	case '#':
		if (starts(l, "#! end"))
			s->ended = true;
		else if (starts(l, "#! f"))
			s->forced++;
		else if (starts(l, "#! u"))
			s->unwound++;
		return true;
	case '@':
		if (!delta(l, v))
			return false;
		s->user_ns += v[0];
		s->sys_ns += v[1];
		s->wall_ns += v[2];
		return true;
	case '+':
	case '-':
		func = marked(l);
		if (!func || (*l.p == '-' && tl_frames_top(&s->open) != func))
			return false;
		if (s->known && (func >= s->n_known || !s->known[func]))
			return false;
		if (*l.p == '+')
			tl_frames_push(&s->open, func);
		else
			s->open.n--;
		s->marks++;
		return true;
	default:
		return false;
	}
}

size_t tl_text_scan(struct tl_scan *s, const char *text, size_t n)
{
	const char *p = text, *end = text + n;
	struct line l;

	while (next_line(&l, &p, end))
		if (!scan_line(s, l))
			return l.p - text;
	return n;
}

static void mark_1997(struct tl_outbuf *o, const struct tl_text_clock *c, char sign,
		      const char *name)
{
	char at[3 + 3 * 21], *p = at;

	*p++ = sign;
	*p++ = ' ';
	p = tl_text_u64(p, c->user_ns);
	*p++ = ' ';
	p = tl_text_u64(p, c->sys_ns);
	*p++ = ' ';
	p = tl_text_u64(p, c->wall_ns);
	*p++ = ' ';
	tl_outbuf_write(o, at, p - at);
	tl_outbuf_puts(o, name);
	tl_outbuf_write(o, "\n", 1);
}

void tl_text_1997(struct tl_outbuf *o, struct tl_text_clock *clock, const char *const *names,
		  size_t n_names, const char *text, size_t n)
{
	const char *end = text + n;
	struct line l;
	uint64_t v[3];

	while (next_line(&l, &text, end)) {
		if (*l.p == '@' && delta(l, v)) {
			clock->user_ns += v[0];
			clock->sys_ns += v[1];
			clock->wall_ns += v[2];
		} else if (*l.p == '+' || *l.p == '-') {
			uint32_t func = marked(l);

			mark_1997(o, clock, *l.p,
				  func < n_names && names[func] ? names[func] : "main::?");
		} else {
			tl_outbuf_write(o, l.p, l.end - l.p);
			tl_outbuf_write(o, "\n", 1);
		}
	}
}
