/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Merge sort of records, recursive and stable: structs by value. Request and reply: records, sorted by key. */
#include <lambda.h>

#define MAX 170

struct record {
	uint16_t key;
	uint16_t tag;
	uint32_t value;
};

static void merge(struct record *a, struct record *scratch, int low, int middle, int high)
{
	int i = low, j = middle;

	for (int k = low; k < high; k++)
		scratch[k] = i < middle && (j >= high || a[i].key <= a[j].key) ? a[i++] : a[j++];
	for (int k = low; k < high; k++)
		a[k] = scratch[k];
}

static void sort(struct record *a, struct record *scratch, int low, int high)
{
	int middle = (low + high) / 2;

	if (high - low < 2)
		return;
	sort(a, scratch, low, middle);
	sort(a, scratch, middle, high);
	merge(a, scratch, low, middle, high);
}

int merge_sort(EXTRACTED_HEADERS_T *headers, MATCH_DATA_T *match_data)
{
	struct record a[MAX], scratch[MAX];
	int n = lambda_read(headers, a, sizeof(a)) / sizeof(a[0]);

	(void)match_data;
	sort(a, scratch, 0, n);
	return lambda_write(headers, a, n * sizeof(a[0]));
}
