#include "profile.h"

#include <criterion/criterion.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char *slurp(const char *path)
{
	FILE *f = fopen(path, "r");
	size_t n = 0, cap = 1 << 16;
	char *s = malloc(cap);

	cr_assert(f, "%s is there", path);
	for (size_t got; (got = fread(s + n, 1, cap - n - 1, f)) > 0;) {
		n += got;
		if (cap - n < 2)
			s = realloc(s, cap *= 2);
	}
	fclose(f);
	s[n] = 0;
	cr_assert_eq(strlen(s), n, "no 0 bytes");
	cr_assert(n && s[n - 1] == '\n', "ends in a newline");
	return s;
}

static void head_line(struct profile *p, const char *line)
{
	sscanf(line, "$rrun_utime=%lu; $rrun_stime=%lu; $rrun_rtime=%lu;", &p->head_user,
	       &p->head_sys, &p->head_wall);
	sscanf(line, "$total_marks=%lu", &p->head_marks);
}

struct stack {
	unsigned id[PROFILE_DEPTH];
	int n;
};

static void note_line(struct profile *p, const char *line, const struct stack *open)
{
	p->synthetic += !strcmp(line, "#! s");
	p->unwound += !strcmp(line, "#! u");
	p->forced += !strcmp(line, "#! f");
	if (!strncmp(line, "#! task ", 8) || !strncmp(line, "#! end ", 7)) {
		cr_assert_eq(open->n, 0, "a block begins and ends with nothing open");
		*(line[3] == 't' ? &p->tasks : &p->ends) += 1;
	}
}

static void mark_line(struct profile *p, const char *line, struct stack *open, const bool *defined)
{
	unsigned id;
	char more;

	cr_assert_eq(sscanf(line + 1, " %x%c", &id, &more), 1, "mark: %s", line);
	cr_assert(id < PROFILE_FUNCS && defined[id], "has a name: %s", line);
	if (*line == '+') {
		cr_assert_lt(open->n, PROFILE_DEPTH);
		open->id[open->n++] = id;
		p->enters++;
		p->calls[id]++;
		return;
	}
	cr_assert_gt(open->n, 0, "something is open at %s", line);
	cr_assert_eq(open->id[--open->n], id, "the innermost is left at %s", line);
	p->exits++;
}

static void body_line(struct profile *p, const char *line, struct stack *open, bool *defined)
{
	uint64_t u, s, r;
	unsigned id;
	char a[1024], b[1024], more;

	switch (*line) {
	case '#':
		note_line(p, line, open);
		break;
	case '&':
		cr_assert_eq(sscanf(line, "& %x %1023s %1023s%c", &id, a, b, &more), 3, "%s", line);
		cr_assert(id >= 2 && id < PROFILE_FUNCS && !defined[id]);
		defined[id] = true;
		break;
	case '@':
		cr_assert_eq(sscanf(line, "@ %lu %lu %lu%c", &u, &s, &r, &more), 3, "%s", line);
		cr_assert(!strchr(line, '-'), "no negative time: %s", line);
		p->user_ns += u;
		p->sys_ns += s;
		p->wall_ns += r;
		break;
	case '+':
	case '-':
		mark_line(p, line, open, defined);
		break;
	default:
		cr_assert_fail("no line of a profile: `%s'", line);
	}
}

struct profile profile_read(const char *path)
{
	struct profile p = {.text = slurp(path)};
	char *copy = strdup(p.text), *rest = copy, *line;
	static bool defined[PROFILE_FUNCS];
	static struct stack open;
	bool body = false;

	memset(defined, 0, sizeof defined);
	open.n = 0;
	cr_assert_str_eq(strsep(&rest, "\n"), "#fOrTyTwO");
	while ((line = strsep(&rest, "\n")) && rest) {
		if (body)
			body_line(&p, line, &open, defined);
		else if (!strcmp(line, "PART2"))
			body = true;
		else
			head_line(&p, line);
	}
	cr_assert(body);
	cr_assert_eq(open.n, 0, "balanced");
	cr_assert_eq(p.enters, p.exits);
	cr_assert_eq(p.tasks, p.ends, "each block is ended");
	cr_assert_eq(p.head_marks, p.enters + p.exits, "$total_marks");
	cr_assert_eq(p.head_user, p.user_ns, "$rrun_utime");
	cr_assert_eq(p.head_sys, p.sys_ns, "$rrun_stime");
	cr_assert_eq(p.head_wall, p.wall_ns, "$rrun_rtime");
	free(copy);
	return p;
}

void profile_free(struct profile *p)
{
	free(p->text);
}

bool profile_has(const struct profile *p, const char *text)
{
	return strstr(p->text, text) != NULL;
}

char *profile_dprofpp(const char *path, const char *options)
{
	char command[8192], *out;
	FILE *f;

	if (access("/usr/bin/dprofpp", X_OK) < 0)
		return NULL;
	snprintf(command, sizeof command,
		 "DPROFPP_OPTS= /usr/bin/dprofpp %s '%s' >'%s.out' 2>'%s.err'", options, path, path,
		 path);
	cr_assert_eq(system(command), 0, "dprofpp %s takes %s", options, path);
	snprintf(command, sizeof command, "%s.err", path);
	f = fopen(command, "r");
	cr_assert(f && fgetc(f) == EOF, "dprofpp %s says nothing about %s", options, path);
	fclose(f);
	unlink(command);
	snprintf(command, sizeof command, "%s.out", path);
	f = fopen(command, "r");
	out = calloc(1, 1 << 20);
	cr_assert(f && fread(out, 1, (1 << 20) - 1, f) < 1 << 20);
	fclose(f);
	unlink(command);
	return out;
}

char *folder_new(void)
{
	char template[] = "/tmp/tl-test-XXXXXX";

	cr_assert(mkdtemp(template));
	return strdup(template);
}

void folder_remove(char *dir)
{
	char command[256];

	snprintf(command, sizeof command, "rm -rf '%s'", dir);
	cr_assert_eq(system(command), 0);
	free(dir);
}

int folder_count(const char *dir, const char *part)
{
	DIR *d = opendir(dir);
	struct dirent *e;
	int n = 0;

	cr_assert(d);
	while ((e = readdir(d)))
		n += strstr(e->d_name, part) != NULL;
	closedir(d);
	return n;
}

char *folder_path(const char *dir, const char *name)
{
	char *s;

	cr_assert_gt(asprintf(&s, "%s/%s", dir, name), 0);
	return s;
}
