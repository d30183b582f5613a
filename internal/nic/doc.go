// Package nic owns NIC programs: it creates the virtual NIC or attaches to a real one, pins what it made, loads lambdas
// into slots and swaps them by a single store to the dispatch map, and adopts what an earlier daemon left running.
package nic

//go:generate go tool bpf2go -cc clang-19 -target bpfel -no-strip -output-stem root -cflags "-O2 -g -Wall -Werror -Wno-address-of-packed-member -mcpu=v3" -type ln_version -type ln_limit -type ln_state -type ln_mode -type ln_protocol -type ln_message_state -type ln_call_state -type ln_counter -type ln_qp_state -type ln_qp -type ln_region -type ln_addresses -type ln_slot -type ln_split -type ln_service -type ln_message -type ln_bucket -type ln_call -type ln_stats -type ln_request root ../../bpf/root.bpf.c -- -I/usr/include/x86_64-linux-gnu
