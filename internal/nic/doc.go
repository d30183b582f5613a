// Package nic owns NIC programs: it creates the virtual NIC or attaches to a real one, pins what it made, loads lambdas
// into slots and swaps them by a single store to the dispatch map, and adopts what an earlier daemon left running.
package nic
