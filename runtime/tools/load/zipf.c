/* SPDX-License-Identifier: BSD-3-Clause */
#include "zipf.h"

#include <math.h>
#include <string.h>

enum { EXACT_RANKS = 4096 };

/* Sum of r^-theta for @from <= r <= @to: term by term, or by Euler and Maclaurin where there are many. */
static double weight(double from, double to, double theta)
{
	double sum = 0, integral;

	if (to - from < EXACT_RANKS) {
		for (double rank = from; rank <= to; rank++)
			sum += pow(rank, -theta);
		return sum;
	}
	integral = fabs(theta - 1) < 1e-9 ? log(to / from)
					  : (pow(to, 1 - theta) - pow(from, 1 - theta)) / (1 - theta);
	return integral + (pow(from, -theta) + pow(to, -theta)) / 2 +
	       theta * (pow(from, -theta - 1) - pow(to, -theta - 1)) / 12;
}

static void prepare_shares(struct perf_zipf *zipf, uint64_t spans, double theta)
{
	double weights[PERF_OCTAVES], total = 0, sum = 0;

	for (zipf->octaves = 0; zipf->octaves < PERF_OCTAVES && spans >> zipf->octaves; zipf->octaves++) {
		uint64_t low = (uint64_t)1 << zipf->octaves, high = low - 1 + low;

		weights[zipf->octaves] = weight((double)low, (double)(high < spans ? high : spans), theta);
		total += weights[zipf->octaves];
	}
	for (uint32_t i = 0; i < zipf->octaves; i++) {
		sum += weights[i];
		zipf->share[i] = sum / total >= 1 ? UINT64_MAX : (uint64_t)ldexp(sum / total, 64);
	}
}

/* (2 - s)^-theta = sum over k of 2^-(theta + k) theta (theta + 1) ... (theta + k - 1) / k! s^k */
static void prepare_terms(struct perf_zipf *zipf, double theta)
{
	double term = pow(2, -theta);

	for (unsigned k = 0; k < PERF_TERMS; k++) {
		zipf->term[k] = (uint32_t)(term * 4294967295.0);
		term *= (theta + k) / (k + 1) / 2;
	}
}

void perf_zipf_prepare(struct perf_zipf *zipf, uint64_t spans, double theta)
{
	memset(zipf, 0, sizeof(*zipf));
	prepare_shares(zipf, spans, theta);
	prepare_terms(zipf, theta);
	for (zipf->bits = 1; zipf->bits < 64 && (spans - 1) >> zipf->bits; zipf->bits++)
		;
}
