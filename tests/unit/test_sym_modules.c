#include <dlfcn.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <sys/stat.h>

#include "base/log.h"
#include "sym/modules.h"
#include "sym_build.h"

TestSuite(modules, .init = build_begin, .fini = build_end, .timeout = 120);

struct seen {
	unsigned came, gone;
	struct tl_module *last;
};

static void on_gone(void *ctx, struct tl_module *m)
{
	((struct seen *)ctx)->gone++;
	cr_expect(m->image);
}

static void on_came(void *ctx, struct tl_module *m)
{
	struct seen *s = ctx;

	s->came++;
	s->last = m;
}

static void update(struct tl_modules *mods, struct tl_image_cache *c, struct seen *seen)
{
	*seen = (struct seen){0};
	cr_assert_eq(tl_modules_update(mods, c, getpid(), on_gone, on_came, seen), TL_OK, "%s",
		     tl_error_text());
}

static void *load(const char *name)
{
	char path[128];
	void *h;

	snprintf(path, sizeof path, "%s/%s", build_dir, name);
	h = dlopen(path, RTLD_NOW);
	cr_assert(h, "%s", dlerror());
	return h;
}

static void library(void)
{
	put("l.c", "int tl_test_fn(int x) { return x * 41; }\n");
	run("gcc -shared -fPIC -O1 -Wl,-soname,libone.so -o libone.so l.c &&"
	    " gcc -shared -fPIC -O1 -Wl,-soname,libtwo.so -o libtwo.so l.c");
}

static void check_address(const struct tl_modules *mods, const char *module, const char *name,
			  void *address)
{
	struct tl_module *m = tl_modules_at(mods, (tl_vaddr){(uint64_t)(uintptr_t)address});
	const struct tl_func *f;

	cr_assert(m, "%s", name);
	cr_expect_str_eq(tl_image_short_name(m->image), module);
	f = tl_image_func_at(m->image,
			     tl_module_faddr(m, (tl_vaddr){(uint64_t)(uintptr_t)address}));
	cr_assert(f, "%s", name);
	cr_expect_str_eq(f->name, name);
	cr_expect_eq(tl_module_vaddr(m, f->entry).u, (uint64_t)(uintptr_t)address);
}

Test(modules, addresses_of_the_program_and_its_libraries)
{
	struct tl_image_cache *c = tl_image_cache_new();
	struct tl_modules mods = {0};
	struct seen seen;
	unsigned mains = 0;

	update(&mods, c, &seen);
	cr_expect_eq(seen.came, mods.n);
	cr_expect_eq(seen.gone, 0);
	check_address(&mods, "libc", "qsort", dlsym(RTLD_DEFAULT, "qsort"));
	check_address(&mods, "test_sym_modules", "tl_modules_update", &tl_modules_update);
	for (size_t i = 0; i < mods.n; i++) {
		mains += mods.at[i]->is_main;
		cr_expect(i == 0 || mods.at[i - 1]->lo.u < mods.at[i]->lo.u);
		cr_expect_neq(strncmp(tl_image_path(mods.at[i]->image), "/proc/", 6), 0);
	}
	cr_expect_eq(mains, 1);
	cr_expect(
	    tl_modules_at(&mods, (tl_vaddr){(uint64_t)(uintptr_t)&tl_modules_update})->is_main);
	cr_expect_null(tl_modules_at(&mods, (tl_vaddr){(uint64_t)(uintptr_t)&mods}), "the stack");
	cr_expect_null(tl_modules_at(&mods, (tl_vaddr){16}));
	tl_modules_fini(&mods);
	tl_image_cache_free(c);
}

Test(modules, dlopen_and_dlclose_leave_the_others_where_they_are)
{
	struct tl_image_cache *c = tl_image_cache_new();
	struct tl_module *before[512];
	struct tl_modules mods = {0};
	struct seen seen;
	size_t n;
	void *h;

	library();
	update(&mods, c, &seen);
	n = mods.n;
	memcpy(before, mods.at, n * sizeof *before);
	update(&mods, c, &seen);
	cr_expect_eq(seen.came + seen.gone, 0, "nothing changed");
	h = load("libone.so");
	update(&mods, c, &seen);
	cr_expect_eq(seen.came, 1);
	cr_expect_eq(seen.gone, 0);
	cr_expect_eq(mods.n, n + 1);
	check_address(&mods, "libone", "tl_test_fn", dlsym(h, "tl_test_fn"));
	dlclose(h);
	update(&mods, c, &seen);
	cr_expect_eq(seen.came, 0);
	cr_expect_eq(seen.gone, 1);
	cr_assert_eq(mods.n, n);
	cr_expect_arr_eq(mods.at, before, n * sizeof *before);
	tl_modules_fini(&mods);
	tl_image_cache_free(c);
}

Test(modules, another_library_at_the_same_address)
{
	struct tl_image_cache *c = tl_image_cache_new();
	struct tl_modules mods = {0};
	struct seen seen;
	void *h;

	library();
	h = load("libone.so");
	update(&mods, c, &seen);
	dlclose(h);
	h = load("libtwo.so");
	update(&mods, c, &seen);
	cr_expect_eq(seen.gone, 1);
	cr_expect_eq(seen.came, 1);
	check_address(&mods, "libtwo", "tl_test_fn", dlsym(h, "tl_test_fn"));
	dlclose(h);
	tl_modules_fini(&mods);
	tl_image_cache_free(c);
}

Test(modules, two_loads_of_one_file_share_an_image)
{
	struct tl_image_cache *c = tl_image_cache_new();
	struct tl_module *m1, *m2;
	struct tl_modules mods = {0};
	char path[128];
	struct seen seen;
	void *h1, *h2;

	library();
	h1 = load("libone.so");
	snprintf(path, sizeof path, "%s/libone.so", build_dir);
	h2 = dlmopen(LM_ID_NEWLM, path, RTLD_NOW);
	if (!h2)
		build_skip("dlmopen: %s", dlerror());
	update(&mods, c, &seen);
	check_address(&mods, "libone", "tl_test_fn", dlsym(h1, "tl_test_fn"));
	check_address(&mods, "libone", "tl_test_fn", dlsym(h2, "tl_test_fn"));
	m1 = tl_modules_at(&mods, (tl_vaddr){(uint64_t)(uintptr_t)dlsym(h1, "tl_test_fn")});
	m2 = tl_modules_at(&mods, (tl_vaddr){(uint64_t)(uintptr_t)dlsym(h2, "tl_test_fn")});
	cr_expect_neq(m1, m2);
	cr_expect_neq(m1->bias, m2->bias);
	cr_expect_eq(m1->image, m2->image);
	tl_modules_fini(&mods);
	tl_image_cache_free(c);
}

static void replaced(bool anew)
{
	struct tl_image_cache *c = tl_image_cache_new();
	struct tl_modules mods = {0};
	struct seen seen;
	void *h;

	library();
	h = load("libone.so");
	if (anew)
		run("mv libone.so old && echo 'int other; int fn2(void) {return 1;}' >n.c &&"
		    " gcc -shared -fPIC -o libone.so n.c && rm old");
	else
		run("rm libone.so");
	update(&mods, c, &seen);
	if (!tl_modules_at(&mods, (tl_vaddr){(uint64_t)(uintptr_t)dlsym(h, "tl_test_fn")}))
		build_skip("map_files needs CAP_CHECKPOINT_RESTORE");
	check_address(&mods, "libone", "tl_test_fn", dlsym(h, "tl_test_fn"));
	tl_modules_fini(&mods);
	tl_image_cache_free(c);
}

Test(modules, a_deleted_file_is_read_through_the_mapping)
{
	replaced(false);
}

Test(modules, a_replaced_file_is_not_taken_for_the_mapped_one)
{
	replaced(true);
}

/* A child that sees a file which nobody else does: mounted over in a namespace of its own. */
static void hidden_library(int ready)
{
	gid_t gid = getgid();
	char map[32];

	snprintf(map, sizeof map, "0 %u 1\n", (unsigned)getuid());
	if (unshare(CLONE_NEWUSER | CLONE_NEWNS) != 0)
		_exit(1);
	put("/proc/self/uid_map", map);
	put("/proc/self/setgroups", "deny");
	snprintf(map, sizeof map, "0 %u 1\n", (unsigned)gid);
	put("/proc/self/gid_map", map);
	if (system("mkdir -p m && mount -t tmpfs none m && cp libone.so m") != 0)
		_exit(1);
	load("m/libone.so");
	if (write(ready, "x", 1) == 1)
		pause();
	_exit(1);
}

Test(modules, a_file_in_another_mount_namespace_is_read_through_its_root)
{
	struct tl_image_cache *c = tl_image_cache_new();
	struct tl_modules mods = {0};
	bool found = false;
	int ready[2];
	pid_t pid;
	char x;

	library();
	cr_assert_eq(pipe(ready), 0);
	pid = fork();
	if (pid == 0)
		hidden_library(ready[1]);
	close(ready[1]);
	if (read(ready[0], &x, 1) != 1)
		build_skip("no user and mount namespaces here");
	cr_expect_eq(tl_modules_update(&mods, c, pid, NULL, NULL, NULL), TL_OK);
	for (size_t i = 0; i < mods.n; i++)
		if (!strcmp(tl_image_short_name(mods.at[i]->image), "libone")) {
			found = true;
			cr_expect_null(strstr(tl_image_path(mods.at[i]->image), "/proc/"));
			cr_expect(func(mods.at[i]->image, "tl_test_fn"));
		}
	cr_expect(found);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	tl_modules_fini(&mods);
	tl_image_cache_free(c);
}

static unsigned n_warnings;

static void count(enum tl_log_level level, const char *text)
{
	n_warnings += level == TL_LOG_WARNING && strstr(text, "junk") != NULL;
}

Test(modules, a_file_that_cannot_be_read_is_warned_about_once)
{
	struct tl_image_cache *c = tl_image_cache_new();
	struct tl_modules mods = {0};
	struct seen seen;
	size_t n;
	void *p;
	int fd;

	update(&mods, c, &seen);
	n = mods.n;
	put("junk", "this is no code at all");
	fd = open("junk", O_RDONLY);
	p = mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0);
	cr_assert_neq(p, MAP_FAILED);
	tl_log_set_sink(count, TL_LOG_WARNING);
	update(&mods, c, &seen);
	update(&mods, c, &seen);
	cr_expect_eq(mods.n, n);
	cr_expect_eq(n_warnings, 1);
	tl_modules_fini(&mods);
	tl_image_cache_free(c);
}

Test(modules, a_data_file_is_no_module)
{
	struct tl_image_cache *c = tl_image_cache_new();
	struct tl_modules mods = {0};
	struct seen seen;
	size_t n;
	int fd;

	update(&mods, c, &seen);
	n = mods.n;
	fd = open(library_path("libstdc++.so.6"), O_RDONLY);
	cr_assert_neq(mmap(NULL, 4096, PROT_READ, MAP_PRIVATE, fd, 0), MAP_FAILED);
	update(&mods, c, &seen);
	cr_expect_eq(mods.n, n);
	tl_modules_fini(&mods);
	tl_image_cache_free(c);
}

Test(modules, a_process_that_vanished_is_gone)
{
	struct tl_image_cache *c = tl_image_cache_new();
	struct tl_modules mods = {0};

	cr_expect_eq(tl_modules_update(&mods, c, 0x3fffff, NULL, NULL, NULL), TL_GONE);
	tl_image_cache_free(c);
}
