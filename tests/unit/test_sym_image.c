#include <dlfcn.h>

#include "sym_build.h"

TestSuite(image, .init = build_begin, .fini = build_end, .timeout = 120);

static void check_list(struct tl_image *img)
{
	const struct tl_func *f;
	size_t n = tl_image_funcs(img, &f);

	cr_assert_gt(n, 0);
	for (size_t i = 0; i < n; i++) {
		cr_expect(i == 0 || f[i - 1].entry.u < f[i].entry.u);
		cr_expect_eq(f[i].image, img);
		cr_expect_gt(f[i].size, 0, "%s", f[i].name);
		cr_expect_null(strpbrk(f[i].name, " \t\n"), "%s", f[i].name);
		cr_expect_eq(func(img, f[i].name), &f[i], "%s is not unique", f[i].name);
		cr_expect_eq(tl_image_func_named(img, f[i].name), &f[i], "%s", f[i].name);
		cr_expect_eq(tl_image_func_at(img, f[i].entry), &f[i], "%s", f[i].name);
	}
}

static const char two_files_a[] = "int printf(const char *, ...);\n"
				  "int b(int);\n"
				  "static __attribute__((noinline)) int helper(int x)\n"
				  "{ __asm__ volatile(\"\"); return x + 1; }\n"
				  "int main(int c, char **v)\n"
				  "{ (void)v; return helper(c) + b(c) == 77; }\n";
static const char two_files_b[] = "int b(int);\n"
				  "\n"
				  "static __attribute__((noinline)) int helper(int x)\n"
				  "{ __asm__ volatile(\"\"); return x + 2; }\n"
				  "int b(int x) { return helper(x) + 1; }\n";

static void two_files(const char *flags)
{
	put("a.c", two_files_a);
	put("b.c", two_files_b);
	run("gcc %s -O1 -o prog a.c b.c", flags);
}

Test(image, lists_are_sorted_and_names_unique)
{
	struct tl_image *img;

	two_files("-g");
	img = open_image("prog");
	check_list(img);
	tl_image_unref(img);
	img = open_image("/proc/self/exe");
	check_list(img);
	tl_image_unref(img);
}

Test(image, every_text_symbol_of_nm_is_a_function_or_skipped)
{
	unsigned long long at;
	struct tl_image *img;
	char name[256], type;
	size_t seen = 0;
	FILE *f;

	two_files("-g -static");
	img = open_image("prog");
	f = popen("nm --defined-only prog", "r");
	while (fscanf(f, "%llx %c %255s", &at, &type, name) == 3) {
		const struct tl_func *fn;

		if (!strchr("TtWwi", type))
			continue;
		fn = tl_image_func_at(img, (tl_faddr){at});
		/* W may be data, and some t are labels. */
		if (fn && fn->entry.u == at)
			seen++;
		else if (type != 'W' && type != 'w')
			cr_expect(why_skipped(img, name), "%s", name);
	}
	pclose(f);
	cr_expect_gt(seen, 500);
	tl_image_unref(img);
}

Test(image, dynsym_gives_every_exported_function_of_libstdcxx)
{
	struct tl_image *img = open_image(library_path("libstdc++.so.6"));
	unsigned long long at;
	size_t seen = 0;
	char type[32];
	char cmd[1024];
	FILE *f;

	snprintf(cmd, sizeof cmd,
		 "readelf -W --dyn-syms %s | awk '$7 ~ /^[0-9]+$/ && $4 ~ /FUNC/ {print $2, $4}'",
		 tl_image_path(img));
	f = popen(cmd, "r");
	while (fscanf(f, "%llx %31s", &at, type) == 2) {
		const struct tl_func *fn = tl_image_func_at(img, (tl_faddr){at});

		cr_expect(fn && fn->entry.u == at, "%llx", at);
		seen++;
	}
	pclose(f);
	cr_expect_gt(seen, 1000);
	tl_image_unref(img);
}

Test(image, same_static_name_in_two_files_is_told_apart_by_line)
{
	struct tl_image *img;

	two_files("-g");
	img = open_image("prog");
	cr_expect(func(img, "helper"));
	cr_expect(func(img, "helper@b.c:3"));
	cr_expect_str_eq(func(img, "helper@b.c:3")->bare, "helper");
	cr_expect_null(tl_image_func_named(img, "no such name"));
	tl_image_unref(img);
}

Test(image, without_debug_information_by_file)
{
	struct tl_image *img;

	two_files("-g0");
	img = open_image("prog");
	cr_expect(func(img, "helper"));
	cr_expect(func(img, "helper@b.c"));
	tl_image_unref(img);
}

Test(image, without_files_by_offset)
{
	const struct tl_func *f;
	struct tl_image *img;
	bool found = false;
	size_t n;

	two_files("-g0");
	run("strip --keep-symbol=helper --keep-symbol=main -o prog2 prog");
	img = open_image("prog2");
	n = tl_image_funcs(img, &f);
	for (size_t i = 0; i < n; i++) {
		char want[64];

		snprintf(want, sizeof want, "helper@prog2+0x%llx",
			 (unsigned long long)f[i].entry.u);
		found |= !strcmp(f[i].name, want);
	}
	cr_expect(found);
	tl_image_unref(img);
}

Test(image, overloads_go_by_their_parameters)
{
	struct tl_image *img;

	put("o.cc",
	    "int f(int x) { return x; }\nint f(char const *p) { return p != 0; }\n"
	    "int g(long x) { return x != 0; }\nint main() { return f(0) + f(\"\") + g(1); }\n");
	run("g++ -O1 -o prog o.cc");
	img = open_image("prog");
	cr_expect(func(img, "f(int)"));
	cr_expect(func(img, "f(char_const*)"));
	cr_expect_null(func(img, "f"));
	cr_expect(func(img, "g"));
	cr_expect_str_eq(func(img, "g")->full, "g(long)");
	cr_expect_str_eq(func(img, "f(int)")->bare, "f");
	cr_expect_null(tl_image_func_named(img, "f"), "not unique");
	cr_expect_eq(tl_image_func_named(img, "_Z1fi"), func(img, "f(int)"));
	tl_image_unref(img);
}

static const char cold_c[] = "void bad(void) __attribute__((cold, noinline));\n"
			     "void bad(void) { __asm__ volatile(\"\"); }\n"
			     "__attribute__((noinline)) %s int f(int x)\n"
			     "{ if (__builtin_expect(x > 1000, 0)) { bad(); x *= 3; bad(); }\n"
			     "  __asm__ volatile(\"\"); return x + %d; }\n"
			     "int %s(int x) { return f(x); }\n%s";

static void cold_file(const char *name, const char *linkage, int k, const char *caller,
		      const char *tail)
{
	char text[1024];

	snprintf(text, sizeof text, cold_c, linkage, k, caller, tail);
	if (strcmp(name, "a.c"))
		memcpy(strstr(text, "void bad(void) {"), "void bad(void);/*", 17),
		    memcpy(strstr(text, "\"\"); }\n"), "  */   ", 6);
	put(name, text);
}

Test(image, a_cold_part_belongs_to_its_function_in_its_file)
{
	const struct tl_func *f, *g;
	const struct tl_func_skipped *s;
	struct tl_image *img;
	size_t n, parts = 0;

	cold_file("a.c", "static", 1, "a",
		  "int b(int); int main(int c, char **v)"
		  "{ (void)v; return a(c) + b(c); }\n");
	cold_file("b.c", "static", 2, "b", "");
	run("gcc -g -O2 -o prog a.c b.c");
	img = open_image("prog");
	f = func(img, "f");
	g = func(img, "f@b.c:3");
	cr_assert(f && g);
	if (f->n_ranges == 0)
		build_skip("this compiler makes no cold parts");
	cr_expect_eq(f->n_ranges, 2);
	cr_expect_eq(g->n_ranges, 2);
	cr_expect_eq(f->ranges[0].lo.u, f->entry.u);
	cr_expect_eq(f->ranges[0].hi.u, f->entry.u + f->size);
	cr_expect_neq(f->ranges[1].lo.u, g->ranges[1].lo.u);
	cr_expect_eq(tl_image_func_at(img, f->ranges[1].lo), f);
	cr_expect_eq(tl_image_func_at(img, g->ranges[1].lo), g);
	n = tl_image_skipped(img, &s);
	for (size_t i = 0; i < n; i++)
		parts += !strcmp(s[i].name, "f.cold");
	cr_expect_eq(parts, 2);
	/* DWARF is the witness: each part lies in the file of its owner. */
	run("test \"$(addr2line -e prog 0x%llx | grep -c a.c:)\" = 1",
	    (unsigned long long)f->ranges[1].lo.u);
	run("test \"$(addr2line -e prog 0x%llx | grep -c b.c:)\" = 1",
	    (unsigned long long)g->ranges[1].lo.u);
	tl_image_unref(img);
}

Test(image, dwarf_ranges_when_there_are_no_symbols)
{
	const struct tl_func *f;
	struct tl_image *img;

	cold_file("a.c", "", 1, "a", "int main(int c, char **v) { (void)v; return a(c); }\n");
	run("gcc -g -O2 -o prog a.c && objcopy --strip-all --keep-section='.debug*' prog nosym");
	img = open_image("nosym");
	f = func(img, "f");
	cr_assert(f);
	cr_expect_eq(f->origin, TL_FUNC_DWARF);
	cr_expect(func(img, "main"));
	if (f->n_ranges == 2) {
		cr_expect_eq(f->ranges[0].lo.u, f->entry.u);
		cr_expect_eq(tl_image_func_at(img, f->ranges[1].lo), f);
	}
	check_list(img);
	tl_image_unref(img);
}

Test(image, aliases_are_one_function_with_several_names)
{
	const struct tl_func *f;
	struct tl_image *img;
	bool alias = false;

	put("a.c", "int __impl(int x) { return x; }\n"
		   "int nice(int) __attribute__((weak, alias(\"__impl\")));\n"
		   "int main(void) { return nice(0); }\n");
	run("gcc -O0 -o prog a.c");
	img = open_image("prog");
	f = func(img, "nice");
	cr_assert(f);
	for (const char *const *a = f->aliases; a && *a; a++)
		alias |= !strcmp(*a, "__impl");
	cr_expect(alias);
	cr_expect_eq(tl_image_func_named(img, "__impl"), f);
	cr_expect_null(func(img, "__impl"));
	tl_image_unref(img);
}

Test(image, an_ifunc_symbol_is_its_resolver)
{
	struct tl_image *img;

	put("a.c", "static int one(void) { return 1; }\n"
		   "static int (*pick(void))(void) { return one; }\n"
		   "int f(void) __attribute__((ifunc(\"pick\")));\n"
		   "int main(void) { return f(); }\n");
	run("gcc -O0 -o prog a.c");
	img = open_image("prog");
	cr_assert(func(img, "f"));
	cr_expect(func(img, "f")->is_ifunc);
	cr_expect_not(func(img, "one")->is_ifunc);
	tl_image_unref(img);
}

static const char asm_s[] =
    ".text\n"
    ".globl zero_size\n.type zero_size,@function\nzero_size: nop\n nop\n ret\n"
    ".globl untyped\nuntyped: nop\n ret\n"
    ".globl outer\n.type outer,@function\nouter: nop\n nop\n"
    ".globl inner_label\ninner_label: nop\n"
    ".globl nested\n.type nested,@function\nnested: nop\n.size nested,1\n"
    " nop\n ret\n.size outer,6\n"
    "local_label: nop\n"
    ".globl huge\n.type huge,@function\nhuge: ret\n.size huge,0x7000000\n"
    ".data\n.globl not_code\n.type not_code,@function\nnot_code: .quad 0\n"
    ".section .note.GNU-stack,\"\",@progbits\n";

Test(image, hand_written_code_is_bounded_by_its_neighbours)
{
	const struct tl_func *f;
	struct tl_image *img;

	put("a.s", asm_s);
	put("m.c", "int main(void) { return 0; }\n");
	run("gcc -o prog m.c a.s");
	img = open_image("prog");
	f = func(img, "zero_size");
	cr_assert(f);
	cr_expect_eq(f->size, 3);
	f = func(img, "untyped");
	cr_assert(f, "a global label of .text may be a function");
	cr_expect_eq(f->size, 2);
	f = func(img, "outer");
	cr_assert(f);
	cr_expect_eq(f->size, 6);
	cr_expect(func(img, "nested"));
	cr_expect_eq(tl_image_func_at(img, (tl_faddr){f->entry.u + 3}), func(img, "nested"));
	cr_expect_eq(tl_image_func_at(img, (tl_faddr){f->entry.u + 4}), f, "behind the nested");
	cr_expect_null(func(img, "inner_label"));
	cr_expect_str_eq(why_skipped(img, "inner_label"), "a label inside another function");
	cr_expect(why_skipped(img, "local_label"));
	cr_expect_str_eq(why_skipped(img, "not_code"), "not in an executable segment");
	cr_expect_lt(func(img, "huge")->size, 0x100000);
	tl_image_unref(img);
}

Test(image, plt_stubs_are_no_functions)
{
	const struct tl_func *f;
	struct tl_image *img;
	size_t n;

	put("a.c", "int puts(const char *);\nint main(void) { return puts(\"x\") < 0; }\n");
	run("gcc -O1 -fcf-protection=full -o prog a.c && strip prog");
	img = open_image("prog");
	n = tl_image_funcs(img, &f);
	for (size_t i = 0; i < n; i++)
		run("readelf -SW prog | awk -v a=%llu '/ \\.plt/ {sub(/^.*\\.plt/, \"\");"
		    " lo = strtonum(\"0x\" $3); hi = lo + strtonum(\"0x\" $5);"
		    " if (a >= lo && a < hi) exit 1}' 2>/dev/null || test $? -ne 1",
		    (unsigned long long)f[i].entry.u);
	tl_image_unref(img);
}

static uint64_t entry_of(const char *path, const char *name)
{
	struct tl_image *img = open_image(path);
	const struct tl_func *f = func(img, name);
	uint64_t at = f ? f->entry.u : 0;

	tl_image_unref(img);
	return at;
}

Test(image, stripped_by_unwinding_tables)
{
	const struct tl_func *f;
	struct tl_image *img;
	char want[64];
	uint64_t at;

	two_files("-g0");
	at = entry_of("prog", "helper@b.c");
	run("strip prog");
	img = open_image("prog");
	f = tl_image_func_at(img, (tl_faddr){at});
	cr_assert(f);
	snprintf(want, sizeof want, "prog+0x%llx", (unsigned long long)at);
	cr_expect_str_eq(f->name, want);
	cr_expect_eq(f->origin, TL_FUNC_EH_FRAME);
	check_list(img);
	tl_image_unref(img);
}

Test(image, stripped_cold_parts_are_no_functions)
{
	const struct tl_func *f;
	struct tl_image *img;
	tl_faddr part;

	/* Pushes before it branches: the part begins with a frame. */
	put("a.c",
	    "int g(int); void bad(int) __attribute__((cold));\n"
	    "void bad(int x) { __asm__ volatile(\"\" :: \"r\"(x)); }\n"
	    "int g(int x) { __asm__ volatile(\"\"); return x; }\n"
	    "__attribute__((noinline)) int f(int x)\n"
	    "{ int y = g(x), z = g(y); if (__builtin_expect(z > 9, 0)) { bad(y); z = g(x); }\n"
	    "  return y + z + g(z); }\n"
	    "int main(int c, char **v) { (void)v; return f(c); }\n");
	run("gcc -O2 -fno-inline -fno-ipa-icf -fno-ipa-ra -o prog a.c");
	img = open_image("prog");
	f = func(img, "f");
	cr_assert(f);
	if (f->n_ranges < 2)
		build_skip("this compiler makes no cold part of it");
	part = f->ranges[1].lo;
	tl_image_unref(img);
	run("strip prog");
	img = open_image("prog");
	f = tl_image_func_at(img, part);
	cr_expect(!f || f->entry.u != part.u);
	tl_image_unref(img);
}

Test(image, without_section_headers_by_eh_frame_hdr)
{
	struct tl_image *img;
	char zeros[8] = {0};
	uint64_t at;
	int fd;

	two_files("-g0");
	at = entry_of("prog", "helper@b.c");
	run("strip prog");
	fd = open("prog", O_RDWR);
	cr_assert_eq(pwrite(fd, zeros, 8, 0x28), 8); /* e_shoff */
	cr_assert_eq(pwrite(fd, zeros, 4, 0x3c), 4); /* e_shnum, e_shstrndx */
	close(fd);
	img = open_image("prog");
	cr_assert(tl_image_func_at(img, (tl_faddr){at}));
	cr_expect_eq(tl_image_func_at(img, (tl_faddr){at})->entry.u, at);
	tl_image_unref(img);
}

Test(image, bytes_are_those_of_memory)
{
	struct tl_image *img = open_image(library_path("libc.so.6"));
	const struct tl_func *f = tl_image_func_named(img, "qsort");
	void *here = dlsym(RTLD_DEFAULT, "qsort");
	char buf[32];

	cr_assert(f && here);
	cr_expect_str_eq(tl_image_short_name(img), "libc");
	cr_expect_str_eq(tl_image_soname(img), "libc.so.6");
	cr_expect_not(tl_image_is_program(img));
	cr_expect_eq(tl_image_read(img, f->entry, buf, sizeof buf), sizeof buf);
	cr_expect_arr_eq(buf, here, f->size < 32 ? f->size : 32);
	tl_image_unref(img);
}

Test(image, bytes_with_offsets_unlike_addresses_and_zeros_behind_the_file)
{
	const struct tl_segment *s;
	struct tl_image *img;
	unsigned char buf[64];
	bool differ = false;
	tl_faddr bss = {0};
	size_t n;

	put("m.s",
	    ".text\n.globl _start\n.type _start,@function\n_start: .ascii \"\\x90TRAPLINE\"\n"
	    ".size _start,9\n.bss\n.globl big\nbig: .zero 100000\n"
	    ".section .note.GNU-stack,\"\",@progbits\n");
	run("gcc -nostdlib -no-pie -Wl,-Ttext-segment=0x7000000 -Wl,-z,noseparate-code -o prog "
	    "m.s");
	img = open_image("prog");
	n = tl_image_segments(img, &s);
	for (size_t i = 0; i < n; i++) {
		differ |= s[i].lo.u != s[i].file_offset;
		if (s[i].writable)
			bss.u = s[i].hi.u - 64;
	}
	cr_expect(differ);
	cr_assert(func(img, "_start"));
	cr_expect_eq(tl_image_start(img).u, func(img, "_start")->entry.u);
	cr_expect_eq(tl_image_read(img, func(img, "_start")->entry, buf, 9), 9);
	cr_expect_arr_eq(buf, "\x90TRAPLINE", 9);
	memset(buf, 1, sizeof buf);
	cr_expect_eq(tl_image_read(img, bss, buf, 64), 64);
	for (size_t i = 0; i < 64; i++)
		cr_expect_eq(buf[i], 0);
	cr_expect_eq(tl_image_read(img, (tl_faddr){bss.u + 32}, buf, 64), 32, "no further");
	cr_expect_eq(tl_image_read(img, (tl_faddr){16}, buf, 64), 0);
	cr_expect(tl_image_is_static(img));
	tl_image_unref(img);
}

Test(image, an_old_version_of_a_symbol_is_named_by_it)
{
	struct tl_image *img;

	put("v.c", "__asm__(\".symver f_old,f@V1\");\n__asm__(\".symver f_new,f@@V2\");\n"
		   "int f_old(int x) { return x; }\nint f_new(int x) { return x + 1; }\n");
	put("v.map", "V1 { global: f; local: *; };\nV2 { global: f; } V1;\n");
	run("gcc -shared -fPIC -Wl,--version-script=v.map -Wl,-soname,libv.so.3 -o libv.so v.c");
	img = open_image("libv.so");
	cr_expect(tl_image_func_named(img, "f_new"));
	tl_image_unref(img);
	run("strip libv.so");
	img = open_image("libv.so");
	cr_assert(func(img, "f"));
	cr_assert(func(img, "f@V1"));
	cr_expect_neq(func(img, "f")->entry.u, func(img, "f@V1")->entry.u);
	cr_expect_str_eq(tl_image_short_name(img), "libv");
	tl_image_unref(img);
}
