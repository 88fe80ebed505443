#include "report/heading.h"

#include <stdlib.h>
#include <string.h>

#include "report/format.h"

/* `arg=' for each word, quoted where a shell would want it. */
static void take_command(struct tl_strbuf *b, const char *text)
{
	const char *s = text;

	tl_strbuf_clear(b);
	while ((s = strstr(s, " arg="))) {
		char *word = tl_note_value(s++, "arg");

		if (b->n)
			tl_strbuf_putc(b, ' ');
		if (!*word || strpbrk(word, " \t\n'\"\\$&|;<>()*?[]#~`"))
			tl_strbuf_printf(b, "'%s'", word);
		else
			tl_strbuf_puts(b, word);
		free(word);
	}
	for (s = text; (s = strstr(s, " pid="));) {
		char *pid = tl_note_value(s++, "pid");

		tl_strbuf_printf(b, "%sprocess %s", b->n ? ", " : "", pid);
		free(pid);
	}
	/* It is printed on a terminal. */
	for (size_t i = 0; i < b->n; i++)
		if ((unsigned char)b->s[i] < ' ' || b->s[i] == 127)
			b->s[i] = '?';
}

static void keep(char **to, const char *text)
{
	free(*to);
	*to = tl_strdup(text);
}

void tl_facts_note(struct tl_facts *f, const struct tl_event *e)
{
	if (e->kind != TL_EVENT_NOTE)
		return;
	if (!strncmp(e->text, "command ", 8))
		take_command(&f->command, e->text);
	else if (!strncmp(e->text, "run ", 4))
		keep(&f->run, e->text);
	else if (!strncmp(e->text, "truncated", 9))
		keep(&f->truncated, e->text);
	else if (!strncmp(e->text, "refused ", 8))
		tl_vec_push(&f->refused, tl_strdup(e->text));
}

static bool number(const char *text, const char *key, uint64_t *v)
{
	char *s = text ? tl_note_value(text, key) : NULL;

	if (s)
		*v = strtoull(s, NULL, 10);
	free(s);
	return s != NULL;
}

static void print_time(FILE *out, const char *before, double ns)
{
	fprintf(out, "%s%s", before, tl_format_time(ns).s);
}

static void print_times(const struct tl_facts *f, const struct tl_profile *p, FILE *out)
{
	const struct tl_header *h = tl_reader_header(p->r);
	double ns = h->hz > 0 ? 1e9 / h->hz : 0;
	uint64_t wall, marks = p->now.marks, tasks = p->tasks;

	/* The header's sum is over tasks; the run's own wall time stands in its line. */
	if (number(f->run, "wall", &wall))
		print_time(out, "  wall ", wall);
	else
		print_time(out, "  wall ", h->run[TL_WALL] * ns);
	print_time(out, ", CPU ", (h->run[TL_USER] + h->run[TL_SYS]) * ns);
	print_time(out, " (user ", h->run[TL_USER] * ns);
	print_time(out, ", system ", h->run[TL_SYS] * ns);
	number(f->run, "marks", &marks);
	number(f->run, "tasks", &tasks);
	if (tasks)
		fprintf(out, "), %llu task%s", (unsigned long long)tasks, tasks == 1 ? "" : "s");
	else
		putc(')', out);
	fprintf(out, ", %llu marks\n", (unsigned long long)marks);
}

static void print_overhead(const struct tl_facts *f, FILE *out)
{
	uint64_t wall, cpu, clamps, clamped = 0, raw = 0;

	number(f->run, "raw", &raw);
	if (raw)
		fputs("  recorded raw: what measuring cost is still in these times\n", out);
	else if (number(f->run, "taken_wall", &wall) && number(f->run, "taken_cpu", &cpu)) {
		print_time(out, "  taken out for measuring: wall ", wall);
		print_time(out, ", CPU ", cpu);
		putc('\n', out);
	}
	if (!number(f->run, "clamps", &clamps) || !clamps)
		return;
	number(f->run, "clamped", &clamped);
	fprintf(out, "  %llu clamp%s: more would have been taken out than there was, by",
		(unsigned long long)clamps, clamps == 1 ? "" : "s");
	print_time(out, " ", clamped);
	fputs(" in all\n", out);
}

static void print_warnings(const struct tl_facts *f, FILE *out)
{
	uint64_t lost = 0, recovered = 0;

	number(f->run, "lost", &lost);
	number(f->run, "recovered", &recovered);
	if (lost)
		fprintf(out, "  incomplete: %llu marks were lost\n", (unsigned long long)lost);
	if (recovered)
		fputs("  incomplete: recovered after a crash\n", out);
	if (f->truncated)
		fputs("  incomplete: the profile ended at its size limit\n", out);
	if (f->refused.n)
		fprintf(out, "  %zu functions or modules could not be measured\n", f->refused.n);
}

void tl_facts_print(const struct tl_facts *f, const struct tl_profile *p, FILE *out)
{
	fprintf(out, "Profile of %s\n",
		f->command.n ? tl_strbuf_text(&f->command) : tl_reader_path(p->r));
	print_times(f, p, out);
	print_overhead(f, out);
	print_warnings(f, out);
}

void tl_facts_fini(struct tl_facts *f)
{
	tl_strbuf_fini(&f->command);
	free(f->run);
	free(f->truncated);
	for (size_t i = 0; i < f->refused.n; i++)
		free(f->refused.at[i]);
	tl_vec_fini(&f->refused);
}
