#include "trapline/reader.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/err.h"
#include "event/header.h"
#include "event/lines.h"
#include "event/names_table.h"

struct tl_reader {
	char *path;
	unsigned options; /* TL_READ_* */
	unsigned pending; /* flags for the next mark */
	bool ended;
	struct tl_lines lines;
	struct tl_header header;
	char *version;
	int64_t at[TL_CLOCKS];
	struct tl_names names;
};

/* The words of a line; what is behind the fifth does not matter. */
struct words {
	struct {
		const char *s;
		size_t n;
	} at[5];
	unsigned n;
};

static bool blank(char c)
{
	return c == ' ' || (c >= '\t' && c <= '\r');
}

static void split(const char *s, struct words *w)
{
	for (w->n = 0; w->n < 5; w->n++) {
		while (blank(*s))
			s++;
		if (!*s)
			return;
		w->at[w->n].s = s;
		while (*s && !blank(*s))
			s++;
		w->at[w->n].n = s - w->at[w->n].s;
	}
}

static int hex(char c)
{
	return c >= '0' && c <= '9'		    ? c - '0'
	       : (c | 32) >= 'a' && (c | 32) <= 'f' ? (c | 32) - 'a' + 10
						    : -1;
}

char *tl_note_value(const char *text, const char *key)
{
	size_t n = strlen(key);
	struct tl_strbuf b = {0};
	const char *s = text;

	for (;; s += strcspn(s, " \t")) {
		s += strspn(s, " \t");
		if (!*s)
			return NULL;
		if (!strncmp(s, key, n) && s[n] == '=')
			break;
	}
	for (s += n + 1; *s && !blank(*s); s++) {
		if (*s == '%' && hex(s[1]) >= 0 && hex(s[2]) >= 0) {
			tl_strbuf_putc(&b, hex(s[1]) << 4 | hex(s[2]));
			s += 2;
		} else {
			tl_strbuf_putc(&b, *s);
		}
	}
	if (!b.s)
		return tl_strdup("");
	return tl_strbuf_take(&b);
}

static int bad(struct tl_reader *r, const char *line)
{
	return tl_fail(-EBADMSG, "%s:%llu: Bad profile: %.200s", r->path,
		       (unsigned long long)r->lines.number, line);
}

static int line_next(struct tl_reader *r, char **line, size_t *n)
{
	int got = tl_lines_next(&r->lines, line, n);

	return got < 0 ? tl_fail(got, "Unable to read %s: %s", r->path, strerror(-got)) : got;
}

static int header_read(struct tl_reader *r)
{
	char *line;
	size_t n;
	int got = line_next(r, &line, &n);

	if (got < 0)
		return got;
	if (!got || strcmp(line, "#fOrTyTwO"))
		return tl_fail(-EBADMSG,
			       "%s:1: Not a perl profile: it does not begin with #fOrTyTwO",
			       r->path);
	while ((got = line_next(r, &line, &n)) > 0 && strncmp(line, "PART", 4))
		tl_header_line(&r->header, &r->version, line);
	r->ended = got == 0;
	tl_header_complete(&r->header);
	return got < 0 ? got : TL_OK;
}

int tl_reader_open(const char *path, unsigned flags, struct tl_reader **out)
{
	bool in = !strcmp(path, "-");
	int fd = in ? STDIN_FILENO : open(path, O_RDONLY | O_CLOEXEC);
	struct tl_reader *r;
	int err;

	*out = NULL;
	if (fd < 0) {
		err = -errno;
		return tl_fail(err, "Unable to open %s: %s", path, strerror(-err));
	}
	r = tl_calloc(1, sizeof *r);
	r->path = tl_strdup(in ? "<stdin>" : path);
	r->options = flags;
	tl_lines_init(&r->lines, fd);
	err = header_read(r);
	if (err) {
		tl_reader_free(r);
		return err;
	}
	*out = r;
	return TL_OK;
}

void tl_reader_free(struct tl_reader *r)
{
	if (!r)
		return;
	if (r->lines.fd > STDIN_FILENO)
		close(r->lines.fd);
	tl_lines_fini(&r->lines);
	tl_names_fini(&r->names);
	free(r->version);
	free(r->path);
	free(r);
}

/* `& id pkg name' */
static void define(struct tl_reader *r, const char *line)
{
	struct tl_strbuf name = {0};
	struct words w;

	split(line + 1, &w);
	if (!w.n)
		return;
	if (w.n > 1)
		tl_strbuf_add(&name, w.at[1].s, w.at[1].n);
	tl_strbuf_puts(&name, "::");
	if (w.n > 2)
		tl_strbuf_add(&name, w.at[2].s, w.at[2].n);
	if (r->options & TL_READ_IDS && w.n > 2) {
		const char *end = name.s + name.n;

		if ((w.at[2].n >= 8 && !memcmp(end - 8, "__ANON__", 8)) ||
		    (w.at[2].n >= 3 && !memcmp(end - 3, "END", 3)))
			tl_strbuf_printf(&name, "(%.*s)", (int)w.at[0].n, w.at[0].s);
	}
	tl_names_define(&r->names, w.at[0].s, w.at[0].n, name.s);
	tl_strbuf_fini(&name);
}

/* A `#!' line: true when it is an event. */
static bool note(struct tl_reader *r, const char *text, struct tl_event *e)
{
	static const struct {
		const char *word;
		unsigned flag;
	} flags[] = {{"s", TL_MARK_SYNTHETIC}, {"u", TL_MARK_UNWOUND}, {"f", TL_MARK_FORCED}};

	while (blank(*text))
		text++;
	for (size_t i = 0; i < sizeof flags / sizeof *flags; i++)
		if (!strcmp(text, flags[i].word)) {
			r->pending |= flags[i].flag;
			return false;
		}
	if (!strncmp(text, "func ", 5)) {
		tl_names_about(&r->names, text + 5);
		return false;
	}
	if (!*text)
		return false;
	e->kind = !strncmp(text, "task", 4) && (!text[4] || blank(text[4])) ? TL_EVENT_TASK
									    : TL_EVENT_NOTE;
	e->text = text;
	return true;
}

static void times(struct tl_reader *r, const struct words *w, bool delta)
{
	for (unsigned c = 0; c < TL_CLOCKS; c++) {
		const char *end;
		int64_t v = tl_ticks_parse(w->at[1 + c].s, r->header.units_per_tick, &end);

		/* Readings may be of any origin; what wraps round comes back. */
		r->at[c] = delta ? (int64_t)((uint64_t)r->at[c] + (uint64_t)v) : v;
	}
}

/* 1: an event; 0: none; negative: no line of a profile. */
static int mark(struct tl_reader *r, const char *line, struct tl_event *e)
{
	struct words w;

	split(line, &w);
	if (!w.n)
		return 0;
	if (w.at[0].n != 1 || !strchr("+-*/@", *w.at[0].s))
		return bad(r, line);
	if (*w.at[0].s == '@') {
		if (w.n < 4)
			return bad(r, line);
		times(r, &w, true);
		return 0;
	}
	if (w.n >= 4)
		times(r, &w, false);
	switch (*w.at[0].s) {
	case '+':
		e->kind = TL_EVENT_ENTER;
		break;
	case '-':
		e->kind = TL_EVENT_EXIT;
		break;
	case '*':
		e->kind = TL_EVENT_GOTO;
		break;
	default:
		e->kind = TL_EVENT_DIE;
		return 1;
	}
	if (w.n == 1)
		return bad(r, line);
	if (w.n == 2)
		e->func = tl_names_of_id(&r->names, w.at[1].s, w.at[1].n);
	else if (w.n == 3)
		e->func = tl_names_func(&r->names, w.at[2].s, w.at[2].n);
	else
		e->func =
		    tl_names_func(&r->names, w.n > 4 ? w.at[4].s : "", w.n > 4 ? w.at[4].n : 0);
	return 1;
}

static int one_line(struct tl_reader *r, char *line, struct tl_event *e)
{
	int got;

	if (*line == '#')
		return line[1] == '!' && note(r, line + 2, e);
	if (*line == '&') {
		define(r, line);
		return 0;
	}
	if (!strncmp(line, "PART", 4)) {
		e->kind = TL_EVENT_END;
		r->ended = true;
		return 1;
	}
	got = mark(r, line, e);
	if (got > 0) {
		e->flags = r->pending;
		r->pending = 0;
	}
	return got;
}

int tl_reader_next(struct tl_reader *r, struct tl_event *e)
{
	int got = 0;

	memset(e, 0, sizeof *e);
	while (!got) {
		char *line;
		size_t n;

		got = r->ended ? 0 : line_next(r, &line, &n);
		if (got < 0)
			return got;
		if (!got) {
			r->ended = true;
			e->kind = TL_EVENT_END;
			break;
		}
		got = one_line(r, line, e);
	}
	if (got < 0)
		return got;
	memcpy(e->at, r->at, sizeof e->at);
	e->line = r->lines.number;
	return TL_OK;
}

const char *tl_reader_path(const struct tl_reader *r)
{
	return r->path;
}

const struct tl_header *tl_reader_header(const struct tl_reader *r)
{
	return &r->header;
}

const struct tl_function_info *tl_reader_func(const struct tl_reader *r, uint32_t func)
{
	return &r->names.funcs.at[func];
}

size_t tl_reader_funcs(const struct tl_reader *r)
{
	return r->names.funcs.n;
}
