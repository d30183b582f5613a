package gen

//go:generate go tool bpf2go -target bpfel bpf gen.bpf.c -- -I../../bpf
