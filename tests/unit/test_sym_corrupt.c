/* F14: whatever a file holds, a message and never a crash. */
#include "sym_build.h"

TestSuite(corrupt, .init = build_begin, .fini = build_end, .timeout = 240);

static void refused(const char *path, const char *words)
{
	struct tl_image *img = NULL;

	cr_assert_lt(tl_image_open(path, NULL, &img), 0, "%s", path);
	cr_expect_null(img);
	cr_expect(strstr(tl_error_text(), words), "%s", tl_error_text());
	cr_expect(strstr(tl_error_text(), path), "%s", tl_error_text());
	cr_expect_null(strchr(tl_error_text(), '\n'));
}

static void program(void)
{
	put("a.c", "static int g(int x) { return x; }\nint main(void) { return g(0); }\n");
	run("gcc -g -o prog a.c");
}

static void poke(const char *path, off_t at, const void *bytes, size_t n)
{
	int fd = open(path, O_WRONLY);

	cr_assert_eq(pwrite(fd, bytes, n, at), (ssize_t)n);
	close(fd);
}

Test(corrupt, what_is_no_program_is_refused_by_what_it_is)
{
	program();
	put("script", "#!/bin/sh\n");
	put("empty", "");
	run("gcc -c -o a.o a.c");
	run("head -c 40 prog >short; head -c 64 prog >header");
	refused("script", "script");
	refused("empty", "not an ELF file");
	refused("a.o", "object file");
	refused("short", "truncated");
	refused("header", "corrupt");
	refused("/nonexistent", "No such file");
	refused("/usr", "directory");
	refused("/dev/null", "not a regular file");
}

Test(corrupt, other_machines_are_refused)
{
	program();
	run("cp prog p32; cp prog arm");
	poke("p32", 4, "\1", 1);
	poke("arm", 18, "\xb7", 2);
	refused("p32", "32-bit");
	refused("arm", "another machine");
}

static void exercise(const char *path)
{
	const struct tl_func_skipped *s;
	const struct tl_func *f;
	struct tl_image *img;
	const char *file;
	unsigned line;
	char buf[64];
	size_t n;

	if (tl_image_open(path, NULL, &img) != TL_OK)
		return;
	n = tl_image_funcs(img, &f);
	for (size_t i = 0; i < n && i < 50; i++) {
		tl_image_line(img, &f[i], &file, &line);
		tl_image_read(img, f[i].entry, buf, sizeof buf);
		tl_image_func_at(img, (tl_faddr){f[i].entry.u + 1});
	}
	tl_image_skipped(img, &s);
	tl_image_func_named(img, "main");
	tl_image_unref(img);
}

Test(corrupt, truncated_anywhere)
{
	off_t size;

	program();
	run("cp prog cut");
	size = lseek(open("prog", O_RDONLY), 0, SEEK_END);
	for (off_t n = size; n > 0; n -= size / 150) {
		cr_assert_eq(truncate("cut", n), 0);
		exercise("cut");
	}
}

static void flip(const char *path, unsigned rounds, unsigned seed)
{
	int fd = open(path, O_RDWR);
	off_t size = lseek(fd, 0, SEEK_END);

	srand(seed);
	for (unsigned i = 0; i < rounds; i++) {
		off_t at[6];
		unsigned char was[6];

		for (int k = 0; k < 6; k++) {
			unsigned char now = (unsigned char)(rand() >> 5);

			/* Half of them where it hurts: headers, and the section table. */
			at[k] = k < 2	? rand() % 0x300
				: k < 3 ? size - 1 - rand() % 2000
					: rand() % size;
			cr_assert_eq(pread(fd, &was[k], 1, at[k]), 1);
			if (at[k] < 20)
				now = was[k];
			cr_assert_eq(pwrite(fd, &now, 1, at[k]), 1);
		}
		exercise(path);
		for (int k = 5; k >= 0; k--)
			cr_assert_eq(pwrite(fd, &was[k], 1, at[k]), 1);
	}
	close(fd);
}

Test(corrupt, flipped_bytes)
{
	program();
	flip("prog", 300, 1);
	run("cp prog bare && strip bare");
	flip("bare", 300, 2);
}
