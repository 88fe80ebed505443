/* F8: variants of one program give one list, and lines where there is debug information. */
#include "sym_build.h"

static const char source[] = "static __attribute__((noinline)) int hidden(int x)\n"
			     "{ __asm__ volatile(\"\"); return x + 1; }\n"
			     "int shown(int x)\n"
			     "{ return hidden(x) * 2; }\n"
			     "int main(int c, char **v) { (void)v; return shown(c) == 77; }\n";

static void begin(void)
{
	build_begin();
	put("a.c", source);
}

TestSuite(debug, .init = begin, .fini = build_end, .timeout = 120);

static void check(const char *path, bool dwarf)
{
	struct tl_image *img = open_image(path);
	const struct tl_func *f = func(img, "hidden");
	const char *file = NULL;
	unsigned line = 0;

	cr_assert(f, "%s", path);
	cr_expect(func(img, "shown") && func(img, "main"), "%s", path);
	cr_expect_eq(tl_image_has_dwarf(img), dwarf, "%s", path);
	cr_expect_eq(tl_image_line(img, f, &file, &line), dwarf, "%s", path);
	if (dwarf && file) {
		cr_expect_eq(line, 1, "%s: line %u", path, line);
		cr_expect(strstr(file, "a.c"), "%s", file);
	}
	tl_image_unref(img);
}

Test(debug, dwarf_4_and_5_compressed_and_split)
{
	run("gcc -O1 -o plain a.c");
	check("plain", false);
	run("gcc -O1 -gdwarf-4 -o d4 a.c");
	check("d4", true);
	run("gcc -O1 -gdwarf-5 -o d5 a.c");
	check("d5", true);
	run("gcc -O1 -g -gz=zlib -o z a.c");
	check("z", true);
	run("gcc -O1 -gdwarf-5 -gsplit-dwarf -o split a.c");
	check("split", true);
	run("gcc -O1 -gdwarf-4 -gsplit-dwarf -o split4 a.c");
	check("split4", true);
}

Test(debug, a_line_table_alone_gives_the_line_of_the_entry)
{
	run("gcc -O1 -g1 -o g1 a.c");
	check("g1", true);
}

static void separate(const char *where)
{
	run("gcc -O1 -g -Wl,--build-id=none -o prog a.c && mkdir -p .debug &&"
	    " objcopy --only-keep-debug prog %s && strip prog && "
	    " objcopy --add-gnu-debuglink=%s prog",
	    where, where);
}

Test(debug, by_debuglink_beside_it_and_in_dot_debug)
{
	separate("prog.debug");
	check("prog", true);
	separate(".debug/prog.debug");
	run("rm -f prog.debug");
	check("prog", true);
}

Test(debug, a_debug_file_of_another_build_is_none)
{
	struct tl_image *img;

	separate("prog.debug");
	run("printf x >>prog.debug");
	img = open_image("prog");
	cr_expect_null(func(img, "hidden"));
	cr_expect_not(tl_image_has_dwarf(img));
	tl_image_unref(img);
}

Test(debug, by_build_id)
{
	struct tl_image *img = open_image(library_path("libc.so.6"));
	const char *id = tl_image_build_id(img);
	char path[256];

	snprintf(path, sizeof path, "/usr/lib/debug/.build-id/%.2s/%s.debug", id, id + 2);
	if (access(path, R_OK) != 0)
		build_skip("no debug symbols of libc are installed");
	cr_expect(tl_image_func_named(img, "_IO_new_file_write"), "static, in .symtab only");
	cr_expect(tl_image_has_dwarf(img));
	tl_image_unref(img);
}

Test(debug, a_server_is_never_asked)
{
	/* Nothing listens there, but a library that tries would create its cache. */
	setenv("DEBUGINFOD_URLS", "http://127.0.0.1:9", 1);
	setenv("DEBUGINFOD_CACHE_PATH", "cache", 1);
	setenv("HOME", build_dir, 1);
	run("gcc -O1 -g -Wl,--build-id=0x1234567890abcdef -o prog a.c && strip prog");
	struct tl_image *img = open_image("prog");
	const struct tl_func *f;

	cr_expect_gt(tl_image_funcs(img, &f), 0);
	cr_expect_str_eq(tl_image_build_id(img), "1234567890abcdef");
	cr_expect_not(tl_image_has_dwarf(img));
	cr_expect_neq(access("cache", F_OK), 0);
	cr_expect_neq(access(".cache", F_OK), 0);
	tl_image_unref(img);
}

Test(debug, gnu_debugdata)
{
	struct tl_image *img;

	if (system("xz --version >/dev/null 2>&1") != 0)
		build_skip("xz is not installed");
	run("gcc -O1 -Wl,--build-id=none -o prog a.c && objcopy -S --remove-section .gnu_debuglink"
	    " --keep-symbol=hidden --keep-symbol=shown --keep-symbol=main"
	    " --only-keep-debug prog mini && xz -k mini && strip prog &&"
	    " objcopy --add-section .gnu_debugdata=mini.xz prog");
	img = open_image("prog");
	cr_assert(func(img, "hidden"));
	cr_expect_eq(func(img, "hidden")->origin, TL_FUNC_SYMTAB);
	tl_image_unref(img);
}

Test(debug, dwz)
{
	if (system("dwz --version >/dev/null 2>&1") != 0)
		build_skip("dwz is not installed");
	run("gcc -O1 -g -o prog a.c && cp prog other && dwz -m common.dwz prog other");
	check("prog", true);
}
