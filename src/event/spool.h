/* event/spool.h - the folder that a recording grows in.
 *
 *	head	text lines: what goes into the profile's head
 *	funcs	text lines: functions that were called, later lines override how and self
 *	marks	chunks: a header of 16 bytes and whole lines of one task
 *
 *	spare	nothing: room for a profile when the disk is full
 *
 * The first three only ever grow, and a function is in `funcs' before a chunk that names it is
 * in `marks', so that what a crash leaves is a valid beginning. Three descriptors, however
 * many tasks. doc/FORMAT.md defines the files. */
#ifndef TL_EVENT_SPOOL_H
#define TL_EVENT_SPOOL_H

#include <stdbool.h>
#include <stdint.h>

#include "base/outbuf.h"
#include "base/strbuf.h"
#include "base/vec.h"
#include "event/writer.h"

enum { TL_CHUNK_MOST = 1 << 16 }; /* bytes of text in one chunk */

struct tl_chunk_header {
	uint32_t magic, task, length, seq; /* seq counts the task's chunks from 0 */
};
#define TL_CHUNK_MAGIC 0x6b634c54u /* "TLck" */

struct tl_spool {
	char *dir;
	struct tl_outbuf head, funcs, marks;
	int err;   /* the first write error: nothing is written after it */
	char *why; /* its text */
};

/* Where OUTPUT really is: links followed, absolute. *STRAIGHT: a pipe or device, no file
 * to be replaced. Fails where the profile could not be written at the end. Owned. */
int tl_spool_target(const char *output, char **target, bool *straight);

/* Makes the folder for TARGET; SPOOL is initialised whatever happens. */
int tl_spool_create(struct tl_spool *s, const char *target, bool straight);
/* One line, on its way at once. */
void tl_spool_head(struct tl_spool *s, const char *line);
void tl_spool_chunk(struct tl_spool *s, uint32_t task, uint32_t seq, const char *text, size_t n);
/* Everything reaches the files; TL_OK or the first error, with text. */
int tl_spool_flush(struct tl_spool *s);
/* Closes, and frees what S owns; the folder stays. */
void tl_spool_close(struct tl_spool *s);
/* Gives the spare room back. */
void tl_spool_spend_spare(const char *dir);
/* Removes the folder's files and itself. */
void tl_spool_remove(const char *dir);

struct tl_chunk_ref {
	uint64_t at; /* of its text */
	uint32_t task, length;
};
typedef TL_VEC(struct tl_chunk_ref) tl_chunk_refs;

/* The whole chunks in the first LIMIT bytes, in the order of tasks. */
int tl_spool_index(int marks_fd, uint64_t limit, tl_chunk_refs *out);
/* Exactly N bytes. */
int tl_spool_read(int fd, uint64_t at, void *buf, size_t n);
/* A whole small file of the folder, 0-terminated; a last line without newline is cut off. */
int tl_spool_slurp(const char *dir, const char *name, char **out);

/* What `head' and `funcs' say. Texts point into the files' text, kept with them. */
struct tl_spool_head {
	char *text;
	int pid;
	uint64_t started; /* of PID, in the ticks of /proc/PID/stat */
	enum tl_dialect dialect;
	char *output;
	int64_t over[3]; /* user, sys, wall */
	uint64_t over_tests;
	const char *run;
	TL_VEC(const char *) notes; /* `KEY TEXT' */
};
int tl_spool_head_read(const char *dir, struct tl_spool_head *h);
void tl_spool_head_fini(struct tl_spool_head *h);

struct tl_spool_func {
	const char *name;  /* `pkg name'; NULL: not there */
	const char *about; /* `module= addr=' */
	const char *where; /* `file= line=', or NULL */
	const char *how, *self;
};
struct tl_spool_funcs {
	char *text;
	struct tl_spool_func *at; /* by function */
	size_t n, cap;
};
int tl_spool_funcs_read(const char *dir, struct tl_spool_funcs *f);
void tl_spool_funcs_fini(struct tl_spool_funcs *f);

/* When the living process PID started, in ticks since boot; 0: there is none. */
uint64_t tl_spool_started(int pid);

#endif
