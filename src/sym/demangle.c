#include "sym/demangle.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include <libiberty/demangle.h>

#include "base/err.h"
#include "sym/names.h"

/* Past the hash that ends a legacy Rust name (17h, 16 hex digits, E), or NULL.  Such
 * names contain dots of their own (`_$LT$alloc..vec..Vec'), which start no suffix. */
static const char *after_rust_hash(const char *raw)
{
	for (const char *p = raw; (p = strstr(p, "17h")); p++) {
		size_t n = strspn(p + 3, "0123456789abcdef");

		if (n == 16 && p[19] == 'E')
			return p + 20;
	}
	return NULL;
}

size_t tl_name_stem(const char *raw)
{
	const char *end = NULL;

	if (!strncmp(raw, "_Z", 2)) {
		end = after_rust_hash(raw);
		if (!end)
			end = strchr(raw, '.');
	} else if (!strncmp(raw, "_R", 2)) {
		end = strpbrk(raw, ".$");
	} else if (!strncmp(raw, "_D", 2)) {
		end = strchr(raw, '.');
	}
	return end ? (size_t)(end - raw) : strlen(raw);
}

void tl_name_clean(char *s)
{
	char *out = s;

	for (const char *p = s; *p; p++) {
		unsigned char c = (unsigned char)*p;

		if (c == ' ' || (c >= '\t' && c <= '\r')) {
			if ((out > s && out[-1] == ',') || (p[1] && strchr(">*&(", p[1])))
				continue;
			*out++ = '_';
		} else {
			*out++ = c < 0x20 || c == 0x7f ? '?' : (char)c;
		}
	}
	*out = '\0';
}

/* libiberty prints the parameters of a D function whether asked or not. */
static void cut_parameters(char *s)
{
	size_t n = strlen(s);
	int depth = 0;

	if (!n || s[n - 1] != ')')
		return;
	while (n-- > 0) {
		if (s[n] == ')')
			depth++;
		else if (s[n] == '(' && --depth == 0) {
			if (n > 0)
				s[n] = '\0';
			return;
		}
	}
}

bool tl_name_is_mangled(const char *raw)
{
	return raw[0] == '_' && (raw[1] == 'Z' || raw[1] == 'R' || raw[1] == 'D');
}

static char *demangled(const char *raw, size_t stem, bool parameters)
{
	int options = DMGL_AUTO | DMGL_ANSI | DMGL_RET_DROP | (parameters ? DMGL_PARAMS : 0);
	char *copy = tl_strndup(raw, stem), *d;

	/* Automatic is C++ and Rust only. */
	if (raw[1] == 'D')
		options ^= DMGL_AUTO ^ DMGL_DLANG;
	d = cplus_demangle(copy, options);
	free(copy);
	if (d && raw[1] == 'D' && !parameters)
		cut_parameters(d);
	return d;
}

char *tl_demangle(const char *raw, bool parameters)
{
	size_t stem = tl_name_stem(raw);
	char *d = tl_name_is_mangled(raw) ? demangled(raw, stem, parameters) : NULL;
	char *s;

	if (!d)
		s = tl_strdup(raw);
	else if (!raw[stem])
		s = d;
	else
		s = tl_asprintf("%s%s", d, raw + stem);
	if (d && d != s)
		free(d);
	tl_name_clean(s);
	return s;
}

/* What compilers append to the name of a copy or a piece of a function. */
static bool is_clone_word(const char *s, size_t n)
{
	/* clang-format off */
	static const char *const words[] = {
		"isra", "constprop", "part", "lto_priv", "cold", "hot", "unlikely", "warm", "llvm",
		"localalias", "clone", "split", "specialized", "resolver", "default",
	};
	/* clang-format on */

	for (size_t i = 0; i < sizeof words / sizeof *words; i++)
		if (strlen(words[i]) == n && !memcmp(words[i], s, n))
			return true;
	return false;
}

size_t tl_name_without_clone(const char *name)
{
	size_t n = strlen(name), keep = n;

	for (;;) {
		size_t dot = n;

		while (dot > 0 && name[dot - 1] != '.')
			dot--;
		if (dot <= 1)
			return keep;
		/* .word, or .word.N: only a known word makes the number a suffix. */
		if (is_clone_word(name + dot, n - dot))
			keep = dot - 1;
		else if (strspn(name + dot, "0123456789") < n - dot || n != keep)
			return keep;
		n = dot - 1;
	}
}
