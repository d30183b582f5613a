// Package orchestrator decides which microservices leave overloaded SmartNICs for the NICs' hosts.
//
// It is the data-plane orchestrator of E3 (Liu, Peter, Krishnamurthy, Phothilimthana: E3: Energy-Efficient Microservices on
// SmartNIC-Accelerated Servers, ATC 2019), section 3.4. Each NIC sends a [Heartbeat] of 16 bytes every 50 ms (section 5.6). The
// [Controller] takes heartbeats in, one by one, and answers some with a [Decision]. The caller carries decisions out and reports the end of
// each to [Controller.Done]. Nothing here reads a clock or sends anything.
//
// What is detected:
//
//   - Host starvation: packets stand in the queue of the NIC's traffic manager while its link has bandwidth left, in several heartbeats
//     in a row.
//   - Microservice overload: a microservice's execution time is more than 20 % above its exponential moving average. The paper says that
//     the difference is "negative and larger than 20%", and not what is subtracted from what. An overload makes executions longer, so
//     the difference has to be the average less the latest time.
//   - A silent NIC: no heartbeat for several intervals ([Controller.Tick]).
//
// In the first two cases, the microservice of the NIC with the highest CPU use moves to the NIC's host.
//
// A NIC shares power with its host, so section 3.5 has both in one failure domain, with the host's other NICs. A silent NIC may thus be the
// first sign of a whole server lost: whoever takes it up should look at all NICs of that host, and find no replica there. For the same
// reason, a migration from NIC to host changes nothing in where replicas are safe.
//
// For N NICs with L microservices each:
//
//	New          O(N L) time and memory: 40 bytes a NIC, 8 bytes a microservice, in groups of eight
//	Observe      O(log L) at worst, O(1) expected; no allocation
//	Place, Done  O(log L)
//	Tick         O(1) a NIC and timeout, amortised
//
// A Controller is for one goroutine. To use several cores, give each a Controller of its own with a share of the NICs.
package orchestrator
