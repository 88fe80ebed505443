/* Small programs made on the fly, each test in a folder of its own. */
#ifndef TL_TESTS_SYM_BUILD_H
#define TL_TESTS_SYM_BUILD_H

#include <criterion/criterion.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/err.h"
#include "sym/image.h"

static char build_dir[64];

static inline void build_begin(void)
{
	strcpy(build_dir, "/tmp/tl_sym.XXXXXX");
	cr_assert(mkdtemp(build_dir));
	cr_assert_eq(chdir(build_dir), 0);
}

static inline void build_end(void)
{
	char cmd[128];

	snprintf(cmd, sizeof cmd, "rm -rf %s", build_dir);
	cr_assert_eq(chdir("/"), 0);
	cr_expect_eq(system(cmd), 0);
}

/* A skipped test never reaches build_end(). */
#define build_skip(...)                                                                            \
	do {                                                                                       \
		build_end();                                                                       \
		cr_skip_test(__VA_ARGS__);                                                         \
	} while (0)

static inline void put(const char *name, const char *text)
{
	FILE *f = fopen(name, "w");

	cr_assert(f);
	fputs(text, f);
	fclose(f);
}

__attribute__((format(printf, 1, 2))) static inline void run(const char *fmt, ...)
{
	char cmd[1024];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(cmd, sizeof cmd, fmt, ap);
	va_end(ap);
	cr_assert_eq(system(cmd), 0, "%s", cmd);
}

/* Where this system keeps a library of the compiler's or the C library's. */
static inline const char *library_path(const char *name)
{
	static char path[512];
	char cmd[256];
	FILE *f;

	snprintf(cmd, sizeof cmd, "realpath $(g++ -print-file-name=%s)", name);
	f = popen(cmd, "r");
	cr_assert(f && fgets(path, sizeof path, f));
	pclose(f);
	path[strcspn(path, "\n")] = '\0';
	return path;
}

static inline struct tl_image *open_image(const char *path)
{
	struct tl_image *img;

	cr_assert_eq(tl_image_open(path, NULL, &img), TL_OK, "%s", tl_error_text());
	return img;
}

/* By its unique name only. */
static inline const struct tl_func *func(struct tl_image *img, const char *name)
{
	const struct tl_func *f;
	size_t n = tl_image_funcs(img, &f);

	for (size_t i = 0; i < n; i++)
		if (!strcmp(f[i].name, name))
			return &f[i];
	return NULL;
}

static inline const char *why_skipped(struct tl_image *img, const char *name)
{
	const struct tl_func_skipped *s;
	size_t n = tl_image_skipped(img, &s);

	for (size_t i = 0; i < n; i++)
		if (!strcmp(s[i].name, name))
			return s[i].why;
	return NULL;
}

#endif
