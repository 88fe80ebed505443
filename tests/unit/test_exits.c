#include "probe/exits.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <gelf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/err.h"
#include "base/map.h"

enum { AT = 0x1000, TABLE = 0x2000 };

/* Code at AT, data at TABLE. */
struct image {
	const uint8_t *code, *table;
	size_t n, n_table;
};

static size_t part_of(uint64_t at, uint64_t base, const uint8_t *b, size_t size, uint8_t *buf,
		      size_t n)
{
	if (at < base || at >= base + size)
		return 0;
	if (n > base + size - at)
		n = base + size - at;
	memcpy(buf, b + (at - base), n);
	return n;
}

static size_t read_image(void *ctx, tl_vaddr at, uint8_t *buf, size_t n)
{
	const struct image *im = ctx;
	size_t got = part_of(at.u, AT, im->code, im->n, buf, n);

	return got ? got : part_of(at.u, TABLE, im->table, im->n_table, buf, n);
}

static struct tl_exits find_in(const struct image *im, size_t size)
{
	struct tl_vrange range = {{AT}, {AT + size}};
	struct tl_code code = {(void *)im, read_image, &range, 1, {AT}};
	struct tl_exits e;

	cr_assert_eq(tl_exits_find(&tl_arch_x86_64, &code, &e), TL_OK, "%s", tl_error_text());
	return e;
}

#define FIND(...)                                                                                  \
	({                                                                                         \
		static const uint8_t bytes_[] = {__VA_ARGS__};                                     \
		find_in(&(struct image){.code = bytes_, .n = sizeof bytes_}, sizeof bytes_);       \
	})

static void expect_exit(const struct tl_exits *e, size_t i, enum tl_exit_kind kind, uint64_t at)
{
	cr_assert_lt(i, e->n);
	cr_expect_eq(e->at[i].at.u, at);
	cr_expect_eq(e->at[i].kind, kind);
}

Test(exits, a_lone_ret_is_its_own_exit)
{
	struct tl_exits e = FIND(0xc3);

	cr_expect_eq(e.n, 1u);
	expect_exit(&e, 0, TL_EXIT_RETURN, AT);
	cr_expect(!e.use_return_site);
	tl_exits_fini(&e);
}

Test(exits, both_sides_of_a_branch_are_walked)
{
	/* je +2; nop; ret; ret */
	struct tl_exits e = FIND(0x74, 0x02, 0x90, 0xc3, 0xc3);

	cr_expect_eq(e.n, 2u);
	expect_exit(&e, 0, TL_EXIT_RETURN, AT + 3);
	expect_exit(&e, 1, TL_EXIT_RETURN, AT + 4);
	tl_exits_fini(&e);
}

Test(exits, jumps_that_leave_are_exits_with_their_targets)
{
	/* je outside; jmp outside */
	struct tl_exits e = FIND(0x74, 0x40, 0xe9, 0x00, 0x01, 0x00, 0x00);

	cr_expect_eq(e.n, 2u);
	expect_exit(&e, 0, TL_EXIT_BRANCH, AT);
	cr_expect_eq(e.at[0].target.u, AT + 0x42u);
	expect_exit(&e, 1, TL_EXIT_JUMP, AT + 2);
	cr_expect_eq(e.at[1].target.u, AT + 0x107u);
	cr_expect(!e.use_return_site);
	tl_exits_fini(&e);
}

Test(exits, what_control_does_not_reach_is_no_exit)
{
	/* jmp +1; (c3); ret */
	struct tl_exits e = FIND(0xeb, 0x01, 0xc3, 0xc3);

	cr_expect_eq(e.n, 1u);
	expect_exit(&e, 0, TL_EXIT_RETURN, AT + 3);
	tl_exits_fini(&e);
}

Test(exits, a_loop_to_the_entry_is_told)
{
	/* dec %edi; jne entry; ret */
	struct tl_exits e = FIND(0xff, 0xcf, 0x75, 0xfc, 0xc3);

	cr_expect(e.jumps_to_entry);
	cr_expect_eq(e.n, 1u);
	tl_exits_fini(&e);
}

Test(exits, a_call_at_the_very_end_does_not_come_back)
{
	/* je +1; ret; call outside; nopw */
	struct tl_exits e = FIND(0x74, 0x01, 0xc3, 0xe8, 0, 1, 0, 0, 0x66, 0x90);

	cr_expect(!e.use_return_site);
	cr_expect_eq(e.n, 1u);
	tl_exits_fini(&e);
}

Test(exits, running_past_the_end_needs_the_return_site)
{
	struct tl_exits e = FIND(0x31, 0xc0); /* xor %eax,%eax */

	cr_expect(e.use_return_site);
	cr_expect_str_eq(e.why, "control runs past its end");
	tl_exits_fini(&e);
}

Test(exits, an_indirect_jump_needs_the_return_site)
{
	struct tl_exits e = FIND(0xff, 0xe0); /* jmp *%rax */

	cr_expect(e.use_return_site);
	cr_expect_str_eq(e.why, "indirect tail call or jump");
	tl_exits_fini(&e);
}

Test(exits, an_undecodable_instruction_needs_the_return_site)
{
	struct tl_exits e = FIND(0x90, 0x06, 0xc3); /* push %es: not in 64-bit mode */

	cr_expect(e.use_return_site);
	cr_expect_str_eq(e.why, "an instruction that cannot be decoded");
	tl_exits_fini(&e);
}

Test(exits, an_undecodable_entry_is_an_error)
{
	static const uint8_t bytes[] = {0x06, 0xc3};
	struct image im = {.code = bytes, .n = 2};
	struct tl_vrange range = {{AT}, {AT + 2}};
	struct tl_code code = {&im, read_image, &range, 1, {AT}};
	struct tl_exits e;

	cr_expect_eq(tl_exits_find(&tl_arch_x86_64, &code, &e), -EILSEQ);
}

Test(exits, overlapping_instructions_need_the_return_site)
{
	/* je into the immediate; mov $0xc3909090,%eax; ret */
	struct tl_exits e = FIND(0x74, 0x01, 0xb8, 0x90, 0x90, 0x90, 0xc3, 0xc3);

	cr_expect(e.use_return_site);
	cr_expect_str_eq(e.why, "overlapping instructions");
	tl_exits_fini(&e);
}

Test(exits, a_part_of_its_own_used_as_a_subroutine_needs_the_return_site)
{
	/* call +1; ret; ret */
	struct tl_exits e = FIND(0xe8, 1, 0, 0, 0, 0xc3, 0xc3);

	cr_expect(e.use_return_site);
	tl_exits_fini(&e);
}

Test(exits, a_call_of_the_next_instruction_goes_on)
{
	struct tl_exits e = FIND(0xe8, 0, 0, 0, 0, 0x58, 0xc3); /* call .; pop %rax; ret */

	cr_expect(!e.use_return_site);
	expect_exit(&e, 0, TL_EXIT_RETURN, AT + 6);
	tl_exits_fini(&e);
}

Test(exits, ud2_ends_a_path)
{
	struct tl_exits e = FIND(0x74, 0x01, 0xc3, 0x0f, 0x0b);

	cr_expect(!e.use_return_site);
	cr_expect_eq(e.n, 1u);
	tl_exits_fini(&e);
}

Test(exits, cold_parts_are_parts)
{
	static const uint8_t bytes[] = {0x74, 0x0e, 0xc3, 0x90, [16] = 0x90, 0xeb, 0xef};
	struct image im = {.code = bytes, .n = sizeof bytes};
	struct tl_vrange range[] = {{{AT}, {AT + 3}}, {{AT + 16}, {AT + 19}}};
	struct tl_code code = {&im, read_image, range, 2, {AT}};
	struct tl_exits e;

	cr_assert_eq(tl_exits_find(&tl_arch_x86_64, &code, &e), TL_OK);
	cr_expect(!e.use_return_site);
	cr_expect_eq(e.n, 1u); /* the jump back is none */
	tl_exits_fini(&e);
}

/* cmp $2,%edi; ja +0x10; lea TABLE(%rip),%rdx; movslq (%rdx,%rdi,4),%rax; add %rdx,%rax;
 * notrack jmp *%rax; ret (default at 0x15 + ...) */
static const uint8_t pic_switch[] = {
	0x83, 0xff, 0x02,				/* 00 cmp $2,%edi */
	0x77, 0x11,					/* 03 ja 16 */
	0x48, 0x8d, 0x15, 0xf4, 0x0f, 0x00, 0x00,	/* 05 lea TABLE(%rip),%rdx */
	0x48, 0x63, 0x04, 0xba,				/* 0c movslq (%rdx,%rdi,4),%rax */
	0x48, 0x01, 0xd0,				/* 10 add %rdx,%rax */
	0x3e, 0xff, 0xe0,				/* 13 notrack jmp *%rax */
	0xc3,						/* 16 ret */
	0xc3,						/* 17 ret */
	0x90, 0xc3,					/* 18 nop; ret */
};

static struct tl_exits find_switch(const int32_t *table, size_t entries)
{
	struct image im = {pic_switch, (const uint8_t *)table, sizeof pic_switch, entries * 4};

	return find_in(&im, sizeof pic_switch);
}

Test(exits, a_jump_table_is_followed)
{
	static const int32_t table[] = {AT + 0x17 - TABLE, AT + 0x18 - TABLE, AT + 0x16 - TABLE};
	struct tl_exits e = find_switch(table, 3);

	cr_expect(!e.use_return_site, "%s", e.why);
	cr_expect_eq(e.n, 3u);
	tl_exits_fini(&e);
}

Test(exits, a_jump_table_that_leaves_needs_the_return_site)
{
	static const int32_t table[] = {AT + 0x17 - TABLE, AT + 0x18 - TABLE, AT + 0x86 - TABLE};
	struct tl_exits e = find_switch(table, 3);

	cr_expect(e.use_return_site);
	tl_exits_fini(&e);
}

Test(exits, a_jump_table_shorter_than_its_bound_needs_the_return_site)
{
	static const int32_t table[] = {AT + 0x17 - TABLE, AT + 0x18 - TABLE};
	struct tl_exits e = find_switch(table, 2);

	cr_expect(e.use_return_site);
	tl_exits_fini(&e);
}

Test(exits, a_jump_into_the_table_sequence_makes_its_bound_void)
{
	/* One case goes back between the comparison and the jump. */
	static const int32_t table[] = {AT + 0x17 - TABLE, AT + 0x05 - TABLE, AT + 0x16 - TABLE};
	struct tl_exits e = find_switch(table, 3);

	cr_expect(e.use_return_site);
	tl_exits_fini(&e);
}

Test(exits, an_absolute_jump_table_is_followed)
{
	static const uint8_t code[] = {
		0x83, 0xff, 0x01,			  /* 00 cmp $1,%edi */
		0x77, 0x07,				  /* 03 ja 0c */
		0xff, 0x24, 0xfd, 0x00, 0x20, 0x00, 0x00, /* 05 jmp *TABLE(,%rdi,8) */
		0xc3,					  /* 0c */
		0xc3,					  /* 0d */
	};
	static const uint64_t table[] = {AT + 0x0c, AT + 0x0d};
	struct image im = {code, (const uint8_t *)table, sizeof code, sizeof table};
	struct tl_exits e = find_in(&im, sizeof code);

	cr_expect(!e.use_return_site, "%s", e.why);
	cr_expect_eq(e.n, 2u);
	tl_exits_fini(&e);
}

/* Real functions. */

struct elf {
	Elf *elf;
	int fd;
	char *raw;
	size_t size;
};

static size_t read_elf(void *ctx, tl_vaddr at, uint8_t *buf, size_t n)
{
	struct elf *f = ctx;
	size_t phnum;

	elf_getphdrnum(f->elf, &phnum);
	for (size_t i = 0; i < phnum; i++) {
		GElf_Phdr ph;

		gelf_getphdr(f->elf, (int)i, &ph);
		if (ph.p_type != PT_LOAD || at.u < ph.p_vaddr || at.u >= ph.p_vaddr + ph.p_filesz)
			continue;
		if (n > ph.p_vaddr + ph.p_filesz - at.u)
			n = ph.p_vaddr + ph.p_filesz - at.u;
		memcpy(buf, f->raw + ph.p_offset + (at.u - ph.p_vaddr), n);
		return n;
	}
	return 0;
}

static bool open_elf(struct elf *f, const char *path)
{
	elf_version(EV_CURRENT);
	f->fd = open(path, O_RDONLY);
	if (f->fd < 0)
		return false;
	f->elf = elf_begin(f->fd, ELF_C_READ, NULL);
	f->raw = elf_rawfile(f->elf, &f->size);
	return f->raw != NULL;
}

static bool next_symbols(struct elf *f, Elf_Scn **scn, Elf_Data **data, size_t *n)
{
	GElf_Shdr sh;

	while ((*scn = elf_nextscn(f->elf, *scn))) {
		gelf_getshdr(*scn, &sh);
		if ((sh.sh_type != SHT_DYNSYM && sh.sh_type != SHT_SYMTAB) || !sh.sh_entsize)
			continue;
		*data = elf_getdata(*scn, NULL);
		*n = sh.sh_size / sh.sh_entsize;
		return true;
	}
	return false;
}

struct tally {
	size_t functions, known, returns, not_ret, ret_missed, ret_seen, instructions, errors;
	struct tl_map why, rets;
};

static void tally_one(struct tally *t, struct elf *f, const GElf_Sym *sym)
{
	struct tl_vrange range = {{sym->st_value}, {sym->st_value + sym->st_size}};
	struct tl_code code = {f, read_elf, &range, 1, {sym->st_value}};
	struct tl_map own = {0};
	struct tl_exits e;

	t->functions++;
	if (tl_exits_find(&tl_arch_x86_64, &code, &e)) {
		t->errors++;
		return;
	}
	t->known += !e.use_return_site;
	t->instructions += e.instructions;
	for (size_t i = 0; i < e.n; i++) {
		if (e.at[i].kind != TL_EXIT_RETURN)
			continue;
		t->returns++;
		t->not_ret += !tl_map_get(&t->rets, e.at[i].at.u);
		tl_map_put(&own, e.at[i].at.u, &own);
	}
	for (uint64_t at = range.lo.u; !e.use_return_site && at < range.hi.u; at++) {
		if (!tl_map_get(&t->rets, at))
			continue;
		t->ret_seen++;
		t->ret_missed += !tl_map_get(&own, at);
	}
	if (e.use_return_site) {
		uint64_t key = (uint64_t)(uintptr_t)e.why;

		tl_map_put(&t->why, key, (char *)tl_map_get(&t->why, key) + 1);
	}
	tl_map_fini(&own);
	tl_exits_fini(&e);
}

static bool objdump_rets(const char *path, struct tl_map *rets)
{
	char *cmd = tl_asprintf("objdump -d --no-show-raw-insn '%s' 2>/dev/null", path);
	FILE *p = popen(cmd, "r");
	char line[512];
	unsigned long at;

	free(cmd);
	while (p && fgets(line, sizeof line, p)) {
		char *tab = strchr(line, '\t');

		if (!tab || sscanf(line, " %lx:", &at) != 1)
			continue;
		tab[strcspn(tab, "<#")] = '\0'; /* names of targets */
		if (strstr(tab, "ret") && !strstr(tab, "sysret"))
			tl_map_put(rets, at, rets);
	}
	return p && pclose(p) == 0;
}

static void survey(const char *path, size_t at_least_percent)
{
	struct tally t = {0};
	struct tl_map seen = {0};
	struct elf f = {0};
	Elf_Scn *scn = NULL;
	Elf_Data *data = NULL;
	size_t n, pos = 0;
	uint64_t key;
	void *count;

	if (!open_elf(&f, path) || !objdump_rets(path, &t.rets))
		cr_skip_test("%s or objdump is not here", path);
	while (next_symbols(&f, &scn, &data, &n)) {
		for (size_t i = 0; i < n; i++) {
			GElf_Sym s;

			gelf_getsym(data, (int)i, &s);
			if (GELF_ST_TYPE(s.st_info) != STT_FUNC || !s.st_value || !s.st_size ||
			    tl_map_get(&seen, s.st_value))
				continue;
			tl_map_put(&seen, s.st_value, &seen);
			tally_one(&t, &f, &s);
		}
	}
	fprintf(stderr,
		"%s: %zu functions, exits known of %zu (%.2f %%), %zu instructions, %zu returns, "
		"%zu not shown as ret by objdump, %zu of %zu rets in them not reached, %zu errors\n",
		path, t.functions, t.known, 100.0 * (double)t.known / (double)t.functions,
		t.instructions, t.returns, t.not_ret, t.ret_missed, t.ret_seen, t.errors);
	while (tl_map_next(&t.why, &pos, &key, &count))
		fprintf(stderr, "  %6zu %s\n", (size_t)count, (const char *)(uintptr_t)key);
	cr_expect_eq(t.not_ret, 0u);
	cr_expect_geq(t.known * 100, t.functions * at_least_percent);
	tl_map_fini(&t.why);
	tl_map_fini(&t.rets);
	tl_map_fini(&seen);
	elf_end(f.elf);
	close(f.fd);
}

Test(exits, every_return_in_libc_is_a_ret_to_objdump)
{
	survey("/lib/x86_64-linux-gnu/libc.so.6", 80);
}

Test(exits, every_return_in_libstdcxx_is_a_ret_to_objdump)
{
	survey("/usr/lib/x86_64-linux-gnu/libstdc++.so.6", 80);
}

/* This program's own, with its static functions, compiled as the project is. */
Test(exits, every_return_in_this_program_is_a_ret_to_objdump)
{
	char path[4096];
	ssize_t n = readlink("/proc/self/exe", path, sizeof path - 1);

	cr_assert_gt(n, 0);
	path[n] = '\0';
	survey(path, 90);
}
