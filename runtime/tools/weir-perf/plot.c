/* SPDX-License-Identifier: BSD-3-Clause */
#include "plot.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "backend/error.h"

enum { NAME_BYTES = 4200 };

static bool in_path(const char *program)
{
	const char *path = getenv("PATH");
	char name[NAME_BYTES];

	while (path && *path) {
		size_t length = strcspn(path, ":");

		snprintf(name, sizeof(name), "%.*s/%s", (int)length, path, program);
		if (access(name, X_OK) == 0)
			return true;
		path += length + (path[length] == ':');
	}
	return false;
}

int perf_plot_check(const char *path)
{
	bool there = access(path, F_OK) == 0;
	FILE *file;

	if (strpbrk(path, "'\n"))
		return weir_fail(EINVAL, "--plot: a file name with quotes or line breaks is not for gnuplot");
	if (!in_path("gnuplot"))
		return weir_fail(EINVAL,
				 "--plot needs gnuplot: apt-get install gnuplot-nox, or leave --plot out");
	file = fopen(path, "a");
	if (!file)
		return weir_fail(EINVAL, "--plot=%s: %s", path, strerror(errno));
	fclose(file);
	if (!there)
		unlink(path); /* a run that fails leaves none */
	return 0;
}

/* gnuplot, listening to the pipe that comes out in @input. */
static pid_t start(FILE **input)
{
	int ends[2];
	pid_t child;

	if (pipe(ends) != 0)
		return -1;
	child = fork();
	if (child == 0) {
		dup2(ends[0], STDIN_FILENO);
		close(ends[0]);
		close(ends[1]);
		execlp("gnuplot", "gnuplot", (char *)NULL);
		_exit(127);
	}
	close(ends[0]);
	*input = child > 0 ? fdopen(ends[1], "w") : NULL;
	if (!*input)
		close(ends[1]);
	return child;
}

static void draw_sweep(FILE *input, const struct perf_outcome *outcomes, unsigned count)
{
	bool plain = outcomes[0].plain.count != 0;

	fprintf(input, "set xlabel '%s'\nset ylabel 'GB/s'\nset yrange [0:*]\nset key left top\n",
		outcomes[0].options.sweep);
	fprintf(input, "$data << END\n");
	for (unsigned i = 0; i < count; i++) {
		double scale = (double)outcomes[i].bs / 1e9;
		const struct perf_outcome *o = &outcomes[i];

		fprintf(input, "%s %g %g %g %g %g %g\n", o->swept, perf_median(&o->weir) * scale,
			perf_least(&o->weir) * scale, perf_most(&o->weir) * scale,
			perf_median(&o->plain) * scale, perf_least(&o->plain) * scale,
			perf_most(&o->plain) * scale);
	}
	fprintf(input, "END\nplot $data using 0:2:3:4:xtic(1) with yerrorlines title 'weir'%s\n",
		plain ? ", $data using 0:5:6:7 with yerrorlines title 'plain kernel'" : "");
}

static void draw_buckets(FILE *input, const char *name, const uint64_t *buckets)
{
	fprintf(input, "$%s << END\n", name);
	for (unsigned i = 0; i + 1 < PERF_BUCKETS; i++)
		if (buckets[i])
			fprintf(input, "%g %llu\n", perf_bucket_us(i + 1), (unsigned long long)buckets[i]);
	fprintf(input, "END\n");
}

static void draw_latency(FILE *input, const struct perf_outcome *outcome)
{
	bool reads = perf_percentile_us(outcome->read_latency, .5) > 0;
	bool writes = perf_percentile_us(outcome->write_latency, .5) > 0;

	fprintf(input, "set xlabel 'latency, us'\nset ylabel 'requests'\nset logscale xy\n");
	draw_buckets(input, "reads", outcome->read_latency);
	draw_buckets(input, "writes", outcome->write_latency);
	fprintf(input, "plot %s%s%s\n", reads ? "$reads using 1:2 with linespoints title 'reads'" : "",
		reads && writes ? ", " : "",
		writes ? "$writes using 1:2 with linespoints title 'writes'" : "");
}

int perf_plot(const struct perf_outcome *outcomes, unsigned count)
{
	const char *path = outcomes[0].options.plot;
	FILE *input = NULL;
	int status = 0;
	pid_t child;

	signal(SIGPIPE, SIG_IGN); /* a gnuplot that ends early is told by its exit status */
	child = start(&input);
	if (child < 0 || !input)
		return weir_fail(EINVAL, "cannot start gnuplot: %s", strerror(errno));
	fprintf(input,
		"set terminal svg size 800,500 dynamic\nset output '%s'\nset grid\nset title '%s' "
		"noenhanced\n",
		path, outcomes[0].device);
	if (outcomes[0].options.sweep)
		draw_sweep(input, outcomes, count);
	else
		draw_latency(input, outcomes);
	fclose(input);
	waitpid(child, &status, 0);
	return status ? weir_fail(EINVAL, "gnuplot failed to draw %s (status %d)", path, WEXITSTATUS(status))
		      : 0;
}
