#include "engine/exact.h"

#include <signal.h>

#include "base/err.h"
#include "base/log.h"
#include "trapline/marks.h"

static int arm_all(struct tl_exact *e)
{
	size_t pos = 0;
	uint64_t key;
	void *v;
	int r = TL_OK;

	while (r >= 0 && tl_map_next(&e->session->processes, &pos, &key, &v)) {
		struct tl_process *p = v;

		if (!p->ignored && p->space->client)
			r = tl_probes_arm(e, p->space->client);
	}
	return r < 0 ? r : TL_OK;
}

int tl_measure_begin(struct tl_exact *e)
{
	uint64_t now = tl_now_ns();
	size_t pos = 0;
	uint64_t key;
	void *v;

	if (e->measuring)
		return TL_OK;
	e->measuring = e->began = true;
	e->measured_ns = now;
	while (tl_map_next(&e->session->tasks, &pos, &key, &v)) {
		struct tl_task *t = v;

		if (!t->client)
			continue;
		tl_exact_task_of(t)->unwind = true;
		if (t->state != TL_TASK_STOPPED)
			tl_task_start_clocks(t, now);
	}
	tl_note("measuring begins");
	return arm_all(e);
}

int tl_measure_end(struct tl_exact *e, const char *why)
{
	size_t pos = 0;
	uint64_t key, now = tl_now_ns();
	void *v;

	if (!e->measuring)
		return TL_OK;
	while (tl_map_next(&e->session->tasks, &pos, &key, &v)) {
		struct tl_task *t = v;

		if (!t->client)
			continue;
		tl_measure_flush(e, t);
		tl_frames_close(t, TL_MARK_FORCED);
		tl_frames_resuming(t);
	}
	e->measuring = false;
	e->run_ns += now - e->measured_ns;
	tl_note("measuring ends: %s", why);
	return arm_all(e);
}

/* What -d promises: measured for so long, then the target is left alone. */
static int time_is_up(struct tl_exact *e)
{
	int r = tl_measure_end(e, "duration");

	tl_session_end(e->session, TL_END_LEAVE, 0);
	return r;
}

int tl_measure_tick(struct tl_exact *e, uint64_t now)
{
	const struct tl_exact_options *o = &e->options;
	int r = TL_OK;

	if (!e->measuring && !e->run_ns && o->delay_ns && !o->start_on &&
	    now - e->start_ns >= o->delay_ns)
		r = tl_measure_begin(e);
	if (r == TL_OK && o->duration_ns && e->measuring &&
	    e->run_ns + (now - e->measured_ns) >= o->duration_ns)
		r = time_is_up(e);
	return r;
}

int tl_measure_signalled(struct tl_exact *e, int signal)
{
	int r;

	switch (signal) {
	case SIGUSR1:
		return tl_measure_begin(e);
	case SIGUSR2:
		return tl_measure_end(e, "SIGUSR2");
	case SIGINT:
		/* A launched target in the foreground got it from the terminal, like us. */
		if (e->options.launched)
			return TL_OK;
		break;
	default:
		break;
	}
	r = tl_measure_end(e, signal == SIGINT ? "Ctrl-C" : "signal");
	if (!e->options.launched) {
		tl_session_end(e->session, TL_END_LEAVE, 0);
		return r;
	}
	/* A launched one gets the signal and ends with us, or as it pleases. */
	kill(e->session->leader, signal);
	return r;
}
