/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Dates as RFC 3339 writes them, "2026-02-28T23:59:60Z" without fractions. Reply: the seconds since 1970, 64 bits, and the day of the
 * week, 0 for Monday; or nothing if the request is not such a date.
 */
#include <lambda.h>

struct date {
	int year, month, day, hour, minute, second;
};

/* Reads a number of so many digits and the character after it. Returns -1 if there is none. */
static int field(const char *p, int digits, char after)
{
	int v = 0;

	for (int i = 0; i < digits; i++) {
		if (p[i] < '0' || p[i] > '9')
			return -1;
		v = v * 10 + p[i] - '0';
	}
	return p[digits] == after ? v : -1;
}

static int leap(int year)
{
	return (year % 4 == 0 && year % 100) || year % 400 == 0;
}

static int days_in(int month, int year)
{
	static const uint8_t days[] = { 31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31 };

	return days[month - 1] + (month == 2 && leap(year));
}

static int parse(const char *p, struct date *d)
{
	d->year = field(p, 4, '-');
	d->month = field(p + 5, 2, '-');
	d->day = field(p + 8, 2, 'T');
	d->hour = field(p + 11, 2, ':');
	d->minute = field(p + 14, 2, ':');
	d->second = field(p + 17, 2, 'Z');
	return d->year >= 1 && d->month >= 1 && d->month <= 12 && d->day >= 1 && d->day <= days_in(d->month, d->year) &&
	       d->hour >= 0 && d->hour < 24 && d->minute >= 0 && d->minute < 60 && d->second >= 0 && d->second < 60;
}

/* Days from 1970-01-01 on, negative before. */
static int64_t days(const struct date *d)
{
	int64_t n = d->day - 1, y = d->year - 1;

	for (int m = 1; m < d->month; m++)
		n += days_in(m, d->year);
	return n + y * 365 + y / 4 - y / 100 + y / 400 - 719162;
}

int dates(EXTRACTED_HEADERS_T *headers, MATCH_DATA_T *match_data)
{
	char in[24];
	struct date d;
	int64_t out[2], day;

	(void)match_data;
	if (lambda_read(headers, in, sizeof(in)) != 20 || !parse(in, &d))
		return lambda_write(headers, out, 0);
	day = days(&d);
	out[0] = day * 86400 + d.hour * 3600 + d.minute * 60 + d.second;
	out[1] = ((day + 3) % 7 + 7) % 7;
	return lambda_write(headers, out, sizeof(out));
}
