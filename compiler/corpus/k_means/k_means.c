/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * k-means after Lloyd, of points in the plane, in double. Request: how many means and how many rounds, 32 bits each, then the
 * points; the first of them are the means to begin with. Reply: the means.
 */
#include <lambda.h>

#define MAX 80
#define MEANS 8

struct point {
	double x, y;
};

struct request {
	uint32_t means, rounds;
	struct point point[MAX];
};

static double distance(struct point a, struct point b)
{
	double dx = a.x - b.x, dy = a.y - b.y;

	return dx * dx + dy * dy;
}

static int nearest(const struct point *mean, int k, struct point p)
{
	int best = 0;

	for (int i = 1; i < k; i++)
		if (distance(p, mean[i]) < distance(p, mean[best]))
			best = i;
	return best;
}

static void improve(struct point *mean, int k, const struct point *p, int n)
{
	struct point sum[MEANS] = { { 0 } };
	int count[MEANS] = { 0 };

	for (int i = 0; i < n; i++) {
		int m = nearest(mean, k, p[i]);

		sum[m].x += p[i].x;
		sum[m].y += p[i].y;
		count[m]++;
	}
	for (int m = 0; m < k; m++)
		if (count[m])
			mean[m] = (struct point){ sum[m].x / count[m], sum[m].y / count[m] };
}

int k_means(EXTRACTED_HEADERS_T *headers, MATCH_DATA_T *match_data)
{
	struct request in;
	struct point mean[MEANS];
	int bytes = lambda_read(headers, &in, sizeof(in)), n = (bytes - 8) / (int)sizeof(struct point);

	(void)match_data;
	if (bytes < 8 || !in.means || in.means > MEANS || (int)in.means > n || in.rounds > 20)
		return lambda_fail(headers, LN_STATUS_BAD_REQUEST);
	for (uint32_t m = 0; m < in.means; m++)
		mean[m] = in.point[m];
	for (uint32_t round = 0; round < in.rounds; round++)
		improve(mean, in.means, in.point, n);
	return lambda_write(headers, mean, in.means * sizeof(mean[0]));
}
