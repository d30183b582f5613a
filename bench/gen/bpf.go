package gen

//go:generate go tool bpf2go -cc clang-19 -target bpfel bpf gen.bpf.c -- -O2 -Wall -Werror -mcpu=v3 -I../../bpf -I/usr/include/x86_64-linux-gnu -I/usr/include/aarch64-linux-gnu
