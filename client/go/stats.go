package lambdanic

// Stats counts the work of a Client or Conn. Packets from other addresses than the server's never reach it: the kernel
// refuses them.
type Stats struct {
	Calls      uint64 // attempts
	Restarts   uint64 // attempts beyond a call's first
	Sent       uint64 // packets
	Resent     uint64 // packets sent again
	Received   uint64 // packets
	Duplicates uint64 // packets that said nothing new
	Stray      uint64 // packets for no call in flight: late, or forged
	Malformed  uint64 // packets that are not λ-RPC, or contradict themselves or their call
}
