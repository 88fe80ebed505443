/* ptrace_floor - the cheapest int3 stop that ptrace can give on this machine.
 *
 * A child executes N int3 instructions, working WORK ns before each; the parent
 * does nothing at each stop but wait4(), one PTRACE_GETREGS, one PTRACE_POKEUSER
 * of rip and PTRACE_CONT. That is the least a breakpoint profiler can do, so the
 * ns per stop printed here are the limit to measure our own cost against, in
 * the same run. The work is not counted in the cost; with PAIRS = 2 two such pairs
 * run at once, one on each CPU, and stops per second of both together are what
 * several tracing threads can reach.
 *
 *   cc -O2 -o ptrace_floor ptrace_floor.c
 *   ptrace_floor same|apart|free N [WORK_NS [PAIRS]]
 *     same: tracer and tracee pinned to one CPU; apart: to two; free: unpinned
 */
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static double now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1e9 + t.tv_nsec;
}

static void pin(int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	sched_setaffinity(0, sizeof set, &set);
}

static unsigned long spin(unsigned long rounds)
{
	unsigned long x = 1;

	while (rounds--) {
		x = x * 6364136223846793005UL + 1;
		__asm__ volatile("" : "+r"(x));
	}
	return x;
}

/* Rounds of spin() that take NS nanoseconds on this CPU, now. */
static unsigned long rounds_for(double ns)
{
	double t = now_ns();

	spin(2000000);
	return ns * 2000000 / (now_ns() - t);
}

/* One tracer with its tracee; prints ns per stop without the work. */
static int one_pair(const char *where, int cpu, long n, double work_ns)
{
	int bound = strcmp(where, "free") != 0, st;
	long stops = 0;
	pid_t pid;

	if (bound)
		pin(cpu);
	unsigned long rounds = rounds_for(work_ns);
	pid = fork();
	if (pid == 0) {
		ptrace(PTRACE_TRACEME, 0, 0, 0);
		raise(SIGSTOP);
		for (long i = 0; i < n; i++) {
			spin(rounds);
			__asm__ volatile("int3");
		}
		_exit(0);
	}
	if (!strcmp(where, "apart"))
		pin(!cpu);
	waitpid(pid, &st, 0);
	ptrace(PTRACE_CONT, pid, 0, 0);
	double t0 = now_ns();
	for (;;) {
		struct rusage ru;
		struct user_regs_struct regs;

		if (wait4(pid, &st, __WALL, &ru) < 0 || !WIFSTOPPED(st))
			break;
		stops++;
		ptrace(PTRACE_GETREGS, pid, 0, &regs);
		ptrace(PTRACE_POKEUSER, pid, offsetof(struct user_regs_struct, rip), regs.rip);
		ptrace(PTRACE_CONT, pid, 0, 0);
	}
	double per = (now_ns() - t0) / stops;
	printf("%s: %.0f ns per stop over %ld stops, %.0f stops/s\n", where, per - work_ns, stops,
	       1e9 / per);
	return stops != n;
}

int main(int argc, char **argv)
{
	const char *where = argc > 1 ? argv[1] : "same";
	long n = argc > 2 ? atol(argv[2]) : 100000;
	double work_ns = argc > 3 ? atof(argv[3]) : 0;
	int pairs = argc > 4 ? atoi(argv[4]) : 1, bad = 0, st;

	for (int i = 1; i < pairs; i++)
		if (fork() == 0)
			_exit(one_pair(where, i, n, work_ns) | (fflush(stdout) != 0));
	bad = one_pair(where, 0, n, work_ns);
	while (wait(&st) > 0)
		bad |= st;
	return bad != 0;
}
