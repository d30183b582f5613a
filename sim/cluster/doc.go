// Package cluster simulates the microservices of applications on clusters of servers with SmartNICs: their latency, throughput and energy.
//
// It follows E3 (Liu, Peter, Krishnamurthy, Phothilimthana: E3: Energy-Efficient Microservices on SmartNIC-Accelerated Servers, ATC 2019).
// The [Catalogue] has the paper's microservices, applications and servers, or one's own. A [Setup] is an application on a cluster, which
// [Setup.Place] places by a policy of internal/placement. [Placed.Peak] is the load that the placement can bear, by arithmetic, and
// [Placed.Run] simulates one load, event by event.
//
// A load of R requests that each call V microservices takes O(R V log(R V)) time, and memory for the requests in flight.
package cluster
