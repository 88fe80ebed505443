#include "sym/glob.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"

enum { TOKENS_MAX = 1024 };
enum kind { LITERAL, ANY, STAR, SET, BLANK };

struct token {
	uint8_t kind;
	unsigned char c;
	uint64_t set[4]; /* SET: a bit for each byte */
};

struct tl_glob {
	char *literal; /* the pattern itself */
	size_t n_literal, n;
	struct token tokens[];
};

static bool is_blank(char c)
{
	return c == ' ' || (c >= '\t' && c <= '\r');
}

/* A set at P, behind its `['; returns what follows it, NULL if it is none. */
static const char *parse_set(const char *p, struct token *t)
{
	bool negated = *p == '!' || *p == '^', first = true;

	p += negated;
	for (; *p && (*p != ']' || first); p++, first = false) {
		unsigned lo = (unsigned char)*p, hi = lo;

		if (p[1] == '-' && p[2] && p[2] != ']') {
			hi = (unsigned char)p[2];
			p += 2;
		}
		for (unsigned c = lo; c <= hi; c++)
			t->set[c / 64] |= (uint64_t)1 << (c % 64);
	}
	if (*p != ']')
		return NULL;
	for (size_t i = 0; negated && i < 4; i++)
		t->set[i] = ~t->set[i];
	t->kind = SET;
	return p + 1;
}

static const char *parse_token(const char *p, struct token *t)
{
	const char *end;

	*t = (struct token){.kind = LITERAL, .c = (unsigned char)*p};
	switch (*p) {
	case '*':
		t->kind = STAR;
		break;
	case '?':
		t->kind = ANY;
		break;
	case '[':
		if (p[1] == ']')
			break;
		end = parse_set(p + 1, t);
		if (end)
			return end;
		*t = (struct token){.kind = LITERAL, .c = '['};
		break;
	case '\\':
		if (p[1])
			t->c = (unsigned char)*++p;
		break;
	default:
		if (is_blank(*p))
			t->kind = BLANK;
		break;
	}
	return p + 1;
}

int tl_glob_new(const char *pattern, struct tl_glob **out)
{
	size_t len = strlen(pattern);
	struct tl_glob *g;

	*out = NULL;
	if (len > TOKENS_MAX)
		return tl_fail(-ENAMETOOLONG, "pattern %.40s...: longer than %d characters",
			       pattern, TOKENS_MAX);
	g = tl_calloc(1, sizeof *g + len * sizeof *g->tokens);
	g->literal = tl_strdup(pattern);
	g->n_literal = len;
	for (const char *p = pattern; *p;)
		p = parse_token(p, &g->tokens[g->n++]);
	*out = g;
	return TL_OK;
}

void tl_glob_free(struct tl_glob *g)
{
	if (!g)
		return;
	free(g->literal);
	free(g);
}

/* Marks state I, and those reached from it without a character. */
static void reach(const struct tl_glob *g, bool *states, size_t i)
{
	while (!states[i]) {
		states[i] = true;
		if (i == g->n || (g->tokens[i].kind != STAR && g->tokens[i].kind != BLANK))
			return;
		i++;
	}
}

static bool accepts(const struct token *t, unsigned char c)
{
	switch ((enum kind)t->kind) {
	case LITERAL:
		return t->c == c;
	case ANY:
	case STAR:
		return true;
	case SET:
		return t->set[c / 64] >> (c % 64) & 1;
	case BLANK:
		return c == '_';
	}
	return false;
}

/* All states at once: no pattern and no name can make it slow. */
static bool simulate(const struct tl_glob *g, const char *s, size_t n)
{
	bool sets[2][TOKENS_MAX + 1], *now = sets[0], *next = sets[1];

	memset(now, 0, g->n + 1);
	reach(g, now, 0);
	for (size_t k = 0; k < n; k++) {
		unsigned char c = (unsigned char)s[k];
		bool any = false, *t;

		memset(next, 0, g->n + 1);
		if (c == '_' && k > 0 && strchr(")>*&]}", s[k - 1])) {
			memcpy(next, now, g->n + 1);
			any = true;
		}
		for (size_t i = 0; i < g->n; i++)
			if (now[i] && accepts(&g->tokens[i], c)) {
				reach(g, next, g->tokens[i].kind == STAR ? i : i + 1);
				any = true;
			}
		if (!any)
			return false;
		t = now;
		now = next;
		next = t;
	}
	return now[g->n];
}

bool tl_glob_match(const struct tl_glob *g, const char *s, size_t n)
{
	if (g->n_literal == n && !memcmp(g->literal, s, n))
		return true;
	if (g->n && g->tokens[0].kind == LITERAL &&
	    (n == 0 || (unsigned char)s[0] != g->tokens[0].c))
		return false;
	return simulate(g, s, n);
}
