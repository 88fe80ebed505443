#include "sym/pattern.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include "base/err.h"
#include "sym/demangle.h"
#include "sym/glob.h"
#include "sym/names.h"

/* A glob or an expression. */
struct matcher {
	struct tl_glob *glob;
	pcre2_code *re;
	bool parameters; /* a glob that speaks of them */
};

struct tl_pattern {
	char *text;
	struct matcher whole;
	struct tl_glob *module; /* `module::', or NULL */
	struct matcher rest;	/* what stands behind it */
	const char *rest_text;	/* into text */
};

static int compile_re(const char *re, const char *text, pcre2_code **out)
{
	PCRE2_UCHAR why[128];
	PCRE2_SIZE at;
	int err;

	*out = pcre2_compile((PCRE2_SPTR)re, PCRE2_ZERO_TERMINATED, 0, &err, &at, NULL);
	if (*out)
		return TL_OK;
	pcre2_get_error_message(err, why, sizeof why);
	return tl_fail(-EINVAL, "pattern %s: %s at character %zu of the expression", text,
		       (const char *)why, (size_t)at + 1);
}

static int compile(const char *s, const char *text, struct matcher *m)
{
	if (!strncmp(s, "re:", 3))
		return compile_re(s + 3, text, &m->re);
	m->parameters = strchr(s, '(') != NULL;
	return tl_glob_new(s, &m->glob);
}

static void matcher_fini(struct matcher *m)
{
	tl_glob_free(m->glob);
	pcre2_code_free(m->re);
}

/* Length of a `module::' in front, without the colons; 0 if there is none.  A mere `*::' is
 * any namespace, not every library. */
static size_t module_length(const char *s)
{
	const char *colons = strstr(s, "::");
	size_t n = colons ? (size_t)(colons - s) : 0;

	if (!strncmp(s, "re:", 3) || n == 0 || !colons[2] || strcspn(s, "(<>{ \t~") < n ||
	    strspn(s, "*?") == n)
		return 0;
	return n;
}

int tl_pattern_new(const char *text, struct tl_pattern **out)
{
	struct tl_pattern *p = tl_calloc(1, sizeof *p);
	size_t n = module_length(text);
	char *module = NULL;
	int r = TL_OK;

	*out = NULL;
	p->text = tl_strdup(text);
	if (!*text)
		r = tl_fail(-EINVAL, "an empty pattern matches nothing; leave it out or give *");
	if (r == TL_OK)
		r = compile(p->text, text, &p->whole);
	if (r == TL_OK && n) {
		module = tl_strndup(text, n);
		p->rest_text = p->text + n + 2;
		r = tl_glob_new(module, &p->module);
	}
	if (r == TL_OK && n)
		r = compile(p->rest_text, text, &p->rest);
	free(module);
	if (r == TL_OK)
		*out = p;
	else
		tl_pattern_free(p);
	return r;
}

void tl_pattern_free(struct tl_pattern *p)
{
	if (!p)
		return;
	matcher_fini(&p->whole);
	matcher_fini(&p->rest);
	tl_glob_free(p->module);
	free(p->text);
	free(p);
}

const char *tl_pattern_text(const struct tl_pattern *p)
{
	return p->text;
}

const char *tl_pattern_word(const struct tl_pattern *p)
{
	const char *s = p->module ? p->rest_text : p->text;

	return strncmp(s, "re:", 3) ? s : NULL;
}

static bool re_match(const pcre2_code *re, const char *s)
{
	pcre2_match_data *data = pcre2_match_data_create_from_pattern(re, NULL);
	int r = data ? pcre2_match(re, (PCRE2_SPTR)s, PCRE2_ZERO_TERMINATED, 0, 0, data, NULL) : -1;

	pcre2_match_data_free(data);
	return r >= 0;
}

/* A clone (f.isra.0) goes by its function's name too. */
static bool match(const struct matcher *m, const char *s)
{
	size_t n = strlen(s), stem;

	if (m->re)
		return re_match(m->re, s);
	if (tl_glob_match(m->glob, s, n))
		return true;
	stem = strchr(s, '.') ? tl_name_without_clone(s) : n;
	return stem < n && tl_glob_match(m->glob, s, stem);
}

static bool match_parameters(const struct matcher *m, const struct tl_func *f)
{
	if (match(m, f->full))
		return true;
	for (const char *const *a = f->raw_aliases; a && *a; a++) {
		char *full = tl_demangle(*a, true);
		bool yes = match(m, full);

		free(full);
		if (yes)
			return true;
	}
	return false;
}

/* By any name it has. */
static bool match_func(const struct matcher *m, const struct tl_func *f)
{
	if (match(m, f->bare) || (f->name != f->bare && match(m, f->name)) ||
	    (f->raw != f->bare && match(m, f->raw)))
		return true;
	for (const char *const *a = f->aliases; a && *a; a++)
		if (match(m, *a))
			return true;
	for (const char *const *a = f->raw_aliases; a && *a; a++)
		if (match(m, *a))
			return true;
	return (m->parameters || m->re) && match_parameters(m, f);
}

bool tl_pattern_matches_name(const struct tl_pattern *p, const struct tl_func *f)
{
	return match_func(&p->whole, f);
}

bool tl_pattern_matches_rest(const struct tl_pattern *p, const struct tl_func *f)
{
	return match_func(&p->rest, f);
}

static bool glob_module(const struct tl_glob *g, const struct tl_image *img, bool is_main)
{
	const char *path = tl_image_path(img), *slash = strrchr(path, '/');
	const char *const names[] = {tl_image_short_name(img), tl_image_soname(img), path,
				     slash ? slash + 1 : path};

	if (is_main && tl_glob_match(g, "main", 4))
		return true;
	for (size_t i = 0; i < sizeof names / sizeof *names; i++)
		if (tl_glob_match(g, names[i], strlen(names[i])))
			return true;
	return false;
}

bool tl_pattern_names_module(const struct tl_pattern *p, const struct tl_image *img, bool is_main)
{
	return p->module && glob_module(p->module, img, is_main);
}

bool tl_pattern_is_module(const struct tl_pattern *p, const struct tl_image *img, bool is_main)
{
	if (p->whole.glob)
		return glob_module(p->whole.glob, img, is_main);
	return re_match(p->whole.re, tl_image_short_name(img)) ||
	       re_match(p->whole.re, tl_image_soname(img)) ||
	       re_match(p->whole.re, tl_image_path(img)) ||
	       (is_main && re_match(p->whole.re, "main"));
}

bool tl_pattern_is_source(const struct tl_pattern *p, const char *file)
{
	if (p->whole.re)
		return re_match(p->whole.re, file);
	if (tl_glob_match(p->whole.glob, file, strlen(file)))
		return true;
	for (const char *s = strchr(file, '/'); s; s = strchr(s, '/')) {
		s++;
		if (tl_glob_match(p->whole.glob, s, strlen(s)))
			return true;
	}
	return false;
}

bool tl_pattern_matches(const struct tl_pattern *p, const struct tl_func *f, bool is_main)
{
	return tl_pattern_matches_name(p, f) ||
	       (tl_pattern_names_module(p, f->image, is_main) && tl_pattern_matches_rest(p, f));
}
