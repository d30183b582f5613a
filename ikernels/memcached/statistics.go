package memcached

import (
	"github.com/lambdanic/lambdanic/api"
	"github.com/lambdanic/lambdanic/internal/counters"
)

// Statistics say what a Cache has done.
type Statistics struct {
	Hits    uint64 // keys that the NIC program answered
	Misses  uint64 // keys that it left to the server, since it had no current value
	Cold    uint64 // of the misses: keys that are asked for too seldom to be worth their memory
	Beside  uint64 // keys that it left to the server, since others of the same GET were missing
	Large   uint64 // GETs that it left to the server, since the packet had no room for the reply
	Other   uint64 // datagrams to the server that are no GET, or one that is left to the server
	Unasked uint64 // keys that were not fetched, since the worker did not keep up
	Fetched uint64 // values that were fetched from the server
	Absent  uint64 // keys that the server did not have
	Unkept  uint64 // values that were fetched and not kept: too large, about to expire, or no memory was free
	Stale   uint64 // values that were not kept, since a client has marked them as stale for another one to renew
	Failed  uint64 // attempts to fetch that failed
	Writes  Counts
}

// Statistics returns what was done so far.
func (c *Cache) Statistics() (Statistics, error) {
	n, err := counters.Sum(c.objects.McGetCounters)
	if err != nil {
		return Statistics{}, err
	}
	writes, err := c.server.Counts()
	w := &c.worker
	return Statistics{
		Hits: n[GetMcGetCountMC_GET_HITS], Misses: n[GetMcGetCountMC_GET_MISSES], Cold: n[GetMcGetCountMC_GET_COLD], Beside: n[GetMcGetCountMC_GET_BESIDE],
		Large: n[GetMcGetCountMC_GET_LARGE], Other: n[GetMcGetCountMC_GET_OTHER], Unasked: n[GetMcGetCountMC_GET_UNASKED],
		Fetched: w.fetched.Load(), Absent: w.absent.Load(), Unkept: w.unkept.Load(), Stale: w.returned.Load(), Failed: w.failed.Load(), Writes: writes,
	}, err
}

// A statistic is one of the numbers of Statistics, as users see it.
type statistic struct {
	name, help string
	value      func(*Statistics) uint64
}

// statistics are in the order of `lambdanic ik stats`. The table in README.md lists them, too.
var statistics = []statistic{
	{"gets", "Keys that clients asked for by GETs that could be answered in the NIC.", func(s *Statistics) uint64 { return s.Hits + s.Misses + s.Beside }},
	{"hits", "Keys that were answered in the NIC.", func(s *Statistics) uint64 { return s.Hits }},
	{"misses", "Keys that were left to the server, as the cache had no current value.", func(s *Statistics) uint64 { return s.Misses }},
	{"cold", "Of the misses: keys that are asked for too seldom to be worth their memory.", func(s *Statistics) uint64 { return s.Cold }},
	{"beside", "Keys that were left to the server, as other keys of the same GET were missing.", func(s *Statistics) uint64 { return s.Beside }},
	{"large", "GETs that were left to the server, as the packet had no room for the reply.", func(s *Statistics) uint64 { return s.Large }},
	{"other", "Datagrams to the server that are no GET, or one that the NIC leaves to the server.", func(s *Statistics) uint64 { return s.Other }},
	{"fetched", "Values that were fetched from the server.", func(s *Statistics) uint64 { return s.Fetched }},
	{"absent", "Keys that were to be fetched, and that the server did not have.", func(s *Statistics) uint64 { return s.Absent }},
	{"unkept", "Values that were fetched and not kept: too large, about to expire, or no memory was free.", func(s *Statistics) uint64 { return s.Unkept }},
	{"stale", "Values that were not kept, as a client had marked them for another one to renew.", func(s *Statistics) uint64 { return s.Stale }},
	{"unasked", "Keys that were not fetched, as the worker did not keep up.", func(s *Statistics) uint64 { return s.Unasked }},
	{"failures", "Attempts to fetch values that failed.", func(s *Statistics) uint64 { return s.Failed }},
	{"writes", "Commands that change one key, by UDP and TCP.", func(s *Statistics) uint64 { return s.Writes.Changes }},
	{"writes_of_all", "Commands that may change any key, and what a lost connection brought.", func(s *Statistics) uint64 { return s.Writes.ChangesAll }},
	{"connections_lost", "Connections that could not be followed any more, so that whatever they bring may change any key.", func(s *Statistics) uint64 { return s.Writes.Losses() }},
	{"connections_found", "Of these: connections that could be followed again.", func(s *Statistics) uint64 { return s.Writes.Found }},
}

// Counters are the Statistics for people and for Prometheus.
func (c *Cache) Counters() ([]api.Counter, error) {
	s, err := c.Statistics()
	if err != nil {
		return nil, err
	}
	return s.list(), nil
}

// list lists the numbers with their names.
func (s *Statistics) list() (all []api.Counter) {
	for _, n := range statistics {
		all = append(all, api.Counter{Name: n.name, Value: n.value(s), Help: n.help})
	}
	return all
}
