#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/err.h"
#include "trapline/reader.h"

static char path[] = "/tmp/test_reader.XXXXXX";

static struct tl_reader *open_text(const char *text, unsigned flags)
{
	struct tl_reader *r = NULL;
	int fd = mkstemp(path);

	cr_assert(fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text));
	close(fd);
	tl_reader_open(path, flags, &r);
	unlink(path);
	return r;
}

#define HEAD "#fOrTyTwO\n$hz=1000000000;\nPART2\n"

static const char *name(struct tl_reader *r, const struct tl_event *e)
{
	return tl_reader_func(r, e->func)->name;
}

static enum tl_event_kind next(struct tl_reader *r, struct tl_event *e)
{
	cr_assert_eq(tl_reader_next(r, e), TL_OK, "%s", tl_error_text());
	return e->kind;
}

Test(reader, refuses_another_first_line)
{
	cr_assert_null(open_text("#fOrTyTwO \nPART2\n", 0));
	cr_assert(strstr(tl_error_text(), ":1: Not a perl profile"));
}

Test(reader, tells_which_file_cannot_be_opened)
{
	struct tl_reader *r;

	cr_assert_eq(tl_reader_open("/nonexistent", 0, &r), -ENOENT);
	cr_assert(strstr(tl_error_text(), "/nonexistent"));
}

Test(reader, header_assigns_and_never_evaluates)
{
	struct tl_reader *r = open_text("#fOrTyTwO\n$hz=100; $XS_VERSION='Some 1';\n"
					"system('false');\n $over_tests = 1_000 ;\n$hz=10*10;\n"
					"$rrun_utime=1e2; $rrun_rtime=0x64\nPART2\n",
					0);
	const struct tl_header *h = tl_reader_header(r);

	cr_assert_eq(h->hz, 100);
	cr_assert_str_eq(h->xs_version, "Some 1");
	cr_assert_eq(h->over_tests, 1000);
	cr_assert_eq(h->run[TL_USER], 100);
	cr_assert_eq(h->run[TL_WALL], 100);
	tl_reader_free(r);
}

Test(reader, both_dialects_line_by_line)
{
	struct tl_reader *r = open_text(HEAD "+ 5 1 7 a\n@ 10 2 20\n& 3 b c\n+ 3\n+ & d e f\n"
					     "PART3\n+ 1 1 1 never\n",
					0);
	struct tl_event e;

	cr_assert_eq(next(r, &e), TL_EVENT_ENTER);
	cr_assert_str_eq(name(r, &e), "a");
	cr_assert_eq(e.at[TL_WALL], 7);
	cr_assert_eq(next(r, &e), TL_EVENT_ENTER);
	cr_assert_str_eq(name(r, &e), "b::c");
	cr_assert_eq(e.at[TL_USER], 15);
	cr_assert_eq(e.at[TL_SYS], 3);
	cr_assert_eq(e.at[TL_WALL], 27);
	cr_assert_eq(next(r, &e), TL_EVENT_ENTER); /* five words: absolute, name is the last */
	cr_assert_str_eq(name(r, &e), "f");
	cr_assert_eq(next(r, &e), TL_EVENT_END);
	cr_assert_eq(next(r, &e), TL_EVENT_END);
	tl_reader_free(r);
}

Test(reader, large_integers_stay_exact)
{
	struct tl_reader *r = open_text(HEAD "+ 0 0 1750000000000000001 a\n"
					     "- 0 0 1750000000000000002 a\n",
					0);
	struct tl_event a, b;

	next(r, &a);
	next(r, &b);
	cr_assert_eq(b.at[TL_WALL] - a.at[TL_WALL], 1);
	tl_reader_free(r);
}

Test(reader, fractions_of_ticks_are_units)
{
	struct tl_reader *r = open_text("#fOrTyTwO\n$hz=1;\nPART2\n@ 0.5 .25 1e-3\n+ & a\n", 0);
	struct tl_event e;

	next(r, &e);
	cr_assert_eq(tl_reader_header(r)->units_per_second, 1e9);
	cr_assert_eq(e.at[TL_USER], 500000000);
	cr_assert_eq(e.at[TL_SYS], 250000000);
	cr_assert_eq(e.at[TL_WALL], 1000000);
	tl_reader_free(r);
}

Test(reader, flags_join_the_next_mark_only)
{
	struct tl_reader *r = open_text(HEAD "& 2 m a\n#! s\n+ 2\n#! u\n- 2\n+ 2\n#! f\n- 2\n", 0);
	unsigned want[] = {TL_MARK_SYNTHETIC, TL_MARK_UNWOUND, 0, TL_MARK_FORCED};
	struct tl_event e;

	for (unsigned i = 0; i < 4; i++) {
		next(r, &e);
		cr_assert_eq(e.flags, want[i]);
	}
	tl_reader_free(r);
}

Test(reader, func_lines_describe_what_is_defined_next)
{
	struct tl_reader *r =
	    open_text(HEAD "#! func 2 module=/lib/a%20b addr=0x1270 file=x.c line=7"
			   " how=bound self=upper new=1\n& 2 m a\n+ 2\n",
		      0);
	const struct tl_function_info *f;
	struct tl_event e;

	next(r, &e);
	f = tl_reader_func(r, e.func);
	cr_assert_str_eq(f->module, "/lib/a b");
	cr_assert_str_eq(f->file, "x.c");
	cr_assert_eq(f->addr, 0x1270);
	cr_assert_eq(f->line, 7);
	cr_assert_eq(f->how, TL_HOW_BOUND);
	cr_assert_eq(f->self, TL_SELF_UPPER);
	tl_reader_free(r);
}

Test(reader, notes_are_events)
{
	struct tl_reader *r =
	    open_text(HEAD "#! trapline 1\n# comment\n#! task pid=7 comm=a%3db\n", 0);
	struct tl_event e;
	char *v;

	cr_assert_eq(next(r, &e), TL_EVENT_NOTE);
	cr_assert_str_eq(e.text, "trapline 1");
	cr_assert_eq(next(r, &e), TL_EVENT_TASK);
	v = tl_note_value(e.text, "comm");
	cr_assert_str_eq(v, "a=b");
	free(v);
	cr_assert_null(tl_note_value(e.text, "tid"));
	tl_reader_free(r);
}

Test(reader, lenient_with_line_ends)
{
	struct tl_reader *r = open_text(HEAD "& 2 m a\r\n\n+ 2 \r\n- 2", 0);
	struct tl_event e;

	next(r, &e);
	cr_assert_str_eq(name(r, &e), "m::a");
	cr_assert_eq(next(r, &e), TL_EVENT_EXIT);
	cr_assert_str_eq(name(r, &e), "m::a");
	tl_reader_free(r);
}

Test(reader, errors_name_the_line)
{
	const char *bad[] = {"hello\n", "@ 1 2\n", "+\n", "+x 1\n", "$hz=5;\n"};

	for (unsigned i = 0; i < sizeof bad / sizeof *bad; i++) {
		char text[100];
		struct tl_reader *r;
		struct tl_event e;

		snprintf(text, sizeof text, HEAD "# fine\n%s", bad[i]);
		r = open_text(text, 0);
		cr_assert_eq(tl_reader_next(r, &e), -EBADMSG, "%s", bad[i]);
		cr_assert(strstr(tl_error_text(), ":5: Bad profile"), "%s", tl_error_text());
		tl_reader_free(r);
		memcpy(path + strlen(path) - 6, "XXXXXX", 6);
	}
}

Test(reader, ids_keep_anonymous_subs_apart_on_request)
{
	struct tl_reader *r = open_text(HEAD "& 2 m __ANON__\n+ 2\n", TL_READ_IDS);
	struct tl_event e;

	next(r, &e);
	cr_assert_str_eq(name(r, &e), "m::__ANON__(2)");
	tl_reader_free(r);
}
