#include "sym/glob.h"
#include "sym/select.h"
#include "sym_build.h"

static bool glob(const char *pattern, const char *name)
{
	struct tl_glob *g;
	bool yes;

	cr_assert_eq(tl_glob_new(pattern, &g), TL_OK);
	yes = tl_glob_match(g, name, strlen(name));
	tl_glob_free(g);
	return yes;
}

Test(glob, is_anchored)
{
	cr_expect(glob("read", "read"));
	cr_expect_not(glob("read", "pread"));
	cr_expect_not(glob("read", "readv"));
	cr_expect(glob("*read*", "preadv"));
	cr_expect(glob("", ""));
	cr_expect_not(glob("", "x"));
	cr_expect(glob("*", ""));
	cr_expect(glob("*", "x_y"));
}

Test(glob, wildcards)
{
	cr_expect(glob("f?o", "foo"));
	cr_expect_not(glob("f?o", "fo"));
	cr_expect(glob("[a-c]x", "bx"));
	cr_expect_not(glob("[a-c]x", "dx"));
	cr_expect(glob("[!a-c]x", "dx"));
	cr_expect(glob("[]a]", "]") || glob("[]a]", "[]a]"));
	cr_expect(glob("a[b", "a[b"));
	cr_expect(glob("a\\*b", "a*b"));
	cr_expect_not(glob("a\\*b", "axb"));
	cr_expect(glob("a*b*c*d", "a--b--c--d"));
	cr_expect_not(glob("*_impl", "fooimpl"));
}

Test(glob, names_of_cxx_match_themselves)
{
	cr_expect(glob("operator[]", "operator[]"));
	cr_expect(glob("f[abi:cxx11]", "f[abi:cxx11]"));
	cr_expect(glob("A::operator*", "A::operator*"));
	cr_expect(glob("f(char_const*)", "f(char_const*)"));
}

Test(glob, blanks_do_not_count)
{
	cr_expect(glob("operator new", "operator_new"));
	cr_expect(glob("f( int , char const * )", "f(int,char_const*)"));
	cr_expect(glob("f(int) const", "f(int)_const"));
	cr_expect(glob("f(int)const", "f(int)_const"));
	cr_expect(glob("std::vector<int, std::allocator<int> >::push_back",
		       "std::vector<int,std::allocator<int>>::push_back"));
	cr_expect_not(glob("ab", "a_b"), "an underscore of the name's own counts");
}

Test(glob, no_pattern_is_slow)
{
	char name[2001];

	memset(name, 'a', 2000);
	name[2000] = '\0';
	cr_expect_not(glob("*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*b", name));
}

/* --- on a program ------------------------------------------------------------------------- */

static struct tl_image *prog, *lib;

static void begin(void)
{
	build_begin();
	put("p.cc",
	    "namespace ns { struct S { int get(int) const; int get(char const *); }; }\n"
	    "int ns::S::get(int x) const { return x; }\n"
	    "int ns::S::get(char const *p) { return *p; }\n"
	    "extern \"C\" { int plain(int x) { return x; }\n"
	    "int also_plain(int) __attribute__((alias(\"plain\"))); int lonely(void) { return 3; "
	    "}\n"
	    "int clone_me(int) __asm__(\"clone_me.isra.0\"); int clone_me(int x) { return x; }}\n"
	    "int main() { ns::S s; return s.get(1) + s.get(\"\") + plain(1); }\n");
	put("l.c", "int lib_one(int x) { return x; }\nint lib_two(int x) { return x; }\n"
		   "int plain(int x) { return x; }\n");
	run("g++ -g -O0 -o prog p.cc && gcc -shared -fPIC -Wl,-soname,libfoo.so.2 -o libfoo.so.2.1 "
	    "l.c");
	prog = open_image("prog");
	lib = open_image("libfoo.so.2.1");
}

static void end(void)
{
	tl_image_unref(prog);
	tl_image_unref(lib);
	build_end();
}

TestSuite(select, .init = begin, .fini = end, .timeout = 60);

#define F TL_SELECT_FUNCTION
#define X TL_SELECT_EXCLUDE
#define L TL_SELECT_LIBRARY
#define S TL_SELECT_SOURCE

static struct tl_select *selection(enum tl_select_kind k1, const char *p1, enum tl_select_kind k2,
				   const char *p2)
{
	struct tl_select *s = tl_select_new();

	if (p1)
		cr_assert_eq(tl_select_add(s, k1, p1), TL_OK, "%s", tl_error_text());
	if (p2)
		cr_assert_eq(tl_select_add(s, k2, p2), TL_OK);
	return s;
}

static size_t all_of(struct tl_image *img)
{
	const struct tl_func *f;

	return tl_image_funcs(img, &f);
}

/* How many functions of the image are selected. */
static size_t chosen(const struct tl_select *s, struct tl_image *img)
{
	const struct tl_func *f;
	size_t n = tl_image_funcs(img, &f), k = 0;

	if (!tl_select_module(s, img, img == prog))
		return 0;
	for (size_t i = 0; i < n; i++)
		k += tl_select_func(s, &f[i], img == prog);
	return k;
}

static void expect(enum tl_select_kind k1, const char *p1, enum tl_select_kind k2, const char *p2,
		   size_t in_prog, size_t in_lib)
{
	struct tl_select *s = selection(k1, p1, k2, p2);

	cr_expect_eq(chosen(s, prog), in_prog, "%s %s: %zu in prog", p1, p2 ? p2 : "",
		     chosen(s, prog));
	cr_expect_eq(chosen(s, lib), in_lib, "%s %s: %zu in lib", p1, p2 ? p2 : "", chosen(s, lib));
	tl_select_free(s);
}

Test(select, nothing_said_is_the_whole_executable)
{
	expect(F, NULL, F, NULL, all_of(prog), 0);
}

Test(select, by_name_alias_raw_name_and_clone)
{
	expect(F, "plain", F, NULL, 1, 0);
	expect(F, "also_plain", F, NULL, 1, 0);
	expect(F, "ns::S::get", F, NULL, 2, 0);
	expect(F, "ns::*", F, NULL, 2, 0);
	expect(F, "_ZNK2ns1S3getEi", F, NULL, 1, 0);
	expect(F, "clone_me", F, NULL, 1, 0);
	expect(F, "clone_me.isra.0", F, NULL, 1, 0);
	expect(F, "clone", F, NULL, 0, 0);
}

Test(select, a_parenthesis_speaks_of_parameters)
{
	expect(F, "ns::S::get(int) const", F, NULL, 1, 0);
	expect(F, "ns::S::get( char const * )", F, NULL, 1, 0);
	expect(F, "ns::S::get(*)*", F, NULL, 2, 0);
	expect(F, "ns::S::get(long)", F, NULL, 0, 0);
}

Test(select, exclude_takes_away)
{
	expect(F, "ns::*", X, "*get(int)*", 1, 0);
	expect(F, "plain", X, "also_plain", 0, 0);
	expect(F, "plain", X, "libfoo::plain", 1, 0);
	expect(F, "plain", X, "main::plain", 0, 0);
}

Test(select, libraries_replace_the_default)
{
	expect(L, "libfoo", F, NULL, 0, all_of(lib));
	expect(L, "libfoo", F, "lib_*", 0, 2);
	expect(L, "libfoo.so.2", F, "plain", 0, 1);
	expect(L, "libfoo.so.2.1", F, "plain", 0, 1);
	expect(L, "*/libfoo*", F, "plain", 0, 1);
	expect(L, "main", F, "plain", 1, 0);
	expect(L, "*", F, "plain", 1, 1);
	expect(L, "re:^libf", F, "plain", 0, 1);
	expect(L, "libbar", F, "plain", 0, 0);
}

Test(select, a_module_in_front_implies_it)
{
	expect(F, "libfoo::lib_*", F, NULL, 0, 2);
	expect(F, "libfoo::*", F, "main", 1, all_of(lib));
	expect(F, "plain", F, "libfoo::lib_one", 1, 1);
	expect(F, "main::plain", F, NULL, 1, 0);
	expect(F, "lib*::re:^lib_(one|two)$", F, NULL, 0, 2);
	expect(F, "*::get", F, NULL, 2, 0);
	expect(F, "*::plain", F, NULL, 0, 0);
}

Test(select, expressions)
{
	expect(F, "re:^(plain|lonely)$", F, NULL, 2, 0);
	expect(F, "re:get", F, NULL, 2, 0);
	expect(F, "re:^also_plain$", F, NULL, 1, 0);
}

Test(select, a_bad_expression_is_refused_with_its_place)
{
	struct tl_select *s = tl_select_new();

	cr_expect_lt(tl_select_add(s, F, "re:ab(c"), 0);
	cr_expect(strstr(tl_error_text(), "re:ab(c"), "%s", tl_error_text());
	cr_expect(strstr(tl_error_text(), "character 5"), "%s", tl_error_text());
	cr_expect_lt(tl_select_add(s, F, ""), 0);
	tl_select_free(s);
}

Test(select, by_source_file)
{
	struct tl_select *s = selection(S, "p.cc", F, NULL);

	cr_expect_geq(chosen(s, prog), 5);
	cr_expect_lt(chosen(s, prog), 10, "not _start and its kin");
	tl_select_free(s);
	expect(S, "*.c", F, NULL, 0, 0);
	expect(S, "p.cc", F, "plain", 1, 0);
}

/* A pattern used once. */
static int tl_pattern_match(const char *pattern, const struct tl_func *f, bool *matches)
{
	struct tl_pattern *p;
	int r = tl_pattern_new(pattern, &p);

	*matches = false;
	if (r != TL_OK)
		return r;
	*matches = tl_pattern_matches(p, f, tl_image_is_program(f->image));
	tl_pattern_free(p);
	return TL_OK;
}

Test(select, one_pattern_by_itself)
{
	const struct tl_func *f = func(prog, "plain");
	bool yes;

	cr_expect_eq(tl_pattern_match("pl*", f, &yes), TL_OK);
	cr_expect(yes);
	cr_expect_eq(tl_pattern_match("libfoo::plain", f, &yes), TL_OK);
	cr_expect_not(yes);
	cr_expect_eq(tl_pattern_match("main::plain", f, &yes), TL_OK);
	cr_expect(yes);
	cr_expect_lt(tl_pattern_match("re:[", f, &yes), 0);
}

static void explained(enum tl_select_kind k1, const char *p1, enum tl_select_kind k2,
		      const char *p2, const char *words)
{
	struct tl_image *images[] = {prog, lib};
	struct tl_select *s = selection(k1, p1, k2, p2);
	char *text = tl_select_explain(s, images, 2);

	cr_expect(strstr(text, words), "%s", text);
	free(text);
	tl_select_free(s);
}

Test(select, explains_what_would_have_matched)
{
	explained(F, "lonly", F, NULL, "lonely (prog)");
	explained(F, "S::gte", F, NULL, "nothing matches -f S::gte");
	explained(F, "lib_one", F, NULL, "libfoo has lib_one: add -l libfoo");
	explained(F, "plain", X, "plain", "-x");
	explained(L, "libbar", F, NULL, "-l libbar is none of the modules: prog, libfoo");
	explained(L, "libfoo", S, "x.c", "no debug information");
}

Test(select, explains_a_stripped_program)
{
	struct tl_select *s = selection(F, "lonely", F, NULL);
	struct tl_image *img;
	char *text;

	run("g++ -O0 -o bare p.cc && strip bare");
	img = open_image("bare");
	text = tl_select_explain(s, &img, 1);
	cr_expect(strstr(text, "has no symbols of its own functions"), "%s", text);
	cr_expect(strstr(text, "-dbgsym"), "%s", text);
	free(text);
	tl_image_unref(img);
	tl_select_free(s);
}
