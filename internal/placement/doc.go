// Package placement places the microservices of applications on the computing nodes of a cluster: on hosts and on their SmartNICs.
//
// It follows E3 (Liu, Peter, Krishnamurthy, Phothilimthana: E3: Energy-Efficient Microservices on SmartNIC-Accelerated Servers,
// ATC 2019), section 3.3, and has the three algorithms that sections 5.4 and 5.6 compare:
//
//   - [State.HCM], the paper's Algorithm 1, which puts a microservice as near as it can to the one that calls it;
//   - [State.Anneal], simulated annealing in the manner of Service Fabric, which spreads microservices so that they interfere little;
//   - [State.ILP], the same costs as an integer linear program, solved by HiGHS or CBC.
//
// [State.Replace] mends a placement after nodes left or loads changed, and moves as little as it can. Every decision can be
// explained ([Decision]): which constraints forbid which nodes, what other nodes would cost, why Replace moved it. [State.Check] says what is wrong with a
// placement, whoever made it. [State.Shortage] says what is short where there is plainly no placement; else the [Violations] of the nearest one do.
//
// For N nodes, a tree of depth D, M microservices and E edges:
//
//	New, NewState   O(N + groups) time and memory
//	HCM             O(M (D log N)) where what is free decides; a search also looks at nodes on which microservices run and that the tree
//	                index cannot rule out, so the bound is O(M N), reached only if most nodes lack one resource each, and not the same
//	Anneal          O(M MovesPer (edges and rivals of a microservice)) + O(N)
//	ILP             exponential; about (M + E) (N + groups) variables and as many rows
//	Replace         as HCM for the microservices that move, and 2^K for each overloaded node of K microservices, at most 12, and else K^2,
//	                times the number of different limits of how many may be beside them
package placement
